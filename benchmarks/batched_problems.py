"""What is trained: the data of each model, its arms, and how to train them together or alone.

`together` and `alone` give seconds and what each arm learned. The seconds are those of the
processor, in one thread, and of training only; those of arms that were trained alone are scaled to
all arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.completion import MatrixCompletion
from lastarm.batched.kernel_svm import KernelSVM
from lastarm.batched.ridge import RidgeRegression
from lastarm.batched.sample_order import order

Array = NDArray[Any]
Learned = dict[int, Array]
Train = Callable[..., None]


class Ridge:
    """One pass over TRAIN; arms differ by λ."""

    def __init__(
        self, dtype: str, arms: int = 1000, pulls: int = 41_000, features: int = 90
    ) -> None:
        random = np.random.default_rng(0)
        X = random.normal(size=(pulls + 1, features)).astype(dtype)
        y = (X @ random.normal(size=features) + random.normal(size=len(X))).astype(dtype)
        self.arms, self.pulls = arms, pulls
        self.configs = [{"lambda": penalty} for penalty in np.geomspace(1e-6, 1, arms)]
        self.trainer = RidgeRegression(X[:-1], y[:-1], X[-1:], y[-1:], dtype=dtype)
        rows, steps = order(0, pulls, 0), 0.01 / np.sqrt(2.0 + np.arange(pulls))
        self.samples = X[rows], y[rows], (2 * steps).astype(dtype)

    def together(self) -> tuple[float, Learned]:
        """All arms in one batch."""
        batch = self.trainer.start(self.configs, range(self.arms))
        began = thread_time()
        self.trainer.train(batch, range(self.arms), self.pulls)
        return thread_time() - began, dict(enumerate(batch.weights))

    def alone(self, train: Train, arms: Iterable[int]) -> tuple[float, Learned]:
        """These arms, one after another."""
        X, _, doubled = self.samples
        learned = {arm: np.zeros(X.shape[1], X.dtype) for arm in arms}
        began = thread_time()
        for arm, weights in learned.items():
            train(weights, doubled.dtype.type(self.configs[arm]["lambda"]), *self.samples)
        return (thread_time() - began) * self.arms / len(learned), learned


class Pegasos:
    """A pass and a half over TRAIN; arms are a grid of γ and λ."""

    def __init__(
        self,
        dtype: str,
        grid: tuple[int, int] = (10, 10),
        points: int = 4_000,
        pulls: int = 6_000,
        features: int = 16,
    ) -> None:
        random = np.random.default_rng(0)
        X = random.normal(size=(points + 1, features)) / np.sqrt(2 * features)
        noise = random.normal(size=points + 1) / (6 * features)
        y = np.where(X[:, 0] * X[:, 1] + noise > 0, 1.0, -1.0)
        self.arms, self.pulls = grid[0] * grid[1], pulls
        self.configs = [
            {"lambda": penalty, "gamma": gamma}
            for gamma in np.geomspace(1, 1e3, grid[0])
            for penalty in np.geomspace(1e-6, 1, grid[1])
        ]
        self.trainer = KernelSVM(X[:-1], y[:-1], X[-1:], y[-1:], dtype=dtype)
        self.samples = X[:-1].astype(dtype), y[:-1].astype(dtype)
        passes = (order(0, points, number) for number in range(pulls // points + 1))
        self.order = np.concatenate(list(passes))[:pulls]

    def together(self) -> tuple[float, Learned]:
        """All arms in one batch."""
        return self.further(0, self.pulls)

    def further(self, before: int, pulls: int) -> tuple[float, Learned]:
        """All arms in one batch; pulls before these take time that is not counted."""
        batch = self.trainer.start(self.configs, range(self.arms))
        self.trainer.train(batch, range(self.arms), before)
        began = thread_time()
        self.trainer.train(batch, range(self.arms), pulls)
        seconds = thread_time() - began
        counts = np.empty((self.arms, len(self.samples[1])))
        counts[:, order(0, counts.shape[1], 0)[: batch.counts.shape[1]]] = batch.counts
        return seconds, dict(enumerate(counts))

    def alone(self, train: Train, arms: Iterable[int]) -> tuple[float, Learned]:
        """These arms, one after another."""
        X, y = self.samples
        learned = {arm: np.zeros_like(y) for arm in arms}
        began = thread_time()
        for arm, alpha in learned.items():
            penalty, gamma = (
                y.dtype.type(self.configs[arm][name]) for name in ("lambda", "gamma")
            )
            train(alpha, penalty, gamma, X, y, self.order)
        return (thread_time() - began) * self.arms / len(learned), learned


class Completion:
    """Some passes over the ratings; arms are a grid of ranks, λ and σ."""

    def __init__(
        self,
        dtype: str,
        ranks: tuple[int, ...] = (2, 18, 34, 50),
        others: int = 16,
        epochs: int = 2,
        ratings: int = 100_000,
    ) -> None:
        users, items = 943, 1682
        random = np.random.default_rng(0)
        cells = random.choice(users * items, ratings, replace=False)
        U, V = random.normal(size=(users, 10)), random.normal(size=(items, 10)) / 3
        who, what = np.divmod(cells, items)
        known = (U[who] * V[what]).sum(axis=1) + 0.5 * random.normal(size=ratings)
        table = np.c_[who, what, known]
        self.arms, self.epochs = len(ranks) * others, epochs
        self.configs = [
            {"rank": rank, "lambda": penalty, "sigma": (0.1, 0.3, 1.0, 3.0)[arm % 4]}
            for rank in ranks
            for arm, penalty in enumerate(np.geomspace(1e-6, 1, others))
        ]
        self.trainer = MatrixCompletion(table, table[:1], ratings_per_pull=ratings, dtype=dtype)
        self.shares = [
            (1 / np.maximum(np.bincount(side, minlength=count), 1)).astype(dtype)
            for side, count in ((who, users), (what, items))
        ]
        orders = [order(0, ratings, epoch) for epoch in range(epochs)]
        self.samples = [(who[rows], what[rows], known[rows].astype(dtype)) for rows in orders]

    def together(self) -> tuple[float, Learned]:
        """All arms in one batch."""
        batch = self.trainer.start(self.configs, range(self.arms))
        began = thread_time()
        self.trainer.train(batch, range(self.arms), self.epochs)
        seconds = thread_time() - began
        return seconds, {arm: self.trainer.take(batch, arm).users for arm in range(self.arms)}

    def alone(self, train: Train, arms: Iterable[int]) -> tuple[float, Learned]:
        """These arms, one after another."""
        learned, seconds = {}, 0.0
        for arm in arms:
            (one,) = self.trainer.start([self.configs[arm]], [arm])
            U, V = one.users, one.items
            number = U.dtype.type
            began = thread_time()
            for epoch, samples in enumerate(self.samples):
                doubled = number(0.02 * 0.9**epoch)
                train(U, V, number(self.configs[arm]["lambda"]), *samples, *self.shares, doubled)
            seconds += thread_time() - began
            learned[arm] = U
        return seconds * self.arms / len(learned), learned
