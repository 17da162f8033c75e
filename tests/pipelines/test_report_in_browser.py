"""A round's page under a reader's hands: keys, filters, sorting, narrow and dark windows, paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semrank.pipelines.cli import main
from tests.support.browser import Page, data_of, opened
from tests.support.sample import ingest_sample

ROWS = "[...document.querySelectorAll('#top tr.row')]"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of a round of the sample web with concepts, and its data."""
    folder = tmp_path_factory.mktemp("browser")
    snapshot, round_folder, page = str(ingest_sample(folder)), str(folder / "round"), folder / "round.html"
    command = ["rank", "--snapshot", snapshot, "--seeds", f"{folder}/web/seeds.txt", "--profile", "topic"]
    assert main([*command, "--max-urls", "9", "--output", round_folder, "--quiet"]) == 0
    assert main(["report", "--round", round_folder, "--output", str(page), "--quiet"]) == 0
    return page, data_of(page.read_text(encoding="utf-8"))["round"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened("about:blank", tmp_path_factory.mktemp("profile")) as opened_page:
        yield opened_page


@pytest.fixture
def page(browser: Page, report: tuple[Path, dict[str, Any]]) -> Page:
    """The report in a new tab, which has no size, medium or choice of another test."""
    browser.open(report[0].as_uri())
    return browser


@pytest.fixture
def rows(report: tuple[Path, dict[str, Any]]) -> list[dict[str, Any]]:
    return list(report[1]["top"])


def ranks(page: Page) -> list[int]:
    """Ranks of the rows of the first table, in their order."""
    return [int(rank) for rank in page.value(f"{ROWS}.map((row) => row.cells[0].textContent)")]


def test_filters_and_sorting_go_together(page: Page, rows: list[dict[str, Any]]) -> None:
    page.value("document.querySelector('#top th:nth-child(2) button').focus()")
    page.press("Enter")
    page.press(" ")
    heading = "document.querySelector('#top th:nth-child(2)').getAttribute('aria-sort')"
    assert page.value(heading) == "ascending"
    by_score = sorted(rows, key=lambda row: row["score"])
    assert [row["score"] for row in by_score] == [rows[rank - 1]["score"] for rank in ranks(page)]

    page.value("document.querySelector('#top input').focus()")
    page.write("birds.example")
    left = [row for row in rows if "birds.example" in row["url"]]
    assert 0 < len(left) < len(rows)
    assert page.value(heading) == "ascending"
    assert [rows[rank - 1]["score"] for rank in ranks(page)] == sorted(row["score"] for row in left)
    shown = page.value("document.querySelector('#top [aria-live]').textContent")
    assert shown == f"{len(left)} of {len(rows)} shown"

    choose = "(() => {{ const list = document.querySelectorAll('#top select')[{}]; list.value = '{}'; {} }})()"
    tell = "list.dispatchEvent(new Event('input'))"
    for kind, kept in (
        ("selected", [row for row in left if row["selected"]]),
        ("held back", [row for row in left if not row["selected"]]),
        ("known", [row for row in left if row["fetched"]]),
        ("new", [row for row in left if not row["fetched"]]),
    ):
        page.value(choose.format(1, kind, tell))
        assert sorted(ranks(page)) == sorted(row["rank"] for row in kept), kind
    page.value(choose.format(1, "all", tell))
    page.value(choose.format(0, "library.example", tell))
    assert ranks(page) == []


def test_every_part_can_be_used_by_keys(page: Page) -> None:
    page.press("Tab")
    assert page.value("document.activeElement.className") == "skip"
    page.press("Enter")
    assert page.value("location.hash") == page.value("document.querySelector('.skip').getAttribute('href')")

    page.value(f"{ROWS}[0].focus()")
    page.press("Enter")
    assert page.value(f"{ROWS}[0].nextElementSibling.className") == "why"
    page.press("ArrowDown")
    assert page.value(f"document.activeElement === {ROWS}[1]")
    page.press("ArrowUp", "Enter")
    assert page.value(f"{ROWS}[0].nextElementSibling.className") == "row"

    nodes = "[...document.querySelectorAll('#lattice .node')]"
    assert page.value(f"{nodes}.length") > 1
    page.value(f"{nodes}[0].focus()")
    page.press("ArrowRight", "Enter")
    focused = page.value(f"{nodes}.indexOf(document.activeElement)")
    assert focused > 0
    detail = "document.querySelector('#lattice .detail b').textContent"
    assert page.value(detail) == page.value(f"{nodes}[{focused}].getAttribute('aria-label')")
    page.press("Escape")
    assert not page.value("document.querySelector('#lattice svg').classList.contains('lit')")

    page.value("document.getElementById('theme').focus()")
    page.press("Enter")
    assert page.value("document.documentElement.dataset.theme") in {"dark", "light"}


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_window(page: Page, width: int) -> None:
    page.size(width, 900)
    page.load(page.value("location.href"))
    assert page.value("document.querySelectorAll('#top tr.row').length") > 0
    assert page.value("document.documentElement.scrollWidth") <= width
    smallest = "Math.min(...[...document.querySelectorAll('#scores svg')].map((svg) => svg.getScreenCTM().a))"
    assert page.value(smallest) > 0.9


def test_colours_follow_the_system_and_paper_is_light(page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    page.media(prefers_color_scheme="light")
    light = page.value(paper)
    page.media(prefers_color_scheme="dark")
    assert page.value(paper) != light
    page.value("document.getElementById('theme').click(); document.getElementById('theme').click()")
    assert page.value("document.documentElement.dataset.theme") == "dark"
    page.media("print", prefers_color_scheme="dark")
    assert page.value(paper) == light
    for hidden in ("nav", "#theme", "#top .tools"):
        assert page.value(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none", hidden
    assert page.value(
        "[...document.querySelectorAll('.scroll')].every((box) => box.scrollHeight <= box.clientHeight + 1)"
    )
    assert page.printed().startswith(b"%PDF")
    assert page.value("[...document.querySelectorAll('details')].every((part) => part.open)")
