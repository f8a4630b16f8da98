"""Hyperparameters as they can be drawn: their kind, their scale, and their values arm by arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from lastarm.arguments import as_float
from lastarm.plain import readable
from lastarm.report.domains import scales_of
from lastarm.report.page.axes import HUGE, TINY
from lastarm.report.phrases import clean

WIDE = 1000  # numbers that lie further apart than this, as a ratio, are drawn on a log scale
MOST_OPTIONS = 24
MOST_SIGNS = 80


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
        """From its values; `log` is whether its scale is a log one, None if nobody knows.

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
    """A value as a number that can be drawn, or else as a text that people know it by.

    >>> flat(3), flat(0.25), flat("relu"), flat(None), flat(True), flat([8, 8]), flat(5e-324)
    (3, 0.25, 'relu', 'None', 'True', '[8, 8]', '5e-324')
    """
    number = as_float(value)
    if number == 0 or TINY < abs(number) < HUGE:
        return int(value) if isinstance(value, Integral) and abs(number) < 2**53 else number
    return clean(str(readable(value)), MOST_SIGNS)
