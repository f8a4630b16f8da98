"""Beliefs: where the user expects a good value, between the ends of a domain."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.errors import InvalidArgument

# A belief may be wrong, so half of all values are drawn as without it. The other half is normal,
# and nine of ten of these lie within a fifth of the domain to either side of the likely value.
SHARE, WIDTH = 0.5, 0.125


def require_likely(likely: Any, low: float, high: float, inside: bool) -> None:
    """Refuse a belief in a value that the domain does not have."""
    if not inside:
        rule = f"it is the value between {low} and {high} that you expect to do well"
        raise InvalidArgument.of("likely", likely, rule, "Use a value of the domain, or none")


def near(likely: float, random: np.random.Generator) -> float:
    """A place from 0 to 1, drawn by a belief in the place `likely`."""
    whether, where = random.random(2).tolist()
    if whether >= SHARE:
        return float(where)
    normal = NormalDist(likely, WIDTH)
    below, above = normal.cdf(0), normal.cdf(1)
    share = min(max(below + (above - below) * where, 2**-53), 1 - 2**-53)
    return min(max(normal.inv_cdf(share), 0.0), 1.0)


def with_belief(
    weights: NDArray[np.float64], edges: NDArray[np.float64], likely: float
) -> NDArray[np.float64]:
    """How likely values are that have these `weights` without the belief.

    - `weights`: a number for each value; their sum is 1.
    - `edges`: the places, from 0 to 1, between which `near` means each of the values.
    - `likely`: the place of the likely one.
    """
    normal = NormalDist(likely, WIDTH)
    below = np.array([normal.cdf(edge) for edge in edges.tolist()])
    believed = np.diff(below) / (below[-1] - below[0])
    return (1 - SHARE) * weights + SHARE * believed

