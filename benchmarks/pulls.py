"""What a pull of 1 ms costs beyond its own computing: in memory, with a journal, with states.

All are measured in one process, in turns: processor seconds of this process, of which the pulls'
own are taken off, and seconds on the wall. Both depend on the disk: on what a sync takes, and on
what the system takes to make a file. So these are measured as well. Run by `make bench`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from lastarm import Checkpoints, SuccessiveHalving, Uniform, search
from record import Record

PULLS, ROUNDS = 1_000, 7
SECONDS, STATE_BYTES = 0.001, 10_000


class Brief:
    """A pull computes for a millisecond, whatever its state; it knows how long it did."""

    def __init__(self) -> None:
        self.computed = 0.0

    def start(self, config: Any, seed: int) -> Any:
        """A few numbers."""
        return np.arange(STATE_BYTES // 8, dtype=float) + config["x"]

    def train(self, state: Any, pulls: int) -> Any:
        """Use the processor."""
        began = process_time()
        while process_time() < began + SECONDS:
            state[0] += 1
        self.computed += process_time() - began
        return state

    def loss(self, state: Any) -> float:
        """Something that differs from arm to arm."""
        return float(state[1])


class Cost(NamedTuple):
    """What a pull takes beyond its computing, in milliseconds."""

    processor: float
    wall: float


def cost(**where: Any) -> Cost:
    """Of a search by successive halving whose every pull takes a millisecond."""
    trainer = Brief()
    policy = SuccessiveHalving(arms=PULLS // 2, budget=PULLS * 8)
    began, used = perf_counter(), process_time()
    found = search(trainer, {"x": Uniform(0, 1)}, policy=policy, **where)
    looks = found.spent.observations
    wall, used = perf_counter() - began, process_time() - used
    return Cost(*(1e3 * (spent - trainer.computed) / looks for spent in (used, wall)))


def with_journal(folder: Path, checkpoints: Any) -> Cost:
    """The same, with a journal of its own."""
    return cost(journal=folder / f"{uuid4().hex}.jsonl", checkpoints=checkpoints)


def sync_milliseconds(folder: Path) -> float:
    """What it takes this disk to make a line durable, at the median."""
    times = []
    with (folder / "line").open("ab", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * 300)
            began = perf_counter()
            os.fsync(file.fileno())
            times.append(perf_counter() - began)
    return 1e3 * median(times)


def file_milliseconds(folder: Path) -> float:
    """The processor time that it takes to write a file of that size, name it and remove it."""
    content = b"x" * STATE_BYTES
    began = process_time()
    for number in range(PULLS):
        new, name = folder / f"{number}.new", folder / f"{number}.state"
        new.write_bytes(content)
        new.rename(name)
        if number >= PULLS // 2:
            (folder / f"{number - PULLS // 2}.state").unlink()
    return 1e3 * (process_time() - began) / PULLS


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("pulls", "make bench", ["lastarm", "numpy"])
    with TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        contenders: dict[str, Callable[[], Cost]] = {
            "in memory": cost,
            "with a journal": partial(with_journal, folder, checkpoints=False),
            "with a journal and states": partial(with_journal, folder, checkpoints=True),
            "with a journal and states, each synced": partial(
                with_journal, folder, Checkpoints(sync=True)
            ),
        }
        turns = [{what: one() for what, one in contenders.items()} for _ in range(ROUNDS)]
        record.section(f"A pull of 1 ms with a state of {STATE_BYTES:,} bytes costs on top")
        for what in contenders:
            goals = ("at most 0.3", "at most 1") if what.endswith("states") else ("", "")
            seen = [turn[what] for turn in turns]
            processor, wall = (median(of) for of in zip(*seen, strict=True))
            record.row(f"{what}: processor time", processor, "ms", goals[0])
            record.row(f"{what}: wall time", wall, "ms", goals[1])
        record.row("one fsync on this disk", sync_milliseconds(folder), "ms")
        files = median(file_milliseconds(folder) for _ in range(ROUNDS))
        record.row("a file written, named and removed: processor time", files, "ms")
    record.write()


if __name__ == "__main__":
    main()
