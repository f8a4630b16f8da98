"""Integer logarithms, exact where floating point is not: `math.log(243, 3)` is 4.999…."""

from __future__ import annotations


def ceil_log(n: int, base: int) -> int:
    """⌈log n⌉ to an integer base: the least k for which base**k ≥ n.

    >>> [ceil_log(n, 2) for n in (1, 2, 3, 4, 1023, 1024, 1025)]
    [0, 1, 2, 2, 10, 10, 11]
    >>> ceil_log(243, 3), ceil_log(244, 3), ceil_log(1000, 10)
    (5, 6, 3)
    """
    k, power = 0, 1
    while power < n:
        k, power = k + 1, power * base
    return k


def floor_log(n: int, base: int) -> int:
    """⌊log n⌋ to an integer base: the greatest k for which base**k ≤ n.

    >>> floor_log(1, 3), floor_log(242, 3), floor_log(243, 3), floor_log(1000, 10)
    (0, 4, 5, 3)
    """
    return ceil_log(n + 1, base) - 1
