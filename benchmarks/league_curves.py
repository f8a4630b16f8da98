"""Recorded curves for a league: draws of arms from them, searches on a draw, and their scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import inf, isfinite, sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lastarm import Policy, RecordedCurves
from lastarm.errors import InvalidArgument
from lastarm.events import Loss
from lastarm.policy import lowest

ARMS = 64
PERCENTS = (2, 5, 10, 20, 40)  # budgets, as shares of training all arms fully


class Table(NamedTuple):
    """A file of recorded curves."""

    name: str
    losses: NDArray[np.float64]  # [row, pulls - 1]

    @property
    def family(self) -> str:
        """What the file's name begins with: `lcbench` of `lcbench_surrogate_167190_phoneme`."""
        return self.name.partition("_")[0]

    @property
    def arms(self) -> int:
        """How many arms a draw has."""
        return min(ARMS, len(self.losses))


class Played(NamedTuple):
    """What a search came to: the rank of its arm, its looks, the share of the budget it spent."""

    rank: float
    looks: int
    spent: float


class Draw:
    """Arms drawn from the rows of a table, in an order of their own; a function of its number."""

    def __init__(self, table: Table, number: int) -> None:
        random = np.random.default_rng([crc32(table.name.encode()), number])
        rows = random.permutation(len(table.losses))[: table.arms]
        curves = table.losses[rows]
        self.number = number
        self.arms, self.columns = table.arms, len(curves[0])
        self.ranks = normalised_ranks(curves[:, -1])
        self._curves: list[list[float]] = curves.tolist()  # read one by one, lists are faster

    def budget(self, percent: int) -> int:
        """So much of training all arms fully."""
        return percent * self.arms * self.columns // 100

    def loss(self, arm: int, pulls: int) -> float:
        """The loss after these pulls; past the end of the curve it stays as it is."""
        return self._curves[arm][min(pulls, self.columns) - 1]

    def rank(self, arm: int | None) -> float:
        """The rank of a recommended arm; to recommend none is as bad as the worst."""
        return float(self.ranks.max() if arm is None else self.ranks[arm])


def tables(folder: Path) -> list[Table]:
    """The `.npz` files of a folder, by name."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InvalidArgument(
            f"there is no .npz file in {str(folder)!r}. Give a folder that holds tables "
            "`losses[arm, step]`."
        )
    found = [Table(file.stem, RecordedCurves.load(file).losses) for file in files]
    for table in found:
        rows, columns = table.losses.shape
        if rows < 2 or table.arms * columns * min(PERCENTS) < 100:
            raise InvalidArgument(
                f"{table.name} has {rows} rows of {columns} losses, too few: there must be arms "
                f"to choose from, and {min(PERCENTS)} % of all pulls must be one at least. Take "
                "the file away."
            )
    return found


def normalised_ranks(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks by final loss, 0 for the best to 1; ties share theirs, diverged arms come last."""
    ends = np.where(np.isfinite(ends), ends, inf)
    lower = (ends[:, None] > ends).sum(axis=1)
    equal = (ends[:, None] == ends).sum(axis=1) - 1
    ranks: NDArray[np.float64] = (lower + equal / 2) / (len(ends) - 1)
    return ranks


def play(policy: Policy, draw: Draw, budget: int) -> Played:
    """A policy with one worker, from beginning to end."""
    levels: dict[int, int] = {}
    looks = 0
    while pulls := policy.ask(1):
        pull = pulls[0]
        policy.tell(Loss(pull, draw.loss(pull.arm, pull.upto)))
        levels[pull.arm] = pull.upto
        looks += 1
    spent = sum(levels.values())
    assert spent <= budget, f"{policy} spent {spent} of {budget}"
    return Played(draw.rank(policy.recommendation), looks, spent / budget)


Looks = Iterator[tuple[int, int]]
"""One after the other: the arm that is looked at, and the pulls that it has had by then."""


def cut(run: Callable[[Draw], Looks], draw: Draw, budgets: list[int]) -> list[Played]:
    """What knows no budget, as it stands where each of them ends.

    It is stopped before the first step that no longer fits, so one run serves all budgets. The
    arm with the lowest latest loss is what it has found by then.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy and Optuna have some about losses that diverged
        looks = list(run(draw))
    return [_until(budget, looks, draw) for budget in budgets]


def _until(budget: int, looks: list[tuple[int, int]], draw: Draw) -> Played:
    levels: dict[int, int] = {}
    spent = count = 0
    for arm, level in looks:
        more = level - levels.get(arm, 0)
        if spent + more > budget:
            break
        spent, count = spent + more, count + 1
        levels[arm] = level
    latest = {arm: draw.loss(arm, level) for arm, level in levels.items()}
    found = lowest({arm: loss for arm, loss in latest.items() if isfinite(loss)})
    return Played(draw.rank(found), count, spent / budget)


def rungs(first: int, eta: int, last: int) -> Iterator[int]:
    """The levels first, first·eta, …, and the end of the curve."""
    level = first
    while level < last:
        yield level
        level *= eta
    yield last


RANK, LOOKS, SPENT = range(len(Played._fields))
NORMAL = 1.96  # standard errors on either side of a 95 % interval

Found = dict[str, list[NDArray[np.float64]]]
"""Contender → table by table, [draw, budget, what it came to]; some may have fewer draws."""


class Scores:
    """The outcome of all searches; `k` is which of the budgets."""

    def __init__(self, tables: list[Table], found: Found) -> None:
        self.tables, self.found = tables, found
        self.families = list(dict.fromkeys(table.family for table in tables))

    def mean(self, name: str, k: int, what: int = RANK, family: str | None = None) -> float:
        """Over the draws from each table, then over tables: all, or those of a family."""
        return fmean(
            draws[:, k, what].mean()
            for table, draws in zip(self.tables, self.found[name], strict=True)
            if family in (None, table.family)
        )

    def difference(
        self, name: str, other: str, k: int, family: str | None = None
    ) -> tuple[float, float]:
        """The rank of one less that of the other, on the same draws, and half its 95 % interval.

        The variance of the mean over tables is the sum of those of the tables' own means, by the
        square of their number: tables are strata, taken as they are.
        """
        means, variances = [], []
        cells = zip(self.tables, self.found[name], self.found[other], strict=True)
        for table, these, those in cells:
            if family not in (None, table.family):
                continue
            both = min(len(these), len(those))
            differences = these[:both, k, RANK] - those[:both, k, RANK]
            means.append(differences.mean())
            variances.append(differences.var(ddof=1) / both)
        return fmean(means), NORMAL * sqrt(sum(variances)) / len(means)

    def best(self, k: int, among: list[str]) -> str:
        """The contender with the lowest mean rank; the first of several."""
        return min(among, key=lambda name: self.mean(name, k))

    @property
    def frugal(self) -> list[str]:
        """Those that never looked more than 3n times, at any budget."""
        return [
            name
            for name, cells in self.found.items()
            if all(
                draws[:, :, LOOKS].max() <= 3 * table.arms
                for table, draws in zip(self.tables, cells, strict=True)
            )
        ]
