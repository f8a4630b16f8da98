"""What `search` takes for a trainer, and what it makes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from lastarm.errors import InvalidArgument
from lastarm.trainers.functions import Functions, full_name
from lastarm.trainers.generators import Generated
from lastarm.trainers.protocol import Trainer

AnyTrainer = (
    Trainer[Any] | type[Trainer[Any]] | Callable[..., Iterator[Any]] | Sequence[Callable[..., Any]]
)
"""A trainer or its class, a generator function, or two or three functions: see `as_trainer`."""

FORMS = (
    "an object with start(config, seed), train(state, pulls) and loss(state); a generator "
    "function that yields a loss once a pull; or a pair of functions, "
    "train(config, state, pulls) and loss(state)"
)


def as_trainer(given: AnyTrainer) -> Trainer[Any]:
    """`given` as a trainer, in whatever form it comes.

    >>> def descent(config):
    ...     yield from (config["scale"] / pull for pull in range(1, 100))
    >>> trainer = as_trainer(descent)
    >>> trainer.loss(trainer.train(trainer.start({"scale": 3.0}, seed=0), pulls=4))
    0.75
    >>> as_trainer(lambda config: 0.5)
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: lastarm.trainers.any_trainer.<lambda> is a function that ...
    """
    trainer: Any = given
    if isinstance(given, type) and _is_trainer(given):
        try:
            trainer = given()
        except Exception as error:
            raise InvalidArgument(
                f"{given.__qualname__} is a class, and {given.__qualname__}() raises "
                f"{type(error).__name__}: {error}. Give an object of it instead."
            ) from error
    if _is_trainer(trainer) and not isinstance(trainer, type):
        return cast(Trainer[Any], trainer)
    if _is_generator_function(trainer):
        return Generated(trainer)
    if isinstance(trainer, tuple | list) and len(trainer) in (2, 3):
        return Functions(*trainer)
    raise InvalidArgument(_the_way_out(trainer))


def _is_trainer(given: Any) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("start", "train", "loss"))


def _is_generator_function(given: Any) -> bool:
    if not callable(given) or isinstance(given, type):
        return False
    inner = inspect.unwrap(given)  # what a decorator was put around
    return any(map(inspect.isgeneratorfunction, (inner, type(inner).__call__)))


def _the_way_out(given: Any) -> str:
    shown = repr(given)[:200]
    if hasattr(given, "fit"):
        return (
            f"{shown} has `fit`, but a trainer also needs data to train on and to be judged by: "
            "give Estimator(model, X, y) from lastarm.trainers.estimators, or use "
            "lastarm.sklearn.HalvingSearch."
        )
    if inspect.isgenerator(given):
        return f"{shown} has been called already: give the generator function itself."
    if callable(given) and not isinstance(given, type):
        return (
            f"{full_name(given)} is a function that gives one answer, but an arm is trained a "
            "little at a time: let it `yield` its loss once a pull, or give a pair of functions, "
            "train(config, state, pulls) and loss(state). If it returns a generator, give "
            "Generated(function) from lastarm.trainers.generators."
        )
    return f"{shown} is no trainer: give {FORMS}."
