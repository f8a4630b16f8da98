"""Matrix completion by stochastic gradient descent, many factorisations at a time: §5.3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.batched.arrays import Array, common_level, float_type, setting
from lastarm.batched.compiled import compiled, dot
from lastarm.batched.samples import passes
from lastarm.canonical import fingerprint
from lastarm.errors import InvalidArgument, whole_number
from lastarm.trainers import Config

TILE = 4  # arms whose factors stay close to the processor while it goes through the ratings
MOST = 2**24  # users, items and ranks: more are taken for a mistake

Part = tuple[NDArray[np.int64], NDArray[np.int64], Array]


@dataclass
class Factorisations:
    """Arms: rank d, λ, the pulls so far, and both factors of each.

    Factors of different ranks lie one after another: arm a's are `users[user_starts[a]:]`, where
    d numbers belong to each user in turn, and `items` likewise.
    """

    ranks: NDArray[np.int64]
    penalties: Array
    users: Array
    items: Array
    user_starts: NDArray[np.int64]
    item_starts: NDArray[np.int64]
    pulls: NDArray[np.int64]


class MatrixCompletion:
    """Factorisations r ≈ u·v of a table of which some ratings are known; every arm has its rank.

    The config is `{"rank": d, "lambda": λ, "sigma": σ}`. The d entries of each user's u and each
    item's v are drawn by the arm's seed, normal with variance σ²/d. The objective is

        Σ (r_ij − u_i·v_j)² + λ (‖U‖² + ‖V‖²),

    bi-convex, the sum over the ratings of TRAIN. A rating has its share of the penalty, by how
    many its user and its item have (n_i and n_j), and is a step of η against the gradient:

        u ← u + 2η (e v − λ/n_i u),  v ← v + 2η (e u − λ/n_j v),  e = r − u·v.

    With `per_rating` the penalty counts once for every rating, as if n_i and n_j were 1. η is
    `step` in the first epoch, constant within one, and `shrink` times as large in the next: Recht
    & Ré, "Parallel stochastic gradient algorithms for large-scale matrix completion" (2013). An
    epoch is a pass over TRAIN in a random order, the same for all arms, by `seed`; a pull is
    `ratings_per_pull` ratings. The loss is the mean squared error on VAL, the test loss that on
    TEST. Ratings are given as rows of user, item and rating, the first two numbered from 0.

    >>> random = np.random.default_rng(0)
    >>> U, V = random.normal(size=(30, 2)), random.normal(size=(20, 2))
    >>> known = [(i, j, U[i] @ V[j]) for i, j in random.permutation(list(np.ndindex(30, 20)))]
    >>> completion = MatrixCompletion(known[:400], known[400:], ratings_per_pull=400, step=0.05)
    >>> settings = {"lambda": 1e-6, "sigma": 1.0}
    >>> arms = completion.start([{"rank": 1, **settings}, {"rank": 2, **settings}], seeds=[0, 1])
    >>> completion.train(arms, [0, 1], pulls=50)
    >>> one, two = completion.losses(arms, [0, 1])
    >>> bool(two < 0.1 < one)
    True
    """

    def __init__(
        self,
        train: ArrayLike,
        val: ArrayLike,
        test: ArrayLike | None = None,
        *,
        ratings_per_pull: int = 1,
        step: float = 0.01,
        shrink: float = 0.9,
        per_rating: bool = False,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self._dtype = float_type(dtype)
        given = {"train": train, "val": val} | ({} if test is None else {"test": test})
        self._parts = {name: _ratings(name, part, self._dtype) for name, part in given.items()}
        self._users, self._items = (
            1 + max(int(part[side].max()) for part in self._parts.values()) for side in (0, 1)
        )
        self._per_pull = whole_number(
            "ratings_per_pull", ratings_per_pull, 1, "how many ratings are a pull"
        )
        if not (step > 0 and 0 < shrink <= 1):
            raise InvalidArgument(
                f"step={step} and shrink={shrink} will not do: they are the step of the first "
                "epoch and the factor from each to the next. Give a step of more than 0, and a "
                "factor of more than 0 and at most 1."
            )
        self._step, self._shrink, self._per_rating = step, shrink, per_rating
        self._seed = whole_number("seed", seed, 0, "what the order of the ratings comes from")
        users, items, _ = self._parts["train"]
        # λ/n_i of a user without ratings is never asked for.
        self._user_shares, self._item_shares = (
            (
                np.ones(count)
                if per_rating
                else 1 / np.maximum(np.bincount(side, minlength=count), 1)
            )
            for side, count in ((users, self._users), (items, self._items))
        )
        if test is not None:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Factorisations:
        """Random factors, by the seed of each arm."""
        return self.gather(list(map(self._started, configs, seeds)))

    def _started(self, config: Config, seed: int) -> Factorisations:
        rank = whole_number("rank", config.get("rank"), 1, "how many numbers stand for a user")
        deviation = setting(config, "sigma") / np.sqrt(rank)
        random = np.random.default_rng(seed)
        users, items = (
            (deviation * random.standard_normal(count * rank)).astype(self._dtype)
            for count in (self._users, self._items)
        )
        penalty = np.array([setting(config, "lambda")], self._dtype)
        nothing = np.zeros(1, np.int64)
        return Factorisations(
            np.array([rank], np.int64),
            penalty,
            users,
            items,
            nothing,
            nothing.copy(),
            nothing.copy(),
        )

    def train(self, batch: Factorisations, arms: Sequence[int], pulls: int) -> None:
        """Some arms after others, through all ratings."""
        level, chosen = common_level(batch.pulls, arms), np.asarray(arms)
        users, items, ratings = self._parts["train"]
        begin, end = (count * self._per_pull for count in (level, level + pulls))
        for first in range(0, len(chosen), TILE):
            tile = chosen[first : first + TILE]
            for epoch, rows in passes(self._seed, len(ratings), begin, end):
                descend(
                    batch.ranks[tile],
                    batch.penalties[tile],
                    batch.users,
                    batch.items,
                    batch.user_starts[tile],
                    batch.item_starts[tile],
                    users[rows],
                    items[rows],
                    ratings[rows],
                    self._user_shares,
                    self._item_shares,
                    2 * self._step * self._shrink**epoch,
                )
        batch.pulls[chosen] += pulls

    def losses(self, batch: Factorisations, arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: Factorisations, arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: Factorisations, arms: Sequence[int], part: str) -> Array:
        chosen = np.asarray(arms)
        return mean_squared_errors(
            batch.ranks[chosen],
            batch.users,
            batch.items,
            batch.user_starts[chosen],
            batch.item_starts[chosen],
            *self._parts[part],
        )

    def take(self, batch: Factorisations, arm: int) -> Factorisations:
        """A copy of its factors, and of what belongs to it."""
        rank = batch.ranks[arm]
        user_start, item_start = batch.user_starts[arm], batch.item_starts[arm]
        return Factorisations(
            batch.ranks[[arm]],
            batch.penalties[[arm]],
            batch.users[user_start : user_start + rank * self._users].copy(),
            batch.items[item_start : item_start + rank * self._items].copy(),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            batch.pulls[[arm]],
        )

    def gather(self, ones: Sequence[Factorisations]) -> Factorisations:
        """Their factors one after another."""
        if len(ones) == 1:
            return ones[0]
        ranks = np.concatenate([one.ranks for one in ones])
        before = np.cumsum(ranks) - ranks
        return Factorisations(
            ranks,
            np.concatenate([one.penalties for one in ones]),
            np.concatenate([one.users for one in ones]),
            np.concatenate([one.items for one in ones]),
            before * self._users,
            before * self._items,
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data and the settings."""
        return {
            "data": fingerprint([array for part in self._parts.values() for array in part]),
            "ratings_per_pull": self._per_pull,
            "step": self._step,
            "shrink": self._shrink,
            "per_rating": self._per_rating,
            "seed": self._seed,
        }


