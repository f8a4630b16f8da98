"""What the draws of a league say: means, intervals of paired differences, and who is best."""

from __future__ import annotations

from math import sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from league_curves import Played, Table

RANK, LOOKS, SPENT = range(len(Played._fields))
NORMAL = 1.96  # so many standard errors to either side make 95 %

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

    def difference(self, name: str, other: str, k: int) -> tuple[float, float]:
        """The rank of one less that of the other, on the same draws, and half its 95 % interval.

        The variance of the mean over tables is the sum of those of the tables' own means, by the
        square of their number: tables are strata, taken as they are.
        """
        means, variances = [], []
        for these, those in zip(self.found[name], self.found[other], strict=True):
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
