"""Training one arm at a time, as a good engineer would write it: in NumPy, and in loops for numba.

They get the samples laid out in the order in which they are to be taken, and leave what they
learned in the arrays that they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Loops = TypeVar("Loops", bound=Callable[..., None])


def plain(loops: Loops) -> Loops:
    """Compiled as it is written; like ours, without checks for divisions by 0."""
    return cast(Loops, numba.njit(error_model="numpy")(loops))


def fast(loops: Loops) -> Loops:
    """Compiled with leave to add in any order, and to round as is fastest."""
    return cast(Loops, numba.njit(error_model="numpy", fastmath=True)(loops))


def ridge_in_numpy(w: Array, penalty: Any, X: Array, y: Array, doubled: Array) -> None:
    """w ← (1 − 2ηλ) w − 2η (w·x − y) x, for each row."""
    for x, target, step in zip(X, y, doubled, strict=True):
        error = step * (w @ x - target)
        w *= 1 - step * penalty
        w -= error * x


def ridge_loops(w: Array, penalty: Any, X: Array, y: Array, doubled: Array) -> None:
    """The same, number by number."""
    one = w.dtype.type(1)
    for t in range(len(y)):
        prediction = w.dtype.type(0)
        for k in range(len(w)):
            prediction += w[k] * X[t, k]
        error = doubled[t] * (prediction - y[t])
        keep = one - doubled[t] * penalty
        for k in range(len(w)):
            w[k] = keep * w[k] - error * X[t, k]


def pegasos_in_numpy(
    alpha: Array, penalty: Any, gamma: Any, X: Array, y: Array, order: Array
) -> None:
    """α_i ← α_i + 1 if y_i Σ α_j y_j κ(x_j, x_i) / λt < 1; distances by ‖x‖² + ‖z‖² − 2 x·z."""
    squares, factors = (X**2).sum(axis=1), np.zeros_like(y)
    for t, i in enumerate(order, start=1):
        similar = np.exp(-gamma * (squares + squares[i] - 2 * (X @ X[i])))
        if y[i] * (factors @ similar) / (penalty * t) < 1:
            alpha[i] += 1
            factors[i] += y[i]


def pegasos_loops(
    alpha: Array, penalty: Any, gamma: Any, X: Array, y: Array, order: Array
) -> None:
    """The same, number by number; κ is computed for points with α > 0 only."""
    for t in range(len(order)):
        i = order[t]
        total = y.dtype.type(0)
        for j in range(len(y)):
            if alpha[j] != 0:
                squared = y.dtype.type(0)
                for k in range(X.shape[1]):
                    difference = X[i, k] - X[j, k]
                    squared += difference * difference
                total += alpha[j] * y[j] * exp(-gamma * squared)
        if y[i] * total / (penalty * (t + 1)) < 1:
            alpha[i] += 1


def completion_in_numpy(
    U: Array,
    V: Array,
    penalty: Any,
    users: Array,
    items: Array,
    ratings: Array,
    user_shares: Array,
    item_shares: Array,
    doubled: Any,
) -> None:
    """u ← u + 2η (e v − λ/n_i u), v ← v + 2η (e u − λ/n_j v), for each rating."""
    for i, j, rating in zip(users, items, ratings, strict=True):
        u, v = U[i].copy(), V[j]
        e = doubled * (rating - u @ v)
        U[i] += e * v - doubled * penalty * user_shares[i] * u
        V[j] += e * u - doubled * penalty * item_shares[j] * v


def completion_loops(
    U: Array,
    V: Array,
    penalty: Any,
    users: Array,
    items: Array,
    ratings: Array,
    user_shares: Array,
    item_shares: Array,
    doubled: Any,
) -> None:
    """The same, number by number."""
    one = U.dtype.type(1)
    for t in range(len(ratings)):
        i, j = users[t], items[t]
        prediction = U.dtype.type(0)
        for k in range(U.shape[1]):
            prediction += U[i, k] * V[j, k]
        e = doubled * (ratings[t] - prediction)
        keep_u = one - doubled * penalty * user_shares[i]
        keep_v = one - doubled * penalty * item_shares[j]
        for k in range(U.shape[1]):
            before = U[i, k]
            U[i, k] = keep_u * before + e * V[j, k]
            V[j, k] = keep_v * V[j, k] + e * before
