"""Models that cannot be trained in steps: more and more rows, beside scikit-learn's halving.

    .venv-bench/bin/python benchmarks/rows.py [MODEL …] [--seeds N]

All searches get the same 32 configs and the same rows, of which a quarter is TEST.
`HalvingSearch` is as it comes. It chooses `resource="rows"`, has a budget of four full fits to
TRAIN, judges configs by a fifth of the rows, and trains the winner on all. HalvingRandomSearchCV
is as it comes, too: `resource="n_samples"`, factor 3, five folds, and the winner trained on all
rows; but with as many rows in the first rung as let the last have all (`min_resources="exhaust"`).
Each is also shown as the other is: `HalvingSearch` with five folds, of which a full fit has five
models, and HalvingRandomSearchCV with one split. Scores are accuracies on TEST, of the model that
is handed over. Seeds draw the configs, TEST and all else. Figures are means over the seeds, one
thread, the searches in turns. A full fit is one model and all rows that it may learn from.
"""

from __future__ import annotations

import argparse
import importlib
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import fmean
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lastarm import Choice, Configs, Integer, LogUniform
from lastarm.sklearn import HalvingSearch
from lastarm.space import draw
from record import Record

importlib.import_module("sklearn.experimental.enable_halving_search_cv")  # or it is not there

ARMS, FULL_FITS = 32, 4
OURS, THEIRS = "lastarm", "HalvingRandomSearchCV"
FIVE_FOLDS, ONE_SPLIT = f"{OURS}, five folds", f"{THEIRS}, one split"
COMMAND = ".venv-bench/bin/python benchmarks/rows.py"


@dataclass(frozen=True)
class Model:
    """An estimator, what varies, and how many rows of a data set it gets."""

    estimator: Any
    space: dict[str, Any]
    most: int = 3_000

    def arms(self, seed: int) -> list[dict[str, Any]]:
        """The configs of a seed."""
        arms = draw(self.space, ARMS, seed)
        return [{"kernel": RBF(arm["length"])} if "length" in arm else arm for arm in arms]


_svc = {"C": LogUniform(1e-2, 1e3), "gamma": LogUniform(1e-4, 1)}
MODELS = {
    "SVC": Model(SVC(), _svc),
    "KNeighborsClassifier": Model(
        KNeighborsClassifier(),
        {
            "n_neighbors": Integer(1, 50, log=True),
            "weights": Choice("uniform", "distance"),
            "p": Choice(1, 2),
        },
    ),
    # Its time grows by the cube of the rows.
    "GaussianProcessClassifier": Model(
        GaussianProcessClassifier(optimizer=None), {"length": LogUniform(0.3, 100)}, most=600
    ),
    "Pipeline(PCA, SVC)": Model(
        make_pipeline(PCA(), SVC()),
        {
            "pca__n_components": Integer(2, 20),
            **{f"svc__{name}": domain for name, domain in _svc.items()},
        },
    ),
}
DATA = ("digits", "breast cancer", "made, 3,000 × 20")


def rows(data: str, most: int) -> tuple[Any, Any]:
    """A table with columns of one scale, and its classes; at most so many rows."""
    match data:
        case "digits":
            X, y = load_digits(return_X_y=True)
        case "breast cancer":
            X, y = load_breast_cancer(return_X_y=True)
        case _:
            X, y = make_classification(
                3_000, 20, n_informative=8, n_classes=3, flip_y=0.05, random_state=0
            )
    return StandardScaler().fit_transform(X)[:most], y[:most]


class Found(NamedTuple):
    """The score on TEST of what a search hands over, and what the search cost."""

    score: float
    cpu: float
    full_fits: float  # to all rows, before the last of the winner


