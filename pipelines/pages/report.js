"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const links = document.getElementById("sections");
const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}
function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
// Addresses come from crawled pages: only those of the web become links, never `javascript:` or `data:`.
function link(url, text = url, attributes = {}) {
  return /^https?:\/\//i.test(url) ? make("a", { href: url, rel: "noreferrer noopener", ...attributes }, text) : make("span", {}, text);
}
// The page's policy forbids style attributes; properties that a script sets are allowed.
function styled(node, styles) {
  for (const [name, value] of Object.entries(styles)) node.style.setProperty(name, value);
  return node;
}
const whole = (value) => Number(value).toLocaleString("en");
const short = (value, digits = 4) => (value === null || value === undefined ? "" : Number(value).toFixed(digits));
function section(id, title, ...children) {
  links.append(make("a", { href: "#" + id }, title));
  const body = make("section", { id, "aria-labelledby": id + "-title" }, make("h2", { id: id + "-title" }, title), ...children);
  page.append(body);
  return body;
}
const cards = (entries) => make("div", { class: "cards" }, ...entries.map(([name, value]) => make("div", { class: "card" }, make("b", {}, value), make("span", {}, name))));

function table(columns, rows, describe) {
  let sorted = { index: -1, up: true };
  let shown = rows;
  const body = make("tbody");
  const kind = (column) => [column.number ? "number" : "", column.class || ""].join(" ").trim() || null;
  const head = make("tr", {}, ...columns.map((column, index) => make("th", { class: kind(column), scope: "col", "aria-sort": "none" },
    make("button", { type: "button", onclick: () => sort(index) }, column.name))));
  const element = make("table", {}, make("thead", {}, head), body);
  function cell(column, row) {
    const value = column.show ? column.show(row) : row[column.key];
    return make("td", { class: kind(column) }, value ?? "");
  }
  function render() {
    const limit = 1000;
    body.replaceChildren(...shown.slice(0, limit).flatMap((row) => {
      const line = make("tr", describe ? { class: "row", tabindex: row === shown[0] ? "0" : "-1", "aria-expanded": "false" } : {}, ...columns.map((column) => cell(column, row)));
      if (describe) {
        const toggle = () => {
          const open = line.getAttribute("aria-expanded") === "true";
          line.setAttribute("aria-expanded", String(!open));
          if (open) line.nextSibling.remove();
          else line.after(make("tr", { class: "why" }, make("td", { colspan: columns.length }, describe(row))));
        };
        line.addEventListener("click", (event) => { if (event.target.tagName !== "A") toggle(); });
        line.addEventListener("keydown", (event) => {
          if (event.target !== line) return;
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
          const step = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : null;
          if (!step) return;
          event.preventDefault();
          let next = line[step];
          while (next && !next.hasAttribute("tabindex")) next = next[step];
          if (next) { line.tabIndex = -1; next.tabIndex = 0; next.focus(); }
        });
      }
      return [line];
    }));
  }
  function inOrder(some) {
    if (sorted.index < 0) return some;
    const column = columns[sorted.index], key = (row) => (column.sort ? column.sort(row) : row[column.key]);
    return [...some].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      const order = left === right ? 0 : left === null || left === undefined ? 1 : right === null || right === undefined ? -1 : left < right ? -1 : 1;
      return sorted.up ? order : -order;
    });
  }
  function sort(index) {
    sorted = { index, up: sorted.index === index ? !sorted.up : !columns[index].number };
    shown = inOrder(shown);
    head.querySelectorAll("th").forEach((th, i) => th.setAttribute("aria-sort", i === index ? (sorted.up ? "ascending" : "descending") : "none"));
    render();
  }
  render();
  return { element: make("div", { class: "scroll", tabindex: describe ? null : "0", role: "region", "aria-label": "table" }, element), show: (next) => { shown = inOrder(next); render(); } };
}

