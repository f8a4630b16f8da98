"""F17: the wall clock jumps, runs backwards or stands still, and nothing depends on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from faults.campaign import SEARCHING, Campaign, Figures, replayable
from lastarm import Configs, Processes, Simulated, SuccessiveHalving, search
from lastarm.testing.runners import Drifting
from lastarm.trainers import Config

NOW, DAY = 1_790_000_000.0, 86_400.0
CLOCKS: dict[str, Callable[[int, Random], float]] = {  # by how often it was looked at before
    "anywhere within a day": lambda looks, random: random.uniform(-DAY, DAY),
    "frozen": lambda looks, random: 0.0,
    "a day ahead, at once": lambda looks, random: DAY if looks > 3 else 0.0,
    "a day back, at once": lambda looks, random: -DAY if looks > 3 else 0.0,
    "backwards": lambda looks, random: -float(looks),
    "summer time, again and again": lambda looks, random: 3600.0 * (looks % 2),
}
HALVING = SuccessiveHalving(8, 48)
ARMS = [*({"limit": k / 10} for k in range(7)), {"limit": 9.0, "hangs": 30.0}]  # the last fails
PULL_SECONDS = 1.5


@contextmanager
def wall_clock(kind: str, seed: int) -> Iterator[None]:
    """Within, the time of day is what that clock says."""
    looks, random = count(), Random(seed)

    def seconds() -> float:
        return NOW + CLOCKS[kind](next(looks), random)

    with patch("time.time", seconds), patch("time.time_ns", lambda: int(seconds() * 1e9)):
        yield


class Slow(Drifting):
    """Takes its time."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """Not as fast as it could."""
        time.sleep(0.005 * pulls)
        return super().train(state, pulls)


class Elsewhere(Slow):
    """The worker's clock is wrong, too; there, an arm hangs if its config says so."""

    def __init__(self, kind: str, seed: int) -> None:
        self._clock = kind, seed

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In the worker, for as long as that lives."""
        vars(self).update(state)
        wall_clock(*self._clock).__enter__()

    def start(self, config: Config, seed: int) -> list[Any]:
        """Perhaps it never does."""
        time.sleep(config.get("hangs", 0.0))
        return super().start(config, seed)


def check(number: int, folder: Path, *, workers: bool) -> None:
    """A near limit of time ends a search, a far one does not, and the answer is the same."""
    kind = list(CLOCKS)[number % len(CLOCKS)]
    found = partial(search, space=Configs(ARMS), policy=HALVING, seed=number, seconds=3600.0)
    digests = {found(Drifting()).digest}
    with wall_clock(kind, number):
        resumed = partial(found, Slow(), journal=folder / f"{number}.jsonl")
        assert not resumed(seconds=0.05).complete, f"{kind}: a limit of 0.05 s was not kept"
        digests.add(resumed().digest)
        digests.add(
            found(Drifting(), runner=partial(Simulated, workers=3, duplicating=0.5)).digest
        )
        if workers:
            runner = partial(Processes, workers=2, pull_seconds=PULL_SECONDS)
            result = found(Elsewhere(kind, number), runner=runner)
            given_up = [a for a, f in result.failures.items() if "no result within" in f.error]
            assert given_up == [7], f"{kind}: a limit of {PULL_SECONDS} s gave up {given_up}"
            digests.add(result.digest)
    assert len(digests) == 1, f"{kind}: another digest"


def run(tries: range, folder: Path) -> Figures:
    """Try clocks, every seventh on worker processes too, so that each kind has a turn."""
    for number in tries:
        with replayable(f"faults.clocks.check({number}, FOLDER, workers={number % 7 == 1})"):
            check(number, folder, workers=number % 7 == 1)
    return {"clocks": len(tries), "other digests": 0, "limits that were not kept": 0}


CLOCK = Campaign(
    "F17",
    "the clock on the wall jumps, runs backwards, stands still",
    run,
    full=84,
    short=6,
    paths=(*SEARCHING, "src/lastarm/testing/runners.py", "faults/clocks.py"),
)
