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
from multiprocessing import get_context
from time import perf_counter

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
from sooner_tables import NEAR, OURS, Seen, all_tries, judge, until_there

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
