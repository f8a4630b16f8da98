"""scikit-learn's own estimators: by `partial_fit`, or by `warm_start`."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn import ensemble
from sklearn.base import is_classifier

from lastarm.trainers.estimators.family import Family, Lesson, Randomness

# These continue with their own random numbers, so all trees of a few pulls can be grown at once.
BOTH = ("Bagging", "ExtraTrees", "GradientBoosting", "HistGradientBoosting", "RandomForest")
AT_ONCE = tuple(
    getattr(ensemble, f"{name}{kind}") for name in BOTH for kind in ("Classifier", "Regressor")
)


def _passes(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`partial_fit`: a step is a pass over TRAIN, in an order of its own."""
    for step in range(done * lesson.steps, upto * lesson.steps):
        random.of(step)
        first = {"classes": lesson.classes} if step == 0 and is_classifier(model) else {}
        model.partial_fit(lesson.X, lesson.y, **first)


def _trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with a total of trees, under one seed: ensembles skip what they have drawn."""
    total = "n_estimators" if hasattr(model, "n_estimators") else "max_iter"
    own = {"warm_start": model.warm_start}
    model.set_params(warm_start=True)
    stops = getattr(model, "early_stopping", getattr(model, "n_iter_no_change", None))
    if stops == "auto":  # the policy decides when to stop
        own["early_stopping"] = stops
        model.set_params(early_stopping=False)
    at_once = isinstance(model, AT_ONCE) and stops in {None, False, "auto"}
    random.of(0)
    warnings.filterwarnings("ignore", "class_weight presets")  # are for one TRAIN, and it is one
    for pulls in [upto] if at_once else range(done + 1, upto + 1):
        model.set_params(**{total: pulls * lesson.steps})
        model.fit(lesson.X, lesson.y)
    model.set_params(**own)  # with warm_start a later fit of the user's would add nothing


def _iterations(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with `max_iter`: each pull continues from the last coefficients."""
    own = {name: getattr(model, name) for name in ("warm_start", "max_iter")}
    model.set_params(warm_start=True, max_iter=lesson.steps)
    for pull in range(done, upto):
        random.of(pull)
        model.fit(lesson.X, lesson.y)
    model.set_params(**own)


def _warm(estimator: Any, *names: str) -> bool:
    return all(hasattr(estimator, name) for name in ("warm_start", *names))


def _iterates(estimator: Any) -> bool:
    # liblinear begins anew, whatever warm_start is
    return _warm(estimator, "max_iter") and getattr(estimator, "solver", "") != "liblinear"


PARTIAL_FIT = Family(lambda estimator: hasattr(estimator, "partial_fit"), _passes, counted=None)
ENSEMBLES = Family(lambda one: _warm(one, "n_estimators"), _trees, counted="n_estimators")
HISTOGRAM_BOOSTING = Family(
    lambda one: _warm(one) and "HistGradientBoosting" in type(one).__name__,
    _trees,
    counted="max_iter",
)
ITERATIVE = Family(_iterates, _iterations, counted="max_iter")
