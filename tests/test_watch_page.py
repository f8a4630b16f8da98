"""A search on a page in a real browser, from before its first line to its end."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from playwright import sync_api

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.events import Closed, Event, Failure, Loss, Opened, Pull, Started, Work
from lastarm.journal import Journal, read
from lastarm.report.live import server as serving
from tests.eventually import eventually
from tests.report_searches import HOSTILE, hostile_events, write_journal
from tests.test_report_page import ALONE, CHROMIUM, DESKTOP, PHONE, marks, overflows
from tests.test_watch_server import serve

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH")

SEARCH = """
import time
from lastarm import Choice, LogUniform, SuccessiveHalving, search

def train(config):
    if config["act"] == "broken":
        raise ValueError("<b>no</b> such function")
    for pulls in range(1, 100):
        time.sleep(0.02)
        yield config["lr"] + 1 / pulls

space = {"lr": LogUniform(1e-3, 1.0), "act": Choice("relu", "tanh", "broken")}
search(train, space, policy=SuccessiveHalving(16, 192), workers=2, journal="search.jsonl")
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ALONE)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens a page that must say nothing on the console, and ask its own server only."""
    contexts, said = [], []

    def opened(url: str, **how: Any) -> Any:
        contexts.append(browser.new_context(**(how or DESKTOP)))
        page = contexts[-1].new_page()
        page.set_default_timeout(90_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(url) else said.append(asked.url),
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []


def until(page: Any, true: str) -> None:
    """Wait in here: the page's own rules let nothing be run in it again and again."""
    eventually(lambda: page.evaluate(true), 90)


def until_read(page: Any, lines: int) -> None:
    until(page, f"document.body.dataset.lines === '{lines}'")


CONTENTS = "!document.body.classList.contains('early')"


def grow(path: Path, events: list[Event], first: int = 0) -> None:
    """Write events as a search does, behind those that are there."""
    opened = events[0]
    assert isinstance(opened, Opened)
    with Journal(path, opened) as journal:
        for event in events[max(1, first) :]:
            journal.append(event)
        journal.flush()


OPENED = Opened(
    0,
    {"name": "successive-halving", "arms": 4, "budget": 16},
    {"lr": {"log-uniform": [0.001, 1.0]}, "act": {"choice": ["relu", "tanh"]}},
    {},
)


def events() -> list[Event]:
    """A small search: four arms, of which two go on."""
    told: list[Event] = [OPENED]
    for arm in range(4):
        config = {"lr": 0.1 * (arm + 1), "act": ("relu", "tanh")[arm % 2]}
        told.append(Started(arm, 2, config, f"process {arm % 2}", 1795122903.0 + arm))
        told.append(Loss(Pull(arm, 2), 0.5 + arm / 10, Work(2, 1.0, 0.1, f"process {arm % 2}")))
    for arm in range(2):
        told.append(Started(arm, 6, None, f"process {arm}", 1795122913.0 + arm))
        told.append(Loss(Pull(arm, 6), 0.4 - arm / 10, Work(4, 2.0, 0.1, f"process {arm}")))
    return [*told, Closed(1, 6)]


