"""What a trainer tells about an arm: its loss, and the metrics beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lastarm.arguments import real
from lastarm.errors import BadLoss
from lastarm.plain import any_repr, readable_metrics


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
    number = real(value)
    if number is not None:
        return number
    kind = type(value).__name__
    raise BadLoss(f"the loss {any_repr(value)} is a {kind}, not a real number", kind)


def observation(value: object, arm: int | None = None) -> tuple[float, dict[str, Any] | None]:
    """The loss that a trainer returned for an arm, and the metrics beside it in a form for JSON.

    A trainer returns a real number, or a mapping with the loss as `"loss"` and other metrics.

    >>> observation(0.25)
    (0.25, None)
    >>> observation({"loss": 0.25, "accuracy": 0.9, "gradient": float("inf"), "layers": (8, 8)})
    (0.25, {'accuracy': 0.9, 'gradient': 'inf', 'layers': [8, 8]})

    A loss that is not a number is an error. A metric never is: what JSON cannot hold is described.
    But metrics are limited as a whole: see `readable_metrics`.
    """
    loss = loss_in(value)
    if not isinstance(value, Mapping):
        return loss, None
    metrics = {name: value[name] for name in value if name != "loss"}
    return loss, readable_metrics(metrics, arm) or None


def loss_in(value: object) -> float:
    """The loss in what a trainer returned.

    >>> loss_in({"accuracy": 0.9})
    Traceback (most recent call last):
    lastarm.errors.BadLoss: the mapping with the keys 'accuracy' has no 'loss': return the number
    to minimize under that key
    """
    if not isinstance(value, Mapping):
        return as_loss(value)
    if "loss" not in value:
        keys = ", ".join(map(any_repr, list(value)[:20])) or "(none)"
        raise BadLoss(
            f"the mapping with the keys {keys} has no 'loss': return the number to minimize "
            "under that key",
            type(value).__name__,
        )
    return as_loss(value["loss"])
