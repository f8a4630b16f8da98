"""What each hyperparameter may be: its scale, and one domain for all arms of a search.

A journal describes the space that its configs were drawn from. That is read here as data, which
may be anybody's; what it does not tell, the values do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from lastarm.arguments import as_float
from lastarm.plain import readable

EXACT = 2**53  # whole numbers up to here are floats, too

_PARAMETERS = {  # of scipy's distributions, in the order in which they are given
    "uniform": ("loc", "scale"),
    "loguniform": ("a", "b", "loc", "scale"),
    "reciprocal": ("a", "b", "loc", "scale"),
    "randint": ("low", "high", "loc"),
}


class Interval(NamedTuple):
    """Numbers from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False


class Options(NamedTuple):
    """So many values: None, bools, numbers and texts."""

    choices: tuple[Any, ...]


def domains_of(
    space: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]
) -> dict[str, Interval | Options]:
    """The domain of every hyperparameter that some config has, by name.

    >>> space = {"lr": {"log-uniform": [0.001, 1.0]}, "act": {"choice": ["relu", "tanh"]}}
    >>> domains_of(space, [{"lr": 0.5, "act": "relu"}, {"lr": 2.0, "act": "selu"}])
    {'lr': Interval(low=0.001, high=2.0, log=True, whole=False),
     'act': Options(choices=('relu', 'tanh', 'selu'))}

    All values are in it, also those of configs that were included and lie outside of the space. A
    name with several domains, as a conditional space may have, gets one that holds them all.
    """
    parts = _parts(space)
    names = dict.fromkeys(name for config in configs for name in config)
    return {
        name: _domain(
            [part[name] for part in parts if isinstance(part.get(name), Mapping)],
            [config[name] for config in configs if name in config],
        )
        for name in names
    }


def scales_of(space: Mapping[str, Any]) -> dict[str, bool]:
    """Name and whether its scale is a log one, of what is drawn from an interval that is known.

    >>> scales_of({"lr": {"log-uniform": [0.001, 1.0]}, "act": {"choice": ["relu", "tanh"]}})
    {'lr': True}
    """
    return {
        name: interval.log
        for part in _parts(space)
        for name, description in part.items()
        if isinstance(description, Mapping) and (interval := _interval(description))
    }


def as_option(value: Any) -> Any:
    """A value as an option: None, a bool, a number or a text stays; anything else is its JSON.

    So is a whole number that is too large for a float, which Optuna would make of it.
    """
    value = readable(value)
    too_large = isinstance(value, int) and not isfinite(as_float(int(value)))
    return json.dumps(value) if isinstance(value, dict | list) or too_large else value


def _parts(space: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The mappings of a space, of which each arm has drawn one."""
    match space:
        case {"any of": [*parts]}:
            return [part for part in parts if isinstance(part, Mapping)]
        case {"grid": [Mapping() as inner], "samples": _}:
            return _parts(inner)
    return [space]


def _domain(
    descriptions: Sequence[Mapping[str, Any]], values: Sequence[Any]
) -> Interval | Options:
    numbers = [as_float(value) for value in values]
    continuous = any(not {"choice", "constant"} & {*description} for description in descriptions)
    if (continuous or not descriptions) and all(map(isfinite, numbers)):
        known = [interval for d in descriptions if (interval := _interval(d))]
        ends = [end for interval in known for end in interval[:2] if isfinite(end)]
        low, high = min([*numbers, *ends]), max([*numbers, *ends])
        whole = all(interval.whole for interval in known) and -EXACT < low <= high < EXACT
        return Interval(
            low,
            high,
            log=low > 0 and bool(known) and all(interval.log for interval in known),
            whole=whole and all(isinstance(readable(value), int) for value in values),
        )
    given = [
        option
        for description in descriptions
        for options in (description.get("choice"), [description.get("constant", {})])
        if isinstance(options, list)
        for option in options
        if not isinstance(option, dict | list)  # those that were drawn are among the values
    ]
    options = [as_option(option) for option in [*given, *values]]
    distinct = {(type(option), option): option for option in options}
    return Options(tuple(distinct.values()))


def _interval(description: Mapping[str, Any]) -> Interval | None:
    match description:
        case {"uniform": [low, high]}:
            return Interval(as_float(low), as_float(high))
        case {"log-uniform": [low, high]}:
            return Interval(as_float(low), as_float(high), log=True)
        case {"integer": [low, high]}:
            log = bool(description.get("log"))
            return Interval(as_float(low), as_float(high), log=log, whole=True)
        case {"distribution": str(name), "args": [*args], "kwds": Mapping() as kwds}:
            given = dict(zip(_PARAMETERS.get(name, ()), args, strict=False)) | {**kwds}
            of = {parameter: as_float(value) for parameter, value in given.items()}
            loc, scale = of.get("loc", 0.0), of.get("scale", 1.0)
            match name, of:
                case "uniform", _:
                    return Interval(loc, loc + scale)
                case (("loguniform" | "reciprocal"), {"a": a, "b": b}):
                    return Interval(loc + a * scale, loc + b * scale, log=loc == 0)
                case "randint", {"low": low, "high": high}:
                    return Interval(loc + low, loc + high - 1, whole=True)
    return None