def test_a_search_with_two_workers_is_seen_from_before_its_first_line_to_its_end(
    open_page: Any, tmp_path: Path
) -> None:
    journal = tmp_path / "search.jsonl"
    with serve(journal) as server:
        page = open_page(server.url)
        until(page, "document.querySelector('h1').textContent.startsWith('Waiting for')")
        (tmp_path / "user.py").write_text(SEARCH)
        with subprocess.Popen([sys.executable, "user.py"], cwd=tmp_path) as running:
            page.wait_for_selector("#at-work tbody tr")
            assert (
                page.locator("#at-work td:nth-child(2)").first.inner_text().startswith("process")
            )
            until(page, "document.querySelectorAll('#filling-chart .mark-rect path').length > 0")
            until(page, "document.querySelectorAll('#best-chart .mark-line path').length > 0")
            page.locator("#curves-chart").scroll_into_view_if_needed()
            until(page, "document.querySelectorAll('#curves-chart .mark-symbol path').length > 3")
            assert page.locator("#state").inner_text() == "running"
            page.reload()
            assert running.wait(120) == 0
        until(page, "document.querySelector('#state').textContent === 'complete'")
        until(page, "document.querySelector('h1').textContent.endsWith('is recommended')")
        seen = {event.pull.arm for event in read(journal) if isinstance(event, Loss)}
        failed = {event.pull.arm for event in read(journal) if isinstance(event, Failure)}
        assert failed
        page.locator("#curves-chart").scroll_into_view_if_needed()
        ends = "document.querySelectorAll('#curves-chart .mark-symbol path').length"
        until(page, f"{ends} === {len(seen)}")
        page.locator("#arms-table").scroll_into_view_if_needed()
        until(page, "document.querySelectorAll('#arms-table tbody tr').length === 16")
        page.locator("#timeline-chart").scroll_into_view_if_needed()
        until(page, "document.querySelectorAll('#timeline-chart .mark-rect path').length > 0")
        assert page.locator("#failures-list h3").inner_text() == (
            "ValueError: <b>no</b> such function"
        )
        assert page.locator("#at-work-words").inner_text() == "No pull is under way."
        assert page.locator("#next-steps").inner_text()


def test_curves_grow_arms_drop_and_nothing_is_lost_by_connecting_again(
    open_page: Any, tmp_path: Path
) -> None:
    path, told = tmp_path / "search.jsonl", events()
    often = patch.multiple(serving, LONGEST=0.4, AGAIN=50)  # it connects again and again
    with often, serve(path) as server:
        page = open_page(server.url)
        for end in range(1, len(told)):
            grow(path, told[: end + 1], end)
            until_read(page, end + 1)
        until(page, "document.querySelector('#state').textContent === 'complete'")
        until(page, "document.querySelector('h1').textContent === 'Arm 1 is recommended'")
        page.locator("#curves-chart").scroll_into_view_if_needed()
        until(page, "document.querySelectorAll('#curves-chart .mark-symbol path').length === 4")
        paths = page.locator("#curves-chart .all-curves path").evaluate_all(
            "paths => paths.map((path) => path.getAttribute('d')).join('')"
        )
        assert (paths.count("M"), paths.count("L")) == (4, 2)  # six looks at four arms
        page.locator("#timeline-chart").scroll_into_view_if_needed()
        until(page, "document.querySelectorAll('#timeline-chart .mark-rect path').length === 12")


def test_a_page_that_was_refused_tries_again_and_loses_nothing(
    browser: Any, tmp_path: Path
) -> None:
    path, told, asked = tmp_path / "search.jsonl", events(), []
    grow(path, told[:6])

    def refuse_once(**_: Any) -> bool:
        asked.append(1)
        return len(asked) > 1

    with patch.multiple(serving, LONGEST=1.0, AGAIN=50), serve(path) as server:
        context = browser.new_context(**DESKTOP)  # whose console tells of the refusal
        page = context.new_page()
        page.goto(server.url)
        until_read(page, 6)
        with patch.object(server.streams, "acquire", refuse_once):
            eventually(lambda: page.evaluate("true") and asked)
            grow(path, told, 6)
            until_read(page, len(told))
        context.close()


