"""Arms of four families of models on scikit-learn's digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from lastarm import Choice, Integer, LogUniform, Uniform
from lastarm.space import draw
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.protocol import arm_seed
from lastarm.trainers.splits import split

ARMS = 64
SHARE = 4  # a search may spend a quarter of what training all arms fully takes
MISTAKES = "multi_error"  # LightGBM's name for 1 − accuracy


@dataclass(frozen=True)
class Family:
    """An estimator, what varies, and the pulls that are full training."""

    estimator: Any
    space: dict[str, Any]
    counted: str  # the parameter that says how many pulls
    max_pulls: int
    pull: str

    @property
    def budget(self) -> int:
        """A quarter of training all arms fully."""
        return ARMS * self.max_pulls // SHARE


MLP = {
    "hidden_layer_sizes": Integer(8, 64, log=True),
    "alpha": LogUniform(1e-6, 1e-1),
    "batch_size": Choice(64, 128, 256),
    "learning_rate_init": LogUniform(1e-4, 1e-1),
}
LIGHTGBM = {
    "learning_rate": LogUniform(0.03, 1),
    "num_leaves": Integer(4, 64, log=True),
    "min_child_samples": Integer(2, 64, log=True),
    "reg_lambda": LogUniform(1e-3, 10),
}

# No rule of their own may stop them early: a pull is a pull for everybody. LightGBM draws nothing
# here, and grows the same trees at once and one by one.
FAMILIES = [
    Family(
        SGDClassifier(tol=None),
        {
            "loss": Choice("hinge", "log_loss", "modified_huber"),
            "alpha": LogUniform(1e-6, 1e-1),
            "learning_rate": Choice("constant", "invscaling", "optimal"),
            "eta0": LogUniform(1e-3, 1),
        },
        "max_iter",
        64,
        "an epoch",
    ),
    Family(
        MLPClassifier(n_iter_no_change=10_000),
        MLP,
        "max_iter",
        64,
        "an epoch",
    ),
    Family(
        GradientBoostingClassifier(),
        {
            "learning_rate": LogUniform(0.03, 1),
            "max_depth": Integer(1, 3),
            "subsample": Uniform(0.5, 1),
            "max_features": Choice("log2", "sqrt"),
        },
        "n_estimators",
        32,
        "a tree of each class",
    ),
    Family(
        LGBMClassifier(verbose=-1, n_jobs=1),
        LIGHTGBM,
        "n_estimators",
        32,
        "a tree of each class",
    ),
]


class Found(NamedTuple):
    """What a search recommends, the test error of the model it hands over, and its cost."""

    arm: int
    handed: float
    pulls: int
    seconds: float | None


class Task:
    """The arms of a family and the parts of the data, for one seed."""

    def __init__(self, family: Family, seed: int) -> None:
        X, y = load_digits(return_X_y=True)
        self.family, self.seed = family, seed
        self.parts = split(y, seed, test=0.4)
        self.train, self.validation, self.test = ((X[r] / 16, y[r]) for r in self.parts)
        self.trainer = Estimator(family.estimator, X / 16, y, split=self.parts, seed=seed)
        self.arms = draw(family.space, ARMS, seed)

    def fully(self, arm: int) -> tuple[float, float]:
        """Errors on VAL and TEST of the arm, fully trained at once."""
        model = clone(self.family.estimator).set_params(
            random_state=arm_seed(self.seed, arm) % 2**32,
            **{self.family.counted: self.family.max_pulls},
            **self.arms[arm],
        )
        model.fit(*self.train)
        (X, y), (X_test, y_test) = self.validation, self.test
        wrong, wrong_test = model.predict(X) != y, model.predict(X_test) != y_test
        return float(np.mean(wrong)), float(np.mean(wrong_test))
