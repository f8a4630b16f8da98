"""Families of models, the arms of each, and the rows that they learn from and are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

from digits_arms import LIGHTGBM, MLP
from lastarm import Choice, Integer, LogUniform, Uniform
from lastarm.space import draw

try:
    from catboost import CatBoostClassifier
except ImportError:
    CatBoostClassifier = None

SIZES = {"digits": "digits, 1,797 × 64", "made": "made, 50,000 × 50", "a9a": "a9a, 32,561 × 123"}
ARMS = {"digits": 64, "made": 16, "a9a": 16}


@dataclass(frozen=True)
class Family:
    """An estimator of one thread, what varies, and how many pulls full training has."""

    title: str
    estimator: Any
    space: dict[str, Any]
    counted: str  # the parameter that says how many pulls
    max_pulls: dict[str, tuple[int, ...]]  # by data set


def _family(
    title: str,
    estimator: Any,
    space: dict[str, Any],
    counted: str = "n_estimators",
    *,
    digits: tuple[int, ...] = (32,),
    made: tuple[int, ...] = (24,),
    a9a: tuple[int, ...] = (24,),
) -> Family:
    return Family(title, estimator, space, counted, {"digits": digits, "made": made, "a9a": a9a})


_xgboost = {
    "learning_rate": LogUniform(0.03, 1),
    "reg_lambda": LogUniform(1e-3, 10),
    "max_leaves": Integer(4, 64, log=True),
    "min_child_weight": LogUniform(0.1, 10),
}
_drawn = {"subsample": Uniform(0.5, 1), "colsample_bytree": Uniform(0.5, 1)}
_both = (24, 64)
XGBOOST = XGBClassifier(n_jobs=1, grow_policy="lossguide", max_depth=0)

# No rule of their own may stop them early: a pull is a pull for everybody.
FAMILIES = {
    "lightgbm": _family("LightGBM", LGBMClassifier(verbose=-1, n_jobs=1), LIGHTGBM, made=_both),
    "lightgbm-draws": _family(
        "LightGBM that draws",
        LGBMClassifier(verbose=-1, n_jobs=1, subsample_freq=1),
        {**LIGHTGBM, **_drawn},
        made=_both,
    ),
    "xgboost": _family("XGBoost", XGBOOST, _xgboost, made=_both),
    "xgboost-draws": _family("XGBoost that draws", XGBOOST, {**_xgboost, **_drawn}, made=_both),
    "histogram": _family(
        "HistGradientBoosting",
        HistGradientBoostingClassifier(early_stopping=False),
        {
            "learning_rate": LogUniform(0.03, 1),
            "l2_regularization": LogUniform(1e-3, 10),
            "max_leaf_nodes": Integer(4, 64, log=True),
            "min_samples_leaf": Integer(2, 64, log=True),
        },
        "max_iter",
        made=_both,
    ),
    "mlp": _family(
        "MLPClassifier",
        MLPClassifier(n_iter_no_change=10_000),
        MLP,
        "max_iter",
    ),
    "lbfgs": _family(
        "LogisticRegression, lbfgs",
        LogisticRegression(tol=1e-12),
        {"C": LogUniform(1e-3, 1e3)},
        "max_iter",
        digits=(64,),
        made=(32,),
        a9a=(32,),
    ),
    "forest": _family(
        "RandomForest",
        RandomForestClassifier(),
        {
            "max_depth": Integer(4, 12),
            "max_features": Uniform(0.05, 0.3),
            "min_samples_leaf": Integer(1, 16, log=True),
            "criterion": Choice("gini", "entropy"),
        },
        made=(16,),
        a9a=(16,),
    ),
}
if CatBoostClassifier is not None:
    FAMILIES["catboost"] = _family(
        "CatBoost",
        CatBoostClassifier(thread_count=1, verbose=False, allow_writing_files=False),
        {
            "learning_rate": LogUniform(0.03, 1),
            "depth": Integer(2, 6),
            "l2_leaf_reg": LogUniform(0.1, 10),
        },
        "iterations",
    )


class Rows(NamedTuple):
    """A table and its classes, from 0."""

    X: Any
    y: Any


def _rows(data: str, a9a: str | None) -> tuple[Rows, Rows]:
    """The rows that a search may use, and TEST."""
    if data == "a9a":
        with np.load(str(a9a), allow_pickle=False) as file:
            train, test = (
                Rows(np.asarray(file[X], float), (file[y] > 0).astype(int))
                for X, y in (("X", "y"), ("X_test", "y_test"))
            )
        return train, test
    if data == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = make_classification(60_000, 50, n_informative=20, random_state=0)
    used = train_test_split(X, y, test_size=0.2 if data == "digits" else 1 / 6, random_state=0)
    return Rows(used[0], used[2]), Rows(used[1], used[3])


@dataclass(frozen=True)
class Setting:
    """A family on a data set, trained at most so far."""

    family: str
    data: str
    max_pulls: int
    a9a: str | None = None
    few: bool = False  # only to load and compile what is needed: two arms on a few rows


class Spent(NamedTuple):
    """What a contender found, and what it cost."""

    arm: int | None
    pulls: int
    cpu: float
    wall: float


class Clock:
    """CPU and wall seconds since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = process_time(), perf_counter()

    def spent(self, arm: int | None, pulls: int) -> Spent:
        """What was done since, and its cost."""
        return Spent(arm, pulls, process_time() - self._cpu, perf_counter() - self._wall)


class Task:
    """The arms of a family, and TRAIN, VAL (a fifth of what is not TEST) and TEST."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.family = setting, FAMILIES[setting.family]
        self.max_pulls = setting.max_pulls
        self.searched, self.test = _rows(setting.data, setting.a9a)
        if setting.few:
            self.searched = Rows(*(part[:400] for part in self.searched))
        X, y = self.searched
        parts = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
        self.learnt, self.judged = (np.sort(part) for part in parts)
        self.train, self.validation = (Rows(X[p], y[p]) for p in (self.learnt, self.judged))
        n = 2 if setting.few else ARMS[setting.data]
        self.arms = draw(self.family.space, n, 0)

    def model(self, arm: int, pulls: int, seed: int = 0) -> Any:
        """The estimator of an arm, to be trained so far."""
        given = {**self.arms[arm], self.family.counted: pulls, "random_state": seed}
        return clone(self.family.estimator).set_params(**given)

    @cached_property
    def fully(self) -> list[tuple[float, float]]:
        """Of every arm: the CPU seconds of a full training with a look, and the error on TEST."""
        found = []
        for arm in range(len(self.arms)):
            clock = Clock()
            model = self.model(arm, self.max_pulls).fit(*self.train)
            model.score(*self.validation)
            spent = clock.spent(arm, self.max_pulls)
            found.append((spent.cpu, 1 - float(model.score(*self.test))))
        return found
