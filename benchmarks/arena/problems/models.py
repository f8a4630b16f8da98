"""Models that are trained here: SGD, networks and boosters, by lastarm's own trainers.

Rows are few, so that hundreds of searches take minutes: 2,000 to learn from, 2,000 to be judged by
and up to 4,000 that no contender sees. What is measured is how well a search works, not how well a
data set can be learnt. A file of the folder has arrays `X` and `y`; digits come with lastarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from arena.problems.problem import Arm, Config, Final, Problem
from lastarm import Choice, Integer, LogUniform, Uniform
from lastarm.plain import fingerprint
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.splits import Split

EPOCHS = 27
LEARNT = JUDGED = 2000
TEST = 4000
WORST = 2.0  # in variances: what a regression that diverged comes to

SGD = {
    "alpha": LogUniform(1e-7, 1),
    "eta0": LogUniform(1e-4, 1),
    "learning_rate": Choice("constant", "invscaling"),
    "l1_ratio": Uniform(0, 1),
    "average": Choice(False, True),
}
SGD_LOSSES = {"loss": Choice("hinge", "log_loss", "modified_huber")}
MLP = {
    "hidden_layer_sizes": Integer(8, 128, log=True),
    "learning_rate_init": LogUniform(1e-4, 1e-1),
    "alpha": LogUniform(1e-6, 1),
    "batch_size": Integer(16, 256, log=True),
    "beta_1": Uniform(0.5, 0.99),
    "activation": Choice("relu", "tanh"),
}
LIGHTGBM = {
    "learning_rate": LogUniform(0.01, 1),
    "num_leaves": Integer(3, 64, log=True),
    "min_child_samples": Integer(2, 100, log=True),
    "reg_lambda": LogUniform(1e-3, 100),
    "subsample": Uniform(0.3, 1),
    "colsample_bytree": Uniform(0.3, 1),
}


class Kind(NamedTuple):
    """A model: its estimators, what varies, and the steps of an epoch."""

    classifier: Any
    regressor: Any
    space: dict[str, Any]
    steps: int


QUIET: dict[str, Any] = {"verbose": -1, "n_jobs": 1, "subsample_freq": 1}
ELASTIC: dict[str, Any] = {
    "penalty": "elasticnet",
    "tol": None,
}  # no rule of their own may stop them early
GOING_ON = {"n_iter_no_change": 10_000}
KINDS = {
    "SGD": Kind(SGDClassifier(**ELASTIC), SGDRegressor(**ELASTIC), SGD, 1),
    "MLP": Kind(MLPClassifier(**GOING_ON), MLPRegressor(**GOING_ON), MLP, 1),
    "LightGBM": Kind(LGBMClassifier(**QUIET), LGBMRegressor(**QUIET), LIGHTGBM, 3),
}


class Rows(NamedTuple):
    """A data set, with columns of one scale, and which rows are which part."""

    X: Any
    y: Any
    split: Split
    classes: bool


@cache
def rows(file: Path | None) -> Rows:
    """The rows of a file, or the digits."""
    if file is None:
        X, y = load_digits(return_X_y=True)
    else:
        with np.load(file, allow_pickle=False) as arrays:
            X, y = np.asarray(arrays["X"], float), arrays["y"]
    classes = len(np.unique(y)) <= 100
    order = np.random.default_rng(0).permutation(len(y))[: LEARNT + JUDGED + TEST]
    X, y = X[order], y[order]
    # A third each, if there are not enough.
    first = min(LEARNT, len(y) // 3)
    parts = np.split(np.arange(len(y)), [first, 2 * first])
    learnt = X[parts[0]]
    X = (X - learnt.mean(axis=0)) / np.maximum(learnt.std(axis=0), 1e-12)
    if not classes:
        y = (y - y[parts[0]].mean()) / y[parts[0]].std()
    return Rows(X, y, Split(*parts), classes)


def bounded(model: Any, X: Any, y: Any) -> float:
    """The mean squared error as a score, in variances; a model that diverged has the worst."""
    with np.errstate(all="ignore"):
        error = np.mean((model.predict(X) - y) ** 2) / np.var(y)
    return -min(float(error), WORST) if np.isfinite(error) else -WORST


class Model(Problem):
    """A model on a data set. A loss is 1 − accuracy, or the squared error in variances.

    The losses of a config are kept for all contenders with the same seed, so that each epoch is
    trained once, and everybody sees the same.
    """

    family = "models"
    max_pulls, has_test = EPOCHS, True

    def __init__(self, model: str, data: str, file: Path | None) -> None:
        self.name = f"{model} {data}"
        self._model, self._file = model, file
        self._known: dict[str, Trained] = {}
        self._seed = 0

    @property
    def space(self) -> dict[str, Any]:  # type: ignore[override]
        """Classifiers may have one more hyperparameter."""
        losses = SGD_LOSSES if self._model == "SGD" and rows(self._file).classes else {}
        return {**KINDS[self._model].space, **losses}

    def _trainer(self) -> Any:
        kind, data = KINDS[self._model], rows(self._file)
        return Estimator(
            kind.classifier if data.classes else kind.regressor,
            data.X,
            data.y,
            split=data.split,
            scoring=None if data.classes else bounded,
            pulls_per_step=kind.steps,
        )

    def arm(self, config: Config, seed: int) -> Arm:
        """The arm, with what is known of it."""
        if not self._known or seed != self._seed:
            self._known, self._seed, self._estimator = {}, seed, self._trainer()
            self._estimator.expect({name: [] for name in self.space})
        key = fingerprint(config)
        if key not in self._known:
            own = int(fingerprint([seed, config])[:7], 16)
            self._known[key] = Trained(self._estimator, config, own)
        return self._known[key]

    def final(self, configs: Sequence[Config], seed: int) -> list[Final]:
        """Trained fully, and tested."""
        arms = [self.arm(config, seed) for config in configs]
        return [arm.final for arm in arms if isinstance(arm, Trained)]


class Trained:
    """A model in training, that remembers its loss after every epoch."""

    def __init__(self, trainer: Any, config: Config, seed: int) -> None:
        self._trainer, self._state = trainer, trainer.start(config, seed)
        self._losses: list[float] = []
        self._final: Final | None = None

    def loss(self, level: int) -> float:
        """The loss after that many epochs, which are trained where they are missing."""
        while len(self._losses) < level:
            self._state = self._trainer.train(self._state, 1)
            self._losses.append(float(self._trainer.loss(self._state)))
            if len(self._losses) == EPOCHS:
                self._final = Final(self._losses[-1], float(self._trainer.test(self._state)))
                self._state = None  # there may be hundreds
        return self._losses[level - 1]

    @property
    def final(self) -> Final:
        """What it comes to."""
        self.loss(EPOCHS)
        assert self._final is not None
        return self._final


PAIRS = {
    "digits": ("SGD", "MLP", "LightGBM"),
    "a9a": ("SGD", "MLP", "LightGBM"),
    "letter": ("SGD", "MLP"),
    "magic": ("SGD", "MLP", "LightGBM"),
    "uci-protein": ("SGD", "MLP", "LightGBM"),
    "uci-keggundirected": ("MLP", "LightGBM"),
}


def models(folder: Path) -> list[Model]:
    """The models on each data set that is there."""
    files = {"digits": None} | {file.stem: file for file in sorted(folder.glob("*.npz"))}
    return [
        Model(model, data.removeprefix("uci-"), files[data])
        for data, names in PAIRS.items()
        if data in files
        for model in names
    ]
