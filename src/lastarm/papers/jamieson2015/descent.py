"""Linear models by stochastic gradient descent, many at a time: what Examples 1 and 4 train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array, common_level
from lastarm.batched.sample_order import passes
from lastarm.plain import fingerprint
from lastarm.trainers import Config

Row = dict[str, Any]
Table = tuple[Array, Array]  # rows, and a target for each
RIVALS = ("successive-halving", "uniform")


@dataclass
class Models:
    """Linear models: what was chosen for each, its weights and its pulls, a row a model."""

    chosen: Array
    weights: Array
    pulls: NDArray[np.int64]

    @classmethod
    def begun(cls, chosen: Array, features: int) -> Models:
        """Weights of 0."""
        return cls(chosen, np.zeros((len(chosen), features)), np.zeros(len(chosen), np.int64))

    @classmethod
    def gathered(cls, ones: Sequence[Models]) -> Models:
        """Their rows."""
        return cls(
            np.concatenate([one.chosen for one in ones]),
            np.concatenate([one.weights for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def rows(self, arms: Sequence[int]) -> Models:
        """A copy of these."""
        which = list(arms)
        return Models(self.chosen[which], self.weights[which], self.pulls[which])


def descend(
    batch: Models,
    arms: Sequence[int],
    pulls: int,
    samples: tuple[Table, int],
    step: Callable[[Models, Array, float, int], None],
) -> None:
    """Train these arms: one step a sample, and the same samples for all.

    Those are passes over a table in random orders, by a seed. `step(models, x, y, t)` changes the
    weights by the sample (x, y), after t others.
    """
    (X, y), seed = samples
    now, t = batch.rows(arms), common_level(batch.pulls, arms)
    for _, rows in passes(seed, len(y), t, t + pulls):
        for row in rows:
            step(now, X[row], y[row], t)
            t += 1
    batch.weights[list(arms)], batch.pulls[list(arms)] = now.weights, t


class SubsetRegression:
    """Least squares on a subset of the features; the config is `{"features": [j, …]}`.

    With the sample (x, y) after t others the step is w ← w − (w·x − y)x / (c(t + t_0)), where c is
    the least eigenvalue of the features' second moments on TRAIN, all features together, so that
    it is none too large for any subset, and c·t_0 the greatest |x|². The loss is the mean squared
    error on VAL.
    """

    def __init__(self, train: Table, val: Table, *, seed: int) -> None:
        self._train, self._val, self._seed = train, val, seed
        X, _ = train
        self._c = float(np.linalg.eigvalsh(X.T @ X / len(X))[0])
        self._t_0 = float((X**2).sum(axis=1).max()) / self._c

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0; the arms' seeds are not needed."""
        chosen = np.array([config["features"] for config in configs])
        return Models.begun(chosen, chosen.shape[1])

    def train(self, batch: Models, arms: Sequence[int], pulls: int) -> None:
        """Steps against the gradient of (w·x − y)²/2."""
        descend(batch, arms, pulls, (self._train, self._seed), self._step)

    def _step(self, models: Models, x: Array, y: float, t: int) -> None:
        seen = x[models.chosen]
        error = (models.weights * seen).sum(axis=1) - y
        models.weights -= (error / (self._c * (t + self._t_0)))[:, np.newaxis] * seen

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """The mean squared errors on VAL."""
        X, y = self._val
        now = batch.rows(arms)
        errors = np.einsum("rad,ad->ra", X[:, now.chosen], now.weights) - y[:, np.newaxis]
        return np.asarray((errors**2).mean(axis=0))

    def take(self, batch: Models, arm: int) -> Models:
        """A copy of its row."""
        return batch.rows([arm])

    def gather(self, ones: Sequence[Models]) -> Models:
        """Their rows."""
        return Models.gathered(ones)

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data, and the seed."""
        return {"data": fingerprint([*self._train, *self._val]), "seed": self._seed}


class LinearSVM:
    """Linear classifiers ⟨w, x⟩ without intercept, by Pegasos; the config is `{"theta": θ}`.

    With λ = 2θ the objective is λ/2·‖w‖² + the mean of max(0, 1 − y⟨w, x⟩). Sample number t is the
    step w ← (1 − 1/t)·w + 1{y⟨w, x⟩ < 1}·y·x/(λt). The loss is the fraction of VAL on the wrong
    side, and on none, or the mean of 1/(1 + exp(s·y⟨w, x⟩)) where `sigmoid` is s; the test loss is
    the former, on TEST.

    Source: Shalev-Shwartz, Singer, Srebro & Cotter, "Pegasos" (Mathematical Programming, 2011),
    figure 1, without the optional projection.
    """

    def __init__(
        self, train: Table, val: Table, test: Table, *, seed: int, sigmoid: float | None = None
    ) -> None:
        self._train, self._val, self._test = train, val, test
        self._seed, self._sigmoid = seed, sigmoid

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0; the arms' seeds are not needed."""
        theta = np.array([config["theta"] for config in configs])
        return Models.begun(theta, self._train[0].shape[1])

    def train(self, batch: Models, arms: Sequence[int], pulls: int) -> None:
        """Steps of Pegasos."""
        descend(batch, arms, pulls, (self._train, self._seed), self._step)

    def _step(self, models: Models, x: Array, y: float, t: int) -> None:
        inside = y * (models.weights * x).sum(axis=1) < 1
        models.weights *= 1 - 1 / (t + 1)  # their t is one more than ours
        models.weights += (inside * y / (2 * models.chosen * (t + 1)))[:, np.newaxis] * x

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """What VAL says."""
        if self._sigmoid is None:
            return _errors(batch, arms, self._val)
        margins = _margins(batch, arms, self._val)
        return np.asarray(((1 - np.tanh(self._sigmoid * margins / 2)) / 2).mean(axis=1))

    def tests(self, batch: Models, arms: Sequence[int]) -> Array:
        """The fractions of TEST on the wrong side."""
        return _errors(batch, arms, self._test)

    def take(self, batch: Models, arm: int) -> Models:
        """A copy of its row."""
        return batch.rows([arm])

    def gather(self, ones: Sequence[Models]) -> Models:
        """Their rows."""
        return Models.gathered(ones)

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data, the seed, and how steep the sigmoid is."""
        data = fingerprint([*self._train, *self._val, *self._test])
        return {"data": data, "seed": self._seed, "sigmoid": self._sigmoid}


def _margins(batch: Models, arms: Sequence[int], table: Table) -> Array:
    X, y = table
    return np.asarray((batch.weights[list(arms)] @ X.T) * y)


def _errors(batch: Models, arms: Sequence[int], table: Table) -> Array:
    right = _margins(batch, arms, table) > 0
    return np.asarray((~right).mean(axis=1))
