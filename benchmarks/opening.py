"""How long the page of a large report takes to open in a real browser. Run by `make bench`."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from lastarm import Result
from lastarm.events import Closed, Event, Loss, Opened, Pull, Work
from lastarm.report.page.html import write_report
from record import Record

ARMS, LEVELS, ROUNDS = 1_000, 50, 7


def events() -> list[Event]:
    """Every arm seen at every level: more than any halving sees."""
    random = np.random.default_rng(0)
    losses = random.random((ARMS, 1)) + (1 + np.arange(LEVELS)) ** -random.uniform(
        0.2, 1, (ARMS, 1)
    )
    policy = {"name": "successive-halving", "arms": ARMS, "budget": ARMS * LEVELS}
    told: list[Event] = [Opened(0, policy, {"lr": {"log-uniform": [1e-5, 0.1]}}, {})]
    for level in range(LEVELS):
        for arm in range(ARMS):
            config = {"lr": float(10 ** random.uniform(-5, -1)), "layers": int(random.integers(9))}
            pull = Pull(arm, level + 1, None if level else config)
            work = Work(1, 0.01, 0.002, f"process {arm % 4}")
            told += [pull, Loss(pull, float(losses[arm, level]), work)]
    return [*told, Closed(int(losses[:, -1].argmin()), LEVELS)]


def opened(browser: Any, page: Path) -> tuple[float, float]:
    """Seconds until the curves are seen, and until all is drawn."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    began = perf_counter()
    tab.goto(page.as_uri(), wait_until="commit")
    tab.wait_for_selector("#curves-chart svg", timeout=60_000)
    seen = perf_counter() - began
    tab.wait_for_selector("body[data-drawn]", state="attached", timeout=60_000)
    drawn = perf_counter() - began
    tab.close()
    return seen, drawn


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("opening", "make bench", ["lastarm", "vl-convert-python", "playwright"])
    chromium = shutil.which("chromium") or "/usr/bin/chromium"
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        began = perf_counter()
        result = Result.of(told := events(), journal="search.jsonl")
        page = write_report(Path(folder) / "report.html", result, told)
        wrote = perf_counter() - began
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        turns = [opened(browser, page) for _ in range(ROUNDS)][1:]
        record.section(
            f"A report of {ARMS:,} arms at {LEVELS} levels, in Chromium {browser.version}"
        )
        record.row("size", page.stat().st_size / 1e6, "MB", "< 10")
        record.row("opened: its curves are seen", median(seen for seen, _ in turns), "s", "< 3")
        record.row("opened: all of it is drawn", median(drawn for _, drawn in turns), "s")
        record.row("written, with all libraries loaded for the first time", wrote, "s")
        browser.close()
    record.write()


if __name__ == "__main__":
    main()
