"""Envelopes of recorded curves: how far losses may still be from their limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lastarm.errors import InvalidArgument

Array = NDArray[np.float64]


def envelope(losses: ArrayLike, limit: ArrayLike | None = None) -> Array:
    """γ(t) for t = 1, 2, …: the least non-increasing bound on |ℓ_t − ν| along the last axis.

    >>> envelope([0.5, 0.1, 0.3, 0.2])
    array([0.3, 0.1, 0.1, 0. ])

    Where no limit is given it is the last loss: a recorded curve stays where it ends.
    """
    curves = np.asarray(losses, dtype=float)
    limits = curves[..., -1] if limit is None else np.asarray(limit, dtype=float)
    distance = np.abs(curves - limits[..., np.newaxis])
    return np.maximum.accumulate(distance[..., ::-1], axis=-1)[..., ::-1]


def settling_time(gamma: ArrayLike, alpha: float) -> float:
    """γ⁻¹(α) = min{t : γ(t) < α}, counted from 1; inf where γ stays at α or above.

    The paper has γ(t) ≤ α. Then two losses can tie where their limits differ, and a tie may go
    to the wrong arm; with the strict inequality its conclusions hold as they are written.

    >>> settling_time([0.3, 0.1, 0.1, 0.0], 0.1), settling_time([0.3, 0.1], 0.05)
    (4, inf)
    """
    below = np.asarray(gamma) < alpha
    return int(np.argmax(below)) + 1 if below.any() else inf


def told_apart(gamma_i: ArrayLike, gamma_1: ArrayLike, gap: float, t_i: int, t_1: int) -> bool:
    """Whether ℓ_{i,t_i} > ℓ_{1,t_1} is certain when ν_i − ν_1 = gap > 0: both have settled.

    That is t_i ≥ γ_i⁻¹(gap/2) and t_1 ≥ γ_1⁻¹(gap/2): the envelopes are within half of the gap,
    so the two intermediate losses are in the order of their limits.
    """
    return t_i >= settling_time(gamma_i, gap / 2) and t_1 >= settling_time(gamma_1, gap / 2)


@dataclass(frozen=True)
class Envelopes:
    """Limits and envelopes of a table `losses[arm, step]` of finite losses, the best arm first.

    >>> two = Envelopes([[0.9, 0.2, 0.2], [0.4, 0.4, 0.3]])
    >>> two.order.tolist(), two.limits.tolist()
    ([0, 1], [0.2, 0.3])
    >>> two.gaps_settle
    [3]
    """

    losses: ArrayLike

    @cached_property
    def table(self) -> Array:
        """The losses as an array, checked."""
        table = np.asarray(self.losses, dtype=np.float64)
        if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
            rule = "this is its shape, and it has to be finite, with a row for each arm"
            raise InvalidArgument.of("losses", table.shape, rule, "Leave out arms that diverge")
        return table

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Rows from the lowest limit to the highest; ties go to the lower row."""
        return np.argsort(self.table[:, -1], kind="stable")

    @cached_property
    def limits(self) -> Array:
        """ν_1 ≤ ν_2 ≤ … ≤ ν_n."""
        limits: Array = self.table[self.order, -1]
        return limits

    @cached_property
    def joint(self) -> Array:
        """γ̄(t) = max_i γ_i(t)."""
        joint: Array = envelope(self.table).max(axis=0)
        return joint

    @property
    def gaps_settle(self) -> list[float]:
        """γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n: what the theorems are stated in."""
        return [settling_time(self.joint, gap / 2) for gap in self.limits[1:] - self.limits[0]]
