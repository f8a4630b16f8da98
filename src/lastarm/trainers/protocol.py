"""What a trainer is: how one arm is begun, trained further, and looked at."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

import numpy as np

from lastarm.errors import BadLoss

Config = Mapping[str, Any]
State = TypeVar("State")


class Trainer(Protocol[State]):
    """Three functions; the state that goes between them is the trainer's own affair.

    Training a + b pulls must be training a, then b, and nothing may depend on anything but the
    arguments. `train` may change the state it is given, as long as it returns the one to go on
    with. Optional:

    - `test(state) → float`, asked once, of the recommended arm;
    - `fingerprint() → dict`, what a journal should remember of the data, so that resuming with
      other data is refused;
    - `save(state, path)` and `load(path) → state`, for states that pickle does not carry well;
    - `unwrap(state)`, what of the state is the user's own, for the result;
    - `restores = True`, if a `train` that raises leaves the state it was given as it was;
    - `starts_processes = True`, if it starts others, which are to end when the search does.
    """

    def start(self, config: Config, seed: int) -> State:
        """An arm with these settings, not pulled yet."""

    def train(self, state: State, pulls: int) -> State:
        """The same arm, `pulls` pulls later."""

    def loss(self, state: State) -> float | Mapping[str, Any]:
        """What is observed: lower is better. With metrics beside it, a mapping with "loss"."""


AnyTrainer = (
    Trainer[Any] | type[Trainer[Any]] | Callable[..., Iterator[Any]] | Sequence[Callable[..., Any]]
)
"""A trainer or its class, a generator function, or two or three functions: see `as_trainer`."""


def arm_seed(seed: int, arm: int) -> int:
    """The seed of an arm's own training: a function of the search's seed and its number."""
    return int(np.random.SeedSequence([seed, arm]).generate_state(1)[0])


def as_loss(value: object) -> float:
    """`value` as a float, if it is one real number: the rule is the same on every runner.

    NumPy scalars and zero-dimensional arrays, Decimal and Fraction are numbers; nan and ±inf are
    too (the arm diverged). Anything else raises `BadLoss`.

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
    raise BadLoss(f"the loss {shown} is a {type(value).__name__}, not a real number")
