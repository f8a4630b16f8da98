"""Exact fractions as arguments: 3/2 is no floating-point number, and a journal has to hold it."""

from __future__ import annotations

from fractions import Fraction

from lastarm.errors import InvalidArgument

Number = int | float | str | Fraction


def rational(
    name: str, value: Number, least: int, meaning: str, *, more: bool = False
) -> Fraction:
    """`value` as an exact fraction, of at least `least`, or of `more` than that.

    >>> rational("eta", "3/2", 1, "the part of a rung that is kept, as 1/eta", more=True)
    Fraction(3, 2)

    A floating-point number is read as it is printed: 1.1 is 11/10.

    >>> rational("look_cost", 1.1, 0, "what a look costs, in pulls")
    Fraction(11, 10)
    >>> rational("eta", 1, 1, "the part of a rung that is kept, as 1/eta", more=True)
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: eta=1 will not do: eta is the part of a rung that is kept, as
    1/eta. Give a number of more than 1, such as 2 or "3/2".
    """
    try:
        fraction = None if isinstance(value, bool) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        fraction = None
    if fraction is None or fraction < least or (more and fraction == least):
        bound = f"of {'more than' if more else 'at least'} {least}"
        raise InvalidArgument(
            f"{name}={value!r} will not do: {name} is {meaning}. Give a number {bound}, such as 2 "
            'or "3/2".'
        )
    return fraction


def plain(fraction: Fraction) -> int | str:
    """A fraction as JSON can hold it.

    >>> plain(Fraction(4, 2)), plain(Fraction(3, 2))
    (2, '3/2')
    """
    return fraction.numerator if fraction.denominator == 1 else str(fraction)
