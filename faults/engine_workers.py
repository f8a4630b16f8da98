"""F9 and F10: workers of real Dask and Ray clusters that are killed and frozen; clusters lost.

Every search comes to the digest of the serial runner; one that lost its cluster when it is gone on
with elsewhere.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

from faults.campaign import Campaign, Figures
from faults.engines import Engine, dask_engine, ray_engine
from faults.replayable import replayable
from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.errors import Stuck
from lastarm.events import Event, Loss
from lastarm.testing.runners import Drifting

KILLED, FROZEN, LOST = "killed workers", "frozen workers", "lost clusters"
ARMS = Configs([{"limit": arm / 20} for arm in range(12)])
HALVING = SuccessiveHalving(12, 240)


class Slow(Drifting):
    """Takes its time, so that it can be struck half-way, and tells which process it was in."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """Step by step."""
        for _ in range(pulls):
            time.sleep(0.002)
            state = super().train(state, 1)
        return state

    def loss(self, state: list[Any]) -> Any:
        """Where it is, and with whom."""
        return {"loss": super().loss(state), "process": os.getpid()}


class Blow:
    """Strikes once, a moment after the nth loss, the worker that it came from or the cluster."""

    def __init__(self, kind: str, engine: Engine, random: Random) -> None:
        self._kind, self._engine, self._random = kind, engine, random
        self._left = random.randrange(1, 20)

    def __call__(self, event: Event) -> None:
        """Count."""
        if isinstance(event, Loss) and event.metrics:
            self._left -= 1
            if self._left == 0:
                victim = event.metrics["process"]
                Timer(self._random.uniform(0, 0.05), self._strike, [victim]).start()

    def _strike(self, victim: int) -> None:
        if self._kind == LOST:
            self._engine.end()
        else:
            _signal(victim, signal.SIGKILL if self._kind == KILLED else signal.SIGSTOP)
        if self._kind == FROZEN:  # it thaws in time, or once it is given up
            seconds = self._random.uniform(0.2, 2.5) * self._engine.lease
            Timer(seconds, _signal, [victim, signal.SIGCONT]).start()


def _signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def strike(number: int, kind: str, engine: Engine, folder: Path) -> Result:
    """A search in which that happens once, at a random moment."""
    engine.wait_until_whole()
    found = partial(search, Slow(), ARMS, policy=HALVING, seed=number)
    journal = folder / f"{number}.jsonl" if kind == LOST or number % 2 else None
    blow = Blow(kind, engine, Random(number))
    try:
        result = found(runner=engine.runner, on_event=blow, journal=journal)
    except Stuck:
        if kind != LOST:
            raise
        result = found(journal=journal)
    serial = found()
    blamed = result.failures.keys() - serial.failures.keys()
    assert not blamed, f"innocent arms are out: {blamed}"
    assert result.digest == serial.digest, "another digest"
    return result


def run(
    start: Callable[[], AbstractContextManager[Engine]],
    deck: Sequence[str],
    times: int,
    folder: Path,
) -> Figures:
    """Strike so often, once a search, with what comes next on the deck."""
    struck: Counter[str] = Counter()
    repeated = 0
    with start() as engine:
        for number in range(times):
            kind = deck[number % len(deck)]
            with replayable(f"faults.engine_workers.strike({number}, {kind!r}, …)"):
                if kind == LOST:
                    with start() as another:
                        result = strike(number, kind, another, folder)
                else:
                    result = strike(number, kind, engine, folder)
            repeated += result.spent.repeated
            struck[kind] += 1
    return {**struck, "other digests": 0, "arms wrongly out": 0, "pulls repeated": repeated}


ON_DASK = partial(run, dask_engine, [KILLED, FROZEN, *[KILLED] * 5, LOST, *[KILLED] * 4, FROZEN])
ON_RAY = partial(run, ray_engine, [KILLED, FROZEN, *[KILLED] * 5])
DASK_FAULTS = Campaign(
    "F9", "Dask's workers killed and frozen, its scheduler lost", ON_DASK, 130, 2
)
RAY_FAULTS = Campaign("F10", "Ray: workers killed and frozen", ON_RAY, 35, 1)
