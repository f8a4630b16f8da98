"""Numbers, times and texts as people read them."""

from __future__ import annotations

from lastarm.plain import printable

MOST_SIGNS = 1_000


def clean(text: str, most: int = MOST_SIGNS, keep: str = "") -> str:
    r"""A text of the journal that can be shown: printable, and not without end.

    >>> clean("an arm\nof " + 9 * "9", most=12)
    'an arm�of 9…'
    """
    shown = printable(text[: most + 1], keep)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def apart(*numbers: float) -> list[str]:
    """Numbers with six digits, as losses have everywhere, or with as many as tell them apart.

    >>> apart(0.25, 1 / 3), apart(0.1000001, 0.1000002), apart(0.5, 0.5)
    (['0.25', '0.333333'], ['0.1000001', '0.1000002'], ['0.5', '0.5'])
    """
    shown = [f"{number:.6g}" for number in numbers]
    for digits in range(7, 18):
        if len(set(shown)) == len(set(numbers)):
            break
        shown = [f"{number:.{digits}g}" for number in numbers]
    return shown


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(0.0421), duration(95), duration(7500)
    ('0.042 s', '1 min 35 s', '2 h 5 min')
    """
    if not seconds >= 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "arm"), counted(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{number:,} {what}" + "s" * (number != 1)
