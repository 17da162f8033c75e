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
  const head = make("tr", {}, ...columns.map((column, index) => make("th", { class: column.number ? "number" : null, scope: "col", "aria-sort": "none" },
    make("button", { type: "button", onclick: () => sort(index) }, column.name))));
  const element = make("table", {}, make("thead", {}, head), body);
  function cell(column, row) {
    const value = column.show ? column.show(row) : row[column.key];
    return make("td", { class: [column.number ? "number" : "", column.class || ""].join(" ").trim() || null }, value ?? "");
  }
  function render() {
    const limit = 1000;
    body.replaceChildren(...shown.slice(0, limit).flatMap((row) => {
      const line = make("tr", describe ? { class: "row", tabindex: "0", "aria-expanded": "false" } : {}, ...columns.map((column) => cell(column, row)));
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
          if (step) { let next = line[step]; while (next && !next.hasAttribute("tabindex")) next = next[step]; if (next) { event.preventDefault(); next.focus(); } }
        });
      }
      return [line];
    }));
  }
  function sort(index) {
    sorted = { index, up: sorted.index === index ? !sorted.up : !columns[index].number };
    const key = (row) => (columns[index].sort ? columns[index].sort(row) : row[columns[index].key]);
    shown = [...shown].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      const order = left === right ? 0 : left === null || left === undefined ? 1 : right === null || right === undefined ? -1 : left < right ? -1 : 1;
      return sorted.up ? order : -order;
    });
    head.querySelectorAll("th").forEach((th, i) => th.setAttribute("aria-sort", i === index ? (sorted.up ? "ascending" : "descending") : "none"));
    render();
  }
  render();
  return { element: make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" }, element), show: (next) => { shown = next; render(); } };
}

function bars(series, { width = 720, height = 220, mark = null, names }) {
  const [all, chosen] = series;
  const most = Math.max(1, ...all);
  const left = 52, bottom = 28, step = (width - left - 12) / all.length;
  const y = (value) => (height - bottom) * (1 - Math.log1p(value) / Math.log1p(most)) + 8 * (Math.log1p(value) / Math.log1p(most));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": names });
  for (const tick of [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((t) => t <= most)) {
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
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) picture.append(Object.assign(draw("text", { x: left + tick * step * all.length, y: height - 8, "text-anchor": "middle", class: "soft" }), { textContent: tick }));
  if (mark !== null && mark <= 1) {
    const x = left + mark * step * all.length;
    picture.append(draw("line", { x1: x, x2: x, y1: 4, y2: height - bottom, stroke: "var(--bad)", "stroke-dasharray": "4 3" }), Object.assign(draw("text", { x: x + 4, y: 14 }), { textContent: "gamma " + mark }));
  }
  return picture;
}

function curves(lines, { x, y, width = 520, height = 300 }) {
  const colours = ["#0b6bcb", "#c2410c", "#1a7f4b", "#7c3aed", "#b3372f", "#0e7490", "#a16207", "#be185d", "#4d7c0f", "#475569", "#1e40af", "#9f1239"];
  const left = 48, bottom = 36, right = 10, top = 10;
  const points = lines.flatMap((line) => line.points);
  const maxX = Math.max(1e-9, ...points.map((p) => p[0])), maxY = Math.max(1e-9, ...points.map((p) => p[1]));
  const px = (v) => left + ((width - left - right) * v) / maxX, py = (v) => height - bottom - ((height - bottom - top) * v) / maxY;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `${y} against ${x}` });
  for (let i = 0; i <= 4; i++) {
    const vy = (maxY * i) / 4, vx = (maxX * i) / 4;
    picture.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: py(vy), y2: py(vy) }),
      Object.assign(draw("text", { x: left - 6, y: py(vy) + 4, "text-anchor": "end", class: "soft" }), { textContent: vy.toPrecision(2) }),
      Object.assign(draw("text", { x: px(vx), y: height - bottom + 16, "text-anchor": "middle", class: "soft" }), { textContent: maxX > 5 ? Math.round(vx) : vx.toPrecision(2) }));
  }
  picture.append(Object.assign(draw("text", { x: width / 2, y: height - 4, "text-anchor": "middle" }), { textContent: x }));
  lines.forEach((line, index) => {
    const path = draw("polyline", { points: line.points.map((p) => `${px(p[0])},${py(p[1])}`).join(" "), fill: "none", stroke: colours[index % colours.length], "stroke-width": 2 });
    path.append(Object.assign(draw("title"), { textContent: line.name }));
    picture.append(path);
  });
  const legend = make("p", { class: "soft" }, ...lines.flatMap((line, index) => {
    const dot = make("span", { style: `color:${colours[index % colours.length]}` }, "\u25cf ");
    return [dot, line.name + "   "];
  }));
  return make("figure", { style: "margin:0" }, make("figcaption", {}, make("b", {}, y)), picture, legend);
}

