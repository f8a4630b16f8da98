"""Linear regressions and classifiers by stochastic gradient descent, many settings at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from math import inf, isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import as_float, whole_number
from lastarm.batched.arrays import Array, common_level, float_type, require_signs, tables
from lastarm.batched.kernels import loss_gradients
from lastarm.batched.kernels.block_products import BLOCK
from lastarm.batched.kernels.linear_models import (
    ModelArrays,
    SampleArrays,
    StepArrays,
    count_mistakes,
    descend,
    descend_few,
    squared_errors,
)
from lastarm.batched.sample_order import passes
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.trainers import Config

LOSSES = {
    "hinge": loss_gradients.HINGE,
    "perceptron": loss_gradients.PERCEPTRON,
    "squared_hinge": loss_gradients.SQUARED_HINGE,
    "modified_huber": loss_gradients.MODIFIED_HUBER,
    "log_loss": loss_gradients.LOG,
    "squared_error": loss_gradients.SQUARED,
}
RATES = ("constant", "invscaling", "optimal", "paper")
FEW = 24  # models; fewer are faster when each goes through a block alone
TILE = 2**18  # bytes of weights that stay in the processor's cache while it goes through the rows


class Rule(NamedTuple):
    """How a model descends; the names and their meaning are scikit-learn's.

    A step is against the gradient of the loss + alpha/2 ‖w‖², where the squared error counts half.
    With t steps before it, its length η is:

    - "constant": eta0;
    - "invscaling": eta0 / (t + 1)^power_t;
    - "optimal": 1 / (alpha · (t₀ + t)), where 1 / (alpha · t₀) = alpha^(−1/4);
    - "paper": eta0 / √(2 + t).

    If η·alpha > 1 the penalty sets the weights to 0, except with "paper".
    """

    loss: str = "squared_error"
    alpha: float = 1e-4
    learning_rate: str = "invscaling"
    eta0: float = 0.01
    power_t: float = 0.25
    fit_intercept: bool = True

    def checked(self) -> Rule:
        """The same rule, if every value is valid."""
        for name, known in (("loss", tuple(LOSSES)), ("learning_rate", RATES)):
            if (value := getattr(self, name)) not in known:
                rule = f"the kernel knows {', '.join(known)}"
                raise InvalidArgument.of(name, value, rule, "Use one of these")
        for name, low in {"alpha": 0.0, "eta0": 0.0, "power_t": -inf}.items():
            if not low <= as_float(value := getattr(self, name)) < inf:
                rule = f"it is a finite number{' of at least 0' if low == 0 else ''}"
                raise InvalidArgument.of(name, value, rule, "Use such a number")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            given, rule = self.fit_intercept, "it is a truth value"
            raise InvalidArgument.of("fit_intercept", given, rule, "Use True or False")
        if self.learning_rate == "optimal" and not self.alpha > 0:
            rule = "the learning rate 'optimal' is computed from it"
            way_out = "Use a number greater than 0, or another learning rate"
            raise InvalidArgument.of("alpha", self.alpha, rule, way_out)
        return self

    @property
    def pace(self) -> tuple[float, float, float, float]:
        """a, b, c, d: η is (a + b·f)/(c + d·t), where f is t's factor according to `falls`."""
        match self.learning_rate:
            case "constant":
                return self.eta0, 0, 1, 0
            case "optimal":
                return 1, 0, 1 / sqrt(1 / sqrt(self.alpha)), self.alpha
        return 0, self.eta0, 1, 0

    @property
    def falls(self) -> float | None:
        """The power of t + 1 by which η falls; nan for "paper", None if η has no such factor."""
        return {"invscaling": self.power_t, "paper": nan}.get(self.learning_rate)


