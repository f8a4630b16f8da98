"""scikit-learn's own estimators: by `partial_fit`, or by `warm_start`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.base import is_classifier
from sklearn.linear_model import HuberRegressor
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils import compute_class_weight

from lastarm.trainers.estimators.family import (
    Family,
    Lesson,
    NotStopping,
    Randomness,
    set_meanwhile,
)

# These continue with their own random numbers, so all trees of a few pulls can be grown at once.
BOTH = ("Bagging", "ExtraTrees", "GradientBoosting", "HistGradientBoosting", "RandomForest")
AT_ONCE = tuple(
    getattr(ensemble, f"{name}{kind}") for name in BOTH for kind in ("Classifier", "Regressor")
)
# These forget something between two calls of `fit`. docs/estimators.md has the trials.
FORGETFUL = ("lbfgs", "liblinear", "newton-cg", "sag", "saga")
L_BFGS = (HuberRegressor, NeighborhoodComponentsAnalysis)  # have no other solver
BOOSTED = tuple(kind for kind in AT_ONCE if "GradientBoosting" in kind.__name__)


def _passes(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`partial_fit`: a step is a pass over TRAIN, in an order of its own."""
    balanced: dict[str, Any] = {}
    if isinstance(getattr(model, "class_weight", None), str):
        balanced = {"class_weight": _class_weights(model.class_weight, lesson.y)}
    with set_meanwhile(model, balanced):
        for step in range(done * lesson.steps, upto * lesson.steps):
            random.of(step)
            first = {"classes": lesson.classes} if step == 0 and is_classifier(model) else {}
            model.partial_fit(lesson.X, lesson.y, **lesson.params, **first)


def _class_weights(preset: str, y: Any) -> dict[Any, float]:
    """What `fit` makes of "balanced". `partial_fit` refuses it, because its rows may be a part."""
    classes = np.unique(y)
    weights = compute_class_weight(preset, classes=classes, y=y)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


def _trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with a total of trees, under one seed: ensembles skip what they have drawn."""
    total = "n_estimators" if hasattr(model, "n_estimators") else "max_iter"
    random.of(0)
    warnings.filterwarnings("ignore", "class_weight presets")  # are for one TRAIN, and it is one
    # Afterwards without warm_start, with which a later fit of the user's would add nothing.
    with set_meanwhile(model, {"warm_start": True}):
        for pulls in [upto] if isinstance(model, AT_ONCE) else range(done + 1, upto + 1):
            model.set_params(**{total: pulls * lesson.steps})
            model.fit(lesson.X, lesson.y, **lesson.params)


def _iterations(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with `max_iter`: each pull continues from the last coefficients.

    If the solver remembers more than these, it begins anew, and makes all iterations in one go.
    """
    if _restarts(model):
        if done and _finished(model, done * lesson.steps):
            return
        random.of(0)
        with set_meanwhile(model, {"warm_start": False, "max_iter": upto * lesson.steps}):
            model.fit(lesson.X, lesson.y, **lesson.params)
        return
    with set_meanwhile(model, {"warm_start": True, "max_iter": lesson.steps}):
        for pull in range(done, upto):
            random.of(pull)
            model.fit(lesson.X, lesson.y, **lesson.params)


def _finished(model: Any, steps: int) -> bool:
    """Whether its solver ended by itself, as it would do again, however many more it may make."""
    return _restarts(model) and bool(np.all(model.n_iter_ < steps))


def _not_stopping(model: Any, params: Mapping[str, Any]) -> NotStopping:
    """Without early stopping, and without the rows that it would take from TRAIN."""
    stops = "early_stopping" if hasattr(model, "early_stopping") else "n_iter_no_change"
    off = {"early_stopping": False, "n_iter_no_change": None}[stops]
    return NotStopping({stops: off} if getattr(model, stops, None) else {}, params)


def _boosts(model: Any) -> bool:
    return isinstance(model, BOOSTED)


def _warm(estimator: Any, *names: str) -> bool:
    return all(hasattr(estimator, name) for name in ("warm_start", *names))


def _restarts(model: Any) -> bool:
    """Whether `fit` with `warm_start` would lose what the solver has learnt besides coefficients.

    L-BFGS loses the curvature, Newton-CG its steps, SAG the gradients; liblinear loses all.
    """
    return isinstance(model, L_BFGS) or getattr(model, "solver", None) in FORGETFUL


PARTIAL_FIT = Family(
    # MLPRegressor has it also with L-BFGS, but then it makes all iterations.
    lambda estimator: hasattr(estimator, "partial_fit") and not _restarts(estimator),
    _passes,
    counted=("max_iter",),
    not_stopping=_not_stopping,
    boosts=_boosts,
    method="partial_fit",
    own_params=("classes",),
)
ENSEMBLES = Family(
    lambda one: _warm(one, "n_estimators"),
    _trees,
    counted=("n_estimators",),
    not_stopping=_not_stopping,
    boosts=_boosts,
)
ITERATIVE = Family(
    lambda one: _warm(one, "max_iter"),
    _iterations,
    counted=("max_iter",),
    not_stopping=_not_stopping,
    boosts=_boosts,
    restarts=_restarts,
    finished=_finished,
)
