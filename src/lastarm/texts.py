"""Texts for people: what a terminal, a page, a table or a label can show, and numbers in words.

Values become plain data in `lastarm.plain`.
"""

from __future__ import annotations

from typing import Any

LONGEST = 1_000  # characters of a text that is shown


def printable(text: str, keep: str = "") -> str:
    r"""A text without characters that control a terminal or a page, except those in `keep`.

    >>> printable("loss\x1b[31m\nof \u202earm 3", keep="\n")
    'loss�[31m\nof �arm 3'
    """
    return "".join(sign if sign.isprintable() or sign in keep else "�" for sign in text)


def short(value: Any) -> str:
    """A value in at most 24 printable characters, for a table or a label.

    >>> short(0.123456), short("a" * 30)
    ('0.1235', 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    return clean(f"{value:.4g}" if isinstance(value, float) else str(value), most=24)


def clean(text: str, most: int = LONGEST, keep: str = "") -> str:
    r"""A text of a journal that can be shown: printable, and of at most `most` characters.

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
    """A number of things, in words.

    >>> counted(1, "arm"), counted(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{number:,} {what}" + "s" * (number != 1)
