"""How soon a search is as good as training all: 64 arms of SGDClassifier, beside the peers.

A contender has got there when the model that it hands over is wrong on TEST at most 1 % more often
than the best arm, fully trained: 64 epochs of scikit-learn's `fit` with tol=None. The best arm is
the one that is best on VAL when all 64 are fully trained. The one that is best on TEST, which
nobody could have chosen, is shown too. Everybody gets the same arms, TRAIN, VAL (a fifth of the
rows) and TEST, dense and in double precision, with one thread or one worker.

Each contender has four settings, from cheap to dear; Ray Tune, the slowest to begin a trial, has
three. They are tried in that order until one gets there, and only the seconds and epochs of that
one count: so each has its cheapest, with hindsight, and may be lucky. Three seeds draw the arms,
their order, VAL, and all that is random in training. A number is the median over the seeds, a seed
in which nothing got there being endless; so who gets there in fewer than half of them does not get
there, and has no seconds.

All have been warmed up on 8 arms and 300 rows (lastarm on 32, since many have a kernel of their
own), engines have been started, and what is compiled is cached: none of that is in the seconds.
What takes less than two seconds is done three times, and takes the median. One contender runs at a
time, in an order that changes with the seed. scikit-learn's trainings all count, also of what it
trained before, and so does its last one, of the winner on TRAIN and VAL together. Optuna and Ray
Tune are given `partial_fit` an epoch at a time, as is usual with them. Dask-ML trains every model
an epoch ahead while it waits for losses; these epochs take time, but it does not count them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import inf, isfinite
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

from digits_arms import ARMS
from lastarm.space import describe
from record import DASK_ML, Record
from sooner_arms import (
    EPOCHS,
    FEATURES,
    GENERATOR,
    ROWS,
    SPACE,
    TEST_ROWS,
    Attempt,
    Task,
    final_losses,
    task,
)
from sooner_peers import (
    climb,
    climb_dask_ml,
    climb_ray,
    halving,
    lastarm,
    optunas,
    randomized,
)

OURS = "lastarm, HalvingSearch"
ALONE = "the best on VAL alone, by scikit-learn"
WORSE = "% worse than best on VAL"
NEAR = 1.01
SEEDS = 3

FROM = "all for {} at first"
UPTO = "at most {} epochs"
CONTENDERS: dict[str, Callable[[Task, float], list[Attempt]]] = {
    OURS: partial(
        climb,
        lastarm,
        {
            "all for 1": {"policy": "uniform", "budget": ARMS},
            **{
                # Few rungs, since an arm among many costs the kernel less than one among few.
                f"{n} % of all, eta=8": {
                    "max_pulls": EPOCHS,
                    "budget": n * ARMS * EPOCHS // 100,
                    "eta": 8,
                }
                for n in (2, 4, 8)
            },
        },
        warm=32,
    ),
    "scikit-learn, HalvingRandomSearchCV": partial(
        climb, halving, {FROM.format(n): {"min_resources": n} for n in (1, 2, 4, 8)}
    ),
    "scikit-learn, RandomizedSearchCV": partial(
        climb, randomized, {f"all for {n}": {"max_iter": n} for n in (1, 2, 4, 8)}
    ),
    "Optuna, SuccessiveHalvingPruner": partial(
        climb, optunas, {UPTO.format(n): {"epochs": n} for n in (1, 4, 16, 64)}
    ),
    "Ray Tune, ASHA": partial(climb_ray, {UPTO.format(n): {"max_t": n} for n in (4, 16, 64)}),
    "Dask-ML, SuccessiveHalvingSearchCV": partial(
        climb_dask_ml, {FROM.format(n): {"n_initial_iter": n} for n in (1, 2, 4, 8)}
    ),
}
if not DASK_ML.exists():
    del CONTENDERS["Dask-ML, SuccessiveHalvingSearchCV"]


class Seen(NamedTuple):
    """Of one seed: the losses to set others against, the best arm's training, and all tries."""

    best: float
    least: float
    seconds: float
    tried: dict[str, list[Attempt]]

    def last(self, name: str) -> tuple[Attempt, bool]:
        """The dearest setting that a contender tried, and whether it got there."""
        attempt = self.tried[name][-1]
        return attempt, attempt.loss <= NEAR * self.best


def measure(file: str | None, seed: int, finals: list[tuple[float, float]]) -> Seen:
    """All contenders on the arms of one seed, in an order of its own."""
    validation, test = np.array(finals).T
    arm = int(np.argmin(validation))
    given = task(file, seed)
    names, turn = list(CONTENDERS), seed % len(CONTENDERS)
    order = names[turn:] + names[:turn]
    tried = {name: CONTENDERS[name](given, NEAR * test[arm]) for name in order}
    began = perf_counter()
    given.fully(arm)
    seconds = perf_counter() - began
    in_order = {name: tried[name] for name in names}
    return Seen(float(test[arm]), float(test.min()), seconds, in_order)


