"""All that `search` accepts as a trainer, and how it becomes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

from lastarm.errors import InvalidArgument
from lastarm.trainers.functions import Functions, full_name
from lastarm.trainers.generators import Generated
from lastarm.trainers.protocol import Trainer
from lastarm.trainers.reporting import Reporting

AnyTrainer = Trainer[Any] | type[Trainer[Any]] | Callable[..., Any] | Sequence[Callable[..., Any]]
"""A trainer or its class, a function that yields or reports, or two or three functions: see
`as_trainer`."""

FORMS = (
    "an object with start(config, seed), train(state, pulls) and loss(state); a generator "
    "function that yields a loss for every pull; a function(config, report) that reports it; or a "
    "pair of functions, train(config, state, pulls) and loss(state)"
)


def as_trainer(given: AnyTrainer) -> Trainer[Any]:
    """`given` as a trainer.

    - `given`: a trainer or its class, a generator function, a function with a parameter `report`,
      or two or three functions.

    >>> def descent(config):
    ...     yield from (config["scale"] / pull for pull in range(1, 100))
    >>> trainer = as_trainer(descent)
    >>> trainer.loss(trainer.train(trainer.start({"scale": 3.0}, seed=0), pulls=4))
    0.75
    >>> as_trainer(lambda config: 0.5)
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: lastarm.trainers.any_trainer.<lambda> returns one value, ...
    """
    trainer: Any = given
    if isinstance(given, type) and _is_trainer(given):
        try:
            trainer = given()
        except Exception as error:
            raise InvalidArgument(
                f"{given.__qualname__} is a class, and {given.__qualname__}() raises "
                f"{type(error).__name__}: {error}. Pass an instance instead.",
                argument="trainer",
                given=given,
            ) from error
    if _is_trainer(trainer) and not isinstance(trainer, type):
        return cast(Trainer[Any], trainer)
    if _is_generator_function(trainer):
        return Generated(trainer)
    if _reports(trainer):
        return Reporting(trainer)
    if isinstance(trainer, tuple | list) and len(trainer) in (2, 3):
        return Functions(*trainer)
    raise InvalidArgument(_refusal(trainer), argument="trainer", given=trainer)


def _is_trainer(given: Any) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("start", "train", "loss"))


def _is_generator_function(given: Any) -> bool:
    if not callable(given) or isinstance(given, type):
        return False
    inner = inspect.unwrap(given)  # the function inside of a decorator
    return any(map(inspect.isgeneratorfunction, (inner, type(inner).__call__)))


def _reports(given: Any) -> bool:
    if not callable(given) or isinstance(given, type) or _is_coroutine_function(given):
        return False
    return "report" in _parameters(given)


def _is_coroutine_function(given: Any) -> bool:
    return any(map(inspect.iscoroutinefunction, (given, type(given).__call__)))


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some that are written in C have none
        return []


def _refusal(given: Any) -> str:
    shown = repr(given)[:200]
    if hasattr(given, "fit"):
        return (
            f"{shown} has `fit`, but a trainer also needs data. Use Estimator(model, X, y) from "
            "lastarm.trainers.estimators, or lastarm.sklearn.HalvingSearch."
        )
    if inspect.isgenerator(given):
        return f"{shown} is a generator that is running. Pass the generator function itself."
    if callable(given) and not isinstance(given, type):
        if _is_coroutine_function(given):
            return (
                f"{full_name(given)} is a coroutine function, which lastarm does not run. Use a "
                "function that is not `async`."
            )
        parameters = _parameters(given)
        if parameters[:1] == ["trial"]:
            return (
                f"{full_name(given)} takes a `trial`, as an objective of Optuna. Make it a "
                "function(config, report): config is a dict of the settings, which the space "
                "draws, and report(loss) takes the place of trial.report and should_prune."
            )
        return (
            f"{full_name(given)} returns one value, but an arm is trained a little at a time. Let "
            "it report its loss for every pull, by a parameter with the name `report`, or `yield` "
            "it, or pass a pair of functions, train(config, state, pulls) and loss(state). If it "
            "returns a generator, pass lastarm.Generated(function)."
        )
    return f"{shown} is not a trainer. Pass {FORMS}."
