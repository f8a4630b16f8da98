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
from lastarm.batched.arrays import Array, common_level, float_type, signs, tables
from lastarm.batched.kernels import descent, linear_errors, loss_gradients
from lastarm.batched.kernels.block_products import BLOCK
from lastarm.batched.kernels.descent_few import descend_few
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
FEW = 24  # models, for whom it pays to take them one by one within a block
TILE = 2**18  # bytes of weights that stay close to the processor while it goes through the rows


class Rule(NamedTuple):
    """How a model descends; the names are scikit-learn's.

    With t steps before it, a step is of length η:

    - "constant": eta0;
    - "invscaling": eta0 / (t + 1)^power_t;
    - "optimal": 1 / (alpha · (t₀ + t)), where 1 / (alpha · t₀) = alpha^(−1/4);
    - "paper": eta0 / √(2 + t).

    It is against the gradient of the loss + alpha/2 ‖w‖². The squared error counts half. Where
    η·alpha > 1 the weights become 0 before the rest of the step; but not in the paper's.
    """

    loss: str = "squared_error"
    alpha: float = 1e-4
    learning_rate: str = "invscaling"
    eta0: float = 0.01
    power_t: float = 0.25
    fit_intercept: bool = True

    def checked(self) -> Rule:
        """The same, if it can be followed."""
        if self.loss not in LOSSES or self.learning_rate not in RATES:
            raise InvalidArgument(
                f"loss={self.loss!r}, learning_rate={self.learning_rate!r} will not do: give a "
                f"loss of {', '.join(LOSSES)}, and a learning rate of {', '.join(RATES)}."
            )
        least = {"alpha": 0.0, "eta0": 0.0, "power_t": -inf}
        for name, low in least.items():
            if not low <= as_float(getattr(self, name)) < inf:
                raise InvalidArgument(
                    f"{name}={getattr(self, name)!r} will not do: give a number"
                    f"{' of at least 0' if low == 0 else ''}."
                )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InvalidArgument(
                f"fit_intercept={self.fit_intercept!r} will not do: give True or False."
            )
        if self.learning_rate == "optimal" and not self.alpha > 0:
            raise InvalidArgument(
                f"alpha={self.alpha!r} will not do with the learning rate 'optimal', which is "
                "computed from it: give a number of more than 0."
            )
        return self

    @property
    def pace(self) -> tuple[float, float, float, float]:
        """a, b, c, d: η is (a + b·f)/(c + d·t), where f is what `falls` says of t."""
        match self.learning_rate:
            case "constant":
                return self.eta0, 0, 1, 0
            case "optimal":
                return 1, 0, 1 / sqrt(1 / sqrt(self.alpha)), self.alpha
        return 0, self.eta0, 1, 0

    @property
    def falls(self) -> float | None:
        """The power of t + 1 that η falls with, nan in the paper's way, None if it does not."""
        return {"invscaling": self.power_t, "paper": nan}.get(self.learning_rate)


@dataclass
class ModelTable:
    """Models: the weights of each in a row, its intercept, its rule, and its column of targets."""

    weights: Array
    intercepts: Array
    rules: list[Rule]
    which: NDArray[np.int64]

    @classmethod
    def flat(
        cls, rules: Sequence[Rule], features: int, dtype: np.dtype, targets: int = 1
    ) -> ModelTable:
        """Models with weights of 0, one for each rule and each column of targets."""
        models = len(rules) * targets
        return cls(
            np.zeros((models, features), dtype),
            np.zeros(models, dtype),
            [rule for rule in rules for _ in range(targets)],
            np.tile(np.arange(targets), len(rules)),
        )

    def chosen(self, models: Sequence[int] | NDArray[np.int64]) -> ModelTable:
        """A copy of some of them."""
        at = np.asarray(models)
        return ModelTable(
            self.weights[at],
            self.intercepts[at],
            [self.rules[i] for i in at],
            self.which[at],
        )

    @classmethod
    def joined(cls, lines: Sequence[ModelTable]) -> ModelTable:
        """All of them, one after another."""
        return cls(
            np.concatenate([line.weights for line in lines]),
            np.concatenate([line.intercepts for line in lines]),
            [rule for line in lines for rule in line.rules],
            np.concatenate([line.which for line in lines]),
        )

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Which of them have not gone beyond all numbers."""
        return np.isfinite(self.intercepts) & np.isfinite(self.weights).all(axis=1)

    def put(self, models: Sequence[int] | NDArray[np.int64], lines: ModelTable) -> None:
        """Change some of them into others."""
        at = np.asarray(models)
        self.weights[at], self.intercepts[at] = lines.weights, lines.intercepts

    def descend(
        self, X: Array, Y: Array, seed: int, begin: int, end: int, threads: int = 1
    ) -> None:
        """Go through samples `begin` to `end` of the stream of passes over the rows of X.

        Blocks begin where a pass does: from there on, whole blocks are the same however the
        stream was cut before.
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
        """As `descend`, for models that are sorted by their losses."""
        kind, rules = self.weights.dtype, self.rules
        runs = [(loss, len(list(same))) for loss, same in groupby(rule.loss for rule in rules)]
        powers = list(dict.fromkeys(rule.falls for rule in rules if rule.falls is not None))
        columns: dict[float | None, int] = {power: at for at, power in enumerate(powers)}
        column = np.array([columns.get(rule.falls, 0) for rule in rules], np.uint64)
        pace = np.array([rule.pace for rule in rules], kind).T.copy()
        penalties = np.array([rule.alpha for rule in rules], kind)
        least = np.array([-inf if rule.learning_rate == "paper" else 0 for rule in rules], kind)
        lifts = np.array([rule.fit_intercept for rule in rules], kind)
        bounds = np.cumsum([0] + [count for _, count in runs]).astype(np.uint64)
        losses = np.array([LOSSES[loss] for loss, _ in runs])
        descend = descend_few if len(rules) < FEW else descent.descend
        done = begin
        for _, rows in passes(seed, len(X), begin, end):
            before = np.arange(done, done + len(rows), dtype=np.float64)
            factors = [_factors(power, before) for power in powers] or [np.ones_like(before)]
            descend(
                self.weights,
                self.intercepts,
                pace,
                penalties,
                least,
                lifts,
                self.which,
                bounds,
                losses,
                column,
                np.stack(factors, axis=1).astype(kind, copy=False),
                X,
                Y,
                rows,
                done,
            )
            done += len(rows)

    def mean_squared_errors(self, X: Array, Y: Array) -> NDArray[np.float64]:
        """Of each model, on its column of targets."""
        return linear_errors.squared_errors(self.weights, self.intercepts, self.which, X, Y) / len(
            X
        )

    def mistakes(self, X: Array, labels: NDArray[np.int64], targets: int) -> NDArray[np.int64]:
        """How many rows the models of each arm, which follow one another, take for another class.

        With one model an arm the classes are 0 and 1, and it is for 1 where it is above 0; else
        the highest of them decides.
        """
        return linear_errors.mistakes(self.weights, self.intercepts, X, labels, targets)


