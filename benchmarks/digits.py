"""What a search finds and what it costs: 64 arms on scikit-learn's digits, beside the peers.

All contenders get the same 64 arms and the same TRAIN, VAL and TEST, on one thread each. TEST is
two fifths of the rows (719), since of the paper's tenth one mistake more is already beyond 10 %;
a fifth of the rest (216) is VAL, as in the paper. What a search found is set against the arm that
is best on VAL when all 64 are fully trained (the first of several): it was chosen by the same 216
rows. The arm that is best on TEST, which nobody could have chosen, is shown too. Every number is
the median over 5 seeds, which draw the arms, the split, and all that is random in training.

Peers are as they come, but told the arms and full training. scikit-learn's trainings all count,
also of what it trained before, and so does its last one, of the winner on TRAIN and VAL together:
RandomizedSearchCV of 15 arms trains 16 times, a quarter of the cost in seconds too. Optuna's
trials are trained pull by pull, LightGBM's by a callback. HalvingSearch was not told what full
training is: Successive Halving brings its last arms beyond, and hands such a model over. It trains
the SGDClassifiers together. Tasks run side by side, one on each core.

Where all 64 fully trained and chosen by VAL are far from the best on TEST, VAL cannot tell good
arms apart, and being level with that choice is no proof of a good search: see who else is.
"""

from __future__ import annotations

import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from digits_arms import ARMS, FAMILIES, SHARE, Family, Found, Task
from digits_peers import halving, optunas, random
from lastarm import Configs
from lastarm.sklearn import HalvingSearch
from lastarm.space import describe
from record import Record

SEEDS = 5


def ours(task: Task) -> Found:
    """HalvingSearch by the paper's policy; it hands over the model that it trained."""
    X, y = (np.concatenate(pair) for pair in zip(task.train, task.validation, strict=True))
    rows, learnt = np.arange(len(y)), len(task.train[1])
    search = HalvingSearch(
        task.family.estimator,
        Configs(task.arms),
        n_arms=ARMS,
        budget=task.family.budget,
        cv=[(rows[:learnt], rows[learnt:])],
        refit="keep",
        random_state=task.seed,
    )
    began = perf_counter()
    search.fit(X, y)
    seconds = perf_counter() - began
    pulls = search.spent_.pulls
    return Found(search.best_index_, 1 - search.score(*task.test), pulls, seconds)


BEST = "all 64 fully trained, best on VAL"
OURS = "lastarm, HalvingSearch"
RANDOM = "scikit-learn, RandomizedSearchCV of 15"
CONTENDERS = {
    OURS: ours,
    "scikit-learn, HalvingRandomSearchCV": halving,
    RANDOM: random,
    "Optuna, SuccessiveHalvingPruner": optunas,
}


def measure(family: Family, seed: int) -> dict[str, dict[str, float]]:
    """All contenders on the arms of one seed, in an order of its own."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # it is we who say when to stop
    task = Task(family, seed)
    validation, test = np.array([task.fully(arm) for arm in range(ARMS)]).T
    best, least = int(np.argmin(validation)), int(np.argmin(test))

    names, turn = list(CONTENDERS), seed % len(CONTENDERS)
    found = {name: CONTENDERS[name](task) for name in names[turn:] + names[:turn]}
    everything = ARMS * family.max_pulls
    rows = {
        BEST: Found(best, test[best], everything, None),
        "all 64 fully trained, best on TEST": Found(least, test[least], everything, None),
        **{name: found[name] for name in names},
    }
    return {
        name: {
            "mistakes of 719": round(test[row.arm] * len(task.test[1])),
            "÷ best on VAL": test[row.arm] / test[best],
            "÷ best on TEST": test[row.arm] / test[least],
            "as handed over ÷ best on VAL": row.handed / test[best],
            "% of all pulls": 100 * row.pulls / everything,
            **({} if row.seconds is None else {"seconds": row.seconds}),
        }
        for name, row in rows.items()
    }


def judge(record: Record, found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Say of each family whether its goals were met, by either reading of "the best of 64"."""

    def goal(what: str, value: float, unit: str, most: float) -> None:
        record.row(what, value, unit, goal=f"≤ {most:g}{', missed' if value > most else ''}")

    record.section("The goal: within 10 % of the best of 64, for a quarter of the cost")
    for name, rows in found.items():
        us, quarter = rows[OURS], rows[RANDOM]
        goal(f"{name}: test error ÷ best on VAL", us["÷ best on VAL"], "times", 1.1)
        goal(f"{name}: test error ÷ best on TEST", us["÷ best on TEST"], "times", 1.1)
        limit = rows[BEST]["÷ best on TEST"]
        record.row(f"{name}: the same, of all 64 fully trained and VAL", limit, "times")
        goal(f"{name}: pulls of training all", us["% of all pulls"], "%", 100 / SHARE)
        ratio = us["seconds"] / quarter["seconds"]
        goal(f"{name}: seconds ÷ those of 16 full trainings", ratio, "times", 1)


def digits(command: str) -> None:
    """Measure, print, and write the results down."""
    packages = ["lastarm", "scikit-learn", "lightgbm", "optuna", "numpy"]
    record = Record("quality, on digits", command, packages)
    record.note(__doc__.partition("\n\n")[2].rstrip())
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    found = {}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [
            [pool.submit(measure, family, seed) for seed in range(SEEDS)] for family in FAMILIES
        ]
        for family, seeds in zip(FAMILIES, tasks, strict=True):
            name = type(family.estimator).__name__
            results = [task.result() for task in seeds]
            found[name] = {
                row: {column: median(r[row][column] for r in results) for column in columns}
                for row, columns in results[0].items()
            }
            record.table(f"{name}: {family.max_pulls} pulls, each {family.pull}", found[name])
            record.note(f"The arms are drawn from `{json.dumps(describe(family.space))}`.")
    judge(record, found)
    record.write()
