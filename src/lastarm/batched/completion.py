"""Matrix completion by stochastic gradient descent, many factorisations at a time: §5.3."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import whole_number
from lastarm.batched.arrays import Array, bad_table, common_level, float_type, setting
from lastarm.batched.kernels.factorisation import (
    Factors,
    KnownRatings,
    Penalty,
    mean_squared_error,
    step_on_each,
)
from lastarm.batched.sample_order import passes
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.trainers import Config

PIECES = 16  # of the stream of ratings that are put in order at a time, for all arms
MOST = 2**24  # users, items and ranks: larger numbers are taken for a mistake


@dataclass
class Factorisation:
    """An arm: λ, the pulls so far, and d numbers for each user and for each item."""

    penalty: float
    users: Array
    items: Array
    pulls: int = 0

    @property
    def factors(self) -> Factors:
        """What the kernels take."""
        return Factors(self.users, self.items)


class MatrixCompletion:
    """Factorisations r ≈ u·v of a table of which some ratings are known; every arm has its rank.

    The config is `{"rank": d, "lambda": λ, "sigma": σ}`. The d entries of each user's u and each
    item's v are drawn by the arm's seed, normal with variance σ²/d. The objective is

        Σ (r_ij − u_i·v_j)² + λ (‖U‖² + ‖V‖²),

    bi-convex, the sum over the ratings of TRAIN. A rating has its share of the penalty, by how
    many ratings its user and its item have (n_i and n_j), and is a step of η against the gradient:

        u ← u + 2η (e v − λ/n_i u),  v ← v + 2η (e u − λ/n_j v),  e = r − u·v.

    η is constant within an epoch, and `shrink` times as large in the next: Recht & Ré, "Parallel
    stochastic gradient algorithms for large-scale matrix completion" (2013). An epoch is a pass
    over TRAIN in a random order, the same for all arms. The loss is the mean squared error on VAL,
    the test loss that on TEST.

    :param train: the ratings to learn from: rows of user, item and rating, numbered from 0.
    :param val: the ratings that give the loss.
    :param test: the ratings that give the test loss; left out, there is none.
    :param ratings_per_pull: the number of ratings, and so of steps, in a pull.
    :param step: η in the first epoch.
    :param shrink: the factor of η from one epoch to the next.
    :param per_rating: count the penalty once for every rating, as if n_i and n_j were 1.
    :param seed: decides the order of the ratings.
    :param dtype: float64 or float32.

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
            1 + max(int(part[side].max()) for part in self._parts.values()) for side in range(2)
        )
        rule = "the number of ratings in a pull"
        self._per_pull = whole_number("ratings_per_pull", ratings_per_pull, 1, rule)
        if not step > 0:
            rule, way_out = "it is η in the first epoch", "Use a number greater than 0"
            raise InvalidArgument.of("step", step, rule, way_out)
        if not 0 < shrink <= 1:
            rule = "it is the factor of η from one epoch to the next"
            way_out = "Use a number greater than 0 and at most 1"
            raise InvalidArgument.of("shrink", shrink, rule, way_out)
        self._step, self._shrink, self._per_rating = step, shrink, per_rating
        self._seed = whole_number("seed", seed, 0, "what decides the order of the ratings")
        users, items, _ = self._parts["train"]
        self._user_shares = self._shares(users, self._users)
        self._item_shares = self._shares(items, self._items)
        if test is not None:
            self.tests = self._tests  # without TEST there is no such method

    def _shares(self, known: NDArray[np.int64], count: int) -> Array:
        """1/n_i; the share of a user without ratings is never used."""
        ratings = np.bincount(known, minlength=count)
        counted = np.ones_like(ratings) if self._per_rating else np.maximum(1, ratings)
        return (1 / counted).astype(self._dtype)

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> list[Factorisation]:
        """Random factors, by the seed of each arm."""
        return list(map(self._started, configs, seeds))

    def _started(self, config: Config, seed: int) -> Factorisation:
        rank = whole_number("rank", config.get("rank"), 1, "the number of entries per user")
        deviation = setting(config, "sigma") / np.sqrt(rank)
        random = np.random.default_rng(seed)
        users, items = (
            (deviation * random.standard_normal((count, rank))).astype(self._dtype)
            for count in (self._users, self._items)
        )
        return Factorisation(setting(config, "lambda"), users, items)

    def train(self, batch: list[Factorisation], arms: Sequence[int], pulls: int) -> None:
        """Some pieces of the stream of ratings at a time, for one arm after another."""
        level = common_level(np.array([one.pulls for one in batch]), arms)
        begin, end = (count * self._per_pull for count in (level, level + pulls))
        users, items, ratings = self._parts["train"]
        stream = passes(self._seed, len(ratings), begin, end)
        while some := list(islice(stream, PIECES)):
            pieces = [
                (
                    KnownRatings(users[rows], items[rows], ratings[rows]),
                    2 * self._step * self._shrink**epoch,
                )
                for epoch, rows in some
            ]
            for one in (batch[arm] for arm in arms):
                penalty = Penalty(one.penalty, self._user_shares, self._item_shares)
                for known, doubled in pieces:
                    step_on_each(one.factors, known, penalty, doubled)
        for arm in arms:
            batch[arm].pulls += pulls

    def losses(self, batch: list[Factorisation], arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: list[Factorisation], arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: list[Factorisation], arms: Sequence[int], part: str) -> Array:
        known = self._parts[part]
        return np.array([mean_squared_error(batch[arm].factors, known) for arm in arms])

    def take(self, batch: list[Factorisation], arm: int) -> Factorisation:
        """A copy of the arm."""
        return deepcopy(batch[arm])

    def gather(self, ones: Sequence[Factorisation]) -> list[Factorisation]:
        """The arms, each with its own factors."""
        return list(ones)

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


def _ratings(name: str, given: ArrayLike, dtype: np.dtype[Any]) -> KnownRatings:
    rows = np.asarray(given, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
        problem = f"has shape {rows.shape}: it holds rows of user, item and rating"
        raise bad_table(name, given, problem, "Pass three columns and at least one row")
    numbers = rows[:, :2]
    if not ((numbers >= 0) & (numbers < MOST) & (numbers == np.floor(numbers))).all():
        problem = f"has users or items that are not whole numbers from 0 to {MOST - 1}"
        raise bad_table(name, given, problem, "Number them from 0")
    if not np.isfinite(rows[:, 2]).all():
        problem = "has ratings that are nan or inf: a rating is a finite number"
        raise bad_table(name, given, problem, "Leave out such rows")
    users, items = np.ascontiguousarray(numbers.T).astype(np.int64)
    return KnownRatings(users, items, np.ascontiguousarray(rows[:, 2], dtype))
