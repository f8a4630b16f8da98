"""Matrix completion by stochastic gradient descent, many factorisations at a time: §5.3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import whole_number
from lastarm.batched.arrays import Array, common_level, float_type, setting
from lastarm.batched.kernels.factorisation_steps import (
    LINE,
    mean_squared_error,
    place,
    put_back,
    steps,
    steps_together,
)
from lastarm.batched.kernels.simd import REGISTER
from lastarm.batched.sample_order import passes
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.trainers import Config

PIECES = 16  # of the stream of ratings at a time: in this order they serve all arms
MOST = 2**24  # users, items and ranks: more are taken for a mistake
WORTH = 32  # ratings for each row of the factors, from which on it pays to move these twice

Part = tuple[NDArray[np.int64], NDArray[np.int64], Array]


class Piece(NamedTuple):
    """Some ratings, in order; what part of the penalty each user and item has; and 2η."""

    who: NDArray[np.int64]
    what: NDArray[np.int64]
    ratings: Array
    user_shares: Array
    item_shares: Array
    doubled: float


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


@dataclass(frozen=True)
class Shape:
    """How many users and items there are."""

    users: int
    items: int

    def own(self, batch: Factorisations, arm: int) -> tuple[Array, Array]:
        """The factors of one arm, as they are in the batch."""
        rank, user, item = batch.ranks[arm], batch.user_starts[arm], batch.item_starts[arm]
        return (
            batch.users[user : user + rank * self.users],
            batch.items[item : item + rank * self.items],
        )

    def advance(
        self, batch: Factorisations, arms: NDArray[np.int64], pieces: Sequence[Piece]
    ) -> None:
        """A step on each rating: for few of them one arm after another, where their factors are.

        For many, arms of similar ranks are put beside one another. The numbers are the same.
        """
        rows, ratings = self.users + self.items, sum(len(piece.ratings) for piece in pieces)
        if ratings < WORTH * rows:
            for arm in arms:
                users, items = self.own(batch, arm)
                for piece in pieces:
                    steps(batch.ranks[arm], batch.penalties[arm], users, items, *piece)
            return
        width = REGISTER // batch.users.itemsize
        room = _room(rows * width * (int(batch.ranks[arms].max()) + 3), batch.users.dtype)
        by_rank = arms[np.argsort(batch.ranks[arms], kind="stable")]
        for first in range(0, len(arms), width):
            tile = by_rank[first : first + width]
            if 2 * len(tile) > width:
                self._advance_elsewhere(batch, np.resize(tile, width), pieces, room)
            else:
                for arm in tile:
                    self._advance_elsewhere(batch, np.array([arm]), pieces, room)

    def _advance_elsewhere(
        self,
        batch: Factorisations,
        arms: NDArray[np.int64],
        pieces: Sequence[Piece],
        room: Array,
    ) -> None:
        """One arm, or as many as go together; one that is given twice is computed twice."""
        ranks, penalties = batch.ranks[arms], batch.penalties[arms]
        d = int(ranks.max() + 3) // 4 * 4
        users, items = np.split(room, [self.users * d * len(arms)])
        place(batch.users, batch.user_starts[arms], ranks, self.users, d, users)
        place(batch.items, batch.item_starts[arms], ranks, self.items, d, items)
        for piece in pieces:
            if len(arms) > 1:
                steps_together(d, penalties, users, items, *piece)
            else:
                steps(d, penalties[0], users, items, *piece)
        put_back(users, batch.user_starts[arms], ranks, self.users, d, batch.users)
        put_back(items, batch.item_starts[arms], ranks, self.items, d, batch.items)


def _room(count: int, dtype: np.dtype[Any]) -> Array:
    """For so many numbers, from the beginning of a line of the cache on: a fifth faster."""
    room = np.empty(count + LINE // dtype.itemsize, dtype)
    return room[-room.ctypes.data % LINE // dtype.itemsize :]


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
        self._shape = Shape(
            *(1 + max(int(part[side].max()) for part in self._parts.values()) for side in range(2))
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
        self._user_shares = self._shares(users, self._shape.users)
        self._item_shares = self._shares(items, self._shape.items)
        if test is not None:
            self.tests = self._tests  # without TEST there is no such method

    def _shares(self, known: NDArray[np.int64], count: int) -> Array:
        """1/n_i; that of a user without ratings is never asked for."""
        ratings = np.bincount(known, minlength=count)
        return (1 / np.maximum(1, 0 * ratings if self._per_rating else ratings)).astype(
            self._dtype
        )

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Factorisations:
        """Random factors, by the seed of each arm."""
        return self.gather(list(map(self._started, configs, seeds)))

    def _started(self, config: Config, seed: int) -> Factorisations:
        rank = whole_number("rank", config.get("rank"), 1, "how many numbers stand for a user")
        deviation = setting(config, "sigma") / np.sqrt(rank)
        random = np.random.default_rng(seed)
        users, items = (
            (deviation * random.standard_normal(count * rank)).astype(self._dtype)
            for count in (self._shape.users, self._shape.items)
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
        """Some pieces of the stream of ratings at a time, for all arms."""
        level, chosen = common_level(batch.pulls, arms), np.asarray(arms)
        begin, end = (count * self._per_pull for count in (level, level + pulls))
        who, what, ratings = self._parts["train"]
        stream = passes(self._seed, len(ratings), begin, end)
        while some := list(islice(stream, PIECES)):
            pieces = [
                Piece(
                    who[rows],
                    what[rows],
                    ratings[rows],
                    self._user_shares,
                    self._item_shares,
                    2 * self._step * self._shrink**epoch,
                )
                for epoch, rows in some
            ]
            self._shape.advance(batch, chosen, pieces)
        batch.pulls[chosen] += pulls

    def losses(self, batch: Factorisations, arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: Factorisations, arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: Factorisations, arms: Sequence[int], part: str) -> Array:
        errors = []
        for arm in arms:
            users, items = self._shape.own(batch, arm)
            errors.append(mean_squared_error(batch.ranks[arm], users, items, *self._parts[part]))
        return np.array(errors)

    def take(self, batch: Factorisations, arm: int) -> Factorisations:
        """A copy of its factors, and of what belongs to it."""
        users, items = self._shape.own(batch, arm)
        return Factorisations(
            batch.ranks[[arm]],
            batch.penalties[[arm]],
            users.copy(),
            items.copy(),
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
            before * self._shape.users,
            before * self._shape.items,
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
