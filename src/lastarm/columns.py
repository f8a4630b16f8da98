"""Columns: a number for each arm, in an array, because there may be a million arms.

A dict takes 40 to 100 bytes for an arm, a column 8, and reading it takes no longer.
"""

from __future__ import annotations

from array import array
from typing import TypeVar

T = TypeVar("T", int, float)


def reserve(column: array[T], arm: int, nothing: T) -> None:
    """Make `column[arm]` be there. What is new in the column is `nothing`.

    >>> levels = array("q")
    >>> reserve(levels, 2, nothing=0)
    >>> levels[2]
    0

    It grows by an eighth at least, so that many arms which come one by one take little time.
    """
    missing = arm + 1 - len(column)
    if missing > 0:
        more = max(missing, len(column) // 8)
        column.extend(array(column.typecode, [nothing]) * more)
