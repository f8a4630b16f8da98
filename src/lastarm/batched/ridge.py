"""Ridge regression by stochastic gradient descent, many penalties at a time: the paper's §5.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.batched.arrays import Array, common_level, float_type, setting, tables
from lastarm.batched.compiled import compiled
from lastarm.batched.samples import passes
from lastarm.canonical import fingerprint
from lastarm.errors import whole_number
from lastarm.trainers import Config

TILE = 64  # arms whose weights stay close to the processor while it goes through the samples
ROWS = 128  # of VAL at a time


@dataclass
class Regressions:
    """Arms: the penalty, the weights and the pulls so far of each, a row an arm."""

    penalties: Array
    weights: Array
    pulls: NDArray[np.int64]


class RidgeRegression:
    """Linear regressions w·x with squared loss and no intercept, each with its own l2 penalty λ.

    The config is `{"lambda": λ}`. A pull is one sample (x, y): with T pulls before it, and w = 0
    before the first, it is a step of η = .01/√(2 + T) against the gradient of

        (w·x − y)² + λ‖w‖²,  that is  w ← (1 − 2ηλ) w − 2η (w·x − y) x.

    The samples are passes over TRAIN in random orders, the same for all arms, by `seed`. The loss
    is the mean squared error on VAL, the test loss that on TEST.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0]
    >>> ridge = RidgeRegression(X[:200], y[:200], X[200:], y[200:])
    >>> arms = ridge.start([{"lambda": 1e-6}, {"lambda": 1.0}], seeds=[0, 1])
    >>> ridge.train(arms, [0, 1], pulls=20_000)
    >>> low, high = ridge.losses(arms, [0, 1])
    >>> bool(low < 0.01 < high)
    True
    >>> ridge.take(arms, 0).weights.round(1)
    array([[ 1., -1.]])
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
        step: float = 0.01,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self._dtype = float_type(dtype)
        parts = tables((X_train, y_train), (X_val, y_val), (X_test, y_test), self._dtype)
        self._X, self._y = parts.pop("train")
        # By columns, so that the predictions for many rows are computed at once.
        self._looks = {name: (np.ascontiguousarray(X.T), y) for name, (X, y) in parts.items()}
        self._step = step
        self._seed = whole_number("seed", seed, 0, "what the order of the samples comes from")
        if "test" in self._looks:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Regressions:
        """Weights of 0; the arms' seeds are not needed."""
        penalties = np.array([setting(config, "lambda") for config in configs], self._dtype)
        weights = np.zeros((len(penalties), self._X.shape[1]), self._dtype)
        return Regressions(penalties, weights, np.zeros(len(penalties), np.int64))

    def train(self, batch: Regressions, arms: Sequence[int], pulls: int) -> None:
        """Tile by tile of arms, through all samples."""
        level, chosen = common_level(batch.pulls, arms), np.asarray(arms)
        for begin in range(0, len(chosen), TILE):
            tile = chosen[begin : begin + TILE]
            weights = np.ascontiguousarray(batch.weights[tile].T)
            done = level
            for _, rows in passes(self._seed, len(self._y), level, level + pulls):
                steps = self._step / np.sqrt(2.0 + np.arange(done, done + len(rows)))
                doubled = (2 * steps).astype(self._dtype)
                descend(weights, batch.penalties[tile], self._X, self._y, rows, doubled)
                done += len(rows)
            batch.weights[tile] = weights.T
        batch.pulls[chosen] += pulls

    def losses(self, batch: Regressions, arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL."""
        return mean_squared_errors(batch.weights[list(arms)], *self._looks["val"])

    def _tests(self, batch: Regressions, arms: Sequence[int]) -> NDArray[np.float64]:
        return mean_squared_errors(batch.weights[list(arms)], *self._looks["test"])

    def take(self, batch: Regressions, arm: int) -> Regressions:
        """A copy of its row."""
        return Regressions(batch.penalties[[arm]], batch.weights[[arm]], batch.pulls[[arm]])

    def gather(self, ones: Sequence[Regressions]) -> Regressions:
        """Their rows."""
        if len(ones) == 1:
            return ones[0]
        return Regressions(
            np.concatenate([one.penalties for one in ones]),
            np.concatenate([one.weights for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data and the settings."""
        data = [self._X, self._y, *(array for part in self._looks.values() for array in part)]
        return {"data": fingerprint(data), "step": self._step, "seed": self._seed}


@compiled
def descend(W: Array, penalties: Array, X: Array, y: Array, rows: Array, doubled: Array) -> None:
    """One step a sample for all columns of W, an arm each; `doubled` holds 2η.

    The step on one sample and the prediction for the next go through the weights together.
    """
    features, arms = W.shape
    predictions, shrink, gain = np.zeros_like(W[0]), np.empty_like(W[0]), np.empty_like(W[0])
    for k in range(features):
        for arm in range(arms):
            predictions[arm] += X[rows[0], k] * W[k, arm]
    for t in range(len(rows)):
        x, after = X[rows[t]], X[rows[min(t + 1, len(rows) - 1)]]
        for arm in range(arms):
            shrink[arm] = 1 - doubled[t] * penalties[arm]
            gain[arm] = doubled[t] * (predictions[arm] - y[rows[t]])
            predictions[arm] = 0
        for k in range(features):
            weights, here, there = W[k], x[k], after[k]
            for arm in range(arms):
                w = shrink[arm] * weights[arm] - gain[arm] * here
                weights[arm] = w
                predictions[arm] += there * w


@compiled
def mean_squared_errors(weights: Array, columns: Array, y: Array) -> NDArray[np.float64]:
    """Of every row of weights, on rows that are given by columns."""
    arms, features = weights.shape
    totals = np.zeros(arms)
    predictions = np.empty(ROWS, y.dtype)
    for begin in range(0, len(y), ROWS):
        rows = min(ROWS, len(y) - begin)
        for arm in range(arms):
            predictions[:] = 0
            for k in range(features):
                w, column = weights[arm, k], columns[k, begin : begin + rows]
                for row in range(rows):
                    predictions[row] += w * column[row]
            for row in range(rows):
                error = np.float64(predictions[row] - y[begin + row])
                totals[arm] += error * error
    return totals / len(y)
