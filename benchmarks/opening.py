"""How long a large journal takes to read and to show, and its report to open in a real browser.

Run by `make bench`; with `--journals`, only journals are read and shown.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from lastarm import Result, SuccessiveHalving
from lastarm.events import Closed, Event, Loss, Opened, Pull, Work
from lastarm.journal import Journal, read
from lastarm.policy import describe
from lastarm.report.page.html import write_report
from record import Record

ARMS, LEVELS, ROUNDS = 1_000, 50, 7
SIZES = (100_000, 1_000_000)  # events of journals
READINGS = 3


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


def write_journal(path: Path, events: int) -> None:
    """The journal of a search by halving, with configs, metrics, workers and seconds."""
    arms = events // 4  # each is pulled twice in the mean, and each pull is two events
    policy = SuccessiveHalving(arms=arms, budget=2 * arms * (arms - 1).bit_length())
    random = np.random.default_rng(0)
    ends, rates = random.random(arms).tolist(), (10 ** random.uniform(-5, -1, arms)).tolist()
    begins_with = Opened(0, describe(policy), {"lr": {"log-uniform": [1e-5, 0.1]}}, {})
    with Journal(path, begins_with) as journal:
        begun: set[int] = set()
        while pulls := policy.ask(64):
            for pull in pulls:
                config = None if pull.arm in begun else {"lr": rates[pull.arm], "layers": 3}
                journal.append(Pull(pull.arm, pull.upto, config))
                begun.add(pull.arm)
            for pull in pulls:
                work = Work(1, 0.0123456789, 0.00123456789, f"process {pull.arm % 4}")
                loss = Loss(pull, ends[pull.arm] + pull.upto**-0.5, work, {"accuracy": 0.5})
                journal.append(loss)
                policy.tell(loss)
            journal.flush()
        journal.sync()


def shown_in(path: Path) -> float:
    """How long the processor works for `lastarm show`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "lastarm", "show", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def read_in(path: Path) -> tuple[float, int]:
    """How long it takes to read a journal, and its events."""
    began = process_time()
    found = read(path)
    return process_time() - began, len(found)


def parsed_in(path: Path) -> float:
    """How long it takes to parse the same lines as JSON, and to verify and understand nothing."""
    lines = path.read_bytes().splitlines()
    began = process_time()
    parsed = [json.loads(line) for line in lines]
    taken = process_time() - began
    assert parsed[0]["event"] == "opened"
    return taken


def journals(record: Record, folder: Path) -> None:
    """Read and show journals, beside what parsing their lines takes."""
    for size in SIZES:
        path = folder / f"{size}.jsonl"
        write_journal(path, size)
        turns = [(*read_in(path), parsed_in(path), shown_in(path)) for _ in range(READINGS)]
        reading, _, parsing, showing = (median(column) for column in zip(*turns, strict=True))
        events = turns[0][1]
        record.section(f"A journal of {events:,} events, in processor time")
        record.row("read, every line verified", events / reading, "events a second")
        record.row("read / json.loads of the same lines", reading / parsing, "times", "< 1")
        record.row("lastarm show", showing, "s", "< 10" if size == max(SIZES) else "")
        record.row("lastarm show", events / showing, "events a second")
        record.row("lastarm show / json.loads of the same lines", showing / parsing, "times")
        path.unlink()


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
    memory = Path("/dev/shm")  # where there is one, so that no disk is measured
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        journals(record, Path(folder))
    if sys.argv[1:] == ["--journals"]:
        return
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
