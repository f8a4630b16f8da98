"""Any value as plain data: the one place where values become numbers and JSON.

There is a form for each reader:

- `fingerprint`: a text for machines, the same in every process and on every machine, and different
  for values that differ; `code_fingerprint` is one of functions, by what they do;
- `described`: JSON for the header of a journal, which a person can read, and which is different
  for values that differ;
- `readable` and `readable_metrics`: JSON for people, of settings and of what trainers tell;
- `finite`: data without nan and ±inf, which JSON lacks; `renamed`: names that do not collide.

JSON has no nan and no ±inf. Where a number has to stay what it is, they are the texts "nan", "inf"
and "-inf" (`number`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import numbers
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument, MetricsTooLarge

MOST_ENTRIES = 1000  # of one list or dict in metrics: of a longer one, only its length is told
MOST_IN_ALL, MOST_LEVELS, MOST_BYTES = 10_000, 16, 2**20  # of metrics as a whole


def as_python(value: Any) -> Any:
    """A NumPy scalar as the Python value that it stands for; anything else as it is."""
    match value:
        case np.floating():
            return float(value)  # the item() of a long double is a long double
        case np.generic():
            return value.item()
    return value


# For machines ----------------------------------------------------------------------------------


def fingerprint(value: Any) -> str:
    """The sha256 of a value made of plain data, arrays, and functions or classes by their names.

    >>> fingerprint({"lr": 0.1, "layers": (1, 2)}) == fingerprint({"layers": [1, 2], "lr": 0.1})
    True
    """
    text = json.dumps(_canonical(value), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def identity(value: Any) -> Hashable:
    """What two values share if and only if they are the same option: 1, 1.0 and True are three.

    Things that only their address tells apart, such as lambdas, are the same if they are one.
    """
    if value is None or type(value) in (bool, int, float, str):
        return type(value), value
    try:
        return type(value), fingerprint(value)
    except InvalidArgument:
        return type(value), id(value)


def config_identity(config: Mapping[str, Any]) -> Hashable:
    """The same for whole configs, whatever the order of their names."""
    return frozenset((name, identity(value)) for name, value in config.items())


def _canonical(value: Any) -> Any:
    value = as_python(value)
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return ["float", value.hex()]  # JSON has no nan
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
    if "<" in getattr(value, "__qualname__", "<unnamed>"):
        raise InvalidArgument(
            f"{any_repr(value)} cannot be in the config of a search with a journal: a "
            f"{type(value).__name__} may be another one when the search is resumed. Use numbers, "
            "strings, lists, dicts, arrays, or functions and classes that have a name in a "
            "module.",
            argument="config",
            given=value,
        )
    return ["named", value.__module__, value.__qualname__]


def _text(value: Any) -> str:
    return json.dumps(_canonical(value))


# For people ------------------------------------------------------------------------------------


def described(value: Any) -> Any:
    """A value as JSON that a person can read, different for values that are different.

    >>> described((1, "relu", float("inf"), max))
    {'tuple': [1, 'relu', {'float': 'inf'}, {'named': 'builtins.max'}]}
    """
    value = as_python(value)
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if isfinite(value) else {"float": repr(value)}
    match value:
        case list():
            return [described(item) for item in value]
        case tuple():
            return {"tuple": [described(item) for item in value]}
        case Set():
            return {"set": sorted((described(item) for item in value), key=json.dumps)}
        case Mapping():
            pairs = ([described(key), described(item)] for key, item in value.items())
            return {"dict": sorted(pairs, key=json.dumps)}
        case np.ndarray() if value.dtype.hasobject:
            return {"array": described(value.tolist())}
        case np.ndarray():
            shape = list(value.shape)
            return {"array": str(value.dtype), "shape": shape, "sha256": fingerprint(value)}
    if "<" in getattr(value, "__qualname__", "<unnamed>"):
        return {"object": repr(value)}
    return {"named": f"{value.__module__}.{value.__qualname__}"}


def readable(value: Any) -> Any:
    """A setting in the data that JSON has, for people to read.

    >>> readable({"lr": np.float32(0.5), "layers": (8, 8), "rate": float("inf"), "act": max})
    {'lr': 0.5, 'layers': [8, 8], 'rate': 'inf', 'act': 'builtins.max'}
    """
    value = as_python(value)
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return number(value)
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
    return any_repr(value)


def readable_metrics(metrics: Mapping[Any, Any], arm: int | None = None) -> dict[str, Any]:
    """The metrics of an arm in the data that JSON has, whatever a trainer gave.

    Numbers of any kind are numbers. Of a list or dict with too many entries only the length is
    kept. No single metric is an error, but there are limits for all together: entries of lists and
    dicts, lists and dicts within each other, and bytes of JSON.

    >>> readable_metrics({"accuracy": Decimal("0.5"), "rows": list(range(9999)), 7: {1, 2}})
    {'accuracy': 0.5, 'rows': 'list of 9999', '7': '{1, 2}'}
    >>> readable_metrics({"text": "x" * 2**20}, arm=3)
    Traceback (most recent call last):
    lastarm.errors.MetricsTooLarge: the metrics of arm 3 have more than 1,048,576 bytes. This is
    the limit for all metrics beside one loss together. Return less, and write the rest to files.
    """
    tally, told = _Tally(), {}
    for name in metrics:
        told[_key(name)] = _metric(metrics[name], 1, tally)
        if tally.entries > MOST_IN_ALL:
            raise MetricsTooLarge(arm, "entries", MOST_IN_ALL)
        if tally.levels > MOST_LEVELS:
            raise MetricsTooLarge(arm, "levels", MOST_LEVELS)
    text = json.dumps(told, ensure_ascii=False) if told else ""
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise MetricsTooLarge(arm, "bytes", MOST_BYTES)
    return told


@dataclass
class _Tally:
    """What was found in metrics so far."""

    entries: int = 0
    levels: int = 0


def _metric(value: Any, level: int, tally: _Tally) -> Any:
    tally.entries += 1
    tally.levels = max(tally.levels, level)
    if tally.entries > MOST_IN_ALL or level > MOST_LEVELS:
        return None
    with suppress(Exception):
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()  # a NumPy scalar, or an array or tensor of no dimensions
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, numbers.Integral) and int(value).bit_length() < 64:
            return int(value)
        if isinstance(value, numbers.Real | Decimal):
            return number(as_float(value))
        if isinstance(value, Mapping | list | tuple):
            if len(value) > MOST_ENTRIES:
                return f"{type(value).__name__} of {len(value)}"
            if isinstance(value, Mapping):
                return {_key(name): _metric(value[name], level + 1, tally) for name in value}
            return [_metric(entry, level + 1, tally) for entry in value]
    return any_repr(value)


def _key(name: object) -> str:
    return name if isinstance(name, str) else any_repr(name)


def number(value: float) -> float | str:
    """A number as JSON can hold it: nan and ±inf are texts.

    >>> number(0.5), number(float("-inf"))
    (0.5, '-inf')
    """
    return value if isfinite(value) else str(value)


def finite(value: Any, rounded: Callable[[float], float] = float) -> Any:
    """Data with each number `rounded`, and None for nan and ±inf.

    >>> finite({"loss": float("nan"), "levels": (1, 2.5)})
    {'loss': None, 'levels': [1, 2.5]}
    """
    match value:
        case float():
            return rounded(value) if isfinite(value) else None
        case dict():
            return {name: finite(item, rounded) for name, item in value.items()}
        case list() | tuple():
            return [finite(item, rounded) for item in value]
    return value


def any_repr(value: object) -> str:
    """The beginning of the `repr` of any object, also of one that has none."""
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def renamed(prefix: str, values: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """The values by their names; one with a name that is taken has the prefix before it.

    >>> renamed("param", {"loss": 1, "param_loss": 2}, taken=["loss"])
    {'param_param_loss': 1, 'param_loss': 2}
    """
    row = {}
    for name, value in values.items():
        free = name
        while free in taken or (free != name and free in values):
            free = f"{prefix}_{free}"
        row[free] = value
    return row


# Functions, by what they do --------------------------------------------------------------------


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
            cells = [cell for cell in value.__closure__ or () if cell != CellType()]  # not empty
            kept = [cell.cell_contents for cell in cells]
            kept = [one for one in kept if not isinstance(one, list | dict | set)]  # may change
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
    held = [part for part in own.values() if callable(part)]  # it may hold a lambda
    if " at 0x" not in shown:
        return _as_text([shown, *inside(held)])
    # It is known by its class and by what it was made with. Other attributes may be memory.
    made = getattr(type(value).__init__, "__code__", None)
    asked = made.co_varnames[: made.co_argcount + made.co_kwonlyargcount] if made else ()
    given = [part for name, part in own.items() if name in asked]
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return [kind, *inside(held), *inside(given)] if given else _as_text([kind, *inside(held)])


def _as_text(parts: list[Any]) -> Any:
    return repr(parts) if all(isinstance(part, str) for part in parts) else parts
