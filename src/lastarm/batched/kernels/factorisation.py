"""The kernels of matrix completion: steps of one factorisation on ratings, and its errors.

Arms are trained one after another, because their ranks differ and each has factors of its own. The
inner loops go along a row, and the compiler packs them into registers by itself; rows and columns
are unsigned, because it would have to look whether an index is negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.block_products import prefetch_row
from lastarm.compiled import reassociated, takes_named_tuples

AHEAD = 4  # ratings: their factors are fetched while the processor is at this one


class Factors(NamedTuple):
    """One factorisation: a row for each user, and a row for each item."""

    users: Array
    items: Array


class KnownRatings(NamedTuple):
    """Known ratings in order: ratings[t] is what users[t] gave to items[t]."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    ratings: Array


class Penalty(NamedTuple):
    """λ, and the share of it that a rating of each user and of each item has."""

    penalty: float
    user_shares: Array
    item_shares: Array


@takes_named_tuples
@reassociated
def step_on_each(factors: Factors, known: KnownRatings, penalty: Penalty, doubled: float) -> None:
    """One step per rating; `doubled` is 2η."""
    U, V = factors
    users, items, ratings = known
    lam, user_shares, item_shares = penalty
    number, d = U.dtype.type, np.uint64(U.shape[1])
    one, gain, cost = number(1), number(doubled), number(doubled) * number(lam)
    for t in range(len(ratings)):
        soon = min(t + AHEAD, len(ratings) - 1)
        prefetch_row(U, users[soon])
        prefetch_row(V, items[soon])
        i, j = np.uint64(users[t]), np.uint64(items[t])
        predicted = number(0)
        for k in range(d):
            predicted += U[i, k] * V[j, k]
        e = gain * (ratings[t] - predicted)
        keep_u, keep_v = one - cost * user_shares[i], one - cost * item_shares[j]
        for k in range(d):
            u = U[i, k]
            U[i, k] = keep_u * u + e * V[j, k]
            V[j, k] = keep_v * V[j, k] + e * u


@takes_named_tuples
@reassociated
def mean_squared_error(factors: Factors, known: KnownRatings) -> float:
    """The mean squared error of one factorisation on these ratings."""
    U, V = factors
    users, items, ratings = known
    d, squares = np.uint64(U.shape[1]), 0.0
    for t in range(len(ratings)):
        i, j = np.uint64(users[t]), np.uint64(items[t])
        predicted = U.dtype.type(0)
        for k in range(d):
            predicted += U[i, k] * V[j, k]
        error = np.float64(ratings[t] - predicted)
        squares += error * error
    return squares / len(ratings)
