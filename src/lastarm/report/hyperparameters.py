"""The hyperparameters of a search: the domain of each, its scale, and its values arm by arm.

A journal describes the space that its configs were drawn from. The description is read here as
data, which may come from anywhere. What it does not say is taken from the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral
from typing import Any, NamedTuple

from lastarm.arguments import as_float
from lastarm.plain import readable
from lastarm.report.axes import HUGE, TINY
from lastarm.texts import clean

EXACT = 2**53  # whole numbers up to here are floats, too
WIDE = 1000  # numbers that lie further apart than this, as a ratio, are drawn on a log scale
MOST_OPTIONS = 24
MOST_SIGNS = 80  # of a text

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
    """A list of values: None, bools, numbers and texts."""

    choices: tuple[Any, ...]


def domains_of(
    space: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]
) -> dict[str, Interval | Options]:
    """The domain of every hyperparameter that some config has, by name.

    >>> space = {"lr": {"log-uniform": [0.001, 1.0]}, "act": {"choice": ["relu", "tanh"]}}
    >>> domains_of(space, [{"lr": 0.5, "act": "relu"}, {"lr": 2.0, "act": "selu"}])
    {'lr': Interval(low=0.001, high=2.0, log=True, whole=False),
     'act': Options(choices=('relu', 'tanh', 'selu'))}

    The domain holds all values, also those of included configs that lie outside of the space. A
    name with several domains, as in a conditional space, gets one domain that holds them all.
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
    """Whether the scale is logarithmic, for each name that is drawn from a known interval.

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
    """A value as an option: None, a bool, a number or a text stays; anything else becomes JSON.

    A whole number that is too large for a float becomes JSON too: Optuna would make it a float.
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


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter and its value for each arm that has one.

    Of `kind` "number" or "log", values are numbers; of kind "option" they are among `options`; of
    kind "text" they are too many to be drawn.
    """

    name: str
    kind: str
    values: Mapping[int, float | str]
    options: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, values: Mapping[int, float | str], log: bool | None) -> Parameter:
        """From its values; `log` is whether its scale is logarithmic, None if that is not known.

        >>> Parameter.of("lr", {0: 0.5, 1: 0.001}, log=True).kind
        'log'
        >>> Parameter.of("act", {0: "relu", 2: "None", 3: 1.0}, log=None).options
        ['1', 'None', 'relu']
        """
        numbers = [value for value in values.values() if not isinstance(value, str)]
        if len(numbers) == len(values):
            low, high = min(numbers), max(numbers)
            log = low > 0 and (high / low > WIDE if log is None else log)
            return cls(name, "log" if log else "number", values)
        texts = {a: v if isinstance(v, str) else f"{v:.6g}" for a, v in values.items()}
        options = sorted(set(texts.values()))
        if len(options) > MOST_OPTIONS:
            return cls(name, "text", texts)
        return cls(name, "option", texts, options)


def parameters(
    configs: Mapping[int, Mapping[str, float | str]], space: Mapping[str, Any]
) -> list[Parameter]:
    """All hyperparameters, in the order in which configs name them, with scales from the space."""
    values: dict[str, dict[int, float | str]] = {}
    for arm, config in configs.items():
        for name, value in config.items():
            values.setdefault(name, {})[arm] = value
    scales = scales_of(space)
    return [Parameter.of(name, of, scales.get(name)) for name, of in values.items()]


def flat(value: Any) -> float | str:
    """A value as a number that can be drawn, or else as text.

    >>> flat(3), flat(0.25), flat("relu"), flat(None), flat(True), flat([8, 8]), flat(5e-324)
    (3, 0.25, 'relu', 'None', 'True', '[8, 8]', '5e-324')
    """
    number = as_float(value)
    if number == 0 or TINY < abs(number) < HUGE:
        return int(value) if isinstance(value, Integral) and abs(number) < 2**53 else number
    return clean(str(readable(value)), MOST_SIGNS)
