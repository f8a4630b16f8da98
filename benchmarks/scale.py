"""The simulated cluster as an instrument: what 1 to 1,000 workers make of one budget.

All policies have the same budget, keep the best third, and choose from the same pool of arms.
Successive Halving begins as many of them as its budget reaches and goes on until one is left.
Hyperband and ASHA may train an arm as far as that, and the levels of ASHA are those of halving.
But ASHA rather begins an arm than waits: the more workers, the more of its budget goes to many
arms, and the less far any of them comes. Nobody starts anything once the budget is spent, so that
even ASHA waits for its longest pulls at the end; until its last start it does not wait.

A pull takes seconds that are each arm's own: log-normal with a median of 1 s, unless they are
given. With faults, one attempt in 20 takes 10 times as long, and in one of 20 the worker dies part
of the way through, which loses the attempt; it is tried again. A worker is busy while it has an
attempt, also one that is slow or lost: busy is not useful. An answer is found when the arm that is
recommended in the end has the lowest latest loss, and from then on no other has. Better arms are
those of the whole pool whose losses end lower than the answer's; all curves are free of noise.

    .venv-bench/bin/python benchmarks/scale.py [--help]
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Callable
from functools import partial
from itertools import product
from math import inf, isfinite
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm import ASHA, Hyperband, Policy, RecordedCurves, Simulated, SuccessiveHalving
from lastarm.events import Loss, Pull, Told
from lastarm.journal import Unwritten, read
from lastarm.loop import run
from lastarm.report.figures.drawing import Figure, draw, house, legend, log
from lastarm.report.figures.palette import LOOKS, Look
from lastarm.runners import Arms
from lastarm.trainers import Config
from record import Record

WORKERS = (1, 10, 100, 1000)
FAULTS: dict[str, dict[str, float]] = {
    "no faults": {},
    "stragglers and failures": {"straggling": 0.05, "failing": 0.05},
}
RETRIES = 20  # enough that no arm is out for its workers' deaths
DRAWN = {
    "Successive Halving": LOOKS["successive-halving"],
    "Hyperband": Look("Hyperband", "#009E73", marker="^"),
    "ASHA": Look("ASHA", "#0072B2", marker="o"),
}
FIGURE = Path(__file__).with_name("scale.png")
SPREAD = 0.5  # of the logarithm of the seconds that a pull takes


class PowerLaw:
    """Arms whose losses fall to their limits as a power of the pulls they have had."""

    def start(self, config: Config, seed: int) -> tuple[Config, int]:
        """Not yet pulled."""
        return config, 0

    def train(self, state: tuple[Config, int], pulls: int) -> tuple[Config, int]:
        """Further by this number of pulls."""
        return state[0], state[1] + pulls

    def loss(self, state: tuple[Config, int]) -> float:
        """The limit, and what is left of the way to it."""
        config, pulls = state
        return float(config["limit"] + config["drop"] * pulls ** -config["power"])


class Pool(NamedTuple):
    """Arms to choose from: how they train, where their losses end, the seconds a pull takes."""

    trainer: Any
    configs: list[Config]
    ends: NDArray[np.float64]
    seconds: NDArray[np.float64]


def pool_of(
    arms: int, seed: int, times: NDArray[np.float64] | None, tables: list[RecordedCurves]
) -> Pool:
    """`arms` arms: generated, or drawn from what was recorded."""
    random = np.random.default_rng(seed)
    generated = random.lognormal(0.0, SPREAD, arms)
    seconds = generated if times is None else random.choice(times, arms)
    if tables:
        table = tables[seed % len(tables)]
        rows = random.integers(len(table.losses), size=arms)
        ends = np.nan_to_num(table.losses[rows, -1], nan=inf)
        return Pool(table, [{"row": int(row)} for row in rows], ends, seconds)
    limits = random.beta(2, 5, arms)
    drops, powers = random.uniform(0, 3, arms), random.uniform(0.5, 1.5, arms)
    configs: list[Config] = [
        {"limit": limit, "drop": drop, "power": power}
        for limit, drop, power in np.column_stack([limits, drops, powers]).tolist()
    ]
    return Pool(PowerLaw(), configs, limits, seconds)


def seconds_in(path: Path) -> NDArray[np.float64]:
    """The seconds of a pull, as often as they were recorded."""
    if path.suffix != ".jsonl":
        return np.loadtxt(path, ndmin=1)
    works = [event.work for event in read(path) if isinstance(event, Loss)]
    return np.array([work.train_seconds / work.trained for work in works if work.trained])


class Cluster(Simulated):
    """Simulated workers that are watched: for what share of the time they have an attempt."""

    def __init__(self, arms: Arms, *, workers: int, **options: Any) -> None:
        super().__init__(arms, workers=workers, **options)
        self._workers = workers
        self._busy_seconds = 0.0

    @property
    def share(self) -> float:
        """The share of all workers' time so far."""
        return self._busy_seconds / (self._workers * self.now) if self.now else 1.0

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """Between two moments, those that are not idle are busy."""
        before, busy = self.now, self._workers - self.free
        results = super().wait(seconds)
        self._busy_seconds += busy * (self.now - before)
        return results


