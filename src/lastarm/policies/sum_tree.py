"""Weights from which to draw, when one of them changes after every draw."""

from __future__ import annotations

from collections.abc import Sequence


class SumTree:
    """Weights in a binary tree, each of whose nodes has the sum of the two below it.

    >>> weights = SumTree([1.0, 2.0, 4.0])
    >>> weights.total, [weights.at(point) for point in (0.5, 1.0, 2.9, 3.0, 7.0)]
    (7.0, [0, 1, 1, 2, 2])
    >>> weights[1] = 0.0
    >>> weights.total, weights.at(1.0)
    (5.0, 2)
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self._count = len(weights)
        self._first = 1 << (self._count - 1).bit_length()  # the leaves begin here
        self._sums = [0.0] * self._first + [*weights] + [0.0] * (self._first - self._count)
        for node in reversed(range(1, self._first)):
            self._sums[node] = self._sums[2 * node] + self._sums[2 * node + 1]

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._sums[1]

    def __getitem__(self, i: int) -> float:
        return self._sums[self._first + i]

    def __setitem__(self, i: int, weight: float) -> None:
        sums, node = self._sums, self._first + i
        sums[node] = weight
        while node > 1:  # added anew from below, so that no error of rounding is kept
            node //= 2
            sums[node] = sums[2 * node] + sums[2 * node + 1]

    def at(self, point: float) -> int:
        """The first i such that the weights up to and with it are more than `point`."""
        sums, node = self._sums, 1
        while node < self._first:
            node *= 2
            if point >= sums[node] and sums[node + 1]:  # rounding must not lead to a weight of 0
                point -= sums[node]
                node += 1
        return node - self._first

    def divided(self, by: float) -> SumTree:
        """The same shares of another total."""
        leaves = self._sums[self._first : self._first + self._count]
        return SumTree([weight / by for weight in leaves])