def _ratings(name: str, given: ArrayLike, dtype: np.dtype[Any]) -> Part:
    rows = np.asarray(given, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
        raise InvalidArgument(
            f"{name} has shape {rows.shape}: give rows of user, item and rating, at least one."
        )
    numbers = rows[:, :2]
    if not ((numbers >= 0) & (numbers < MOST) & (numbers == np.floor(numbers))).all():
        raise InvalidArgument(
            f"{name} holds users or items that are no whole numbers from 0 to {MOST - 1}: number "
            "them from 0."
        )
    if not np.isfinite(rows[:, 2]).all():
        raise InvalidArgument(f"{name} holds ratings that are nan or inf: leave out such rows.")
    users, items = np.ascontiguousarray(numbers.T).astype(np.int64)
    return users, items, np.ascontiguousarray(rows[:, 2], dtype)


@compiled
def descend(
    ranks: Array,
    penalties: Array,
    users: Array,
    items: Array,
    user_starts: Array,
    item_starts: Array,
    who: Array,
    what: Array,
    ratings: Array,
    user_shares: Array,
    item_shares: Array,
    doubled: float,
) -> None:
    """One step a rating for all arms; `doubled` is 2η."""
    one = users.dtype.type(1)
    gain = users.dtype.type(doubled)
    for t in range(len(ratings)):
        i, j = who[t], what[t]
        for arm in range(len(ranks)):
            d = ranks[arm]
            u = users[user_starts[arm] + i * d : user_starts[arm] + (i + 1) * d]
            v = items[item_starts[arm] + j * d : item_starts[arm] + (j + 1) * d]
            e = gain * (ratings[t] - dot(u, v))
            keep_u = one - gain * penalties[arm] * users.dtype.type(user_shares[i])
            keep_v = one - gain * penalties[arm] * users.dtype.type(item_shares[j])
            for k in range(d):
                before = u[k]
                u[k] = keep_u * before + e * v[k]
                v[k] = keep_v * v[k] + e * before


@compiled
def mean_squared_errors(
    ranks: Array,
    users: Array,
    items: Array,
    user_starts: Array,
    item_starts: Array,
    who: Array,
    what: Array,
    ratings: Array,
) -> NDArray[np.float64]:
    """Of each arm, on these ratings."""
    totals = np.zeros(len(ranks))
    for arm in range(len(ranks)):
        d = ranks[arm]
        for t in range(len(ratings)):
            u = users[user_starts[arm] + who[t] * d : user_starts[arm] + (who[t] + 1) * d]
            v = items[item_starts[arm] + what[t] * d : item_starts[arm] + (what[t] + 1) * d]
            error = np.float64(ratings[t] - dot(u, v))
            totals[arm] += error * error
    return totals / len(ratings)
