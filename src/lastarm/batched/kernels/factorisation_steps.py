"""The kernels of matrix completion: steps on ratings, of one arm or of several, and errors.

Both ways to step do the same to the numbers of an arm, in the same order: u·v is eight sums, of
every eighth product each. Rows that are filled up with 0 stay so, and change nothing. A prediction
that is not finite makes e nan at once: if e were inf, it would become nan where it meets such a 0.
"""

from __future__ import annotations

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.compiled import compiled
from lastarm.batched.kernels.simd import (
    four,
    full,
    fused,
    load,
    minus,
    part,
    plus,
    size,
    spread,
    store,
    times,
    total,
    touch,
)

AHEAD = 4  # ratings: their factors are fetched while the processor is at this one
LINE = 64  # bytes that are fetched together


@compiled
def steps(
    d: int,
    penalty: float,
    users: Array,
    items: Array,
    who: Array,
    what: Array,
    ratings: Array,
    user_shares: Array,
    item_shares: Array,
    doubled: float,
) -> None:
    """One step a rating for one arm, with d numbers in a row; `doubled` is 2η."""
    zero, one, gain = users.dtype.type(0), users.dtype.type(1), users.dtype.type(doubled)
    pull, none = times(users.dtype.type(penalty), -gain), four(zero)
    fours, last, line = d - d % 4, d - 4, LINE // users.itemsize
    for t in range(len(ratings)):
        soon = min(t + AHEAD, len(ratings) - 1)
        for k in range(0, d, line):
            touch(users, who[soon] * d + k)
            touch(items, what[soon] * d + k)
        i, j = who[t] * d, what[t] * d
        even = odd = none
        for k in range(0, fours - 4, 8):
            even = fused(load(users, i + k, none), load(items, j + k, none), even)
            odd = fused(load(users, i + k + 4, none), load(items, j + k + 4, none), odd)
        if fours % 8:
            even = fused(load(users, i + fours - 4, none), load(items, j + fours - 4, none), even)
        if fours < d:
            u = part(users, i + fours, d - fours, none)
            v = part(items, j + fours, d - fours, none)
            if fours % 8:
                odd = fused(u, v, odd)
            else:
                even = fused(u, v, even)
        guess = total(plus(even, odd))
        e = fused(gain, minus(ratings[t], guess), minus(guess, guess))
        keep_u = fused(pull, user_shares[who[t]], one)
        keep_v = fused(pull, item_shares[what[t]], one)
        if d < 4:
            for k in range(d):
                x, y = load(users, i + k, zero), load(items, j + k, zero)
                store(users, i + k, fused(e, y, times(keep_u, x)))
                store(items, j + k, fused(e, x, times(keep_v, y)))
            continue
        es, keeps_u, keeps_v = four(e), four(keep_u), four(keep_v)
        # The last four may overlap with those before: they are loaded before these are stored,
        # so that what is computed twice is the same twice.
        last_u, last_v = load(users, i + last, none), load(items, j + last, none)
        for k in range(0, last, 4):
            u, v = load(users, i + k, none), load(items, j + k, none)
            store(users, i + k, fused(es, v, times(keeps_u, u)))
            store(items, j + k, fused(es, u, times(keeps_v, v)))
        store(users, i + last, fused(es, last_v, times(keeps_u, last_u)))
        store(items, j + last, fused(es, last_u, times(keeps_v, last_v)))


@compiled
def steps_together(
    d: int,
    penalties: Array,
    users: Array,
    items: Array,
    who: Array,
    what: Array,
    ratings: Array,
    user_shares: Array,
    item_shares: Array,
    doubled: float,
) -> None:
    """The same for as many arms as a register holds numbers; d is a multiple of 4.

    In a row of a factor are the first numbers of all arms, the second ones, and so on.
    """
    gain, none = users.dtype.type(doubled), full(users.dtype.type(0))
    gains, ones, width = full(gain), full(users.dtype.type(1)), size(none)
    pull = times(load(penalties, 0, none), full(-gain))
    row, line = d * width, LINE // users.itemsize
    for t in range(len(ratings)):
        soon = min(t + AHEAD, len(ratings) - 1)
        for k in range(0, row, line):
            touch(users, who[soon] * row + k)
            touch(items, what[soon] * row + k)
        i, j = who[t] * row, what[t] * row
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = none
        for k in range(0, row, 8 * width):
            u, v = i + k, j + k
            s0 = fused(load(users, u, none), load(items, v, none), s0)
            s1 = fused(load(users, u + width, none), load(items, v + width, none), s1)
            s2 = fused(load(users, u + 2 * width, none), load(items, v + 2 * width, none), s2)
            s3 = fused(load(users, u + 3 * width, none), load(items, v + 3 * width, none), s3)
            if k + 4 * width < row:
                u, v = u + 4 * width, v + 4 * width
                s4 = fused(load(users, u, none), load(items, v, none), s4)
                s5 = fused(load(users, u + width, none), load(items, v + width, none), s5)
                s6 = fused(load(users, u + 2 * width, none), load(items, v + 2 * width, none), s6)
                s7 = fused(load(users, u + 3 * width, none), load(items, v + 3 * width, none), s7)
        guess = plus(plus(plus(s0, s4), plus(s2, s6)), plus(plus(s1, s5), plus(s3, s7)))
        e = fused(gains, minus(spread(ratings[t], none), guess), minus(guess, guess))
        keep_u = fused(pull, spread(user_shares[who[t]], none), ones)
        keep_v = fused(pull, spread(item_shares[what[t]], none), ones)
        for k in range(0, row, width):
            u, v = load(users, i + k, none), load(items, j + k, none)
            store(users, i + k, fused(e, v, times(keep_u, u)))
            store(items, j + k, fused(e, u, times(keep_v, v)))


@compiled
def place(factors: Array, starts: Array, ranks: Array, rows: int, d: int, into: Array) -> None:
    """Put the factors of some arms beside one another, with d numbers in a row of each."""
    arms = len(starts)
    for row in range(rows):
        for arm in range(arms):
            begin, at = starts[arm] + row * ranks[arm], row * d * arms + arm
            for k in range(ranks[arm]):
                into[at + k * arms] = factors[begin + k]
            for k in range(ranks[arm], d):
                into[at + k * arms] = 0


@compiled
def put_back(placed: Array, starts: Array, ranks: Array, rows: int, d: int, into: Array) -> None:
    """Put them back where they were."""
    arms = len(starts)
    for row in range(rows):
        for arm in range(arms):
            begin, at = starts[arm] + row * ranks[arm], row * d * arms + arm
            for k in range(ranks[arm]):
                into[begin + k] = placed[at + k * arms]


@compiled
def mean_squared_error(
    d: int, users: Array, items: Array, who: Array, what: Array, ratings: Array
) -> float:
    """Of one arm, on these ratings."""
    zero, squares = users.dtype.type(0), 0.0
    none, fours = four(zero), d - d % 4
    for t in range(len(ratings)):
        i, j = who[t] * d, what[t] * d
        sums, rest = none, zero
        for k in range(0, fours, 4):
            sums = fused(load(users, i + k, none), load(items, j + k, none), sums)
        for k in range(fours, d):
            rest = fused(load(users, i + k, zero), load(items, j + k, zero), rest)
        error = np.float64(minus(ratings[t], plus(total(sums), rest)))
        squares += error * error
    return squares / len(ratings)