def test_of_a_file_that_is_gone_nothing_stays_on_the_page(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    grow(path, events())
    with serve(path, tmp_path / "later.jsonl") as server:
        page = open_page(server.url)
        until(page, CONTENTS)
        page.get_by_role("button", name="later.jsonl").click()
        until(page, f"!({CONTENTS})")
        assert page.locator("#answer").is_hidden()
        page.get_by_role("button", name="search.jsonl").click()
        until(page, CONTENTS)
        path.write_bytes(b"")
        until(page, f"!({CONTENTS})")
        until(page, "document.querySelector('h1').textContent.startsWith('Waiting for search')")
        path.unlink()
        grow(path, events())
        until(page, CONTENTS)
        until(page, "document.querySelector('h1').textContent === 'Arm 1 is recommended'")


def test_what_was_dropped_last_is_told_with_its_reason(open_page: Any, tmp_path: Path) -> None:
    path, told = tmp_path / "search.jsonl", events()
    with serve(path) as server:
        grow(path, told[:-2])
        page = open_page(server.url)
        page.wait_for_selector("#dropped li")
        dropped = page.locator("#dropped li").all_inner_texts()
        assert [text.partition(":")[0] for text in dropped] == ["arm 2", "arm 3"]
        assert "place 3 of 4" in dropped[0]
        assert page.locator("#at-work tbody tr").count() == 1
        page.locator("#dropped button").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#story-panel:not([hidden])")
        until(page, "document.querySelectorAll('#story-text p').length > 1")
        assert page.locator("#story-title").inner_text() == "Arm 2"
        grow(path, told, len(told) - 2)
        until(page, "document.querySelector('#state').textContent === 'complete'")
        assert page.locator("#story-title").inner_text() == "Arm 2"
        page.keyboard.press("Escape")
        assert page.locator("#story-panel").is_hidden()


def test_the_table_is_sorted_and_filtered_and_stays_so_while_it_grows(
    open_page: Any, tmp_path: Path
) -> None:
    path, told = tmp_path / "search.jsonl", events()
    with serve(path) as server:
        grow(path, told[:9])
        page = open_page(server.url)
        page.locator("#arms-filter").scroll_into_view_if_needed()
        until(page, "document.querySelectorAll('#arms-table tbody tr').length === 4")
        arms = (
            "[...document.querySelectorAll('#arms-table tbody th')].map((one) => +one.textContent)"
        )
        for _ in range(2):
            page.locator("#arms-table th[data-name=lr] button").click()
        assert page.evaluate(arms) == [3, 2, 1, 0]
        for words, left in {
            "lr<0.25": [1, 0],
            "tanh": [3, 1],
            "tanh lr>=0.4": [3],
            "loss<=0.6": [1, 0],
            "nothing like that": [],
            "what<3": [3, 2, 1, 0],
            "act=tanh": [3, 1],
        }.items():
            page.locator("#arms-filter").fill(words)
            assert page.evaluate(arms) == left, words
        assert page.locator("#arms-left").inner_text() == "2 of them are shown"
        page.locator("#arms-filter").fill("what<3")
        assert page.locator("#arms-left").inner_text() == "Not understood: what<3"
        page.locator("#arms-filter").fill("tanh")
        page.locator("#arms-table tbody tr").first.locator("button").focus()
        grow(path, told, 9)
        until(page, "document.querySelector('#state').textContent === 'complete'")
        until(
            page, "document.querySelector('#arms-table tbody').textContent.includes('recommended')"
        )
        assert page.evaluate(arms) == [3, 1]
        assert page.evaluate("document.activeElement.textContent") == "3"


def test_several_searches_are_listed_and_compared(open_page: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.jsonl" for name in ("first", "second", "third")]
    with serve(*paths) as server:
        grow(paths[0], events())
        grow(paths[1], events()[:6])
        page = open_page(server.url)
        until(page, "document.querySelectorAll('#searches-table tbody tr').length === 3")
        until(page, "document.querySelectorAll('#compared-chart .mark-line path').length === 2")
        states = page.locator("#searches-table td:nth-child(2)").all_inner_texts()
        assert states == ["complete", "running", "waiting"]
        page.get_by_role("button", name="second.jsonl").click()
        until_read(page, 6)
        until(page, "document.querySelector('h1').textContent === 'Arm 0 leads so far'")
        page.get_by_role("button", name="third.jsonl").click()
        until(page, "document.querySelector('h1').textContent.startsWith('Waiting for third')")
        grow(paths[2], events())
        until(page, "document.querySelector('#state').textContent === 'complete'")
        until(page, "document.querySelectorAll('#compared-chart .mark-line path').length === 3")


def test_a_journal_without_workers_and_times_says_that_they_are_not_recorded(
    open_page: Any, tmp_path: Path
) -> None:
    path = tmp_path / "search.jsonl"
    with serve(path) as server:
        grow(path, [OPENED, Pull(0, 2, {"lr": 0.5, "act": "relu"})])
        page = open_page(server.url)
        page.wait_for_selector("#at-work tbody tr")
        cells = page.locator("#at-work tbody tr").first.locator("th, td").all_inner_texts()
        assert cells[1:5] == ["not recorded", "0", "2", "not recorded"]
        assert "does not say" in page.locator("#at-work-words").inner_text()


def test_the_page_can_be_saved_as_a_report(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    grow(path, events())
    with serve(path) as server:
        page = open_page(server.url)
        with page.expect_download() as saved:
            page.locator("#save").click()
        text = Path(saved.value.path()).read_text()
    assert "<title>lastarm report</title>" in text
    assert "Arm 1 is recommended" in text
    assert str(server.url) not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_fits_every_screen(
    open_page: Any, tmp_path: Path, scheme: str, screen: dict[str, Any]
) -> None:
    path = tmp_path / "search.jsonl"
    grow(path, events()[:10])
    with serve(path, tmp_path / "other.jsonl") as server:
        page = open_page(server.url, color_scheme=scheme, **screen)
        until(page, f"document.querySelectorAll('#best-chart svg').length > 0 && {CONTENTS}")
        for chart in ("#curves-chart", "#panels .chart", "#arms-table"):
            page.locator(chart).first.scroll_into_view_if_needed()
            page.wait_for_selector(f"{chart} svg, {chart} tbody tr")
            assert not overflows(page)
        assert marks(page, "curves-chart", "symbol") == 4


@pytest.mark.skipif(
    importlib.util.find_spec("axe_playwright_python") is None,
    reason="axe-playwright-python is not installed",
)
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious(open_page: Any, tmp_path: Path, screen: dict[str, Any]) -> None:
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    path = tmp_path / "search.jsonl"
    grow(path, events()[:10])
    with serve(path, tmp_path / "other.jsonl") as server:
        page = open_page(server.url, bypass_csp=True, **screen)
        until(page, f"document.querySelectorAll('#best-chart svg').length > 0 && {CONTENTS}")
        found = axe.run(page).response["violations"]
    serious = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []


def test_texts_of_a_journal_never_become_markup(open_page: Any, tmp_path: Path) -> None:
    path = write_journal(tmp_path / "hostile.jsonl", hostile_events(HOSTILE))
    with serve(path, tmp_path / f"{HOSTILE[5][:40].replace('/', '')}.jsonl") as server:
        page = open_page(server.url)
        until(page, CONTENTS)
        for chart in ("#best-chart", "#curves-chart", "#arms-table", "#timeline-chart"):
            page.locator(chart).scroll_into_view_if_needed()
            page.wait_for_selector(f"{chart} svg, {chart} tbody tr")
        assert page.evaluate("window.hit") is None
        assert page.locator("img, iframe, object, form:not(.vega-bindings), base").count() == 0
        assert page.evaluate("document.querySelectorAll('script').length") == 3


def test_when_the_server_ends_the_page_says_so_and_stays(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with serve(path) as server:
        page = open_page(server.url)
        until_read(page, 0)
        grow(path, events())
        closing = threading.Thread(target=server.end)  # the last lines are sent before it ends
        closing.start()
        until(page, "document.querySelector('#connection').textContent.includes('has ended')")
        closing.join()
        until_read(page, len(events()))


def test_a_search_that_is_watched_has_the_digest_of_one_that_is_not(tmp_path: Path) -> None:
    def found(path: Path) -> str:
        def train(config: Any) -> Iterator[float]:
            for pulls in range(1, 99):
                yield config["lr"] + 1 / pulls

        policy = SuccessiveHalving(8, 64)
        space = {"lr": LogUniform(0.001, 1.0)}
        return search(train, space, policy=policy, journal=path, checkpoints=False).digest

    with serve(tmp_path / "watched.jsonl"):
        watched = found(tmp_path / "watched.jsonl")
    assert watched == found(tmp_path / "alone.jsonl")
