"""What is not public in scikit-learn's networks: how `partial_fit` begins, and what it remembers.

No other file uses a name from `PRIVATE`; they are in scikit-learn 1.6 to 1.9. Whether a network
that is trained with them is the one of the installed version is tried, not assumed: see
`networks.is_exact`.
"""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from lastarm.trainers.estimators.family import Lesson

PRIVATE = (
    "_no_improvement_count",
    "_optimizer",
    "_random_state",
    "_validate_input",
    "_validate_params",
)


def begin(model: Any, lesson: Lesson) -> None:
    """What the first `partial_fit` does before its first pass: checks, and random parameters."""
    model._validate_params()
    passes, model.max_iter = model.max_iter, 0
    first = {"classes": lesson.classes} if is_classifier(model) else {}
    try:
        with config_context(skip_parameter_validation=True):
            model.partial_fit(lesson.X, lesson.y, **lesson.params, **first)
    finally:
        model.max_iter = passes


def checked_rows(model: Any, lesson: Lesson) -> tuple[Any, Any]:
    """The rows and targets as a network that has begun would learn from them."""
    X, y = model._validate_input(lesson.X, lesson.y, incremental=True, reset=False)
    return X, y


def optimizer_of(model: Any) -> Any:
    """What makes the steps: it has the moments of all parameters."""
    return model._optimizer


def generator_of(model: Any, *, first: bool) -> Any:
    """What draws the order of the next pass. The first is drawn after the parameters."""
    if not first:
        model._random_state = check_random_state(model.random_state)
    return model._random_state


def end_of_pass(model: Any, loss: Any, rows: int) -> None:
    """What `partial_fit` remembers after its pass.

    - `loss`: the mean loss of the rows in this pass.
    - `rows`: their number.
    """
    model.n_iter_ = 1
    model.loss_ = loss
    model.t_ += rows
    model.loss_curve_.append(loss)
    better = not loss > model.best_loss_ - model.tol
    model._no_improvement_count = 0 if better else model._no_improvement_count + 1
    if loss < model.best_loss_:
        model.best_loss_ = loss
    model._optimizer.iteration_ends(model.t_)
    if model._no_improvement_count > model.n_iter_no_change:
        # An adaptive learning rate falls. Nothing stops, because pulls decide.
        if not model._optimizer.trigger_stopping("", False):
            model._no_improvement_count = 0
