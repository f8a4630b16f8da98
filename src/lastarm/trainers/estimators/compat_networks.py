"""What is not public in scikit-learn's networks: how `partial_fit` begins, and what it remembers.

No other file uses a name from `PRIVATE`. They are in scikit-learn 1.7 to 1.9, whose networks were
seen to be the same to the last bit. Version 1.6 adds the terms of losses in another order.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

import sklearn
from numpy.random import RandomState
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.neural_network._multilayer_perceptron import BaseMultilayerPerceptron
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints

from lastarm.trainers.estimators.family import Lesson
from lastarm.trainers.estimators.live import Judged, answering

PRIVATE = (
    "_fit",
    "_forward_pass_fast",
    "_label_binarizer",
    "_multilayer_perceptron",
    "_no_improvement_count",
    "_optimizer",
    "_param_validation",
    "_parameter_constraints",
    "_random_state",
    "_validate_input",
)
KNOWN = (1, 7) <= tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 10)


class Checked(NamedTuple):
    """The rows and targets that a network learns from, and what it remembers of them."""

    X: Any
    y: Any
    output: str  # the activation of the last layer, unless the loss is another
    attributes: dict[str, Any]


def checked(estimator: type, lesson: Lesson) -> Checked:
    """What the first `partial_fit` of any network makes of these rows, with all of its checks."""
    model = estimator(hidden_layer_sizes=(1,), random_state=0)
    model.max_iter = 0  # no pass
    first = {"classes": lesson.classes} if is_classifier(model) else {}
    with config_context(skip_parameter_validation=True):
        model.partial_fit(lesson.X, lesson.y, **lesson.params, **first)
    X, y = model._validate_input(lesson.X, lesson.y, incremental=True, reset=False)
    names = ("n_features_in_", "feature_names_in_", "classes_", "_label_binarizer")
    attributes = {name: vars(model)[name] for name in names if name in vars(model)}
    return Checked(X, y, model.out_activation_, attributes)


@cache
def _usual(kind: Any) -> dict[str, Any]:
    """The settings of a network that was given none."""
    settings: dict[str, Any] = vars(kind())
    return settings


def begin(model: Any, rows: Checked) -> None:
    """What the first `partial_fit` of this network does before its first pass.

    It draws the parameters, and makes the optimizer. Only settings are checked, and of these only
    those that were given.
    """
    kind: Any = type(model)
    usual, own = _usual(kind), vars(model)
    given = {name: own[name] for name in sorted(usual) if own[name] is not usual[name]}
    validate_parameter_constraints(model._parameter_constraints, given, kind.__name__)
    passes, model.max_iter = model.max_iter, 0
    vars(model).update(deepcopy(rows.attributes))
    model._validate_input = lambda *_, **__: (rows.X, rows.y)
    try:
        model._fit(rows.X, rows.y, incremental=True)
    finally:
        model.max_iter = passes
        del model._validate_input


def optimizer_of(model: Any) -> Any:
    """What makes the steps: it has the moments of all parameters."""
    return model._optimizer


def generator_of(model: Any, *, begun: bool) -> Any:
    """What draws the orders of passes; that of the first is drawn after the parameters."""
    if not begun:
        own = getattr(model, "_random_state", None)
        if type(own) is RandomState:  # a new one takes fifty times as long as its seed
            own.seed(model.random_state)
        else:
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
    model.best_loss_ = min(model.best_loss_, loss)
    model._optimizer.iteration_ends(model.t_)
    waited = model._no_improvement_count > model.n_iter_no_change
    # An adaptive learning rate falls now. Nothing stops, because pulls decide.
    if waited and not model._optimizer.trigger_stopping("", False):
        model._no_improvement_count = 0


def for_checked(model: Any, X: Any) -> Any:
    """The model with predictions for the rows X, which were checked, without checks."""
    made = answering(model, _Unchecked, Judged(X, X))
    binarizer: Any = getattr(model, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_ == "multiclass":
        made._label_binarizer = _OneOfSeveral(binarizer.classes_)
    return made


class _Unchecked(BaseMultilayerPerceptron):  # type: ignore[misc]
    """A network that does not check the rows of VAL at every look."""

    judged: Judged

    def _forward_pass_fast(self, X: Any, check_input: bool = True) -> Any:
        return super()._forward_pass_fast(X, check_input and X is not self.judged.X)


class _OneOfSeveral(NamedTuple):
    """Finds the class of each row as `LabelBinarizer` does, without its checks."""

    classes: Any

    def inverse_transform(self, Y: Any) -> Any:
        """The classes with the largest outputs."""
        return self.classes.take(Y.argmax(axis=1), mode="clip")
