"""What a configuration is: in one string for machines, and in plain data for people.

The string is the same in every process and on every machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Set
from math import isfinite
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from lastarm.errors import InvalidArgument

LONGEST = 1_000  # characters of a text that is shown


def fingerprint(value: Any) -> str:
    """The sha256 of a value made of plain data, arrays, and functions or classes by their names.

    >>> fingerprint({"lr": 0.1, "layers": (1, 2)}) == fingerprint({"layers": [1, 2], "lr": 0.1})
    True
    """
    text = json.dumps(_canonical(value), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def readable(value: Any) -> Any:
    """A value in the data that JSON has, for people to read.

    >>> readable({"lr": np.float32(0.5), "layers": (8, 8), "rate": float("inf"), "act": max})
    {'lr': 0.5, 'layers': [8, 8], 'rate': 'inf', 'act': 'builtins.max'}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else str(value)
        case np.generic():
            return readable(value.item())
        case np.ndarray() if value.size <= 100:
            return readable(value.tolist())
        case Mapping():
            return {str(name): readable(item) for name, item in value.items()}
        case list() | tuple():
            return [readable(item) for item in value]
        case Set():
            return sorted((readable(item) for item in value), key=str)  # the same in every process
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__}"


def printable(text: str, keep: str = "") -> str:
    r"""A text without signs that do something to a terminal or a page, but for some to `keep`.

    >>> printable("loss\x1b[31m\nof \u202earm 3", keep="\n")
    'loss�[31m\nof �arm 3'
    """
    return "".join(sign if sign.isprintable() or sign in keep else "�" for sign in text)


def short(value: Any) -> str:
    """A value in at most 24 printable signs, for a table or a label.

    >>> short(0.123456), short("a" * 30)
    ('0.1235', 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    shown = printable(f"{value:.4g}" if isinstance(value, float) else str(value))
    return shown if len(shown) <= 24 else f"{shown[:23]}…"


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


def _canonical(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return ["float", value.hex()]  # json has no nan
        case np.generic():
            return _canonical(value.item())
        case np.ndarray() if value.dtype.hasobject:
            return ["array", list(value.shape), _canonical(value.ravel().tolist())]
        case np.ndarray():
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return ["array", value.dtype.str, list(value.shape), content]
        case Mapping():
            return ["map", sorted([_text(key), _canonical(item)] for key, item in value.items())]
        case Set():
            return ["set", sorted(_text(item) for item in value)]
        case list() | tuple():
            return ["list", *(_canonical(item) for item in value)]
    name = getattr(value, "__qualname__", "<unnamed>")
    if "<" in name:  # a lambda or a local function may be another one next time
        raise InvalidArgument(
            f"{value!r} will not do in the config of a search with a journal: nobody can tell "
            f"whether a {type(value).__name__} is the same next time. Use numbers, strings, "
            "lists, dicts, arrays, or functions and classes by their names."
        )
    return ["named", value.__module__, name]


def _text(value: Any) -> str:
    return json.dumps(_canonical(value))


CODE = "(its code, Python "


def code_fingerprint(role: str, value: Any) -> dict[str, str]:
    """A fingerprint by what functions do, where their names do not tell them apart.

    That is the case for lambdas, local functions, partials and methods, also inside of other
    objects. Functions and classes with a name of their own are known by it, and add nothing.

    >>> code_fingerprint("scoring", max)
    {}
    >>> one, other = (code_fingerprint("scoring", lambda x, k=k: x + k) for k in (1, 2))
    >>> one.keys() == other.keys(), one == other
    (True, False)

    It is made from the bytecode, which each version of Python writes differently. So the name of
    the entry holds the version. An entry with `CODE` in its name is compared only if both
    fingerprints have it.
    """
    code = _by_code(value, ())
    if isinstance(code, str):
        return {}
    return {f"{role} {CODE}{sys.version_info[0]}.{sys.version_info[1]})": fingerprint(code)}


def _by_code(value: Any, around: tuple[int, ...]) -> Any:
    """What `value` is, in lists and texts; a text alone if its name or its repr says it all."""
    if id(value) in around or len(around) > 30:
        return "(inside itself)"

    def inside(parts: Iterable[Any]) -> list[Any]:
        return [_by_code(part, (*around, id(value))) for part in parts]

    match value:
        case CodeType():
            return [value.co_code.hex(), *value.co_names, inside(value.co_consts)]
        case functools.partial():
            return ["partial", *inside((value.func, value.args, value.keywords))]
        case MethodType():
            return ["method", value.__name__, *inside([value.__self__])]
        case FunctionType() if "<" in value.__qualname__:
            kept = [_content(cell) for cell in value.__closure__ or ()]
            parts = (value.__code__, value.__defaults__, value.__kwdefaults__, kept)
            return [value.__module__, value.__qualname__, *inside(parts)]
        case np.ndarray() if not value.dtype.hasobject:
            return fingerprint(value)
        case list() | tuple():
            return _as_text(inside(value))
        case Mapping():
            return _as_text([*map(str, value), *inside(value.values())])
        case Set():
            return repr(sorted(map(repr, value)))
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    shown, own = repr(value), getattr(value, "__dict__", {})
    if " at 0x" not in shown:  # but it may hold a lambda
        return _as_text([shown, *inside(part for part in own.values() if callable(part))])
    return [f"{type(value).__module__}.{type(value).__qualname__}", *own, *inside(own.values())]


def _as_text(parts: list[Any]) -> Any:
    return repr(parts) if all(isinstance(part, str) for part in parts) else parts


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet: it is set later
        return None
