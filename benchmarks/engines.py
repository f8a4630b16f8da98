"""How fast pulls are performed: worker processes beside one process, in turns.

The pulls compute for 20 ms and carry a state of 1 MB, in memory and with a journal, where every
state is on the disk before its loss counts. Run by `make bench`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from lastarm import Uniform, UniformAllocation, search
from lastarm.events import Event, Loss
from record import Record

SECONDS, STATE_BYTES, PULLS, FIRST = 0.02, 2**20, 300, 60


class Busy:
    """A pull computes for so long, and an arm weighs a megabyte."""

    def start(self, config: Any, seed: int) -> Any:
        """Many numbers."""
        return np.arange(STATE_BYTES // 8, dtype=float) + seed

    def train(self, state: Any, pulls: int) -> Any:
        """Use the processor."""
        until = process_time() + SECONDS * pulls
        while process_time() < until:
            state[0] += 1
        return state

    def loss(self, state: Any) -> float:
        """Something."""
        return float(state[1])


def seconds_a_pull(workers: int, journal: Path | None) -> float:
    """From a result by which all workers have long begun to the last."""
    times: list[float] = []

    def watch(event: Event) -> None:
        if isinstance(event, Loss):
            times.append(perf_counter())

    search(
        Busy(),
        {"x": Uniform(0, 1)},
        policy=UniformAllocation(arms=PULLS, budget=PULLS),
        workers=workers,
        journal=journal,
        on_event=watch,
    )
    return (times[-1] - times[FIRST]) / (len(times) - 1 - FIRST)


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("engines", "make bench", ["lastarm", "numpy", "cloudpickle"])
    workers = min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for kept in ("in memory", "with a journal and durable states"):
            rounds = [
                [
                    seconds_a_pull(
                        n, Path(folder) / f"{turn}-{n}.jsonl" if "durable" in kept else None
                    )
                    for n in (1, workers)
                ]
                for turn in range(5)
            ]
            one, many = (median(column) for column in zip(*rounds, strict=True))
            record.section(f"Pulls of {SECONDS * 1000:.0f} ms with states of 1 MB, {kept}")
            record.row("serial, a pull", one * 1000, "ms")
            record.row(f"{workers} processes, a pull", many * 1000, "ms")
            record.row("serial / processes", one / many, "times", goal="at least 1.8")
            overhead = (many * workers - SECONDS) * 1000
            record.row("a worker's time a pull beyond the computing", overhead, "ms", "at most 5")
    record.write()


if __name__ == "__main__":
    main()