function bars(series, { width = Math.min(720, Math.max(320, page.clientWidth)), height = 220, mark = null, names }) {
  const [all, chosen] = series;
  const most = Math.max(1, ...all);
  const left = 76, bottom = 44, step = (width - left - 12) / all.length;
  // Few URLs are counted one by one; of many, those that a million hides are shown by the logarithm.
  const few = most <= 20;
  const part = (value) => (few ? value / most : Math.log1p(value) / Math.log1p(most));
  const y = (value) => (height - bottom) * (1 - part(value)) + 8 * part(value);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": names });
  const ticks = few ? Array.from({ length: most + 1 }, (_, tick) => tick).filter((tick) => most <= 5 || tick % 5 === 0) : [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((tick) => tick <= most);
  for (const tick of ticks) {
    picture.append(draw("line", { class: "axis", x1: left, x2: width, y1: y(tick), y2: y(tick) }), Object.assign(draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", class: "soft" }), { textContent: whole(tick) }));
  }
  all.forEach((count, index) => {
    const add = (value, fill) => {
      const bar = draw("rect", { x: left + index * step + 1, width: Math.max(1, step - 2), y: y(value), height: Math.max(0, height - bottom - y(value)), fill });
      bar.append(Object.assign(draw("title"), { textContent: `${(index / all.length).toFixed(3)} to ${((index + 1) / all.length).toFixed(3)}: ${whole(count)} URLs, ${whole(chosen[index])} selected` }));
      picture.append(bar);
    };
    if (count) add(count, "var(--accent-soft)");
    if (chosen[index]) add(chosen[index], "var(--accent)");
  });
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) picture.append(Object.assign(draw("text", { x: left + tick * step * all.length, y: height - 24, "text-anchor": "middle", class: "soft" }), { textContent: tick }));
  picture.append(Object.assign(draw("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }), { textContent: "score" }), Object.assign(draw("text", { x: 12, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(height - bottom) / 2})` }), { textContent: few ? "URLs" : "URLs (logarithmic)" }));
  if (mark !== null && mark <= 1) {
    const x = left + mark * step * all.length;
    picture.append(draw("line", { x1: x, x2: x, y1: 4, y2: height - bottom, stroke: "var(--bad)", "stroke-dasharray": "4 3" }), Object.assign(draw("text", { x: mark > 0.75 ? x - 6 : x + 6, y: 14, "text-anchor": mark > 0.75 ? "end" : "start", class: "label" }), { textContent: "threshold " + mark }));
  }
  return picture;
}

// Of middle lightness, so that they show on light and on dark; dashes tell lines apart for who does not tell colours.
const COLOURS = ["#3b82f6", "#ea580c", "#16a34a", "#a855f7", "#ef4444", "#0891b2", "#ca8a04", "#ec4899", "#65a30d", "#64748b", "#6366f1", "#be123c"];
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

function ticksUpTo(values) {
  const most = Math.max(...values) || 1;
  const rough = values.every(Number.isInteger) ? Math.max(1, most / 5) : most / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  return Array.from({ length: Math.ceil((most / step) * 0.999) + 1 }, (_, index) => Number((index * step).toPrecision(6)));
}

function curves(lines, { x, y, width = 420, height = 270 }) {
  const left = 56, bottom = 40, right = 16, top = 10;
  const points = lines.flatMap((line) => line.points);
  const [ticksX, ticksY] = [0, 1].map((axis) => ticksUpTo(points.map((point) => point[axis])));
  const px = (v) => left + ((width - left - right) * v) / ticksX.at(-1), py = (v) => height - bottom - ((height - bottom - top) * v) / ticksY.at(-1);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `${y} against ${x}` });
  const text = (attributes, content) => Object.assign(draw("text", attributes), { textContent: content });
  for (const tick of ticksY) picture.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: py(tick), y2: py(tick) }), text({ x: left - 6, y: py(tick) + 4, "text-anchor": "end", class: "soft" }, tick.toLocaleString("en")));
  for (const tick of ticksX) picture.append(text({ x: px(tick), y: height - bottom + 16, "text-anchor": "middle", class: "soft" }, tick.toLocaleString("en")));
  picture.append(text({ x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, x), text({ x: 10, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${(height - bottom) / 2})` }, y));
  // Lines that coincide stay visible: those drawn first are wider.
  const style = (index) => ({ stroke: COLOURS[index % COLOURS.length], "stroke-width": Math.max(1.5, 4.5 - (3 * index) / Math.max(1, lines.length - 1)), "stroke-dasharray": DASHES[index % DASHES.length] });
  lines.forEach((line, index) => {
    if (!line.band) return;
    const edge = [...line.band.map((p) => [p[0], p[2]]), ...line.band.toReversed().map((p) => [p[0], p[1]])];
    picture.append(draw("polygon", { points: edge.map((p) => `${px(p[0])},${py(Math.max(0, Math.min(p[1], ticksY.at(-1))))}`).join(" "), fill: COLOURS[index % COLOURS.length], "fill-opacity": 0.1 }));
  });
  const drawn = lines.map((line, index) => {
    const [first] = line.points;
    const path = line.points.length === 1
      ? draw("circle", { cx: px(first[0]), cy: py(first[1]), r: 3.5, fill: style(index).stroke })
      : draw("polyline", { points: line.points.map((p) => `${px(p[0])},${py(p[1])}`).join(" "), fill: "none", ...style(index) });
    path.append(Object.assign(draw("title"), { textContent: line.name }));
    picture.append(path);
    return path;
  });
  const stress = (index) => drawn.forEach((path, i) => { path.style.opacity = index === null || i === index ? 1 : 0.15; });
  const legend = make("p", { class: "legend" }, ...lines.map((line, index) => {
    const key = draw("svg", { width: 26, height: 10, "aria-hidden": "true" }, draw("line", { x1: 0, x2: 26, y1: 5, y2: 5, ...style(index) }));
    return make("button", { type: "button", onmouseenter: () => stress(index), onmouseleave: () => stress(null), onfocus: () => stress(index), onblur: () => stress(null) }, key, line.name);
  }));
  return make("figure", {}, make("figcaption", {}, make("b", {}, y)), picture, legend);
}

const NODE_WIDTH = 138, STEP = 80;
const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);

function diagram({ nodes, edges }, describe, label) {
  const at = ([x, y]) => [x * NODE_WIDTH + 72, y * STEP + 40];
  const places = nodes.map((node) => at([node.x, node.y]));
  const width = Math.max(...places.map((place) => place[0])) + 72, height = Math.max(...places.map((place) => place[1])) + 32;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  styled(picture, { width: "100%", "min-width": `${0.75 * width}px`, "max-width": `${1.2 * width}px` });
  const drawn = edges.map(([upper, lower, bends]) => {
    const way = [places[upper], ...bends.map(at), places[lower]];
    const curve = way.slice(1).map(([x, y], i) => `C${way[i][0]},${(way[i][1] + y) / 2} ${x},${(way[i][1] + y) / 2} ${x},${y}`);
    const edge = draw("path", { class: "edge", d: `M${way[0].join()} ${curve.join(" ")}` });
    picture.append(edge);
    return edge;
  });
  const hint = "Point at a node, or move to the drawing with Tab and use the arrow keys. Enter or a click keeps a node selected, Escape releases it.";
  const detail = make("div", { class: "detail soft", "aria-live": "polite" }, hint);
  const groups = nodes.map((node, index) => {
    const [cx, cy] = places[index];
    const group = draw("g", { class: "node", tabindex: index ? "-1" : "0", role: "button", "aria-label": node.name });
    group.append(draw("circle", { cx, cy, r: node.size }), Object.assign(draw("text", { x: cx, y: cy - node.size - 5, "text-anchor": "middle" }), { textContent: cut(node.label, 19) }), Object.assign(draw("title"), { textContent: node.name }));
    picture.append(group);
    return group;
  });
  const near = (index, from, to) => edges.filter((edge) => edge[from] === index).map((edge) => edge[to]).sort((a, b) => nodes[a].x - nodes[b].x);
  const reading = nodes.map((_, index) => index).sort((a, b) => nodes[a].y - nodes[b].y || nodes[a].x - nodes[b].x);
  let held = null;
  function light(index) {
    picture.classList.toggle("lit", index !== null);
    if (index === null) return;
    const on = new Set([index]);
    drawn.forEach((edge) => edge.classList.remove("on"));
    for (const [from, to] of [[0, 1], [1, 0]]) {
      const stack = [index], seen = new Set(stack);
      while (stack.length) {
        const here = stack.pop();
        edges.forEach((edge, i) => {
          if (edge[from] !== here) return;
          drawn[i].classList.add("on");
          on.add(edge[to]);
          if (!seen.has(edge[to])) { seen.add(edge[to]); stack.push(edge[to]); }
        });
      }
    }
    groups.forEach((group, i) => group.classList.toggle("on", on.has(i)));
    detail.classList.remove("soft");
    detail.replaceChildren(describe(nodes[index]), ways("above", near(index, 1, 0)), ways("below", near(index, 0, 1)));
  }
  function ways(name, others) {
    if (!others.length) return "";
    const buttons = others.slice(0, 12).map((other) => make("button", { type: "button", onclick: () => { held = other; go(other); } }, cut(nodes[other].label || nodes[other].name, 28)));
    return make("div", { class: "tools" }, make("span", { class: "soft" }, `${name}:`), ...buttons, others.length > 12 ? ` and ${others.length - 12} more` : null);
  }
  function go(index) {
    groups.forEach((group, i) => group.setAttribute("tabindex", i === index ? "0" : "-1"));
    groups[index].focus();
  }
  groups.forEach((group, index) => {
    const hold = () => { held = held === index ? null : index; light(held); };
    group.addEventListener("mouseenter", () => light(index));
    group.addEventListener("mouseleave", () => light(held));
    group.addEventListener("focus", () => light(index));
    group.addEventListener("click", () => { go(index); hold(); });
    group.addEventListener("keydown", (event) => {
      const place = reading.indexOf(index);
      const steps = { ArrowLeft: reading[place - 1], ArrowRight: reading[place + 1], ArrowUp: near(index, 1, 0)[0], ArrowDown: near(index, 0, 1)[0], Home: reading[0], End: reading.at(-1) };
      if (event.key in steps) { event.preventDefault(); if (steps[event.key] !== undefined) go(steps[event.key]); }
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); hold(); }
      if (event.key === "Escape") { held = null; light(null); }
    });
  });
  // On a narrow screen the drawing's words would be too small to read: rows of buttons stand for its levels.
  const rows = new Map();
  reading.forEach((index) => rows.set(nodes[index].y, [...(rows.get(nodes[index].y) || []), index]));
  const levels = make("div", { class: "levels" }, ...[...rows.values()].map((row, level) => make("div", { class: "tools" }, make("span", { class: "soft" }, level + 1), ...row.map((index) => make("button", { type: "button", onclick: () => { held = index; light(index); } }, nodes[index].label || nodes[index].name)))));
  return make("div", {}, make("div", { class: "drawing" }, picture), levels, detail);
}

const folded = (summary, ...children) => make("details", {}, make("summary", {}, summary), ...children);

function whyText(row) {
  const items = (row.reasons || []).map((reason) => make("li", {}, make("b", {}, reason.term), ` ${Number(reason.value).toPrecision(4)}`, reason.weight === null ? "" : ` \u00d7 weight ${Number(reason.weight.toPrecision(4))}`, reason.detail ? ` (${reason.detail})` : ""));
  const pairs = (row.matches || []).map((match) => make("li", {}, `${match.base} ~ ${match.current}: ics ${short(match.ics)}`));
  const facts = [`links from or to the queue: ${row.base_links}`, `clicks from or to the queue: ${row.base_clicks}`, row.fetched ? `fetched ${row.last_fetched_at || "at an unknown time"}` : "not fetched yet"];
  if (row.extension || row.intension) facts.push(`extension ${short(row.extension)}, intension ${short(row.intension)}`);
  if (row.change_probability !== null) facts.push(`changed with probability ${short(row.change_probability)}: ordered by score \u00d7 probability`);
  if (row.held_back) facts.push(`held back: ${row.held_back}`);
  const open = link(row.url, /^https?:/i.test(row.url) ? "open the page" : "not a web address");
  return make("div", {}, items.length ? make("ul", {}, ...items) : null, pairs.length ? make("div", {}, "matched keywords (queue ~ this URL)", make("ul", {}, ...pairs)) : null, make("div", { class: "soft" }, facts.join(" \u00b7 "), " \u00b7 ", open));
}

function frontierTable(rows) {
  const columns = [
    { name: "rank", key: "rank", number: true, show: (row) => whole(row.rank) },
    { name: "score", key: "score", number: true, show: (row) => short(row.score) },
    { name: "selected", key: "selected", show: (row) => make("span", { class: row.selected ? "yes" : "no" }, row.selected ? "selected" : row.held_back || "no") },
    { name: "URL", key: "url", class: "url", show: (row) => make("div", {}, link(row.url, row.url, { tabindex: "-1" }), row.title ? make("div", { class: "title" }, row.title) : null, row.why ? make("div", { class: "soft why-line" }, row.why) : null) },
    { name: "fetched", key: "fetched", class: "wide", show: (row) => (row.fetched ? "yes" : "no") },
  ];
  const view = table(columns, rows, whyText);
  const text = make("input", { type: "search", placeholder: "part of the URL, title or a reason", "aria-label": "filter by text" });
  const host = make("select", { "aria-label": "filter by host" }, make("option", { value: "" }, "all hosts"), ...[...new Set(rows.map((row) => row.host))].sort().map((name) => make("option", {}, name)));
  const kind = make("select", { "aria-label": "filter by selection" }, ...["all", "selected", "held back", "new", "known"].map((name) => make("option", {}, name)));
  const count = make("span", { class: "soft", "aria-live": "polite" });
  function apply() {
    const wanted = text.value.toLowerCase();
    const kinds = { all: () => true, selected: (row) => row.selected, "held back": (row) => !row.selected, new: (row) => !row.fetched, known: (row) => row.fetched };
    const kept = rows.filter((row) => (!host.value || row.host === host.value) && kinds[kind.value](row) && (!wanted || row.url.toLowerCase().includes(wanted) || (row.title || "").toLowerCase().includes(wanted) || (row.reasons || []).some((reason) => (reason.detail || "").toLowerCase().includes(wanted))));
    view.show(kept);
    count.textContent = `${whole(kept.length)} of ${whole(rows.length)} shown`;
  }
  for (const control of [text, host, kind]) control.addEventListener("input", apply);
  apply();
  return make("div", {}, make("div", { class: "tools" }, text, host, kind, count), view.element);
}

function showRound(round) {
  page.append(cards(round.cards));
  if (round.note) page.append(make("p", { class: "soft" }, round.note));
  const { topic, seeds } = round;
  if (topic && topic.words.length) {
    const most = topic.words[0][1];
    const words = topic.words.map(([word, weight]) => make("span", { class: "word", title: `weight ${short(weight, 3)}` }, styled(make("span", { class: "bar" }), { width: `${(3 * weight) / most}rem` }), `${word} ${short(weight, 2)}`));
    const cohesion = topic.cohesion === null || topic.random_cohesion === null ? "" : `Cohesion of the seeds: ${short(topic.cohesion, 3)} (mean cosine of two; ${short(topic.random_cohesion, 3)} for random pages). `;
    section("topic", "Topic", make("p", { class: "soft" }, `The strongest words of the topic, from ${whole(topic.seeds)} seeds with known content. ${cohesion}${topic.relevance === null ? "" : `Mean cosine of the pages that the round before selected with the topic: ${short(topic.relevance, 3)}.`}`), make("div", { class: "words" }, ...words), folded(`${whole(seeds.count)} seeds`, make("ul", {}, ...seeds.urls.map((url) => make("li", {}, link(url))), seeds.count > seeds.urls.length ? make("li", { class: "soft" }, `and ${whole(seeds.count - seeds.urls.length)} more`) : null)));
  }
  section("top", "Top of the frontier", make("p", { class: "soft" }, round.top_note), frontierTable(round.top));
  if (round.sample.length) section("sample", "A sample of the rest", make("p", { class: "soft" }, round.sample_note), frontierTable(round.sample));
  section("scores", "Scores", make("p", { class: "soft" }, "The part of a bar in the stronger colour is selected. The scale is logarithmic if a bar has more than 20 URLs."), bars(round.bins, { mark: round.threshold, names: "URLs by score" }),
    round.held.length ? table([{ name: "held back by", key: "reason" }, { name: "URLs", key: "count", number: true, show: (r) => whole(r.count) }], round.held).element : make("p", {}, "Nothing is held back."));
  section("hosts", "Hosts", round.hosts_note ? make("p", { class: "soft" }, round.hosts_note) : null, table([{ name: "host", key: "host", class: "url" }, { name: "URLs", key: "urls", number: true, show: (r) => whole(r.urls) }, { name: "selected", key: "selected", number: true, show: (r) => whole(r.selected) }, { name: "mean score", key: "score", number: true, show: (r) => short(r.score) }], round.hosts).element);
  if (round.changes) {
    const kinds = { came: "new", rose: "moved up", fell: "moved down", chosen: "left (selected by the round before)", went: "left (other reasons)" };
    const rows = Object.entries(kinds).flatMap(([name, change]) => round.changes[name].rows.map((row) => ({ ...row, change })));
    const counts = Object.entries(kinds).map(([name, change]) => `${whole(round.changes[name].count)} ${change}`).join(", ");
    const number = (name, key) => ({ name, key, number: true, show: (row) => (row[key] === null || row[key] === undefined ? "" : whole(row[key])) });
    section("changes", "Since the round before", make("p", { class: "soft" }, `${round.changes_note} ${counts}. Places are counted among the URLs that both rounds have, so that none moves up because others left.`), table([{ name: "change", key: "change" }, number("rank", "rank"), number("rank before", "before"), { name: "places up", key: "move", number: true, show: (row) => (row.move ? (row.move > 0 ? "+" : "") + whole(row.move) : "") }, { name: "URL", key: "url", class: "url", show: (row) => link(row.url) }], rows).element);
  }
  if (round.keywords.nodes.length) section("keywords", "Keyword hierarchy", make("p", { class: "soft" }, round.keywords.note), diagram(round.keywords, (node) => make("div", {}, make("b", {}, node.name), ` \u2014 layer ${node.layer}, ${whole(node.clicks)} clicks, probability ${short(node.probability, 6)}`, node.related.length ? `; ISA: ${node.related.join(", ")}` : "", node.parts.length ? `; has part: ${node.parts.join(", ")}` : ""), "keyword hierarchy"));
  if (round.lattice.nodes.length) section("lattice", "Base concepts", make("p", { class: "soft" }, round.lattice.note), diagram(round.lattice, (node) => make("div", {}, make("b", {}, node.name), ` \u2014 ${whole(node.support)} URLs`, make("ul", {}, ...node.extent.map((url) => make("li", {}, url)), node.support > node.extent.length ? make("li", { class: "soft" }, `and ${whole(node.support - node.extent.length)} more`) : null)), "order diagram of concepts"));
  section("rejects", "Rejects", round.rejects.length ? table([{ name: "reason", key: "reason" }, { name: "records", key: "count", number: true, show: (r) => whole(r.count) }], round.rejects).element : make("p", {}, "None."));
  const slowest = Math.max(1e-9, ...round.stages.map((stage) => stage.seconds));
  const stages = table([{ name: "stage", key: "stage" }, { name: "seconds", key: "seconds", number: true, show: (r) => make("span", {}, styled(make("span", { class: "bar" }), { width: `${(6 * r.seconds) / slowest}rem` }), short(r.seconds, 2)) }, { name: "rows in", key: "rows_in", number: true, show: (r) => whole(r.rows_in) }, { name: "rows out", key: "rows_out", number: true, show: (r) => whole(r.rows_out) }, { name: "largest record, bytes", key: "largest_record_bytes", number: true, show: (r) => whole(r.largest_record_bytes) }, { name: "largest group, bytes", key: "largest_group_bytes", number: true, show: (r) => whole(r.largest_group_bytes) }], round.stages).element;
  section("stages", "Stages", folded(`${whole(round.stages.length)} stages; seconds spent in each, summed over workers`, stages));
  const parameters = (rows) => table([{ name: "parameter", key: "name" }, { name: "value", key: "value" }], rows).element;
  const [changed, same] = [true, false].map((differs) => round.parameters.filter((row) => row.changed === differs));
  section("parameters", "Parameters", changed.length ? parameters(changed) : make("p", {}, "All have their defaults."), folded(`${whole(same.length)} parameters at their defaults`, parameters(same)));
}

function showCrawl(crawl) {
  page.append(cards(crawl.cards));
  const count = (name, key = name) => ({ name, key, number: true, show: (row) => whole(row[key]) });
  const name = (row) => (row.page ? make("a", { href: row.page }, row.round) : row.round);
  const columns = [
    { name: "round", key: "round", class: "name", show: name },
    count("ranked"), count("selected"), count("new"), count("known"), count("hosts"),
    { name: "mean score", key: "mean_score", number: true, show: (row) => short(row.mean_score, 3) },
    { name: "relevance", key: "relevance", number: true, show: (row) => short(row.relevance, 3) },
    { name: "drift", key: "drift", number: true, show: (row) => short(row.drift, 3) },
    count("harvest", "harvested"), count("rejects", "rejected"),
    { name: "seconds", key: "seconds", number: true, show: (row) => short(row.seconds, 1) },
  ];
  const held = (row) => Object.entries(row.held_back).map(([reason, urls]) => make("li", {}, `${whole(urls)} held back: ${reason}`));
  const describe = (row) => make("div", {}, row.words ? make("p", {}, `topic: ${row.words}`) : null, make("ul", {}, ...held(row)), make("p", { class: "soft" }, `continued from ${row.queue}; ranker ${row.ranker}`));
  section("rounds", "Rounds", make("p", { class: "soft" }, "The mean score is that of the selected URLs; scores are relative to their round. Relevance is the mean cosine of the topic and the pages that the round before selected; drift is 1 - cosine of the topic's words and those of the first round. Open a row to see more."), table(columns, crawl.rounds, describe).element);
  section("curves", "Over the rounds", make("div", { class: "columns" }, ...crawl.charts.map((chart) => curves(chart.lines, chart))));
}

function pivoted(evaluation, mode) {
  const { measures, rows } = evaluation.pivots[mode];
  const best = Object.fromEntries(measures.map((name) => [name, Math.max(...rows.filter((row) => row.ranker !== "omniscient").map((row) => row[name].mean))]));
  const cell = (row, name) => {
    const { mean, low, high, difference_low: from, difference_high: to } = row[name];
    const sign = from === null || from === undefined ? "" : from > 0 ? " \u25b2" : to < 0 ? " \u25bc" : "";
    const text = `${short(mean, 3)}${low === null ? "" : ` [${short(low, 3)}, ${short(high, 3)}]`}${sign}`;
    return name !== "seconds" && row.ranker !== "omniscient" && mean === best[name] ? make("b", { class: "yes" }, text) : text;
  };
  return table([{ name: "ranker", key: "ranker" }, ...measures.map((name) => ({ name, number: true, sort: (row) => row[name].mean, show: (row) => cell(row, name) }))], rows).element;
}

function showEvaluation(evaluation) {
  page.append(cards(evaluation.cards), make("p", { class: "soft" }, evaluation.note));
  if (evaluation.modes.length) page.append(make("p", { class: "soft" }, evaluation.curves_note));
  for (const mode of evaluation.modes) section(mode.name, `Mode ${mode.name}`, mode.name in evaluation.pivots ? pivoted(evaluation, mode.name) : null, make("div", { class: "columns" }, ...mode.charts.map((chart) => curves(chart.lines, chart))));
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
if (data.round) showRound(data.round);
if (data.crawl) showCrawl(data.crawl);
if (data.evaluation) showEvaluation(data.evaluation);
