"""What a decision costs: one ask and one tell, on curves that take no time to train.

Successive Halving against Optuna's in-memory study with its SuccessiveHalvingPruner, whose
decision is one report and one should_prune; ASHA against Ray Tune's AsyncHyperBandScheduler,
driven directly, whose decision is one on_trial_result. Nothing else of them is counted, and the
curves are the same. Contenders take turns, and ratios are of medians within this run. Then how our
own cost grows with the number of arms, and the memory it takes. Then the journal: durable
observations a second, beside the bare rate at which this disk can fsync.

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
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import optuna
from ray.tune.schedulers import AsyncHyperBandScheduler

from lastarm import Configs, Loss, RecordedCurves, Serial, SuccessiveHalving, search
from lastarm.policies import ASHA
from record import Record


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
    began = perf_counter()
    while pulls := policy.ask(1):
        pull = pulls[0]
        policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
        decisions += 1
    return (perf_counter() - began) / decisions


def optunas(arms: int) -> float:
    """Seconds for each report and should_prune of trials that stop when they are pruned."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
    )
    loss = curves(arms)
    decisions, seconds = 0, 0.0
    for arm in range(arms):
        trial = study.ask()
        pruned = False
        for level in (1, 2, 4, 8, 16, 32, 64):
            value = loss(arm, level)
            began = perf_counter()
            trial.report(value, level)
            pruned = trial.should_prune()
            seconds += perf_counter() - began
            decisions += 1
            if pruned:
                break
        state = optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE
        study.tell(trial, None if pruned else value, state=state)
    return seconds / decisions


def rays(arms: int) -> float:
    """Seconds for each on_trial_result of trials that stop when they are told to."""
    scheduler = AsyncHyperBandScheduler(
        metric="loss", mode="min", max_t=81, grace_period=1, reduction_factor=3
    )
    loss = curves(arms)
    decisions, seconds = 0, 0.0
    for arm in range(arms):
        trial = SimpleNamespace(trial_id=str(arm))
        scheduler.on_trial_add(None, trial)
        for level in (1, 3, 9, 27, 81):
            result = {"loss": loss(arm, level), "training_iteration": level}
            began = perf_counter()
            action = scheduler.on_trial_result(None, trial, result)
            seconds += perf_counter() - began
            decisions += 1
            if action == "STOP":
                break
    return seconds / decisions


def growth(record: Record, cost: Callable[[int], float], most: float) -> None:
    """How the cost of a decision grows from a thousand arms to a million."""
    repeats = {1_000: 100, 10_000: 10, 100_000: 1, 1_000_000: 1}
    rounds = [
        {arms: median(cost(arms) for _ in range(times)) for arms, times in repeats.items()}
        for _ in range(3)
    ]
    found = {arms: median(turn[arms] for turn in rounds) for arms in repeats}
    record.section(f"How the cost of a decision of {cost.__name__} grows")
    for arms in repeats:
        record.row(f"{arms:,} arms", found[arms] * 1e6, "µs")
    ratio = found[1_000_000] / found[1_000]
    record.row("1,000,000 arms / 1,000 arms", ratio, "times", goal=f"≤ {most}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kB on Linux
    record.row("most memory of this process so far", memory, "GB", goal="≤ 1")


def beside(
    record: Record,
    title: str,
    ours: tuple[str, Callable[[], float]],
    theirs: tuple[str, Callable[[], float]],
) -> None:
    """Two contenders in turns."""
    rounds = [(ours[1](), theirs[1]()) for _ in range(5)]
    us, them = (median(column) for column in zip(*rounds, strict=True))
    record.section(title)
    record.row(ours[0], us * 1e6, "µs")
    record.row(theirs[0], them * 1e6, "µs")
    record.row("theirs / ours", them / us, "times", goal="at least 50")


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
    record = Record("decisions", "make bench", ["lastarm", "optuna", "ray", "numpy"])
    growth(record, halving, most=2)  # first, while the peers have taken no memory
    growth(record, asha, most=3)
    beside(
        record,
        "Successive Halving of 2,000 arms, in memory",
        ("lastarm, one ask and one tell", partial(halving, 2_000)),
        ("Optuna, one report and one should_prune", partial(optunas, 2_000)),
    )
    beside(
        record,
        "ASHA of 10,000 arms, in memory",
        ("lastarm, one ask and one tell", partial(asha, 10_000)),
        ("Ray Tune, one on_trial_result", partial(rays, 10_000)),
    )

    with tempfile.TemporaryDirectory(dir=".") as folder:
        turns = [
            (
                fsyncs_a_second(folder),
                observations_a_second(1_000, 1, folder),
                observations_a_second(10_000, 256, folder),
            )
            for _ in range(3)
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
