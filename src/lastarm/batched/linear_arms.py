"""Linear models side by side: how each descends, and what all of them are trained on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from math import inf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.arguments import as_float
from lastarm.batched.arrays import Array
from lastarm.batched.kernels import descent, linear_errors, loss_gradients
from lastarm.batched.kernels.descent_few import descend_few
from lastarm.batched.sample_order import passes
from lastarm.errors import InvalidArgument

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
class Lines:
    """Models: the weights of each in a row, its intercept, its rule, and its column of targets."""

    weights: Array
    intercepts: Array
    rules: list[Rule]
    which: NDArray[np.int64]

    @classmethod
    def flat(
        cls, rules: Sequence[Rule], features: int, dtype: np.dtype, targets: int = 1
    ) -> Lines:
        """Models with weights of 0, one for each rule and each column of targets."""
        models = len(rules) * targets
        return cls(
            np.zeros((models, features), dtype),
            np.zeros(models, dtype),
            [rule for rule in rules for _ in range(targets)],
            np.tile(np.arange(targets), len(rules)),
        )

    def chosen(self, models: Sequence[int] | NDArray[np.int64]) -> Lines:
        """A copy of some of them."""
        at = np.asarray(models)
        return Lines(
            self.weights[at],
            self.intercepts[at],
            [self.rules[i] for i in at],
            self.which[at],
        )

    @classmethod
    def joined(cls, lines: Sequence[Lines]) -> Lines:
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

    def put(self, models: Sequence[int] | NDArray[np.int64], lines: Lines) -> None:
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
