"""F9 and F10: workers of real Dask and Ray clusters that are killed and frozen; clusters lost.

Every search comes to the digest of the serial runner; one that lost its cluster does so when it is
resumed elsewhere. The engines run on loopback, are started here and stopped at the end.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Timer
from time import sleep
from typing import Any, NamedTuple

import dask
from distributed import Client, LocalCluster

from faults.campaign import SEARCHING, Campaign, Figures, replayable
from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.errors import Stuck
from lastarm.events import Event, Failure, Loss
from lastarm.runners import ATTEMPTS_OF_LOST, MakeRunner
from lastarm.runners.dask import Dask
from lastarm.runners.ray import Ray
from lastarm.runners.ray.cluster import LocalRay
from lastarm.testing.runners import Drifting

WORKERS = 2
KILLED, FROZEN, LOST = "killed workers", "frozen workers", "lost clusters"
ARMS = Configs([{"limit": arm / 20} for arm in range(12)])
HALVING = SuccessiveHalving(12, 240)


class Engine(NamedTuple):
    """An engine that runs: a runner on it, with this lease, and how it is waited for and ended."""

    runner: MakeRunner
    lease: float
    wait_until_whole: Callable[[], None]
    end: Callable[[], None]


@contextmanager
def dask_engine(lease: float = 2.0) -> Iterator[Engine]:
    """A cluster with worker processes that are replaced when they die."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # that workers die is what it is for
    try:
        with (
            # A local cluster does without a worker that is away so long after one was lost.
            dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
            LocalCluster(
                n_workers=WORKERS,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            runner = partial(Dask, client=client, lease=lease)
            yield Engine(runner, lease, partial(_wait_for_workers, client), cluster.close)
    finally:
        logger.setLevel(level)


@contextmanager
def ray_engine(lease: float = 3.0) -> Iterator[Engine]:
    """A Ray whose workers are the runner's own, and are all there when it begins."""
    with closing(LocalRay(WORKERS)) as own:
        runner = partial(Ray, workers=WORKERS, lease=lease)
        yield Engine(runner, lease, lambda: None, own.close)


def _wait_for_workers(client: Client) -> None:
    for _ in range(1200):
        if len(client.nthreads()) == WORKERS:
            return
        sleep(0.1)
    raise AssertionError("a worker has not come back within two minutes")


class Slow(Drifting):
    """Takes its time, so that it can be struck half-way, and tells which process it was in."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """Step by step."""
        for _ in range(pulls):
            time.sleep(0.002)
            state = super().train(state, 1)
        return state

    def loss(self, state: list[Any]) -> Any:
        """Its place, and its process."""
        return {"loss": super().loss(state), "process": os.getpid()}


class Blow:
    """Strikes, a moment after the nth loss, the worker that it came from or the cluster.

    If `twice`, it strikes another worker, too, a moment after a pull was lost with the first: when
    that pull is begun again, most likely. What is struck is noted before the search goes on.
    """

    def __init__(self, kind: str, engine: Engine, random: Random, *, twice: bool) -> None:
        self._kind, self._engine, self._random = kind, engine, random
        self._left, self._twice = random.randrange(1, 12), twice
        self._workers: set[int] = set()  # those that have not been struck
        self._falling: Timer | None = None
        self.struck = 0
        self.attempts = 1  # the most of a pull

    def __call__(self, event: Event) -> None:
        """Count."""
        if self._falling:
            self._falling.join()
        if isinstance(event, Loss | Failure):
            self.attempts = max(self.attempts, event.work.attempt)
        if isinstance(event, Loss) and event.metrics:
            worker = event.metrics["process"]
            self._workers.add(worker)
            self._left -= 1
            if self._left == 0:
                self._fall_on(worker)
        elif isinstance(event, Failure) and event.lost and self._twice and self._workers:
            self._twice = False
            self._fall_on(min(self._workers))

    def _fall_on(self, victim: int) -> None:
        self._workers.discard(victim)
        self._falling = Timer(self._random.uniform(0, 0.05), self._strike, [victim])
        self._falling.start()

    def _strike(self, victim: int) -> None:
        self.struck += 1
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


def strike(number: int, kind: str, engine: Engine, folder: Path) -> tuple[Result, Blow]:
    """A search in which that happens at a random moment; workers are mostly killed twice."""
    engine.wait_until_whole()
    found = partial(search, Slow(), ARMS, policy=HALVING, seed=number)
    journal = folder / f"{number}.jsonl" if kind == LOST or number % 2 else None
    blow = Blow(kind, engine, Random(number), twice=kind == KILLED and number % 3 > 0)
    try:
        result = found(runner=engine.runner, on_event=blow, journal=journal)
        assert kind != LOST, "the lost cluster was not noticed"
    except Stuck:
        if kind != LOST:
            raise
        result = found(journal=journal)
    assert blow.struck, "nothing has happened"
    serial = found()
    blamed = result.failures.keys() - serial.failures.keys()
    assert not blamed, f"innocent arms are out: {blamed}"
    assert result.digest == serial.digest, "another digest"
    return result, blow


def run(
    start: Callable[[], AbstractContextManager[Engine]],
    deck: Sequence[str],
    tries: range,
    folder: Path,
) -> Figures:
    """Searches, each struck by the next fault of the deck."""
    struck: Counter[str] = Counter()
    repeated = alone = 0
    with start() as engine:
        for number in tries:
            kind = deck[number % len(deck)]
            with replayable(f"faults.engines.strike({number}, {kind!r}, …)"):
                if kind == LOST:
                    with start() as another:
                        result, blow = strike(number, kind, another, folder)
                else:
                    result, blow = strike(number, kind, engine, folder)
            repeated += result.spent.repeated
            struck[kind] += blow.struck
            alone += blow.attempts >= ATTEMPTS_OF_LOST
    return {
        "searches": len(tries),
        **struck,
        "searches with a pull that was lost twice": alone,
        "other digests": 0,
        "arms wrongly out": 0,
        "pulls repeated": repeated,
    }


ON_DASK = partial(run, dask_engine, [KILLED, FROZEN, *[KILLED] * 5, LOST, *[KILLED] * 4, FROZEN])
ON_RAY = partial(run, ray_engine, [KILLED, FROZEN, *[KILLED] * 5])
PATHS = (*SEARCHING, "src/lastarm/testing/runners.py", "faults/engines.py")
DASK_FAULTS = Campaign(
    "F9",
    "Dask's workers killed and frozen, its scheduler lost",
    ON_DASK,
    full=130,
    short=1,
    paths=(*PATHS, "src/lastarm/runners/dask/*.py"),
)
RAY_FAULTS = Campaign(
    "F10",
    "Ray: workers killed and frozen",
    ON_RAY,
    full=35,
    short=1,
    paths=(*PATHS, "src/lastarm/runners/ray/*.py"),
)
