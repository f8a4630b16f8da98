"""Linear models by stochastic gradient descent, many at a time: what Examples 1 and 4 share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array, common_level
from lastarm.batched.sample_order import passes

Row = dict[str, Any]
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
    """Train these arms: one step for each sample, and the same samples for all arms.

    `samples` is a table and a seed, which decides the random order of every pass over it.
    `step(models, x, y, t)` changes the weights by the sample (x, y), after t others.
    """
    (X, y), seed = samples
    now, t = batch.rows(arms), common_level(batch.pulls, arms)
    for _, rows in passes(seed, len(y), t, t + pulls):
        for row in rows:
            step(now, X[row], y[row], t)
            t += 1
    batch.weights[list(arms)], batch.pulls[list(arms)] = now.weights, t