@dataclass
class ModelTable:
    """Linear models: of each a row of weights, the intercept, the rule and the column of Y."""

    weights: Array
    intercepts: Array
    rules: list[Rule]
    target_columns: NDArray[np.int64]

    @classmethod
    def zeros(
        cls, rules: Sequence[Rule], features: int, dtype: np.dtype, targets: int = 1
    ) -> ModelTable:
        """Models with weights of 0: for each rule, one for each of `targets` columns of Y."""
        models = len(rules) * targets
        return cls(
            np.zeros((models, features), dtype),
            np.zeros(models, dtype),
            [rule for rule in rules for _ in range(targets)],
            np.tile(np.arange(targets), len(rules)),
        )

    def chosen(self, models: Sequence[int] | NDArray[np.int64]) -> ModelTable:
        """A copy of some models."""
        at = np.asarray(models)
        return ModelTable(
            self.weights[at],
            self.intercepts[at],
            [self.rules[i] for i in at],
            self.target_columns[at],
        )

    @classmethod
    def joined(cls, tables: Sequence[ModelTable]) -> ModelTable:
        """The models of all tables, one after another."""
        return cls(
            np.concatenate([table.weights for table in tables]),
            np.concatenate([table.intercepts for table in tables]),
            [rule for table in tables for rule in table.rules],
            np.concatenate([table.target_columns for table in tables]),
        )

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all numbers of a model are finite, for each model."""
        return np.isfinite(self.intercepts) & np.isfinite(self.weights).all(axis=1)

    def put(self, models: Sequence[int] | NDArray[np.int64], trained: ModelTable) -> None:
        """Replace weights and intercepts of some models."""
        at = np.asarray(models)
        self.weights[at], self.intercepts[at] = trained.weights, trained.intercepts

    def descend(
        self, X: Array, Y: Array, seed: int, begin: int, end: int, threads: int = 1
    ) -> None:
        """Train on the samples `begin` to `end` of the stream of passes over the rows of X.

        A pass begins with a new block, so whole blocks are the same however the stream is cut.
        """
        by_loss = sorted(range(len(self.rules)), key=lambda model: self.rules[model].loss)
        size = max(8, TILE // (self.weights.itemsize * X.shape[1]))
        size = max(1, min(size, -(-len(by_loss) // threads)))
        tiles = [by_loss[low : low + size] for low in range(0, len(by_loss), size)]

        def go(models: list[int]) -> None:
            tile = self.chosen(models)
            tile._descend(X, Y, seed, begin, end)
            self.put(models, tile)

        if threads == 1 or len(tiles) == 1:
            for models in tiles:
                go(models)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(go, tiles))

    def _descend(self, X: Array, Y: Array, seed: int, begin: int, end: int) -> None:
        """Train models that are sorted by their losses, in this thread."""
        kind, rules = self.weights.dtype, self.rules
        runs = [(loss, len(list(same))) for loss, same in groupby(rule.loss for rule in rules)]
        powers = list(dict.fromkeys(rule.falls for rule in rules if rule.falls is not None))
        columns: dict[float | None, int] = {power: at for at, power in enumerate(powers)}
        models = ModelArrays(
            self.weights,
            self.intercepts,
            self.target_columns,
            losses=np.array([LOSSES[loss] for loss, _ in runs]),
            bounds=np.cumsum([0] + [count for _, count in runs]).astype(np.uint64),
        )
        steps = StepArrays(
            pace=np.array([rule.pace for rule in rules], kind).T.copy(),
            factor_columns=np.array([columns.get(rule.falls, 0) for rule in rules], np.uint64),
            penalties=np.array([rule.alpha for rule in rules], kind),
            least=np.array([-inf if rule.learning_rate == "paper" else 0 for rule in rules], kind),
            lifts=np.array([rule.fit_intercept for rule in rules], kind),
        )
        kernel = descend_few if len(rules) < FEW else descend
        done = begin
        for _, rows in passes(seed, len(X), begin, end):
            before = np.arange(done, done + len(rows), dtype=np.float64)
            with np.errstate(over="ignore"):  # such an arm diverges
                factors = [
                    1 / np.sqrt(before + 2) if isnan(power) else (before + 1) ** -power
                    for power in powers
                ]
            table = np.stack(factors or [np.ones_like(before)], axis=1).astype(kind, copy=False)
            kernel(models, steps, SampleArrays(X, Y, rows, table, done))
            done += len(rows)

    def mean_squared_errors(self, X: Array, Y: Array) -> NDArray[np.float64]:
        """The mean squared error of each model on its column of Y."""
        columns = self.target_columns
        return squared_errors(self.weights, self.intercepts, columns, X, Y) / len(X)

    def mistakes(self, X: Array, labels: NDArray[np.int64], targets: int) -> NDArray[np.int64]:
        """The number of rows that each arm puts into a wrong class.

        An arm has `targets` models in a row, and the one with the highest value names the class.
        If it has only one, the class is 1 where the value is above 0, else 0.
        """
        return count_mistakes(self.weights, self.intercepts, X, labels, targets)


@dataclass
class LinearArms:
    """Arms: their models, their models at the end of the last whole block, and their pulls.

    Training continues from that block, so that an arm is the same to the last bit however its
    pulls are divided.
    """

    models: ModelTable
    whole: ModelTable
    pulls: NDArray[np.int64]

    @property
    def weights(self) -> Array:
        """The weights of the models, a row per arm."""
        return self.models.weights


class LinearModels:
    """Linear models w·x + b, each with its own loss, penalty and steps.

    There is one step per sample. Passes over TRAIN are in random orders, the same for all arms.
    The config of an arm may have `loss`, `alpha`, `learning_rate`, `eta0` and `power_t`; for those
    that it does not have, the arguments of the same name are used.

    With the loss "squared_error" the models are regressions, and the loss of an arm is the mean
    squared error on VAL. With "hinge", "perceptron", "squared_hinge", "modified_huber" or
    "log_loss" they are classifiers with targets −1 and 1, and it is the fraction of VAL on the
    wrong side; the configs of classifiers may have "squared_error", too. The test loss is that on
    TEST.

    :param X_train: the rows to learn from.
    :param y_train: their targets.
    :param X_val: the rows that give the loss.
    :param y_val: their targets.
    :param X_test: the rows that give the test loss; left out, there is none.
    :param y_test: their targets.
    :param loss: the loss, by its name in SGDClassifier of scikit-learn.
    :param alpha: the factor of the penalty.
    :param learning_rate: "constant", "invscaling" or "optimal", as in scikit-learn; or "paper",
        which is eta0 / √(2 + t) after t steps.
    :param eta0: the length of the first step, or its factor.
    :param power_t: the power of t by which "invscaling" falls.
    :param fit_intercept: whether b is learnt; otherwise it is 0.
    :param samples_per_pull: the number of samples in a pull; by default a pass over TRAIN.
    :param seed: decides the order of the samples.
    :param dtype: float64 or float32.
    :param threads: the number of threads that share the arms. It changes no number.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.sign(X @ [1.0, -1.0])
    >>> classifiers = LinearModels(X[:200], y[:200], X[200:], y[200:], loss="hinge", eta0=0.1)
    >>> arms = classifiers.start([{"alpha": 1e-4}, {"alpha": 1e-3, "loss": "log_loss"}], [0, 1])
    >>> classifiers.train(arms, [0, 1], pulls=20)
    >>> classifiers.losses(arms, [0, 1]).round(1)
    array([0., 0.])
    """

    def __init__(
        self,
        X_train: ArrayLike,
        y_train: ArrayLike,
        X_val: ArrayLike,
        y_val: ArrayLike,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        loss: str = "squared_error",
        alpha: float = 1e-4,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        fit_intercept: bool = True,
        samples_per_pull: int | None = None,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
        threads: int = 1,
    ) -> None:
        self._dtype = float_type(dtype)
        self._rule = Rule(loss, alpha, learning_rate, eta0, power_t, fit_intercept).checked()
        parts = tables((X_train, y_train), (X_val, y_val), (X_test, y_test), self._dtype)
        if self._classifies:
            require_signs(parts)
        self._parts = {name: (X, y[:, None]) for name, (X, y) in parts.items()}
        self._rows = len(parts["train"][0])
        per_pull = self._rows if samples_per_pull is None else samples_per_pull
        rule = "the number of samples in a pull"
        self._per_pull = whole_number("samples_per_pull", per_pull, 1, rule)
        self._seed = whole_number("seed", seed, 0, "what decides the order of the samples")
        self._threads = whole_number("threads", threads, 1, "the number of threads")
        if "test" in parts:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> LinearArms:
        """Models with weights of 0. The seeds of the arms are not used."""
        features = self._parts["train"][0].shape[1]
        rules = [self._rule_of(config) for config in configs]
        zeros = ModelTable.zeros(rules, features, self._dtype)
        same = zeros.chosen(range(len(rules)))
        return LinearArms(zeros, same, np.zeros(len(rules), np.int64))

    def train(self, batch: LinearArms, arms: Sequence[int], pulls: int) -> None:
        """Train from the last whole block on: first whole blocks, then what is left."""
        level, chosen = common_level(batch.pulls, arms), np.asarray(arms)
        begin, end = level * self._per_pull, (level + pulls) * self._per_pull
        models = batch.whole.chosen(chosen)
        whole = self._whole(end)
        self._descend(models, self._whole(begin), whole)
        batch.whole.put(chosen, models)
        self._descend(models, whole, end)
        batch.models.put(chosen, models)
        batch.pulls[chosen] += pulls

    def losses(self, batch: LinearArms, arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL, or the fractions on the wrong side."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: LinearArms, arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: LinearArms, arms: Sequence[int], part: str) -> NDArray[np.float64]:
        models, (X, Y) = batch.models.chosen(arms), self._parts[part]
        if not self._classifies:
            return models.mean_squared_errors(X, Y)
        wrong = models.mistakes(X, (Y[:, 0] > 0).astype(np.int64), targets=1) / len(X)
        return np.where(models.finite, wrong, np.nan)  # infinite weights name no class

    def take(self, batch: LinearArms, arm: int) -> LinearArms:
        """A copy of the arm."""
        return LinearArms(
            batch.models.chosen([arm]), batch.whole.chosen([arm]), batch.pulls[[arm]]
        )

    def gather(self, ones: Sequence[LinearArms]) -> LinearArms:
        """The models of all arms, one after another."""
        if len(ones) == 1:
            return ones[0]
        return LinearArms(
            ModelTable.joined([one.models for one in ones]),
            ModelTable.joined([one.whole for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data and the settings."""
        return {
            "data": fingerprint([array for part in self._parts.values() for array in part]),
            **self._rule._asdict(),
            "samples_per_pull": self._per_pull,
            "seed": self._seed,
        }

    @property
    def _classifies(self) -> bool:
        return self._rule.loss != "squared_error"

    def _rule_of(self, config: Config) -> Rule:
        known = ("loss", "alpha", "learning_rate", "eta0", "power_t")
        if unknown := sorted(config.keys() - set(known)):
            name, why = unknown[0], f"a config has {', '.join(known)} or some of them"
            raise InvalidArgument.of(name, config[name], why, "Leave out the others")
        rule = self._rule._replace(**config).checked()
        if not self._classifies and rule.loss != self._rule.loss:
            why = "it is the loss of a classifier, and these models are regressions"
            way_out = 'For classifiers pass such a loss to LinearModels too, as in loss="hinge"'
            raise InvalidArgument.of("loss", rule.loss, why, way_out)
        return rule

    def _whole(self, sample: int) -> int:
        """The beginning of the block that this sample is in; a pass begins with a new block."""
        return sample - sample % self._rows % BLOCK

    def _descend(self, models: ModelTable, begin: int, end: int) -> None:
        X, Y = self._parts["train"]
        models.descend(X, Y, self._seed, begin, end, self._threads)