function diagram(nodes, edges, describe, label) {
  const rows = [];
  nodes.forEach((node, index) => { (rows[node.level] ||= []).push(index); });
  const gapX = 150, gapY = 88;
  const place = nodes.map(() => [0, 0]);
  const most = Math.max(1, ...rows.map((row) => (row || []).length));
  for (let pass = 0; pass < 6; pass++) {
    rows.forEach((row, level) => {
      if (!row) return;
      if (pass) {
        const centre = (index) => {
          const near = edges.filter(([a, b]) => a === index || b === index).map(([a, b]) => place[a === index ? b : a][0]);
          return near.length ? near.reduce((s, v) => s + v, 0) / near.length : place[index][0];
        };
        const wanted = new Map(row.map((index) => [index, centre(index)]));
        row.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
      }
      row.forEach((index, i) => { place[index] = [((i + 0.5) * most) / row.length, level]; });
    });
  }
  const width = Math.max(480, most * gapX + 40), height = rows.length * gapY + 40;
  const at = (index) => [20 + place[index][0] * gapX, 36 + place[index][1] * gapY];
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
  const drawn = edges.map(([a, b]) => {
    const [[x1, y1], [x2, y2]] = [at(a), at(b)];
    const edge = draw("path", { class: "edge", d: `M${x1},${y1} C${x1},${(y1 + y2) / 2} ${x2},${(y1 + y2) / 2} ${x2},${y2}` });
    picture.append(edge);
    return edge;
  });
  const detail = make("div", { class: "detail soft", "aria-live": "polite" }, "Point at or tab to a node; Enter or a click holds it.");
  const groups = nodes.map((node, index) => {
    const [cx, cy] = at(index);
    const group = draw("g", { class: "node", tabindex: "0", role: "button", "aria-label": node.name });
    group.append(draw("circle", { cx, cy, r: node.size }), Object.assign(draw("text", { x: cx, y: cy - node.size - 5, "text-anchor": "middle" }), { textContent: node.name.length > 20 ? node.name.slice(0, 19) + "\u2026" : node.name }));
    picture.append(group);
    return group;
  });
  let held = null;
  function light(index) {
    picture.classList.toggle("lit", index !== null);
    if (index === null) return;
    const on = new Set([index]);
    const follow = (from, to) => { const stack = [index]; while (stack.length) { const here = stack.pop(); edges.forEach((edge, i) => { if (edge[from] === here) { drawn[i].classList.add("on"); if (!on.has(edge[to])) { on.add(edge[to]); stack.push(edge[to]); } } }); } };
    drawn.forEach((edge) => edge.classList.remove("on"));
    follow(0, 1); follow(1, 0);
    groups.forEach((group, i) => group.classList.toggle("on", on.has(i)));
    detail.classList.remove("soft");
    detail.replaceChildren(describe(nodes[index]));
  }
  groups.forEach((group, index) => {
    group.addEventListener("mouseenter", () => light(index));
    group.addEventListener("mouseleave", () => light(held));
    group.addEventListener("focus", () => light(index));
    const hold = () => { held = held === index ? null : index; light(held); };
    group.addEventListener("click", hold);
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); hold(); } if (event.key === "Escape") { held = null; light(null); } });
  });
  return make("div", {}, make("div", { class: "drawing" }, picture), detail);
}

