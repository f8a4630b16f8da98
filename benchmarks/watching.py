"""What it takes to watch: a search that is watched beside one that is not, and large searches.

The same search runs with a page that is open in a browser and without, in turns; the ratio is of
medians. A journal of 10,000 arms that were looked at 20 times is opened in a real browser, and
grown by a line. A journal of a million lines is opened.

    make bench
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.events import Loss, Opened, Pull, Started, Work
from lastarm.journal import Journal
from opening import write_journal
from record import Record

ARMS, LOOKS, MILLION, TURNS = 10_000, 20, 1_000_000, 3
POLICY = {"name": "successive-halving", "arms": ARMS, "budget": ARMS * LOOKS}
OPENED = Opened(0, POLICY, {"lr": {"log-uniform": [1e-5, 0.1]}}, {})
ALONE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def write_wide(path: Path) -> None:
    """Every arm seen at every look."""
    random = np.random.default_rng(0)
    losses = random.random((ARMS, 1)) + (1 + np.arange(LOOKS)) ** -random.uniform(
        0.2, 1, (ARMS, 1)
    )
    with Journal(path, OPENED) as journal:
        for look in range(LOOKS):
            for arm in range(ARMS):
                config = {"lr": float(10 ** random.uniform(-5, -1)), "layers": arm % 9}
                name, at = f"process {arm % 2}", 1_795_122_903.0 + look * ARMS + arm
                journal.append(Started(arm, look + 1, None if look else config, name, at))
                work = Work(1, 0.01, 0.002, name)
                journal.append(Loss(Pull(arm, look + 1), float(losses[arm, look]), work))
            journal.flush()


@contextmanager
def served(*journals: Path) -> Iterator[tuple[str, int]]:
    """The address of a page, and the process that serves it."""
    command = [sys.executable, "-m", "lastarm", "watch", *map(str, journals), "--until-closed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdout.readline().decode().strip(), process.pid
        process.stdin.close()


def memory(process: int) -> float:
    """The most that a process has used, in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def until(page: Any, true: str) -> float:
    """Wait until it is so; the seconds that it took."""
    began = perf_counter()
    while not page.evaluate(true):
        sleep(0.02)
    return perf_counter() - began


LINES = "Number(document.body.dataset.lines ?? 0)"


def measure_large(record: Record, page: Any, folder: Path) -> None:
    """The first view, a new line and the memory of a server, with many arms and many lines."""
    wide = folder / "wide.jsonl"
    write_wide(wide)
    lines = 1 + 2 * ARMS * LOOKS
    record.section(f"A page with {ARMS:,} arms × {LOOKS} looks")
    with served(wide) as (address, process):
        page.goto(address)
        read = until(page, f"{LINES} === {lines}")
        record.row("read by a server that has just begun", read, "s")
        views = []
        for _ in range(TURNS):
            began = perf_counter()
            page.goto(address)
            until(page, f"{LINES} === {lines}")
            until(page, "document.querySelectorAll('#best-chart svg').length > 0")
            views.append(perf_counter() - began)
        record.row("first view", median(views), "s", "≤ 2")
        page.locator("#curves").scroll_into_view_if_needed()
        drawn = until(page, "document.querySelectorAll('#curves-chart svg').length > 0")
        record.row("its curves, when they are scrolled to", drawn, "s")
        seen = []
        for turn in range(TURNS):
            with Journal(wide, OPENED) as journal:
                journal.append(Started(turn, LOOKS + 1, None, "process 0", 1_795_400_000.0))
                began = perf_counter()
                journal.flush()
                until(page, f"{LINES} === {lines + turn + 1}")
                seen.append(perf_counter() - began)
        record.row("a new line is on the page", median(seen), "s", "≤ 1")
        record.row("the server's memory", memory(process), "MB", "≤ 300")
    million = folder / "million.jsonl"
    write_journal(million, MILLION)
    with served(million) as (address, process):
        page.goto(address)
        read = until(page, f"{LINES} >= {MILLION * 0.99} && document.title.length > 0")
        record.row(f"a journal of {MILLION:,} lines is opened", read, "s", "≤ 15")
        record.row("the server's memory then", memory(process), "MB")


def train(config: dict[str, float]) -> Iterator[float]:
    """A pull takes a millisecond of work."""
    for pulls in range(1, 10_000):
        until = perf_counter() + 0.001
        while perf_counter() < until:
            pass
        yield config["lr"] + 1 / pulls


def seconds_of(journal: Path) -> float:
    """How long a search takes."""
    began = perf_counter()
    policy = SuccessiveHalving(256, 4096)
    space = {"lr": LogUniform(1e-4, 1.0)}
    search(train, space, policy=policy, journal=journal, checkpoints=False)
    return perf_counter() - began


def measure_watched(record: Record, page: Any, folder: Path) -> None:
    """A search that is watched, beside one that is not."""
    watched, alone = [], []
    for turn in range(TURNS):
        alone.append(seconds_of(folder / f"alone-{turn}.jsonl"))
        path = folder / f"watched-{turn}.jsonl"
        with served(path) as (address, _):
            page.goto(address)
            watched.append(seconds_of(path))
    record.section("A search that is watched")
    record.row("seconds, watched / alone", median(watched) / median(alone), "×", "≈ 1")


def main() -> None:
    """Measure all of it."""
    record = Record("watching", "benchmarks/watching.py", ["playwright"])
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ALONE)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        measure_watched(record, page, Path(folder))
        measure_large(record, page, Path(folder))
        browser.close()
    record.write()


if __name__ == "__main__":
    main()
