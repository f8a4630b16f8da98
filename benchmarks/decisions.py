"""What a decision costs: one ask and one tell, on curves that take no time to train.

First how our own cost grows with the number of arms, and the memory it takes. Then our policies
beside the peers (`decisions_peers.py`), on the same kind of curves: Optuna's pruner, the ASHA of
Ray Tune and of Syne Tune, SMAC3's Successive Halving, scikit-learn's HalvingRandomSearchCV. A cost
is the mean over a whole search, in processor time: what other processes take does not count.
Our policies have a turn before each of a peer's, since a machine is not equally fast at all times,
and ratios are of medians within this run. Last the journal: durable observations a second, beside
the bare rate at which this disk can fsync.

    make bench
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from decisions_peers import (
    optuna_seconds,
    ray_seconds,
    sklearn_seconds,
    smac_seconds,
    syne_tune_seconds,
)
from lastarm import Configs, Loss, RecordedCurves, Serial, SuccessiveHalving, search
from lastarm.policies import ASHA
from record import Record

ARMS, TURNS = 10_000, 3


def curves(arms: int) -> Callable[[int, int], float]:
    """Losses that fall towards limits of their own at speeds of their own, so that they cross."""
    random = np.random.default_rng(arms)
    limit, speed = random.random(arms).tolist(), random.random(arms).tolist()
    return lambda arm, pulls: limit[arm] + speed[arm] / pulls


def halving(arms: int) -> float:
    """Seconds for each ask and tell of Successive Halving."""
    return a_decision(SuccessiveHalving(arms, budget=16 * arms * (arms - 1).bit_length()))


def asha(arms: int) -> float:
    """Seconds for each ask and tell of ASHA."""
    return a_decision(ASHA(arms, budget=100 * arms, max_pulls=81))


def a_decision(policy: SuccessiveHalving | ASHA) -> float:
    """Seconds for each ask and tell, to the end."""
    loss = curves(policy.arms)
    decisions = 0
    began = process_time()
    while pulls := policy.ask(1):
        pull = pulls[0]
        policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
        decisions += 1
    return (process_time() - began) / decisions


def typical(cost: Callable[[int], float], arms: int, times: int) -> float:
    """The median of several searches, where one takes too little time to trust."""
    return median(cost(arms) for _ in range(times))


def growth(record: Record, cost: Callable[[int], float], most: float) -> None:
    """How the cost of a decision grows from a thousand arms to a million."""
    repeats = {1_000: 100, 10_000: 10, 100_000: 1, 1_000_000: 1}
    rounds = [
        {arms: typical(cost, arms, times) for arms, times in repeats.items()} for _ in range(2)
    ]
    found = {arms: median(turn[arms] for turn in rounds) for arms in repeats}
    record.section(f"How the cost of a decision of {cost.__name__} grows")
    for arms in repeats:
        record.row(f"{arms:,} arms", found[arms] * 1e6, "µs")
    ratio = found[1_000_000] / found[1_000]
    record.row("1,000,000 arms / 1,000 arms", ratio, "times", goal=f"≤ {most}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kB on Linux
    record.row("most memory of this process so far", memory, "GB", goal="≤ 1")


def beside_peers(record: Record) -> None:
    """All contenders in turns."""
    ours = {
        "lastarm's Successive Halving, an ask and a tell": partial(typical, halving, ARMS, 3),
        "lastarm's ASHA, an ask and a tell": partial(typical, asha, ARMS, 3),
    }
    optuna = "Optuna, a report and a should_prune (25 arms timed of every 1,000)"
    peers = {
        optuna: partial(optuna_seconds, curves(ARMS), ARMS, timed=25, of=1_000),
        "Ray Tune's ASHA, an on_trial_result": partial(ray_seconds, curves(ARMS), ARMS),
        "scikit-learn, a candidate fitted and scored": partial(
            sklearn_seconds, curves(ARMS), ARMS
        ),
        "Syne Tune's ASHA, an on_trial_result (2,000 arms)": partial(
            syne_tune_seconds, curves(2_000), 2_000
        ),
        "SMAC3's Successive Halving, an ask and a tell (405 arms)": partial(
            smac_seconds, curves(405), 405
        ),
    }
    turns: dict[str, list[float]] = {name: [] for name in ours | peers}
    for peer in list(peers) * TURNS:
        for name in (*ours, peer):
            turns[name].append((ours | peers)[name]())
    found = {name: median(costs) for name, costs in turns.items()}
    slower, fastest = max(found[name] for name in ours), min(found[name] for name in peers)
    record.section(f"A decision among {ARMS:,} arms, in memory")
    for name, seconds in found.items():
        record.row(name, seconds * 1e6, "µs")
    record.row("fastest peer / our slower policy", fastest / slower, "times", goal="≥ 50")
    record.row("Optuna / our slower policy", found[optuna] / slower, "times", goal="≥ 500")
    record.note(
        "The costs of Optuna, Syne Tune and SMAC3 grow with the number of arms. Optuna is timed "
        f"at even distances in a search of {ARMS:,} arms; the other two are given fewer arms, "
        "which flatters them. SMAC3 has no model to train and saves nothing."
    )


def observations_a_second(arms: int, group: int, folder: str) -> float:
    """Journalled observations a second; those of a group share one fsync."""
    losses = np.random.default_rng(0).random((arms, 8))
    began = perf_counter()
    result = search(
        RecordedCurves(losses),
        Configs([{"row": row} for row in range(arms)]),
        policy=SuccessiveHalving(arms, budget=arms * (arms - 1).bit_length()),
        runner=partial(Serial, group=group),
        journal=Path(folder) / f"{group}-{began}.jsonl",
        checkpoints=False,
    )
    return result.spent.observations / (perf_counter() - began)


def fsyncs_a_second(folder: str, count: int = 1000) -> float:
    """How often this disk can append as many bytes as one observation has, and sync them."""
    line = b"x" * 300
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = perf_counter()
        for _ in range(count):
            file.write(line)
            os.fsync(file.fileno())
        return count / (perf_counter() - began)


def main() -> None:
    """Measure, print, and write the results down."""
    packages = ["lastarm", "numpy", "optuna", "ray", "scikit-learn", "smac", "syne-tune"]
    record = Record("decisions", "make bench", packages)
    growth(record, halving, most=2)  # first, while the peers have taken no memory
    growth(record, asha, most=3)
    beside_peers(record)

    with tempfile.TemporaryDirectory(dir=".") as folder:
        turns = [
            (
                fsyncs_a_second(folder),
                observations_a_second(1_000, 1, folder),
                observations_a_second(10_000, 256, folder),
            )
            for _ in range(5)
        ]
    disk, single, grouped = (median(column) for column in zip(*turns, strict=True))
    record.section("Journalled")
    record.row("fsyncs this disk can do", disk, "a second")
    record.row("observations, each with its own fsync", single, "a second", goal="≥ 1,000")
    record.row("observations, 256 to an fsync", grouped, "a second", goal="≥ 10,000")
    record.row("observations with their own fsync / bare fsyncs", single / disk, "times")
    record.write()


if __name__ == "__main__":
    main()
