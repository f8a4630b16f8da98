"""Whether all arms of a `HalvingSearch` can be trained in one kernel, by `BatchedSGD`.

This file is read without numba; `batched_sgd` needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline

from lastarm.trainers import Config
from lastarm.trainers.estimators import Estimator, final_step

if TYPE_CHECKING:
    from lastarm.sklearn.batched_sgd import BatchedSGD

# The same as in `lastarm.batched.linear`, which needs numba.
LOSSES = ("hinge", "log_loss", "modified_huber", "perceptron", "squared_error", "squared_hinge")
WANTED: dict[str, tuple[Any, ...]] = {
    "penalty": ("l2", None),
    "learning_rate": ("constant", "invscaling", "optimal"),
    "shuffle": (True,),
    "early_stopping": (False,),
    "average": (False, 0),
    "class_weight": (None,),
    "verbose": (0, False),
}


def batched_sgd_or_reason(
    trainer: Estimator, configs: Sequence[Config], *, threads: int, train_scores: bool
) -> BatchedSGD | str:
    """The batched trainer for these settings; or the reason why there is none."""
    why = why_not(trainer, configs)
    if why:
        return why
    try:
        importlib.import_module("lastarm.compiled")
    except ImportError as error:
        return str(error)
    kernel = importlib.import_module("lastarm.sklearn.batched_sgd")  # which imports numba
    found: BatchedSGD = kernel.BatchedSGD(trainer, threads, train_scores=train_scores)
    return found


def why_not(trainer: Estimator, configs: Sequence[Config]) -> str | None:
    """The reason why these arms cannot be trained in one kernel; None if they can."""
    estimator = trainer.estimator
    model = final_step(estimator)
    if type(model) not in (SGDClassifier, SGDRegressor):
        return f"{type(model).__name__} has no kernel; SGDClassifier and SGDRegressor have one"
    step = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    others = {name for config in configs for name in config if not name.startswith(step)}
    if others or any(name == step[:-2] for config in configs for name in config):
        return f"{', '.join(sorted(others)) or step[:-2]} is not a setting of the last step"
    if trainer.restarts:
        return "each level is a fit of its own"
    if trainer.weighs:
        return "the kernel knows neither weights nor other parameters of fit"
    losses = LOSSES if type(model) is SGDClassifier else ("squared_error",)
    wanted = {"loss": losses, **WANTED}
    usual, seeds = model.get_params(), []
    for config in configs:
        own = {name.removeprefix(step): value for name, value in config.items()}
        settings = {**usual, **own}
        for name, values in wanted.items():
            value = settings.get(name, values[0])
            if not any(type(value) is type(one) and value == one for one in values):
                return f"the kernel knows {name} {' or '.join(map(repr, values))}, not {value!r}"
        if settings["penalty"] is None and settings["learning_rate"] == "optimal":
            return "the kernel knows the learning rate 'optimal' with a penalty only"
        seeds.append(settings["random_state"])
    if not all(seed is None or isinstance(seed, Integral) for seed in seeds):
        return "their random_state is not a number"
    if len(set(seeds)) > 1:
        return "their random states differ, but in the kernel all see the rows in one order"
    try:
        folds = trainer.folds(trainer.start(configs[0], 0))
    except Exception as error:  # each arm will fail with its own error
        return f"they cannot be started: {error}"
    for fold in folds:
        for X, y, _ in (fold.train, fold.validation):
            if why := why_not_these(X, y, classified=type(model) is SGDClassifier):
                return why
    return None


def why_not_these(rows: Any, targets: Any, *, classified: bool) -> str | None:
    """The reason why the kernel cannot learn from these rows; None if it can."""
    if hasattr(rows, "tocsr"):
        return "the rows are sparse"
    table = np.asarray(rows)
    if targets is None or np.ndim(targets) != 1:
        return "there is not one target per row"
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "biufO":
        return "the rows are not a table of numbers"
    kind = np.float32 if table.dtype == np.float32 else np.float64
    try:
        with np.errstate(over="ignore"):
            numbers = table.astype(kind, copy=False)
            largest = max(-float(numbers.min()), float(numbers.max()))  # nan, if any is
            finite = classified or bool(np.isfinite(np.asarray(targets, kind)).all())
    except (TypeError, ValueError):
        return "the rows or the targets are not numbers"
    # The kernel multiplies rows with each other.
    if not finite or not largest < np.sqrt(np.finfo(kind).max) / 1e3:
        return "the rows or the targets have numbers that are too large, or nan"
    return None
