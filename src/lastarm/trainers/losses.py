"""What a trainer tells about an arm: its loss, and the metrics beside it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from lastarm.errors import BadLoss

MOST_ENTRIES, MOST_LEVELS = 1000, 4  # of lists and dicts: a journal is read by people


def as_loss(value: object) -> float:
    """`value` as a float, if it is one real number. The rule is the same on every runner.

    NumPy scalars and zero-dimensional arrays, Decimal and Fraction are numbers. So are nan and
    ±inf: then the arm has diverged. Anything else raises `BadLoss`.

    >>> from fractions import Fraction
    >>> as_loss(Fraction(1, 4))
    0.25
    >>> as_loss("0.25")
    Traceback (most recent call last):
    lastarm.errors.BadLoss: the loss '0.25' is a str, not a real number
    """
    number = value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        number = value.item()  # a NumPy scalar, or an array or tensor of no dimensions
    if isinstance(number, numbers.Real | Decimal) and not isinstance(number, bool):
        try:
            return float(number)
        except OverflowError:  # 10**400
            return -math.inf if number < 0 else math.inf
        except ValueError:  # a signalling nan
            return math.nan
    try:
        shown = repr(value)
    except Exception:
        shown = "(which cannot be shown)"
    shown = shown if len(shown) <= 200 else shown[:197] + "..."
    kind = type(value).__name__
    raise BadLoss(f"the loss {shown} is a {kind}, not a real number", kind)


def observation(value: object) -> tuple[float, dict[str, Any] | None]:
    """The loss that a trainer returned, and the metrics beside it in a form for JSON.

    A trainer returns a real number, or a mapping with the loss as `"loss"` and other metrics.

    >>> observation(0.25)
    (0.25, None)
    >>> observation({"loss": 0.25, "accuracy": 0.9, "gradient": math.inf, "layers": (32, 8)})
    (0.25, {'accuracy': 0.9, 'gradient': 'inf', 'layers': [32, 8]})
    >>> observation({"accuracy": 0.9})
    Traceback (most recent call last):
    lastarm.errors.BadLoss: the mapping with the keys 'accuracy' has no 'loss': return the number
    to minimize under that key

    A loss that is not a number is an error. A metric never is: what JSON cannot hold is described.
    """
    if not isinstance(value, Mapping):
        return as_loss(value), None
    if "loss" not in value:
        keys = ", ".join(map(_shown, list(value)[:20])) or "(none)"
        raise BadLoss(
            f"the mapping with the keys {keys} has no 'loss': return the number to minimize "
            "under that key",
            type(value).__name__,
        )
    metrics = {_key(name): _plain(value[name], 0) for name in value if name != "loss"}
    return as_loss(value["loss"]), metrics or None


def _plain(value: Any, level: int) -> Any:
    try:
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, numbers.Integral) and int(value).bit_length() < 64:
            return int(value)
        if isinstance(value, numbers.Real | Decimal):
            number = as_loss(value)
            return number if math.isfinite(number) else str(number)
        if level < MOST_LEVELS and isinstance(value, Mapping | list | tuple):
            if len(value) > MOST_ENTRIES:
                return f"{type(value).__name__} of {len(value)}"
            if isinstance(value, Mapping):
                return {_key(name): _plain(value[name], level + 1) for name in value}
            return [_plain(entry, level + 1) for entry in value]
    except Exception:
        return _shown(value)
    return _shown(value)


def _key(name: object) -> str:
    return name if isinstance(name, str) else _shown(name)


def _shown(value: object) -> str:
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
