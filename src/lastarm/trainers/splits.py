"""TRAIN, VAL and TEST: the rows that arms learn from, are judged by, and are tested on at last.

As in the paper's §5: a tenth of the rows is TEST, and a fifth of the rest is VAL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument

Rows = NDArray[np.intp]
Stratify = Literal["auto"] | bool


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of each part: their numbers, counted from 0, or a mask.

    - `train`: the rows that arms learn from.
    - `validation`: the rows that arms are judged by.
    - `test`: the rows that the recommended arm is tested on. There may be none.

    >>> Split(train=[0, 1, 2], validation=[3, 4]).test.size
    0
    >>> Split(train=[0, 1, 2], validation=[2, 3])
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: validation=[2, 3] is not valid: row 2 is also in train, but an
    arm is not judged by rows that it learnt from. Put each row into one part.
    """

    train: Rows
    validation: Rows
    test: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __init__(self, train: ArrayLike, validation: ArrayLike, test: ArrayLike = ()) -> None:
        parts = {"train": train, "validation": validation, "test": test}
        for name, given in parts.items():
            rows = _rows(name, given)
            object.__setattr__(self, name, rows)
            if not rows.size and name != "test":
                rule = "it has no rows, and only test may be empty"
                raise InvalidArgument.of(name, given, rule, "Put some rows into it")
        for one, other in combinations(parts, 2):
            rows = getattr(self, one)
            shared = rows[np.isin(rows, getattr(self, other))]
            if shared.size:
                rule = f"row {shared.min()} is also in {one}, but an arm is not judged by rows "
                rule += "that it learnt from"
                raise InvalidArgument.of(other, parts[other], rule, "Put each row into one part")

    def __iter__(self) -> Iterator[Rows]:
        return iter((self.train, self.validation, self.test))

    def within(self, n: int) -> Split:
        """The same split, if there are `n` rows and it names no others."""
        last = max(int(rows.max(initial=-1)) for rows in self)
        if last >= n:
            rule = f"it names row {last}, but there are {n} rows, numbered from 0"
            raise InvalidArgument.of("split", last, rule, "Use only rows that there are")
        return self


def split(
    y: ArrayLike | int,
    seed: int = 0,
    *,
    test: float = 0.1,
    validation: float = 0.2,
    stratify: Stratify = "auto",
    groups: ArrayLike | None = None,
) -> Split:
    """One split of the rows into TRAIN, VAL and TEST.

    - `y`: the labels, or just the number of rows.
    - `seed`: decides which rows are in which part.
    - `test`: the share of all rows that is TEST; 0 if you keep test rows of your own.
    - `validation`: the share of the rest that is VAL.
    - `stratify`: whether all parts have the classes in proportion. "auto" means yes if there are
      at least three rows of each class, so not for real-valued targets, and not with groups.
    - `groups`: a label for each row. Rows with one label are in one part, and the sizes of the
      parts are as near to the shares as whole groups allow.

    >>> parts = split(["yes"] * 30 + ["no"] * 20)
    >>> [rows.size for rows in parts], [int((rows < 30).sum()) for rows in parts]
    ([36, 9, 5], [22, 5, 3])
    """
    labels, n = _labels(y)
    n_test = _size("test", test, n) if test else 0
    n_validation = _size("validation", validation, n - n_test)
    if groups is not None:
        units = _Groups(groups, n, stratify)
        return units.split(seed, n_test, n_validation)
    order = mixed(labels if _stratified(labels, stratify, 3) else None, n, seed)
    return Split(order[n_test + n_validation :], order[n_test:][:n_validation], order[:n_test])


