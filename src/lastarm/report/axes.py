"""How numbers are drawn: on which scale, from where to where, and how many of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite, log
from typing import Any, TypeVar

Item = TypeVar("Item")
HUGE = 1e300  # beyond it, differences and ratios can no longer be computed
TINY = 1e-290  # below it, a chart finds no place for a tick between two numbers: it is drawn as 0


def axis(
    numbers: Sequence[float], wide: float | None = 20, all_in: bool = False
) -> dict[str, Any]:
    """A scale on which numbers can be told apart, and how many of them lie outside.

    It is logarithmic if all numbers are positive and some are `wide` times as large as others; if
    that is None, it never is. A few that are much larger than most, as losses of diverging arms
    are, lie outside the scale, unless `all_in`.

    >>> axis([1, 2, 3])
    {'log': False, 'domain': [0.9, 3.1], 'outside': 0}
    >>> axis([0.5, 0.6, 0.7] * 9 + [1e9])["outside"]
    1
    """
    drawn = [n if abs(n) > TINY else 0.0 for n in numbers if isfinite(n)]
    finite = sorted(min(max(n, -HUGE), HUGE) for n in drawn)
    if not finite:
        return {"log": False, "domain": [0.0, 1.0], "outside": 0}
    is_log = wide is not None and finite[0] > 0 and finite[-1] / finite[0] >= wide
    scaled = [log(number) if is_log else float(number) for number in finite]
    low, high, most = scaled[0], scaled[-1], scaled[(len(scaled) - 1) * 9 // 10]
    if not all_in and high - most > 2 * (most - low) > 0:
        high = most + (most - low) / 2
    outside = sum(number > high for number in scaled)
    pad = max((high - low) / 20, abs(high) / 1e6) if high > low else abs(high) / 10 or 1.0
    low, high = low - pad, high + pad
    if is_log:
        low, high = exp(low), exp(min(high, log(HUGE) + 1))
        low = low if low > TINY else finite[0]  # where 0 has no place
    return {"log": is_log, "domain": [low, high], "outside": outside}


def thinned(items: Sequence[Item], most: int) -> Sequence[Item]:
    """At most `most` of them, evenly chosen, with the first and the last.

    >>> thinned("abcdefg", most=3)
    ['a', 'd', 'g']
    """
    if len(items) <= most:
        return items
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]
