"""Whether all arms of a `HalvingSearch` can be trained together, in one kernel."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline

from lastarm.trainers import Config
from lastarm.trainers.estimators import Estimator, Fold, final_step

if TYPE_CHECKING:
    from lastarm.sklearn.linear_together import LinearTogether

SLOPES = ("hinge", "log_loss", "modified_huber", "perceptron", "squared_error", "squared_hinge")
WANTED: dict[str, tuple[Any, ...]] = {
    "penalty": ("l2", None),
    "learning_rate": ("constant", "invscaling", "optimal"),
    "shuffle": (True,),
    "early_stopping": (False,),
    "average": (False, 0),
    "class_weight": (None,),
    "verbose": (0, False),
}


def together(trainer: Estimator, configs: Sequence[Config], threads: int) -> LinearTogether | str:
    """The arms as one batch; or why they are to be trained one at a time."""
    why = why_not(trainer, configs)
    if why:
        return why
    try:
        kernel = importlib.import_module("lastarm.sklearn.linear_together")  # with it comes numba
    except ImportError as error:
        return str(error)
    found: LinearTogether = kernel.LinearTogether(trainer, threads)
    return found


def why_not(trainer: Estimator, configs: Sequence[Config]) -> str | None:
    """Why these arms cannot be trained together; None if they can."""
    estimator = trainer.estimator
    model = final_step(estimator)
    if type(model) not in (SGDClassifier, SGDRegressor):
        return f"{type(model).__name__} has no kernel; SGDClassifier and SGDRegressor have one"
    step = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    others = {name for config in configs for name in config if not name.startswith(step)}
    if others or any(name == step[:-2] for config in configs for name in config):
        return f"{', '.join(sorted(others)) or step[:-2]} is no setting of the last step"
    losses = SLOPES if type(model) is SGDClassifier else ("squared_error",)
    wanted = {"loss": losses, **WANTED}
    usual, seeds = model.get_params(), set()
    for config in configs:
        own = {name.removeprefix(step): value for name, value in config.items()}
        settings = {**usual, **own}
        for name, values in wanted.items():
            value = settings.get(name, values[0])
            if not any(type(value) is type(one) and value == one for one in values):
                return f"the kernel knows {name} {' or '.join(map(repr, values))}, not {value!r}"
        if settings["penalty"] is None and settings["learning_rate"] == "optimal":
            return "the kernel knows the learning rate 'optimal' with a penalty only"
        seeds.add(settings["random_state"])
    if len(seeds) > 1 or not all(seed is None or type(seed) is int for seed in seeds):
        return "the arms have random states of their own, and in the kernel all share one"
    try:
        return _why_not_these(trainer.folds(trainer.start(configs[0], 0)))
    except Exception as error:  # whoever trains them will say so, arm by arm
        return f"they cannot be begun: {error}"


def _why_not_these(folds: Sequence[Fold]) -> str | None:
    for fold in folds:
        for rows in (fold.X_train, fold.X_validation):
            if hasattr(rows, "tocsr"):
                return "the rows are sparse"
            try:
                numbers = bool(np.isfinite(np.asarray(rows, np.float64)).all())
            except (TypeError, ValueError):
                numbers = False
            if not numbers or np.ndim(rows) != 2 or not all(np.shape(rows)):
                return "the rows are no table of numbers"
        if fold.y_train is None or np.ndim(fold.y_train) != 1:
            return "there is not one target a row"
    return None
