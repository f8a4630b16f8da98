"""Linear models by stochastic gradient descent, many at a time: what Examples 1 and 4 share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array, common_level
from lastarm.batched.sample_order import passes

Table = tuple[Array, Array]  # rows, and a target for each
RIVALS = ("successive-halving", "uniform")


@dataclass
class Models:
    """Linear models, a row each: what was chosen for it (features, or θ), weights and pulls."""

    chosen: Array
    weights: Array
    pulls: NDArray[np.int64]

    @classmethod
    def begun(cls, chosen: Array, features: int) -> Models:
        """Weights of 0."""
        return cls(chosen, np.zeros((len(chosen), features)), np.zeros(len(chosen), np.int64))

    def rows(self, arms: Sequence[int]) -> Models:
        """A copy of these."""
        which = list(arms)
        return Models(self.chosen[which], self.weights[which], self.pulls[which])


class LinearTrainer(ABC):
    """Trains linear models: one step for each sample, and the same samples for all arms.

    The seed decides the random order of every pass over TRAIN. The arms' own seeds are not needed.
    """

    def __init__(self, train: Table, seed: int) -> None:
        self._train, self._seed = train, seed

    @abstractmethod
    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """Change the weights by the sample (x, y), after t others."""

    def train(self, batch: Models, arms: Sequence[int], pulls: int) -> None:
        """Steps for these arms, one for each pull."""
        X, y = self._train
        now, t = batch.rows(arms), common_level(batch.pulls, arms)
        for _, rows in passes(self._seed, len(y), t, t + pulls):
            for row in rows:
                self.step(now, X[row], y[row], t)
                t += 1
        batch.weights[list(arms)], batch.pulls[list(arms)] = now.weights, t

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
