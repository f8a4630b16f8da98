"""Checks of what a caller gives: whole numbers, exact fractions, seconds and names.

An argument that is not valid is refused with what was given, the rule and what to do.
"""

from __future__ import annotations

import difflib
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, nan
from numbers import Real
from typing import Any

from lastarm.errors import BudgetTooSmall, InvalidArgument

MOST = 2**63 - 1
EXPONENT = re.compile(r"e[-+]?\d[\d_]{3}", re.IGNORECASE)  # of four digits or more


def whole_number(name: str, value: Any, least: int, meaning: str) -> int:
    """`value` as an int, if it is a whole number of at least `least` that fits into 64 bits.

    >>> whole_number("budget", 12, 1, "the total number of pulls over all arms")
    12
    >>> whole_number("budget", 1.5, 1, "the total number of pulls over all arms")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: budget=1.5 is not valid: budget is the total number of pulls
    over all arms. Use a whole number of at least 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= MOST:
        at_most = f" and at most {MOST}" if number > MOST else ""
        way_out = f"Use a whole number of at least {least}{at_most}"
        raise InvalidArgument.of(name, value, f"{name} is {meaning}", way_out)
    return number


def one_of(name: str, value: Any, names: Iterable[str], meaning: str) -> str:
    """`value`, if it is one of the `names`.

    >>> one_of("policy", "ahsa", ["asha", "uniform"], "what decides")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: policy='ahsa' is not valid: policy is what decides. Did you
    mean 'asha'? Use one of asha, uniform.
    """
    names = list(names)
    if isinstance(value, str) and value in names:
        return value
    way_out = f"{did_you_mean(value, names)}Use one of {', '.join(names)}"
    raise InvalidArgument.of(name, value, f"{name} is {meaning}", way_out)


def did_you_mean(value: Any, names: Iterable[str]) -> str:
    """A question about a name that is misspelled, to put before the way out; or nothing.

    >>> did_you_mean("proceses", ["serial", "processes"])
    "Did you mean 'processes'? "
    """
    close = difflib.get_close_matches(value if isinstance(value, str) else "", list(names), n=1)
    return f"Did you mean {close[0]!r}? " if close else ""


def time_limit(name: str, value: Any, meaning: str) -> float:
    """`value` as a number of seconds, without end if it is None.

    >>> time_limit("seconds", None, "how long to search")
    inf
    >>> time_limit("seconds", "3", "how long to search")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: seconds='3' is not valid: seconds is how long to search. Use a
    number greater than 0, or leave it out.
    """
    if value is None:
        return inf
    seconds = as_float(value)
    if not seconds > 0 or overflows(value):
        at_most = " and at most 1e308" if seconds > 0 else ""
        way_out = f"Use a number greater than 0{at_most}, or leave it out"
        raise InvalidArgument.of(name, value, f"{name} is {meaning}", way_out)
    return seconds


def real(value: Any) -> float | None:
    """`value` as a float, if it is one real number: ±inf if it is too large for a float.

    Decimal and Fraction are numbers, and so are NumPy scalars and arrays of no dimensions. A bool
    is not.

    >>> real(Fraction(1, 4)), real(10**400), real("3"), real(True)
    (0.25, inf, None, None)
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    number: Any = value  # a Real of no particular type
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf
    except ValueError:  # a signalling nan
        return nan


def as_float(value: Any) -> float:
    """`value` as a float, nan if it is not a real number: for checks that nan does not pass."""
    number = real(value)
    return nan if number is None else number


def overflows(value: Any) -> bool:
    """Whether a number is finite, but too large for a float.

    >>> overflows(10**400), overflows(inf), overflows(1e308)
    (True, False, False)
    """
    number = as_float(value)
    return isinf(number) and bool(value != number)


def require_budget(budget: int, arms: int, least_budget: Callable[[int], int]) -> None:
    """Refuse a budget below `least_budget(arms)`, naming the two ways out."""
    if budget < least_budget(arms):
        most_arms = bisect_right(range(1, arms), budget, key=least_budget)
        raise BudgetTooSmall(budget, arms, least_budget(arms), most_arms)


Number = int | float | str | Fraction


def rational(
    name: str, value: Number, least: int, meaning: str, *, more: bool = False
) -> Fraction:
    """`value` as an exact fraction, of at least `least`, or of `more` than that.

    It fits into 64 bits, and has an exponent that a floating-point number can have.

    >>> rational("eta", "3/2", 1, "the part of a rung that is kept, as 1/eta", more=True)
    Fraction(3, 2)

    A floating-point number is read as it is printed: 1.1 is 11/10.

    >>> rational("look_cost", 1.1, 0, "what a look costs, in pulls")
    Fraction(11, 10)
    >>> rational("eta", 1, 1, "the part of a rung that is kept, as 1/eta", more=True)
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: eta=1 is not valid: eta is the part of a rung that is kept, as
    1/eta. Use a number greater than 1, such as 2 or "3/2".
    """
    fraction = None
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        fraction = Fraction(value)
    # A fraction is exact: one with an exponent of nine digits would take all memory.
    elif not EXPONENT.search(spelled := str(value)):
        with suppress(ValueError, ZeroDivisionError):
            fraction = Fraction(spelled)
    if fraction is not None and fraction.denominator.bit_length() > 4096:  # it is written, too
        fraction = None
    too_large = fraction is not None and fraction > MOST
    if fraction is None or fraction < least or (more and fraction == least) or too_large:
        bound = f"{'greater than' if more else 'of at least'} {least}"
        bound += f" and at most {MOST}" if too_large else ""
        way_out = f'Use a number {bound}, such as 2 or "3/2"'
        raise InvalidArgument.of(name, value, f"{name} is {meaning}", way_out)
    return fraction


def plain_fraction(fraction: Fraction) -> int | str:
    """A fraction as JSON can hold it.

    >>> plain_fraction(Fraction(4, 2)), plain_fraction(Fraction(3, 2))
    (2, '3/2')
    """
    return fraction.numerator if fraction.denominator == 1 else str(fraction)
