"""A pair of functions as a trainer: one trains, the other looks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lastarm.errors import InvalidArgument, LastarmError
from lastarm.trainers.protocol import Config


class NoState(LastarmError, TypeError):
    """A function that trains gave nothing to go on with. That arm has failed."""


class FunctionsState(NamedTuple):
    """An arm's settings and seed, and the state that the user's function returned last."""

    config: Config
    seed: int
    state: Any


class Functions:
    """Arms trained by `train(config, state, pulls)` and judged by `loss(state)`.

    `train` is given None as the first state and returns the state to go on with. If it has a
    parameter named `seed`, it is given the arm's seed.

    >>> def train(config, state, pulls):
    ...     return (state or 1.0) * config["decay"] ** pulls
    >>> decay = Functions(train, loss=lambda state: abs(state))
    >>> arm = decay.train(decay.start({"decay": 0.5}, seed=0), pulls=3)
    >>> decay.loss(arm), decay.loss(decay.train(arm, pulls=1))
    (0.125, 0.0625)

    `test(state)` is optional. `unwrap` gives the state that the user's own function returned.
    """

    def __init__(
        self,
        train: Callable[..., Any],
        loss: Callable[[Any], Any],
        test: Callable[[Any], Any] | None = None,
    ) -> None:
        self._wanted = wanted(train, ("config", "state", "pulls"), ("seed",))
        wanted(loss, ("state",))
        self._functions: dict[str, Callable[..., Any]] = {"train": train, "loss": loss}
        if test is not None:
            wanted(test, ("state",))
            self._functions["test"] = test
            self.test = self._test  # without a function for it, there is no such method

    def start(self, config: Config, seed: int) -> FunctionsState:
        """An arm without a state."""
        return FunctionsState(config, seed, None)

    def train(self, state: FunctionsState, pulls: int) -> FunctionsState:
        """What `train` makes of it."""
        seed = {"seed": state.seed} if self._wanted else {}
        after = self._functions["train"](dict(state.config), state.state, pulls, **seed)
        if after is None:  # it would be taken for an arm that has not begun
            raise NoState(
                f"{full_name(self._functions['train'])} returned None, but it is to return the "
                "state to go on with, also where it changes the one it was given"
            )
        return state._replace(state=after)

    def loss(self, state: FunctionsState) -> Any:
        """What `loss` sees."""
        return self._functions["loss"](state.state)

    def _test(self, state: FunctionsState) -> Any:
        return self._functions["test"](state.state)

    def unwrap(self, state: FunctionsState) -> Any:
        """The state that `train` returned."""
        return state.state

    def fingerprint(self) -> dict[str, Any]:
        """The names of the functions."""
        return {role: full_name(function) for role, function in self._functions.items()}


def full_name(function: Any) -> str:
    """The module and name of a function, of what a partial is of, or of an object's class.

    >>> full_name(functools.partial(full_name))
    'lastarm.trainers.functions.full_name'
    """
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def wanted(function: Any, given: Sequence[str], optional: Sequence[str] = ()) -> tuple[str, ...]:
    """Which of the `optional` parameters a function has, besides those it is always `given`.

    >>> wanted(lambda config, seed: ..., ("config",), ("seed", "resume"))
    ('seed',)

    One that cannot be called so is refused here, before anything is trained.
    """
    if not callable(function):
        raise InvalidArgument(f"{function!r} cannot be called: give a function.")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some that are written in C do not say
        return ()
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    names = tuple(n for n in optional if n in signature.parameters and n not in fixed)
    try:
        signature.bind(*given, **dict.fromkeys(names))
    except TypeError as error:
        besides = f", and may have parameters named {' and '.join(optional)}" if optional else ""
        raise InvalidArgument(
            f"{full_name(function)}{signature} will not do: it is called with "
            f"({', '.join(given)}){besides}, but {error}."
        ) from None
    return names