def measure(model: str, data: str, seed: int) -> dict[str, Found]:
    """All searches, in an order that the seed decides."""
    warnings.simplefilter("ignore")  # of ours, that rows are its resource; of theirs, failed fits
    estimator, arms = MODELS[model].estimator, MODELS[model].arms(seed)
    X, y = rows(data, MODELS[model].most)
    X, X_test, y, y_test = model_selection.train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y
    )

    def theirs(cv: Any) -> Any:
        return model_selection.HalvingRandomSearchCV(
            estimator,
            [{name: [value] for name, value in arm.items()} for arm in arms],
            n_candidates=len(arms),
            min_resources="exhaust",
            cv=cv,
            random_state=seed,
        )

    def ours(cv: Any) -> Any:
        return HalvingSearch(estimator, Configs(arms), n_arms=len(arms), cv=cv, random_state=seed)

    one_split = model_selection.StratifiedShuffleSplit(1, test_size=0.2, random_state=seed)
    contenders = {
        OURS: ours(None),
        FIVE_FOLDS: ours(5),
        THEIRS: theirs(5),
        ONE_SPLIT: theirs(one_split),
    }
    found = {}
    names, turn = list(contenders), seed % len(contenders)
    for name in names[turn:] + names[:turn]:
        began = process_time()
        search = contenders[name].fit(X, y)
        cpu = process_time() - began
        pulls = np.dot(search.n_candidates_, search.n_resources_)  # ours are hundredths of TRAIN
        rows_of_all = 100 if name in (OURS, FIVE_FOLDS) else len(y)
        full_fits = pulls * search.n_splits_ / rows_of_all
        found[name] = Found(float(search.score(X_test, y_test)), cpu, float(full_fits))
    return found


def main() -> None:
    """Measure, print, and write down if all models were measured."""
    parser = argparse.ArgumentParser(description="Searches of models by more and more rows.")
    parser.add_argument("model", nargs="*", help=f"some of {', '.join(MODELS)}; default: all")
    parser.add_argument("--seeds", type=int, default=5, help="default: 5")
    given = parser.parse_args()
    if unknown := set(given.model) - MODELS.keys():
        parser.error(f"unknown: {', '.join(unknown)}. Use some of {', '.join(MODELS)}.")
    seeds = f" --seeds {given.seeds}" if given.seeds != 5 else ""
    record = Record("rows", f"{COMMAND}{seeds}", ["lastarm", "scikit-learn", "numpy"])
    record.note(__doc__.partition("\n\n")[2].partition("\n\n")[2].rstrip())
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    means: dict[str, dict[str, Found]] = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for model in given.model or MODELS:
            every: list[dict[str, Found]] = []
            for data in DATA:
                tasks = [pool.submit(measure, model, data, seed) for seed in range(given.seeds)]
                found = [task.result() for task in tasks]
                every += found
                columns = ("score", "CPU seconds", "full fits")
                table = {
                    name: dict(zip(columns, _mean(found, name), strict=True)) for name in found[0]
                }
                record.table(f"{model}, {data}", table)
            means[model] = {name: _mean(every, name) for name in found[0]}
    record.section("What must show, in the mean of all data sets and seeds")
    if len(means) > 1:
        names = means[next(iter(means))]
        means["all models"] = {
            name: Found(*map(fmean, zip(*(found[name] for found in means.values()), strict=True)))
            for name in names
        }
    for model, found_by in means.items():
        for us, they in ((OURS, THEIRS), (FIVE_FOLDS, THEIRS), (OURS, ONE_SPLIT)):
            ours, theirs = found_by[us], found_by[they]
            for what, value, goal, met in (
                (
                    f"score − {they}'s",
                    ours.score - theirs.score,
                    "≥ 0",
                    ours.score >= theirs.score,
                ),
                (f"CPU seconds ÷ {they}'s", ours.cpu / theirs.cpu, "≤ 1", ours.cpu <= theirs.cpu),
            ):
                record.row(f"{model}: {us}: {what}", value, "", goal if met else f"{goal}, missed")
        fits, within = found_by[OURS].full_fits, found_by[OURS].full_fits <= FULL_FITS
        goal = f"≤ {FULL_FITS}" if within else f"≤ {FULL_FITS}, missed"
        record.row(f"{model}: {OURS}: full fits", fits, "", goal)
    if not given.model:
        record.write()


def _mean(found: list[dict[str, Found]], name: str) -> Found:
    return Found(*(fmean(column) for column in zip(*(each[name] for each in found), strict=True)))


if __name__ == "__main__":
    main()
