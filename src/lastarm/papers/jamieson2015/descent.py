"""Linear models by stochastic gradient descent, many at a time: what Examples 1 and 4 share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.samples import passes
from lastarm.canonical import fingerprint
from lastarm.trainers import Config

Array = NDArray[Any]
Table = tuple[Array, Array]  # rows, and a target for each


@dataclass
class Models:
    """Linear models: what was chosen for each, its weights and its pulls, a row a model."""

    chosen: Array
    weights: Array
    pulls: NDArray[np.int64]

    def rows(self, arms: Sequence[int]) -> Models:
        """A copy of these."""
        which = list(arms)
        return Models(self.chosen[which], self.weights[which], self.pulls[which])


class Descent:
    """What the two examples share: linear models that see one sample a pull, all the same ones.

    The samples are passes over TRAIN in random orders, by `seed`.
    """

    def __init__(self, train: Table, val: Table, test: Table | None = None, *, seed: int) -> None:
        self.train_rows, self.targets = train
        self.val, self.test_table, self._seed = val, test, seed

    def train(self, batch: Models, arms: Sequence[int], pulls: int) -> None:
        """One step a sample, for all of these arms."""
        now = batch.rows(arms)
        done = int(now.pulls[0])
        for _, rows in passes(self._seed, len(self.targets), done, done + pulls):
            for row in rows:
                self.step(now, self.train_rows[row], self.targets[row], done)
                done += 1
        batch.weights[list(arms)], batch.pulls[list(arms)] = now.weights, done

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """What is observed of these arms."""
        raise NotImplementedError

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Models with weights of 0."""
        raise NotImplementedError

    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """Change the weights: the sample (x, y), after t others."""
        raise NotImplementedError

    def take(self, batch: Models, arm: int) -> Models:
        """A copy of its row."""
        return batch.rows([arm])

    def gather(self, ones: Sequence[Models]) -> Models:
        """Their rows."""
        return Models(
            np.concatenate([one.chosen for one in ones]),
            np.concatenate([one.weights for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data, and the seed."""
        tables = [self.train_rows, self.targets, *self.val, *(self.test_table or ())]
        return {"data": fingerprint(tables), "seed": self._seed}


class SubsetRegression(Descent):
    """Least squares on a subset of the features; the config is `{"features": [j, …]}`.

    With the sample (x, y) after t others the step is w ← w − (w·x − y)x / (c(t + t_0)), where c is
    the least eigenvalue of the features' second moments on TRAIN, all features together, so that
    it is none too large for any subset, and c·t_0 the greatest |x|². The loss is the mean squared
    error on VAL.
    """

    def __init__(self, train: Table, val: Table, *, seed: int) -> None:
        super().__init__(train, val, seed=seed)
        X = train[0]
        self._c = float(np.linalg.eigvalsh(X.T @ X / len(X))[0])
        self._t_0 = float((X**2).sum(axis=1).max()) / self._c

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0; the arms' seeds are not needed."""
        chosen = np.array([config["features"] for config in configs])
        return Models(chosen, np.zeros(chosen.shape), np.zeros(len(chosen), np.int64))

    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """A step against the gradient of (w·x − y)²/2."""
        seen = x[models.chosen]
        error = (models.weights * seen).sum(axis=1) - y
        models.weights -= (error / (self._c * (t + self._t_0)))[:, np.newaxis] * seen

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """The mean squared errors on VAL."""
        X, y = self.val
        now = batch.rows(arms)
        errors = np.einsum("rad,ad->ra", X[:, now.chosen], now.weights) - y[:, np.newaxis]
        return np.asarray((errors**2).mean(axis=0))


class LinearSVM(Descent):
    """Linear classifiers ⟨w, x⟩ without intercept, by Pegasos; the config is `{"theta": θ}`.

    With λ = 2θ the objective is λ/2·‖w‖² + the mean of max(0, 1 − y⟨w, x⟩). Sample number t is the
    step w ← (1 − 1/t)·w + 1{y⟨w, x⟩ < 1}·y·x/(λt). The loss is the mean of 1{y⟨w, x⟩ < 0} on VAL,
    or of 1/(1 + exp(s·y⟨w, x⟩)) where `sigmoid` is s; the test loss is the former, on TEST.

    Source: Shalev-Shwartz, Singer, Srebro & Cotter, "Pegasos" (Mathematical Programming, 2011),
    figure 1, without the optional projection.
    """

    def __init__(
        self, train: Table, val: Table, test: Table, *, seed: int, sigmoid: float | None = None
    ) -> None:
        super().__init__(train, val, test, seed=seed)
        self._test, self._sigmoid = test, sigmoid

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0; the arms' seeds are not needed."""
        theta = np.array([config["theta"] for config in configs])
        weights = np.zeros((len(theta), self.train_rows.shape[1]))
        return Models(theta, weights, np.zeros(len(theta), np.int64))

    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """A step of Pegasos, whose t is one more than ours."""
        inside = y * (models.weights * x).sum(axis=1) < 1
        models.weights *= 1 - 1 / (t + 1)
        models.weights += (inside * y / (2 * models.chosen * (t + 1)))[:, np.newaxis] * x

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """What VAL says."""
        margins = self._margins(batch, arms, self.val)
        if self._sigmoid is None:
            return np.asarray((margins < 0).mean(axis=1))
        return np.asarray(((1 - np.tanh(self._sigmoid * margins / 2)) / 2).mean(axis=1))

    def tests(self, batch: Models, arms: Sequence[int]) -> Array:
        """The share of TEST that is misclassified."""
        return np.asarray((self._margins(batch, arms, self._test) < 0).mean(axis=1))

    def _margins(self, batch: Models, arms: Sequence[int], table: Table) -> Array:
        X, y = table
        return np.asarray((batch.weights[list(arms)] @ X.T) * y)

    def fingerprint(self) -> dict[str, Any]:
        """The data, and how steep the sigmoid is."""
        return super().fingerprint() | {"sigmoid": self._sigmoid}