class Leader:
    """The arm with the lowest latest loss, and since when it is that."""

    def __init__(self) -> None:
        self.arm: int | None = None
        self.since = 0.0
        self._latest: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def tell(self, loss: Loss, now: float) -> None:
        """Take a loss in."""
        arm, value = loss.pull.arm, loss.value if isfinite(loss.value) else inf
        self._latest[arm] = value
        heapq.heappush(self._heap, (value, arm))
        while self._latest[self._heap[0][1]] != self._heap[0][0]:
            heapq.heappop(self._heap)  # it has another loss now
        if self._heap[0][1] != self.arm:
            self.arm, self.since = self._heap[0][1], now


def play(
    make: Callable[[], Policy], pool: Pool, workers: int, seed: int, faults: dict[str, float]
) -> dict[str, float]:
    """One search on one cluster, and what there is to say of it."""
    policy = make()
    configs = pool.configs[: policy.arms]
    seconds = pool.seconds[: policy.arms]
    cluster = Cluster(
        Arms(pool.trainer, configs, seed), workers=workers, seconds_per_pull=seconds, **faults
    )
    leader, pulls, begun = Leader(), dict[int, int](), set[Pull]()
    attempts, until_the_last_start = 0, 1.0
    began = process_time()
    for event in run(policy, cluster, Unwritten(), configs, retries=RETRIES):
        if isinstance(event, Pull):
            attempts += 1
            if event not in begun:  # a lost attempt may begin anew when there is nothing else
                begun.add(event)
                until_the_last_start = cluster.share
        if isinstance(event, Loss):
            pulls[event.pull.arm] = event.pull.upto
            leader.tell(event, cluster.now)
    took = process_time() - began
    arm = policy.recommendation
    assert arm is not None
    return {
        "busy, %": 100 * cluster.share,
        "until the last start, %": 100 * until_the_last_start,
        "ended after, s": cluster.now,
        "answer found after, s": leader.since if leader.arm == arm else cluster.now,
        "pulls": sum(pulls.values()),
        "arms begun": len(pulls),
        "pulls of the answer": pulls[arm],
        "better arms": int((pool.ends < pool.ends[arm]).sum()),
        "processor time of an attempt, µs": 1e6 * took / attempts,
    }


def policies(rungs: int) -> dict[str, Callable[[], Policy]]:
    """The contenders: with these numbers, the levels of ASHA are those of halving."""
    arms, max_pulls = 3**rungs, (3**rungs - 1) // 2
    pool, budget = 3 * arms, rungs * arms
    return {
        "Successive Halving": partial(SuccessiveHalving, arms, budget, eta=3),
        "Hyperband": partial(Hyperband, pool, budget, max_pulls=max_pulls),
        "ASHA": partial(ASHA, pool, budget, max_pulls=max_pulls),
    }


