"""Every other estimator: it is fitted anew at each level, to more of the rows.

A pull is 1 % of the rows of TRAIN. The rows of a level contain those of the levels below, level
100 has all of them, and a Pipeline is fitted as a whole, with its transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.trainers.estimators.family import Family, Lesson, NotStopping, Randomness, never
from lastarm.trainers.splits import Rows, mixed

ALL = 100  # the level that has all rows


def _fit(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """One `fit`, to the rows of a level."""
    random.of(0)
    targets = () if lesson.y is None else (lesson.y,)
    model.fit(lesson.X, *targets, **lesson.params)


ROWS = Family(
    lambda estimator: hasattr(estimator, "fit"),
    _fit,
    counted=(),
    not_stopping=lambda _, params: NotStopping({}, params),
    boosts=never,  # its trees are as many at every level
    restarts=lambda _: True,
)


class Nested:
    """The rows of each level: their places in TRAIN, in the order of TRAIN.

    - `n`: how many rows TRAIN has.
    - `labels`: their classes, None if they are not stratified.
    - `groups`: a label for each of them; rows with one label are added together.
    - `seed`: decides the order in which rows are added.

    Any first rows have the classes in proportion, but the first row of each class comes before all
    others, and every level has these. So a level of few rows may have more than its share.

    >>> nested = Nested(300, labels=np.arange(300) // 297, groups=None, seed=0)
    >>> [nested.upto(level).size for level in (1, 2, 50, 100)], bool(nested.upto(1).max() >= 297)
    ([3, 6, 150, 300], True)

    Groups are added whole, until there are enough rows, and first those that bring a new class.
    """

    def __init__(
        self, n: int, *, labels: NDArray[Any] | None, groups: NDArray[Any] | None, seed: int
    ) -> None:
        unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        order = mixed(labels if groups is None else None, int(unit.max()) + 1, seed)
        first: list[int] = []  # the units that bring a new class
        if labels is not None:
            classes = np.unique(labels, return_inverse=True)[1]
            by_place = np.argsort(_places(order)[unit], kind="stable")
            seen: set[int] = set()
            for row in by_place[np.sort(np.unique(classes[by_place], return_index=True)[1])]:
                if classes[row] not in seen:
                    first.append(int(unit[row]))
                    seen.update(classes[unit == unit[row]].tolist())
        order = np.array([*first, *order[~np.isin(order, first)]], np.intp)
        self._place = _places(order)[unit]  # of the unit of each row
        self._ends = np.cumsum(np.bincount(unit)[order])  # how many rows there are after each
        self._least = int(self._ends[len(first) - 1]) if first else 1

    def count(self, level: int) -> int:
        """How many rows a level has."""
        share = -(-min(level, ALL) * len(self._place) // ALL)
        return int(self._ends[np.searchsorted(self._ends, max(share, self._least))])

    def upto(self, level: int) -> Rows:
        """The rows of a level."""
        units = int(np.searchsorted(self._ends, self.count(level))) + 1
        return np.flatnonzero(self._place < units)


def _places(order: NDArray[np.intp]) -> NDArray[np.intp]:
    """At which place of the order each number stands."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