def folds(
    y: ArrayLike | int,
    k: int,
    seed: int = 0,
    *,
    test: float = 0.1,
    stratify: Stratify = "auto",
    groups: ArrayLike | None = None,
) -> tuple[Split, ...]:
    """k splits with one TEST. Each of the other rows is in VAL once, and in TRAIN k − 1 times.

    - `y`: the labels, or just the number of rows.
    - `k`: the number of folds.
    - `seed`: decides which rows are in which part.
    - `test`: the share of all rows that is TEST; 0 if you keep test rows of your own.
    - `stratify`: whether all folds have the classes in proportion. "auto" means yes if there are
      at least k rows of each class, and not with groups.
    - `groups`: a label for each row. Rows with one label are in one fold.

    >>> [[part.tolist() for part in fold] for fold in folds(5, k=2, seed=1, test=0.2)]
    [[[1, 3], [0, 2], [4]], [[0, 2], [1, 3], [4]]]
    """
    k = whole_number("k", k, 2, "the number of folds")
    labels, n = _labels(y)
    n_test = _size("test", test, n) if test else 0
    if n - n_test < k:
        rule = f"each fold has at least one row, and there are {n - n_test}"
        way_out = f"Use more rows than n_samples={n}, or fewer folds"
        raise InvalidArgument.of("k", k, rule, way_out)
    if groups is not None:
        return _Groups(groups, n, stratify).folds(k, seed, n_test)
    in_proportion = _stratified(labels, stratify, k)
    order = mixed(labels if in_proportion else None, n, seed)
    rest = order[n_test:]
    dealt = rest
    if labels is not None and in_proportion:  # class by class, so that each fold gets its part
        dealt = rest[np.argsort(np.unique(labels, return_inverse=True)[1][rest], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[dealt] = np.arange(len(dealt)) % k
    fold = fold[rest]
    return tuple(Split(rest[fold != i], rest[fold == i], order[:n_test]) for i in range(k))


class _Groups:
    """Rows that stay together, because they have one label."""

    def __init__(self, groups: ArrayLike, n: int, stratify: Stratify) -> None:
        if stratify is True:
            rule, way_out = "groups are kept whole, whatever their classes", "Use only one of them"
            raise InvalidArgument.of("stratify", stratify, rule, way_out)
        labels = np.asarray(groups)
        if labels.shape != (n,):
            rule = f"it has the shape {labels.shape}, and there are {n} rows"
            raise InvalidArgument.of("groups", groups, rule, "Use one label for each row")
        self._given = groups
        _, self._of_row, self._sizes = np.unique(labels, return_inverse=True, return_counts=True)

    def split(self, seed: int, n_test: int, n_validation: int) -> Split:
        """TEST and VAL take whole groups, in an order by the seed; the rest is TRAIN."""
        order = self._order(seed, least=2 + bool(n_test))
        test = self._taken(order, n_test, leave=2)
        rest = order[len(test) :]
        validation = self._taken(rest, n_validation, leave=1)
        return Split(self._rows(rest[len(validation) :]), self._rows(validation), self._rows(test))

    def folds(self, k: int, seed: int, n_test: int) -> tuple[Split, ...]:
        """The largest group goes to the fold with the fewest rows, and so on."""
        order = self._order(seed, least=k + bool(n_test))
        test = self._taken(order, n_test, leave=k)
        rest = order[len(test) :]
        dealt: list[list[int]] = [[] for _ in range(k)]
        filled = [0] * k
        for group in sorted(rest, key=lambda group: -self._sizes[group]):
            fold = filled.index(min(filled))
            dealt[fold].append(group)
            filled[fold] += int(self._sizes[group])
        unseen = self._rows(test)
        return tuple(
            Split(
                self._rows([group for group in rest if group not in judged]),
                self._rows(judged),
                unseen,
            )
            for judged in dealt
        )

    def _order(self, seed: int, least: int) -> list[int]:
        if len(self._sizes) < least:
            rule = f"there are {len(self._sizes)} groups, and {least} parts need one each"
            way_out = "Use more groups, or fewer parts"
            raise InvalidArgument.of("groups", self._given, rule, way_out)
        mixed: list[int] = np.random.default_rng(seed).permutation(len(self._sizes)).tolist()
        return mixed

    def _taken(self, order: list[int], rows: int, leave: int) -> list[int]:
        """The first groups whose rows together come nearest to a number; some must be left."""
        if rows == 0:
            return []
        sums = np.cumsum(self._sizes[order[: len(order) - leave]])
        return order[: 1 + int(np.argmin(np.abs(sums - rows)))]

    def _rows(self, groups: list[int]) -> Rows:
        return np.flatnonzero(np.isin(self._of_row, groups))


def mixed(labels: NDArray[Any] | None, n: int, seed: int) -> Rows:
    """All rows, shuffled; with labels so that any first m of them have the classes in proportion.

    The i-th row of a class of c comes at (i + ½) / c: Webster's method of giving seats to parties.
    """
    order = np.random.default_rng(seed).permutation(n)
    if labels is None:
        return order
    _, classes, sizes = np.unique(labels[order], return_inverse=True, return_counts=True)
    place = np.empty(n)
    for c, size in enumerate(sizes):
        place[classes == c] = (np.arange(size) + 0.5) / size
    return order[np.argsort(place, kind="stable")]


def _stratified(labels: NDArray[Any] | None, stratify: Stratify, least: int) -> bool:
    if labels is None or labels.ndim != 1:
        if stratify is True:
            rule = "it needs one label for each row"
            raise InvalidArgument.of("stratify", stratify, rule, "Pass the labels as y")
        return False
    if stratify == "auto":
        whole = labels.dtype.kind != "f" or bool(np.all(labels == np.round(labels)))
        return whole and int(np.unique(labels, return_counts=True)[1].min()) >= least
    return stratify


def _labels(y: ArrayLike | int) -> tuple[NDArray[Any] | None, int]:
    if np.ndim(y) == 0:
        return None, whole_number("y", y, 1, "the labels, or the number of rows")
    labels = np.asarray(y)
    missing = [
        (isinstance(value, float) and isnan(value))
        or type(value).__name__ in {"NoneType", "NAType", "NaTType"}
        for value in (labels.flat if labels.dtype.kind in "Of" else ())
    ]
    if any(missing):
        row = missing.index(True) // (labels.size // len(labels))
        rule = f"the target of row {row} is missing, and a model cannot be judged by it"
        raise InvalidArgument.of("y", labels[row], rule, "Leave such rows out")
    return labels, len(labels)


def _size(name: str, fraction: float, n: int) -> int:
    if not 0 < fraction < 1:
        rule, way_out = "it is a share of the rows", "Use a number between 0 and 1"
        raise InvalidArgument.of(name, fraction, rule, way_out)
    size = max(1, round(fraction * n))
    if size >= n:
        rule = f"no row of {n} is left for the rest"
        raise InvalidArgument.of(name, fraction, rule, f"Use more rows than n_samples={n}")
    return size


def _rows(name: str, given: ArrayLike) -> Rows:
    rows = np.asarray(given)
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu") or rows.min(initial=0) < 0:
        rule = f"it is an array of {rows.dtype} with the shape {rows.shape}"
        way_out = "Use a list of row numbers, counted from 0, or a mask"
        raise InvalidArgument.of(name, given, rule, way_out)
    return rows.astype(np.intp)
