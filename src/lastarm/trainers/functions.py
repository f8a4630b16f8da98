"""A pair of functions as a trainer: one trains, the other computes the loss."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lastarm.errors import InvalidArgument, LastarmError
from lastarm.trainers.protocol import Config


class NoState(LastarmError, TypeError):
    """A function that trains returned None instead of a state. That arm has failed.

    `function` is its name.
    """

    def __init__(self, function: str) -> None:
        self.function = function
        super().__init__(
            f"{function} returned None, but it must return the state to continue from, even if it "
            "changes the state that it was given"
        )


class FunctionsState(NamedTuple):
    """An arm's config and seed, and the state that the user's function returned last."""

    config: Config
    seed: int
    state: Any


class Functions:
    """Arms that are trained by one function and judged by another.

    - `train`: is called as train(config, state, pulls), with None as the first state, and returns
      the state to continue from. If it has a parameter named `seed`, it gets the arm's seed.
    - `loss`: is called as loss(state).
    - `test`: is called as test(state), once, for the recommended arm. It may be left out.

    >>> def train(config, state, pulls):
    ...     return (state or 1.0) * config["decay"] ** pulls
    >>> decay = Functions(train, loss=lambda state: abs(state))
    >>> arm = decay.train(decay.start({"decay": 0.5}, seed=0), pulls=3)
    >>> decay.loss(arm), decay.loss(decay.train(arm, pulls=1))
    (0.125, 0.0625)

    The result of a search has the state that `train` returned. If `train` cannot continue from a
    state, set `train.restarts = True`: it then gets None, and all pulls, each time.
    """

    def __init__(
        self,
        train: Callable[..., Any],
        loss: Callable[[Any], Any],
        test: Callable[[Any], Any] | None = None,
    ) -> None:
        self._wanted = wanted("train", train, ("config", "state", "pulls"), ("seed",))
        wanted("loss", loss, ("state",))
        self._functions: dict[str, Callable[..., Any]] = {"train": train, "loss": loss}
        self.version = getattr(train, "version", 1)
        self.restarts = bool(getattr(train, "restarts", False))
        if test is not None:
            wanted("test", test, ("state",))
            self._functions["test"] = test
            self.test = self._test  # without a function for it, there is no such method

    def start(self, config: Config, seed: int) -> FunctionsState:
        """An arm without a state."""
        return FunctionsState(config, seed, None)

    def train(self, state: FunctionsState, pulls: int) -> FunctionsState:
        """What `train` returns."""
        seed = {"seed": state.seed} if self._wanted else {}
        after = self._functions["train"](dict(state.config), state.state, pulls, **seed)
        if after is None:  # it would be taken for an arm that has not begun
            raise NoState(full_name(self._functions["train"]))
        return state._replace(state=after)

    def loss(self, state: FunctionsState) -> Any:
        """What `loss` returns."""
        return self._functions["loss"](state.state)

    def _test(self, state: FunctionsState) -> Any:
        return self._functions["test"](state.state)

    @staticmethod
    def unwrap(state: FunctionsState) -> Any:
        """The state that `train` returned."""
        return state.state

    def fingerprint(self) -> dict[str, Any]:
        """The names of the functions."""
        return {role: full_name(function) for role, function in self._functions.items()}


def full_name(function: Any) -> str:
    """The module and name of a function, of the function in a partial, or of an object's class.

    >>> full_name(functools.partial(full_name))
    'lastarm.trainers.functions.full_name'
    """
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def wanted(
    argument: str, function: Any, given: Sequence[str], optional: Sequence[str] = ()
) -> tuple[str, ...]:
    """The `optional` parameters that a function has, besides those that it is always `given`.

    >>> wanted("train", lambda config, seed: ..., ("config",), ("seed", "resume"))
    ('seed',)

    A function that cannot be called like this is refused, before anything is trained.
    """
    if not callable(function):
        raise InvalidArgument.of(argument, function, "it cannot be called", "Use a function")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some that are written in C have none
        return ()
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    names = tuple(n for n in optional if n in signature.parameters and n not in fixed)
    try:
        signature.bind(*given, **dict.fromkeys(names))
    except TypeError as error:
        besides = f"; it may also have {' and '.join(optional)}" if optional else ""
        rule = f"it is called with ({', '.join(given)}), but {error}"
        way_out = f"Use a function with these parameters{besides}"
        raise InvalidArgument.of(argument, function, rule, way_out) from None
    return names