def _factors(power: float, before: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # then that arm diverges
        return 1 / np.sqrt(before + 2) if isnan(power) else (before + 1) ** -power


@dataclass
class LinearArms:
    """Arms: the models, the pulls so far of each, and the models at their last whole block.

    Training goes on from there, so that an arm is the same to the last bit however its pulls came.
    """

    models: ModelTable
    whole: ModelTable
    pulls: NDArray[np.int64]

    @property
    def weights(self) -> Array:
        """A row an arm."""
        return self.models.weights


class LinearModels:
    """Linear models w·x + b, each with its own loss, penalty and steps.

    The config may hold `loss`, `alpha`, `learning_rate`, `eta0` and `power_t`, which mean what
    they do in scikit-learn's SGDRegressor and SGDClassifier (see
    `lastarm.batched.linear.Rule`); what it does not hold is as given here. There is a step
    a sample; a pull is `samples_per_pull` of them, by default a pass over TRAIN. Passes are in
    random orders, the same for all arms, by `seed`.

    With the loss "squared_error" these are regressions, and the loss of an arm is the mean squared
    error on VAL. With "hinge", "perceptron", "squared_hinge", "modified_huber" or "log_loss" they
    are classifiers with targets of −1 and 1, and it is the fraction of VAL on the wrong side; a
    config of theirs may have "squared_error", too. The test loss is that on TEST. `threads` share
    the arms among them, and change no number.

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
            signs(parts)
        self._parts = {name: (X, y[:, None]) for name, (X, y) in parts.items()}
        self._rows = len(parts["train"][0])
        self._per_pull = whole_number(
            "samples_per_pull",
            self._rows if samples_per_pull is None else samples_per_pull,
            1,
            "how many samples a pull is",
        )
        self._seed = whole_number("seed", seed, 0, "what the order of the samples comes from")
        self._threads = whole_number("threads", threads, 1, "how many share the work")
        if "test" in parts:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> LinearArms:
        """Weights of 0; the arms' seeds are not needed."""
        features = self._parts["train"][0].shape[1]
        rules = [self._rule_of(config) for config in configs]
        flat = ModelTable.flat(rules, features, self._dtype)
        same = flat.chosen(range(len(rules)))
        return LinearArms(flat, same, np.zeros(len(rules), np.int64))

    def train(self, batch: LinearArms, arms: Sequence[int], pulls: int) -> None:
        """From the last whole block on: those that follow, and what is left."""
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
        return np.where(models.finite, wrong, np.nan)  # it is neither for one class nor the other

    def take(self, batch: LinearArms, arm: int) -> LinearArms:
        """A copy of its models."""
        return LinearArms(
            batch.models.chosen([arm]), batch.whole.chosen([arm]), batch.pulls[[arm]]
        )

    def gather(self, ones: Sequence[LinearArms]) -> LinearArms:
        """Their models, one after another."""
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
        if unknown := config.keys() - {"loss", "alpha", "learning_rate", "eta0", "power_t"}:
            raise InvalidArgument(
                f"the config {dict(config)!r} has {', '.join(sorted(unknown))}: give loss, alpha, "
                "learning_rate, eta0 and power_t, or some of them."
            )
        rule = self._rule._replace(**config).checked()
        if not self._classifies and rule.loss != self._rule.loss:
            raise InvalidArgument(
                f"the config {dict(config)!r} has the loss of a classifier, and these are "
                'regressions: say what they are by `loss`, such as loss="hinge".'
            )
        return rule

    def _whole(self, sample: int) -> int:
        """Where the block begins that is not over at that sample; a pass begins with a new one."""
        return sample - sample % self._rows % BLOCK

    def _descend(self, models: ModelTable, begin: int, end: int) -> None:
        X, Y = self._parts["train"]
        models.descend(X, Y, self._seed, begin, end, self._threads)
