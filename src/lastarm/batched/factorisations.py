"""Batches of factorisations: where the numbers of each arm are, and how they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.factorisation_steps import (
    LINE,
    place,
    put_back,
    steps,
    steps_together,
)
from lastarm.batched.kernels.simd import REGISTER

WORTH = 32  # ratings for each row of the factors, from which on it pays to move these twice


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
