"""The report's page in a real browser: it draws, answers, fits, and does nothing else."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
from playwright import sync_api

from lastarm import SuccessiveHalving, Uniform, search
from lastarm.cli.demo import SPACE, DigitsNetwork
from lastarm.events import Event
from lastarm.journal import read
from lastarm.trainers import Config
from tests.forged import TOLD, forge
from tests.report_searches import (
    HOSTILE,
    ODD,
    chosen_events,
    contents_of,
    events_of,
    hostile_events,
    large,
    made,
    page_of,
    write_journal,
)

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "/usr/bin/chromium"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="there is no Chromium on PATH, and `make browser` could not install Debian's: the "
    "report's page was not tried in a browser",
)
ALONE = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ALONE)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a page that must say nothing on the console and ask for nothing but itself."""
    contexts, said = [], []

    def opened(path: Path, **how: Any) -> Any:
        contexts.append(browser.new_context(**(how or DESKTOP)))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url))
        page.goto(path.as_uri())
        assert said == [path.as_uri()]
        said.clear()
        page.wait_for_selector("body[data-drawn]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []


class Network(DigitsNetwork):
    """The demo's, of which some arms fail."""

    def start(self, config: Config, seed: int) -> Any:
        """Refuse what is too wide."""
        if config["hidden"] > 30:
            raise ValueError(f"{config['hidden']} are too wide")
        return super().start(config, seed)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real search with its journal."""
    path = tmp_path_factory.mktemp("search") / "digits.jsonl"
    space = {**SPACE, "order": ["as drawn", "shuffled"]}
    search(Network(), space, policy=SuccessiveHalving(16, 96), journal=path)
    return path


@pytest.fixture(scope="module")
def report(journal: Path) -> Path:
    return page_of(journal.with_name("report.html"), read(journal), journal=journal.name)


@pytest.fixture(scope="module")
def known(journal: Path) -> dict[str, Any]:
    """What the page is to show."""
    return contents_of(read(journal), journal=journal.name)


def marks(page: Any, chart: str, kind: str) -> int:
    return int(page.locator(f"#{chart} svg .mark-{kind} path").count())


def middle(page: Any, selector: str) -> tuple[float, float]:
    element = page.locator(selector)
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def overflows(page: Any) -> bool:
    return bool(
        page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
    )


def test_every_chart_has_its_marks(open_page: Open, report: Path, known: dict[str, Any]) -> None:
    page = open_page(report)
    seen = [arm for arm in known["arms"] if arm["losses"]]
    assert marks(page, "curves-chart", "symbol") == len(seen)  # where each arm ended
    drawn = page.locator("#curves-chart .all-curves path").evaluate_all(
        "paths => paths.map(path => (path.getAttribute('d').match(/M/g) ?? []).length)"
    )
    assert sum(drawn) == len(seen)
    rungs = len(known["narrowing"]["rungs"])
    assert marks(page, "rungs-arms", "rect") == 2 * rungs
    assert marks(page, "rungs-pulls", "rect") == rungs
    assert marks(page, "rungs-seconds", "rect") == 2 * rungs
    assert marks(page, "importance-chart", "rect") == len(known["parameters"]) == 7
    assert page.locator("#panels figure").count() == 7
    assert page.locator("#panels .mark-symbol path").count() == 7 * len(seen)
    assert marks(page, "timeline-chart", "rect") >= len(known["spending"]["timeline"]["stints"])
    assert marks(page, "audit-chart", "symbol") >= len(known["audit"]["points"]) > 0
    assert page.locator("#arms-table tbody tr").count() == 16
    assert page.locator("#failures-list h3").count() == len(known["failures"]) > 0


def test_pointing_near_a_curve_shows_its_arm(
    open_page: Open, report: Path, known: dict[str, Any]
) -> None:
    page = open_page(report)
    tip = page.locator("#tip")
    assert tip.is_hidden()
    page.mouse.move(*middle(page, "#curves-chart .chosen-curves path"))
    end = page.locator("#curves-chart .mark-symbol path").last  # the best is drawn last
    box = end.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip.wait_for(state="visible")
    assert tip.inner_text().startswith(f"arm {known['answer']['arm']}: recommended\nloss ")
    page.mouse.move(1, 1)
    tip.wait_for(state="hidden")
    page.locator("#rungs-arms .mark-rect path").first.hover()
    rung = known["narrowing"]["rungs"][0]
    assert f"16 arms, of which {rung['on']} went on" in tip.inner_text()


def test_other_figures_can_be_chosen_for_the_curves(open_page: Open, tmp_path: Path) -> None:
    def arms(config: Config) -> Iterator[Any]:
        for level in range(1, 100):
            figure = config["x"] * level / 100
            yield {"loss": figure, "<b>f1": 2 - figure, "note": "low"}

    policy = SuccessiveHalving(8, 96)
    named: Any = {"maximize": True, "metric": "recall <i>"}
    result = search(arms, {"x": Uniform(0, 1)}, policy=policy, **named)
    page = open_page(result.report(tmp_path / "report.html"))
    assert "recall <i>" in page.locator("#answer-facts").inner_text()
    assert "loss" not in page.locator("#answer").inner_text()
    options = page.locator("#curves-measure option").all_inner_texts()
    assert options == ["recall <i>", "<b>f1"]
    path = page.locator("#curves-chart .chosen-curves path").first
    first = path.get_attribute("d")
    page.locator("#arms-table tbody tr").nth(1).click()
    page.locator("#curves-measure").select_option("<b>f1")
    page.wait_for_function(
        "document.querySelector('#curves-chart svg').textContent.includes('f1')"
    )
    assert page.locator("#curves-chart .chosen-curves path").count() == 2
    assert path.get_attribute("d") != first
    page.keyboard.press("Escape")
    end = page.locator("#curves-chart .mark-symbol path").last
    end.click(force=True)
    page.wait_for_function(
        f"document.getElementById('story-title').textContent === 'Arm {result.arm}'"
    )
    assert page.locator("#story-panel").is_visible()
    page.locator("#curves-measure").select_option("recall <i>")
    page.wait_for_function(
        "document.querySelector('#curves-chart svg').textContent.includes('recall')"
    )
    assert path.get_attribute("d") == first
    heads = page.locator("#arms-table thead th").all_inner_texts()
    assert [head.strip() for head in heads][2:7] == [
        "recall <i>",
        "pulls",
        "fate",
        "<b>f1",
        "note",
    ]


def test_an_arm_can_be_picked_anywhere(
    open_page: Open, report: Path, known: dict[str, Any]
) -> None:
    page = open_page(report)
    title, panel = page.locator("#story-title"), page.locator("#story-panel")
    assert panel.is_hidden()

    def expect(arm: int) -> None:
        page.wait_for_function(
            f"document.getElementById('story-title').textContent === 'Arm {arm}'"
        )
        (told,) = (one["story"] for one in known["arms"] if one["arm"] == arm)
        assert page.locator("#story-text p").all_inner_texts() == told
        assert page.locator("#arms-table tr.picked").get_attribute("data-arm") == str(arm)
        page.wait_for_selector("#story-chart svg", state="attached")

    best, second = known["answer"]["arm"], known["answer"]["runner_up"]
    page.locator("#curves-chart .mark-symbol path").last.click(force=True)
    expect(best)
    page.keyboard.press("Escape")
    assert panel.is_hidden()

    page.locator("#runner-up button").click()
    expect(second)
    assert page.locator("#curves-chart .chosen-curves path").count() == 2

    third = page.locator("#arms-table tbody tr").nth(2)
    third.click()
    expect(int(third.get_attribute("data-arm")))

    fourth = page.locator("#arms-table tbody tr").nth(3)
    fourth.locator("button").focus()
    page.keyboard.press("Enter")
    expect(int(fourth.get_attribute("data-arm")))
    assert title.evaluate("title => title === document.activeElement")
    page.keyboard.press("Escape")
    assert fourth.locator("button").evaluate("arm => arm === document.activeElement")

    number = page.evaluate(
        "document.querySelector('#panels .mark-symbol path').__data__.datum.arm"
    )
    page.locator("#panels .mark-symbol path").first.click(force=True)
    expect(number)

    page.locator("#failures-list button").first.click()
    page.wait_for_function("document.getElementById('story-fate').textContent === 'failed'")
    assert page.locator("#story-chart").is_hidden()  # nothing was seen of it
    page.locator("#story-close").click()
    assert panel.is_hidden()


def test_the_newcomer_reads_why_the_second_best_lost(
    open_page: Open, report: Path, known: dict[str, Any]
) -> None:
    page = open_page(report)
    said = page.locator("#runner-up").inner_text()
    assert said.startswith("Why not the next best?")
    assert f"The next best is arm {known['answer']['runner_up']}." in said
    assert f"lost to arm {known['answer']['arm']}" in said or "went on" in said


def test_the_table_sorts_by_any_heading(open_page: Open, report: Path) -> None:
    page = open_page(report)

    def column(place: int) -> list[str]:
        cells = page.locator(f"#arms-table tbody td:nth-child({place})").all_inner_texts()
        return [cell for cell in cells if cell]

    placed = page.locator("#arms-table th[aria-sort]")
    assert (placed.inner_text(), placed.get_attribute("aria-sort")) == ("place", "ascending")
    for place, of in ((3, "loss"), (4, "pulls"), (7, None)):
        button = page.locator(f"#arms-table th:nth-child({place}) button")
        assert of is None or button.inner_text() == of
        button.click()
        rising = column(place)
        assert rising == sorted(rising, key=lambda cell: float(cell.replace(",", "")))
        button.click()
        assert column(place) == sorted(
            rising, key=lambda cell: float(cell.replace(",", "")), reverse=True
        )
        heading = page.locator(f"#arms-table th:nth-child({place})")
        assert heading.get_attribute("aria-sort") == "descending"


PLACES = """
() => [...document.querySelectorAll("main :not(svg *)")].map((element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x, y + scrollY, width, height].map(Math.round).join(" ");
})
"""


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_picking_an_arm_moves_nothing(open_page: Open, report: Path, size: dict[str, Any]) -> None:
    page = open_page(report, **size)
    row = page.locator("#arms-table tbody tr").first
    row.scroll_into_view_if_needed()
    before = page.evaluate(PLACES), page.evaluate("scrollY")
    row.click()
    page.wait_for_selector("#story-chart svg", state="attached")
    assert (page.evaluate(PLACES), page.evaluate("scrollY")) == before


@pytest.mark.parametrize(("size", "seen"), [(PHONE, 5), (DESKTOP, 13)], ids=["phone", "desktop"])
def test_the_columns_that_matter_are_seen_without_scrolling(
    open_page: Open, report: Path, size: dict[str, Any], seen: int
) -> None:
    page = open_page(report, **size)
    names = page.locator("#arms-table thead th").all_inner_texts()
    assert names[:6] == ["arm", "place", "loss", "pulls", "fate", "seconds"]
    whole = page.locator("#arms-table thead th").evaluate_all(
        "cells => { const edge = cells[0].closest('.scroll').getBoundingClientRect().right;"
        " return cells.map((cell) => cell.getBoundingClientRect().right <= edge); }"
    )
    assert whole[:seen] == seen * [True]
    page.locator("#arms-table").evaluate("table => table.parentElement.scrollBy(999, 0)")
    assert page.locator("#arms-table tbody button").first.is_visible()
    edge = page.locator("#arms .scroll").bounding_box()["x"]
    assert page.locator("#arms-table tbody th").first.bounding_box()["x"] <= edge + 2  # it stays


def test_a_finger_finds_what_it_can_press(open_page: Open, report: Path) -> None:
    page = open_page(report, **PHONE)
    heights = page.locator("nav a, summary, #arms-table tbody tr").evaluate_all(
        "places => places.map((place) => place.getBoundingClientRect().height)"
    )
    assert min(height for height in heights if height) >= 34


def test_every_colour_of_a_chart_is_in_its_key(open_page: Open, report: Path) -> None:
    page = open_page(report)
    for chart in ("rungs-arms", "rungs-pulls", "rungs-seconds", "timeline-chart"):
        used, named = (
            set(page.locator(where).evaluate_all(f"parts => parts.map((p) => {colour})"))
            for where, colour in (
                (f"#{chart} .mark-rect path", "getComputedStyle(p).fill"),
                (
                    f"ul:has(+ #{chart}) i:not(.blank)",
                    "getComputedStyle(p).backgroundColor",
                ),
            )
        )
        assert used == named
    key = page.locator("ul:has(+ #audit-chart)").inner_text()
    assert "close call" in key
    assert "still moved" in key


def test_zooming_moves_the_curves_and_a_double_click_brings_them_back(
    open_page: Open, report: Path
) -> None:
    page = open_page(report)
    shape = "document.querySelector('#curves-chart .all-curves path').getAttribute('transform')"
    before = page.evaluate(shape)
    page.mouse.move(*middle(page, "#curves-chart"))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"before => {shape} !== before", arg=before)
    page.keyboard.up("Control")
    page.mouse.dblclick(*middle(page, "#curves-chart"))
    page.wait_for_function(f"before => {shape} === before", arg=before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_it_fits_and_can_be_read(
    open_page: Open, report: Path, size: dict[str, Any], scheme: str
) -> None:
    page = open_page(report, color_scheme=scheme, **size)
    assert not overflows(page)
    page.locator("#arms-table button").nth(9).click()  # the first are headings
    assert not overflows(page)
    page.keyboard.press("Escape")
    texts = page.evaluate(CONTRASTS)
    assert len(texts) > 100
    faint = {text: ratio for text, ratio in texts if ratio < 4.5}
    assert faint == {}
    small = page.evaluate(
        "[...document.querySelectorAll('svg text')].filter(text => text.textContent)"
        ".map(text => parseFloat(getComputedStyle(text).fontSize))"
    )
    assert min(small) >= 12


# WCAG 2.1: the contrast of every element that has text of its own with what is behind it.
CONTRASTS = """
() => {
  const channel = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => channel(Number(part) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const own = (element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.body.querySelectorAll("*:not(script):not(noscript)")]
    .filter((element) => own(element) && element.checkVisibility()).map((element) => {
      const style = getComputedStyle(element);
      const ink = element instanceof SVGElement ? style.fill : style.color;
      const [a, b] = [light(ink), light(behind(element))];
      return [element.textContent, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    });
}
"""


def test_it_prints_dark_on_white(open_page: Open, report: Path) -> None:
    page = open_page(report, color_scheme="dark", **DESKTOP)
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(18, 19, 22)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    label = "getComputedStyle(document.querySelector('#curves-chart text')).fill"
    assert page.evaluate(label) == "rgb(68, 68, 68)"


TAGS = """
() => [...document.querySelectorAll("*")].filter((element) => !element.closest(".chart svg"))
  .map((element) => element.tagName)
"""
DRAWN = """
() => [...document.querySelectorAll(".chart svg, .chart svg *")].map((element) => element.tagName)
"""


def test_forty_hostile_strings_make_no_element_and_run_nothing(
    open_page: Open, tmp_path: Path
) -> None:
    harmless = [f"text {letter}" for letter in ascii_letters[: len(HOSTILE)]]
    tags = []
    for strings, name in (
        (harmless, "harmless.jsonl"),
        (HOSTILE, "<img src=x onerror=hit=1>&'.jsonl"),
    ):
        journal = write_journal(tmp_path / name, hostile_events(strings))
        report = page_of(tmp_path / f"{name}.html", read(journal), journal=str(journal))
        page = open_page(report)
        page.locator("#arms-table tbody button").first.click()
        page.wait_for_selector("#story-chart svg", state="attached")
        page.locator("#failures-list button").first.click()
        page.locator("#importance-chart text").first.hover(force=True)
        assert page.evaluate("window.hit") is None
        assert page.url == report.as_uri()
        assert set(page.evaluate(DRAWN)) <= {
            "svg",
            "g",
            "path",
            "text",
            "defs",
            "clipPath",
            "rect",
            "line",
        }
        assert not overflows(page)
        tags.append(Counter(page.evaluate(TAGS)))
    assert tags[0] == tags[1]


def test_even_what_got_in_could_do_nothing(browser: Any, report: Path) -> None:
    page, answered, refused = browser.new_page(), [], []
    page.goto(report.as_uri())
    page.wait_for_selector("body[data-drawn]", state="attached")
    page.on("requestfinished", lambda request: answered.append(request.url))
    page.on("requestfailed", lambda request: refused.append(request.failure))
    page.evaluate(
        """async () => {
          document.body.insertAdjacentHTML("beforeend",
            "<img src='https://example.com/x.png' onerror='window.hit=1'>"
            + "<a id=evil href='javascript:window.hit=1'>x</a>");
          const script = document.createElement("script");
          script.textContent = "window.hit=1";
          document.body.append(script);
          document.getElementById("evil").click();
          await fetch("https://example.com/").catch(() => null);
          setTimeout("window.hit=1");
          await new Promise((done) => setTimeout(done, 200));
        }"""
    )
    assert page.evaluate("window.hit") is None
    assert answered == []
    assert set(refused) == {"csp"}
    page.close()


@pytest.mark.parametrize("name", ODD)
def test_odd_searches_can_be_opened(open_page: Open, tmp_path: Path, name: str) -> None:
    report = page_of(tmp_path / "odd.html", ODD[name], journal="odd.jsonl")
    page = open_page(report)
    assert page.locator("h1").inner_text()
    assert page.locator("#next-steps p").count() > 0
    if page.locator("#arms-table tbody button").count():
        page.locator("#arms-table tbody button").first.click()
        assert page.locator("#story-text p").count() > 0


@pytest.mark.parametrize("name", ["hyperband", "asha", "lucb", "successive-rejects"])
def test_searches_of_other_policies_can_be_opened(
    open_page: Open, tmp_path: Path, name: str
) -> None:
    events: list[Event] = events_of(made(name, arms=12, budget=300))
    page = open_page(page_of(tmp_path / "report.html", events, journal="a.jsonl"))
    assert marks(page, "curves-chart", "symbol") == len(contents_of(events)["arms"])
    assert marks(page, "rungs-arms", "rect") > 0


def test_a_thousand_arms_at_fifty_levels_can_be_opened(open_page: Open, tmp_path: Path) -> None:
    events = large(arms=1_000, levels=50)
    report = page_of(tmp_path / "large.html", events, journal="large.jsonl")
    assert report.stat().st_size < 10e6
    page = open_page(report)
    assert marks(page, "curves-chart", "symbol") == 1_000
    page.mouse.move(*middle(page, "#curves-chart"))
    page.locator("#tip").wait_for(state="visible")
    page.locator("#arms-table tbody button").nth(500).click()
    assert page.locator("#story-text p").count() > 1


@pytest.mark.parametrize(
    "name",
    [
        "losses of 1e308",
        "nothing but subnormal losses",
        "subnormal losses",
        "losses as far apart as can be",
        "a subnormal time",
        "a subnormal setting",
        "settings of 1e308",
        "thousands of settings",
        "the last pulls that there can be",
    ],
)
def test_what_is_absurd_can_be_opened(open_page: Open, tmp_path: Path, name: str) -> None:
    journal = forge(tmp_path / "forged.jsonl", TOLD[name])
    page = open_page(page_of(tmp_path / "forged.html", read(journal), journal="forged.jsonl"))
    assert marks(page, "curves-chart", "symbol") > 0
    page.locator("#arms-table tbody button").first.click()
    assert page.locator("#story-text p").count() > 0


def test_it_shows_how_arms_were_chosen(open_page: Open, tmp_path: Path) -> None:
    page = open_page(page_of(tmp_path / "chosen.html", chosen_events()))
    assert page.locator("#choosing").is_visible()
    assert page.locator("#choosing-words p").count() == 3
    expected = page.locator("#choosing-chart .mark-rule.role-mark line")
    came = page.locator("#choosing-chart .mark-symbol.role-mark path")
    assert (expected.count(), came.count()) == (3, 5), "what came, and a last look"
    assert page.locator("#parallel").is_hidden(), "there is one setting"
    plain = open_page(page_of(tmp_path / "plain.html", events_of(made("brackets", 9, 60))))
    assert plain.locator("#choosing").is_hidden()