def picture(found: dict[tuple[str, str, int], dict[str, float]], rungs: int, file: Path) -> None:
    """Two panels: how busy the workers are, and when they have the answer."""
    with house():
        figure = Figure(figsize=(11, 5.4))
        left, right = figure.subplots(1, 2)
        for (name, look), (faults, options) in product(DRAWN.items(), FAULTS.items()):
            dashes = (0, (3, 2)) if options else "-"
            drawn = look._replace(label="" if options else name, dashes=dashes)
            rows = [found[name, faults, workers] for workers in WORKERS]
            draw(left, drawn, WORKERS, [row["busy, %"] for row in rows])
            draw(right, drawn, WORKERS, [row["answer found after, s"] for row in rows])
            if not options:
                before = [row["until the last start, %"] for row in rows]
                left.plot(WORKERS, before, "-", lw=0.8, color=look.colour)
                ended = [row["ended after, s"] for row in rows]
                right.plot(WORKERS, ended, "-", lw=0.8, color=look.colour)
        right.plot([], [], color="#777777", ls=(0, (3, 2)), label=f"with {list(FAULTS)[1]}")
        thin = "left: until the last start; right: until the end"
        left.plot([], [], lw=0.8, color="#777777", label=thin)
        alone = found["Successive Halving", "no faults", 1]["ended after, s"]
        ideal = [alone / workers for workers in WORKERS]
        right.plot(
            WORKERS, ideal, ":", color="#777777", label="the end, were all workers always busy"
        )
        left.set(ylabel="busy workers, %", ylim=(0, 102))
        right.set(ylabel="simulated seconds until the answer was found")
        for axes in (left, right):
            log(axes, "x" if axes is left else "xy")
            axes.set_xticks(WORKERS, [f"{workers:,}" for workers in WORKERS])
            axes.xaxis.minorticks_off()
            axes.set(xlabel="workers")
        figure.suptitle(f"A budget of {rungs * 3**rungs:,} pulls on simulated workers")
        legend(figure, [left, right], 3)
        figure.savefig(file, dpi=150)


def main(arguments: list[str] | None = None) -> None:
    """Play every policy on every cluster, print and draw."""
    parser = argparse.ArgumentParser(
        description="Utilisation and time to the answer on 1 to 1,000 simulated workers. Without "
        "options it writes its part of RESULTS.md, and scale.png; with any, it only prints."
    )
    parser.add_argument(
        "--times",
        type=Path,
        metavar="FILE",
        help="seconds of a pull, a number a line; or the journal of a search, named .jsonl, whose "
        "losses tell them. Each arm draws one of them. [default: log-normal, median 1]",
    )
    parser.add_argument(
        "--curves",
        type=Path,
        metavar="FOLDER",
        help="recorded curves, .npz files as `lastarm replay` reads them; each seed draws arms "
        "from the rows of one file. [default: power laws]",
    )
    parser.add_argument(
        "--rungs", type=int, default=8, help="the size: 3^RUNGS arms for halving. [default: 8]"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the medians. [default: 3]")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it there.")
    given = parser.parse_args(arguments)
    plain = given == parser.parse_args([])

    times = None if given.times is None else seconds_in(given.times)
    files = [] if given.curves is None else sorted(given.curves.glob("*.npz"))
    if given.curves and not files:
        parser.error(f"there is no .npz file in {given.curves}")
    tables = [RecordedCurves.load(file) for file in files]

    pools = [pool_of(3 ** (given.rungs + 1), k, times, tables) for k in range(given.seeds)]
    began = process_time()
    found = {}
    for (name, make), (faults, options), workers in product(
        policies(given.rungs).items(), FAULTS.items(), WORKERS
    ):
        played = [play(make, pool, workers, k, options) for k, pool in enumerate(pools)]
        found[name, faults, workers] = {
            column: median(row[column] for row in played) for column in played[0]
        }
    took = process_time() - began

    record = Record("scale", "python benchmarks/scale.py", ["lastarm", "numpy", "matplotlib"])
    record.note(__doc__.partition("\n\n")[2].rpartition("\n\n")[0])
    record.note(f"Medians of {given.seeds} seeds, which draw arms, times and faults.")
    for faults in FAULTS:
        rows = {
            f"{name} on {workers:,}": row
            for (name, with_faults, workers), row in found.items()
            if with_faults == faults
        }
        record.table(f"A budget of {given.rungs * 3**given.rungs:,} pulls, {faults}", rows)
    record.section("What simulating takes")
    an_attempt = [row["processor time of an attempt, µs"] for row in found.values()]
    record.row("an attempt, median of all schedules", median(an_attempt), "µs")
    record.row("an attempt, slowest schedule", max(an_attempt), "µs")
    record.row("attempts, by the median", 1e6 / median(an_attempt), "a second")
    record.row(f"all {len(found) * given.seeds} schedules", took, "s")
    if plain:
        record.note("![Busy workers and time to the answer, against workers](scale.png)")
        record.write()
    if plain or given.figure:
        picture(found, given.rungs, given.figure or FIGURE)


if __name__ == "__main__":
    main()