def sooner(command: str, a9a: str | None) -> None:
    """Measure, print, and write the results down."""
    files: dict[str, str | None] = {"make_classification": None, **({"a9a": a9a} if a9a else {})}
    packages = ["lastarm", "scikit-learn", "optuna", "ray", "numpy"]
    record = Record("quality, how soon", command, packages)
    record.note(__doc__.partition("\n\n")[2].rstrip())
    record.note(
        f"The arms are drawn from `{json.dumps(describe(SPACE))}`. make_classification is of "
        f"{ROWS:,} rows and {TEST_ROWS:,} more for TEST, with {FEATURES} features, random_state=0 "
        f"and `{json.dumps(GENERATOR)}`, unscaled."
        + ("" if a9a else " a9a is left out: no file was named.")
        + ("" if record.beside_dask_ml() else f" Dask-ML is left out: there is no {DASK_ML}.")
    )
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    os.environ |= dict.fromkeys(threads, "1")
    cells = [(title, seed) for title in files for seed in range(SEEDS)]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        trainings = {
            (title, seed): [pool.submit(final_losses, files[title], seed, a) for a in range(ARMS)]
            for title, seed in cells
        }
        finals = {cell: [one.result() for one in arms] for cell, arms in trainings.items()}
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        seen = {
            (title, seed): pool.submit(measure, files[title], seed, finals[title, seed]).result()
            for title, seed in cells
        }
    found = {}
    for title in files:
        seeds = [seen[title, seed] for seed in range(SEEDS)]
        found[title] = until_there(record, title, seeds)
        all_tries(record, title, seeds)
    judge(record, found)
    record.write()


def until_there(record: Record, title: str, seeds: list[Seen]) -> dict[str, float]:
    """The seconds that each contender took, in the median."""
    ends = {name: [seen.last(name) for seen in seeds] for name in seeds[0].tried}
    seconds = {
        name: median(attempt.seconds if there else inf for attempt, there in last)
        for name, last in ends.items()
    }
    rows: dict[str, dict[str, float]] = {}
    for name, last in ends.items():
        rows[name] = {"seeds there": sum(there for _, there in last)}
        if isfinite(seconds[name]):
            rows[name] |= {
                "seconds": seconds[name],
                "epochs": median(attempt.epochs if there else inf for attempt, there in last),
                "÷ lastarm's seconds": seconds[name] / seconds[OURS],
            }
        rows[name] |= _losses([attempt.loss for attempt, _ in last], seeds)
    alone = median(seen.seconds for seen in seeds)
    rows[ALONE] = {
        "seconds": alone,
        "epochs": EPOCHS,
        "÷ lastarm's seconds": alone / seconds[OURS],
        **_losses([seen.best for seen in seeds], seeds),
    }
    rows["the best on TEST, fully trained"] = _losses([seen.least for seen in seeds], seeds)
    record.table(f"{title}: until within 1 % of the best on VAL", rows)
    return {**seconds, ALONE: alone}


def _losses(losses: list[float], seeds: list[Seen]) -> dict[str, float]:
    pairs = list(zip(losses, seeds, strict=True))
    return {
        "test loss": median(losses),
        WORSE: median(100 * (loss / seen.best - 1) for loss, seen in pairs),
        "% worse than best on TEST": median(100 * (loss / seen.least - 1) for loss, seen in pairs),
    }


def all_tries(record: Record, title: str, seeds: list[Seen]) -> None:
    """Every setting that was tried: in how many seeds, with what success, at what cost."""
    rows: dict[str, dict[str, float]] = {}
    tries = [
        (f"{name}, {attempt.setting}", attempt, seen)
        for name in seeds[0].tried
        for seen in seeds
        for attempt in seen.tried[name]
    ]
    for what in dict.fromkeys(what for what, _, _ in tries):
        own = [(attempt, seen) for other, attempt, seen in tries if other == what]
        rows[what] = {
            "seeds": len(own),
            "there": sum(attempt.loss <= NEAR * seen.best for attempt, seen in own),
            "seconds": median(attempt.seconds for attempt, _ in own),
            "epochs": median(attempt.epochs for attempt, _ in own),
            WORSE: median(100 * (attempt.loss / seen.best - 1) for attempt, seen in own),
        }
    record.table(f"{title}: all settings that were tried", rows)


def judge(record: Record, found: dict[str, dict[str, float]]) -> None:
    """Say whether the goals were met."""
    record.section("The goal: 10 times sooner than any peer, and sooner than one full training")
    for title, seconds in found.items():
        peers = [own for name, own in seconds.items() if name not in {OURS, ALONE}]
        if not isfinite(min(peers)):
            record.note(f"{title}: no peer gets there.")
        else:
            ratio = min(peers) / seconds[OURS]
            missed = "" if ratio >= 10 else ", missed"
            what = f"{title}: fastest peer that gets there / lastarm"
            record.row(what, ratio, "times", f"at least 10{missed}")
        ratio = seconds[ALONE] / seconds[OURS]
        missed = "" if ratio > 1 else ", missed"
        what = f"{title}: scikit-learn's one full training / lastarm"
        record.row(what, ratio, "times", f"more than 1{missed}")
