"""F20: whichever runner performs the pulls, and however long each takes, a seed has one digest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.engines import Engine, dask_engine, ray_engine
from lastarm import Batched, Configs, Processes, Serial, Simulated, SuccessiveHalving, search
from lastarm.runners import MakeRunner
from lastarm.trainers import Config

ARMS = 12
HALVING = SuccessiveHalving(ARMS, 30 * ARMS)
CONFIGS = Configs([{"arm": arm} for arm in range(ARMS)])

LATENCIES: dict[str, Sequence[float]] = {  # seconds a pull, arm by arm
    "all alike": [0.0] * ARMS,
    "later arms are slower": [2e-4 * arm for arm in range(ARMS)],
    "a few are very slow": [2e-3 * (arm % 5 == 2) for arm in range(ARMS)],
}

LEASE = 60.0  # seconds of silence: no worker is frozen here, but the machine may be busy

Make = Callable[[Sequence[float]], MakeRunner]
"""A runner for arms that take this number of seconds a pull: only a simulated one uses it."""


@contextmanager
def _any_arms(started: AbstractContextManager[Engine]) -> Iterator[Make]:
    with started as engine:
        yield lambda seconds: engine.runner


# A runner is made within a context, entered once for all searches: that of an engine starts it
# and stops it.
RUNNERS: dict[str, Callable[[], AbstractContextManager[Make]]] = {
    "serial": lambda: nullcontext(lambda seconds: Serial),
    "batched": lambda: nullcontext(lambda seconds: Batched),
    "processes": lambda: nullcontext(lambda seconds: partial(Processes, workers=2)),
    "simulated": lambda: nullcontext(
        lambda seconds: partial(Simulated, workers=5, seconds_per_pull=seconds, duplicating=0.3)
    ),
    "Dask": lambda: _any_arms(dask_engine(LEASE)),
    "Ray": lambda: _any_arms(ray_engine(LEASE)),
}


class Walkers(NamedTuple):
    """Arms: the seed, the number, the pulls so far and the place of each."""

    seeds: NDArray[Any]
    numbers: NDArray[Any]
    pulls: NDArray[Any]
    places: NDArray[Any]


class Walks:
    """A batched trainer of random walks, each by its own seed, that take a while.

    Trained in a batch or alone, by any worker, their losses are the same to the last bit: they
    are made of sums and products, element by element.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        self._seconds = np.array(seconds)

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Walkers:
        """All at 1."""
        numbers = np.array([config["arm"] for config in configs])
        pulls, places = np.zeros_like(numbers), np.ones(len(numbers))
        return Walkers(np.array(seeds, np.uint64), numbers, pulls, places)

    def train(self, batch: Walkers, arms: Sequence[int], pulls: int) -> None:
        """A step a pull; as long as the slowest of them takes."""
        chosen = np.asarray(arms)
        time.sleep(pulls * self._seconds[batch.numbers[chosen]].max())
        for _ in range(pulls):
            batch.pulls[chosen] += 1
            noise = _noise(batch.seeds[chosen] + batch.pulls[chosen].astype(np.uint64))
            batch.places[chosen] = 0.9 * batch.places[chosen] + noise

    def losses(self, batch: Walkers, arms: Sequence[int]) -> NDArray[Any]:
        """How far away they are."""
        return np.asarray(np.abs(batch.places[list(arms)]))

    def tests(self, batch: Walkers, arms: Sequence[int]) -> NDArray[Any]:
        """Where they are."""
        return batch.places[list(arms)]

    def take(self, batch: Walkers, arm: int) -> Walkers:
        """A copy of it."""
        return Walkers(*(array[[arm]] for array in batch))

    def gather(self, ones: Sequence[Walkers]) -> Walkers:
        """Copies of all."""
        return Walkers(*map(np.concatenate, zip(*ones, strict=True)))


def _noise(number: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A pseudo-random number between -½ and ½: splitmix64."""
    mixed = number * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) * 2.0**-64 - 0.5


class Started:
    """The runners by name, each started when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._makes: dict[str, Make] = {}

    def __getitem__(self, name: str) -> Make:
        if name not in self._makes:
            self._makes[name] = self._stack.enter_context(RUNNERS[name]())
        return self._makes[name]


def check(seed: int, runners: Started, latencies: Sequence[str]) -> None:
    """All of them come to one answer."""
    usual = None
    for runner, latency in product(RUNNERS, latencies):
        seconds = LATENCIES[latency]
        make = runners[runner](seconds)
        result = search(Walks(seconds), CONFIGS, policy=HALVING, runner=make, seed=seed)
        answer = result.digest, result.test_loss, result.spent.pulls
        usual = usual or answer  # that of the first, the serial one
        assert answer == usual, f"{runner}, {latency}: {answer} and not {usual}"


def run(tries: range, folder: Path) -> Figures:
    """Try these seeds; a single seed has one latency only, since engines start slowly."""
    latencies = list(LATENCIES)[: 1 if len(tries) == 1 else None]
    with ExitStack() as stack:
        runners = Started(stack)
        for seed in tries:
            with replayable(f"faults.runners_agree.check({seed}, …)"):
                check(seed, runners, latencies)
    return {
        "seeds": len(tries),
        "runners": Most(len(RUNNERS)),
        "latencies": Most(len(latencies)),
        "searches": len(tries) * len(RUNNERS) * len(latencies),
        "other digests": 0,
    }


RUNNERS_AGREE = Campaign(
    "F20",
    "all runners, with arms fast and slow",
    run,
    full=20,
    short=1,
    paths=(
        *SEARCHING,
        "src/lastarm/runners/**/*.py",
        "faults/engines.py",
        "faults/runners_agree.py",
    ),
)