function whyText(row) {
  const items = (row.reasons || []).map((reason) => make("li", {}, make("b", {}, reason.term), ` ${Number(reason.value).toPrecision(4)}`, reason.weight === null ? "" : ` \u00d7 weight ${reason.weight}`, reason.detail ? ` (${reason.detail})` : ""));
  const pairs = (row.matches || []).map((match) => make("li", {}, `${match.base} ~ ${match.current}: ics ${short(match.ics)}`));
  const facts = [`links with the queue: ${row.base_links}`, `click edges: ${row.base_clicks}`, row.fetched ? `fetched ${row.last_fetched_at || "at an unknown time"}` : "not fetched yet"];
  if (row.extension || row.intension) facts.push(`extension ${short(row.extension)}, intension ${short(row.intension)}`);
  if (row.change_probability !== null) facts.push(`changed with probability ${short(row.change_probability)}`);
  if (row.held_back) facts.push(`held back: ${row.held_back}`);
  return make("div", {}, items.length ? make("ul", {}, ...items) : null, pairs.length ? make("div", {}, "matched keywords (queue ~ this URL)", make("ul", {}, ...pairs)) : null, make("div", { class: "soft" }, facts.join(" \u00b7 ")));
}

function frontierTable(rows) {
  const columns = [
    { name: "rank", key: "rank", number: true, show: (row) => whole(row.rank) },
    { name: "score", key: "score", number: true, show: (row) => short(row.score) },
    { name: "selected", key: "selected", show: (row) => make("span", { class: row.selected ? "yes" : "no" }, row.selected ? "selected" : row.held_back || "no") },
    { name: "URL", key: "url", class: "url", show: (row) => make("a", { href: row.url, rel: "noreferrer noopener" }, row.url) },
    { name: "fetched", key: "fetched", show: (row) => (row.fetched ? "yes" : "no") },
  ];
  const view = table(columns, rows, whyText);
  const text = make("input", { type: "search", placeholder: "part of the URL or a reason", "aria-label": "filter by text" });
  const host = make("select", { "aria-label": "filter by host" }, make("option", { value: "" }, "all hosts"), ...[...new Set(rows.map((row) => row.host))].sort().map((name) => make("option", {}, name)));
  const kind = make("select", { "aria-label": "filter by selection" }, ...["all", "selected", "held back", "new", "known"].map((name) => make("option", {}, name)));
  const count = make("span", { class: "soft", "aria-live": "polite" });
  function apply() {
    const wanted = text.value.toLowerCase();
    const kinds = { all: () => true, selected: (row) => row.selected, "held back": (row) => !row.selected, new: (row) => !row.fetched, known: (row) => row.fetched };
    const kept = rows.filter((row) => (!host.value || row.host === host.value) && kinds[kind.value](row) && (!wanted || row.url.toLowerCase().includes(wanted) || (row.reasons || []).some((reason) => (reason.detail || "").toLowerCase().includes(wanted))));
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
  section("top", "Top of the frontier", make("p", { class: "soft" }, round.top_note), frontierTable(round.top));
  if (round.sample.length) section("sample", "A sample of the rest", make("p", { class: "soft" }, round.sample_note), frontierTable(round.sample));
  section("scores", "Scores", make("p", { class: "soft" }, "URLs by score on a logarithmic scale; the darker part is selected."), bars(round.bins, { mark: round.gamma, names: "URLs by score" }),
    round.held.length ? table([{ name: "held back by", key: "reason" }, { name: "URLs", key: "count", number: true, show: (r) => whole(r.count) }], round.held).element : make("p", {}, "Nothing is held back."));
  section("hosts", "Hosts", round.hosts_note ? make("p", { class: "soft" }, round.hosts_note) : null, table([{ name: "host", key: "host", class: "url" }, { name: "URLs", key: "urls", number: true, show: (r) => whole(r.urls) }, { name: "selected", key: "selected", number: true, show: (r) => whole(r.selected) }, { name: "mean score", key: "score", number: true, show: (r) => short(r.score) }], round.hosts).element);
  if (round.changes) {
    const list = (title, rows, text) => make("div", {}, make("h3", {}, `${title} (${rows.length}${rows.length === 50 ? " or more" : ""})`), make("ul", {}, ...rows.slice(0, 25).map((row) => make("li", {}, text(row), " ", make("a", { href: row.url, rel: "noreferrer noopener" }, row.url)))));
    section("changes", "Since the round before", make("p", { class: "soft" }, round.changes_note), make("div", { class: "columns" }, list("Came", round.changes.came, (r) => `rank ${whole(r.rank)}`), list("Went", round.changes.went, (r) => `was ${whole(r.before)}`), list("Rose", round.changes.rose, (r) => `${whole(r.before)} \u2192 ${whole(r.rank)}`), list("Fell", round.changes.fell, (r) => `${whole(r.before)} \u2192 ${whole(r.rank)}`)));
  }
  if (round.keywords.nodes.length) section("keywords", "Keyword hierarchy", make("p", { class: "soft" }, round.keywords.note), diagram(round.keywords.nodes, round.keywords.edges, (node) => make("div", {}, make("b", {}, node.name), ` \u2014 layer ${node.layer}, ${whole(node.clicks)} clicks, probability ${short(node.probability, 6)}`, node.related.length ? `; ISA: ${node.related.join(", ")}` : "", node.parts.length ? `; has part: ${node.parts.join(", ")}` : ""), "keyword hierarchy"));
  if (round.lattice.nodes.length) section("lattice", "Concepts of the queue", make("p", { class: "soft" }, round.lattice.note), diagram(round.lattice.nodes, round.lattice.edges, (node) => make("div", {}, make("b", {}, node.intent.join(", ") || "no keyword in common"), ` \u2014 ${whole(node.support)} URLs`, make("ul", {}, ...node.extent.map((url) => make("li", {}, url)), node.support > node.extent.length ? make("li", { class: "soft" }, `and ${whole(node.support - node.extent.length)} more`) : null)), "order diagram of concepts"));
  section("rejects", "Rejects", round.rejects.length ? table([{ name: "reason", key: "reason" }, { name: "records", key: "count", number: true, show: (r) => whole(r.count) }], round.rejects).element : make("p", {}, "None."));
  section("stages", "Stages", table([{ name: "stage", key: "stage" }, { name: "seconds", key: "seconds", number: true, show: (r) => short(r.seconds, 2) }, { name: "rows in", key: "rows_in", number: true, show: (r) => whole(r.rows_in) }, { name: "rows out", key: "rows_out", number: true, show: (r) => whole(r.rows_out) }, { name: "largest record, bytes", key: "largest_record_bytes", number: true, show: (r) => whole(r.largest_record_bytes) }, { name: "largest group, bytes", key: "largest_group_bytes", number: true, show: (r) => whole(r.largest_group_bytes) }], round.stages).element);
  section("parameters", "Parameters", table([{ name: "parameter", key: "name" }, { name: "value", key: "value" }], round.parameters).element);
}

function showEvaluation(evaluation) {
  page.append(cards(evaluation.cards));
  section("summary", "Means over topics", make("p", { class: "soft" }, evaluation.note), table(evaluation.columns.map((name) => ({ name, key: name, number: !["ranker", "mode", "measure"].includes(name), show: (row) => (typeof row[name] === "number" ? short(row[name]) : row[name] ?? "") })), evaluation.summary).element);
  for (const mode of evaluation.modes) section(mode.name, `Mode ${mode.name}`, make("div", { class: "columns" }, ...mode.charts.map((chart) => curves(chart.lines, chart))));
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
if (data.round) showRound(data.round);
if (data.evaluation) showEvaluation(data.evaluation);
