"""How a model is scored: by one metric, by several, or by a function of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.metrics import check_scoring, get_scorer

from lastarm.errors import InvalidArgument
from lastarm.trainers.losses import as_loss
from lastarm.trainers.metric import LOSS, Metric

ONLY = "score"  # the name of a metric that is the only one


class Scoring:
    """The metrics of a search, and the one that arms are compared by.

    - `given`: the name of a scorer, "score" for the estimator's own, a function of
      (estimator, X, y), or None for 1 − accuracy and the mean squared error; for several metrics a
      list of names, a dict of scorers, or a function that returns a dict.
    - `metric`: the name of the metric that arms are compared by. Left out, it is the first.
    - `estimator`: what is scored.
    """

    def __init__(self, given: Any, metric: str | None, estimator: Any) -> None:
        self.given = given
        self.metric = metric
        self.scorers = _several(given) if isinstance(given, list | tuple | dict) else {}
        if self.scorers:
            self._score = check_scoring(estimator, scoring=self.scorers)
            self.metric = next(iter(self.scorers)) if metric is None else metric
            if self.metric not in self.scorers:
                raise _not_a_metric(metric, self.scorers)
            return
        self._score = given if given is None or callable(given) else _scorer(given)
        if metric is not None and not callable(given):
            rule = "it chooses one of several metrics, and there is only one"
            raise InvalidArgument.of("metric", metric, rule, "Leave it out, or list the metrics")

    @property
    def compared(self) -> str:
        """The name of the metric that arms are compared by."""
        return self.metric or ONLY

    @property
    def shown_as(self) -> Metric:
        """The same for people: the score that they asked for, or else the loss."""
        if self.given is None:
            return LOSS
        own = self.given if isinstance(self.given, str) else getattr(self.given, "__name__", ONLY)
        named = self.metric or (own if "<" not in own else ONLY)  # not "<lambda>"
        return Metric(named, maximize=True)

    def as_grid_search_takes_it(self) -> Any:
        """The `scoring` of scikit-learn's own search."""
        return None if self.given in (None, "score") else self.given

    def sees_rows_as_given(self, params: Mapping[str, Any]) -> bool:
        """Whether to score the whole pipeline, on rows that are not transformed yet.

        A function of the user's may want to see them, and `Pipeline.score` sends parameters to
        its steps itself.
        """
        own = self.given.values() if isinstance(self.given, dict) else [self.given]
        return any(map(callable, own)) or (self.given == "score" and bool(params))

    def scores(self, model: Any, X: Any, y: Any, params: Mapping[str, Any]) -> dict[str, float]:
        """Every metric by its name: higher is better.

        - `model`: a fitted model.
        - `X`, `y`: the rows that it is judged by.
        - `params`: what else the scorers get, such as the weights of these rows.
        """
        if self._score is None:
            return {ONLY: -_own_loss(model, X, y, params.get("sample_weight"))}
        found = self._score(model, *((X,) if y is None else (X, y)), **params)
        if not isinstance(found, Mapping):
            return {self.compared: as_loss(found)}
        if self.metric not in found:  # which a function of the user's has returned
            raise _not_a_metric(self.metric, found)
        return {name: as_loss(score) for name, score in found.items()}


def _scorer(given: Any) -> Any:
    if isinstance(given, str) and given == "score":
        return _own_score
    try:
        return get_scorer(given)
    except (ValueError, TypeError):
        way_out = 'Use one of sklearn.metrics.get_scorer_names(), "score", or a function of '
        way_out += "(estimator, X, y) that is higher for better models"
        raise InvalidArgument.of("scoring", given, "it is not a scorer", way_out) from None


def _several(given: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> dict[str, Any]:
    """Scorers by their names."""
    named = given if isinstance(given, dict) else dict(zip(given, given, strict=True))
    wrong = [name for name in named if not isinstance(name, str)]
    for name, scorer in named.items():
        try:
            named = {**named, name: scorer if callable(scorer) else get_scorer(scorer)}
        except (ValueError, TypeError):
            wrong.append(scorer)
    if wrong or not named or len(named) < len(given):
        rule = "each metric has a name of its own, and a scorer"
        rule += f", which {wrong[0]!r} is not" if wrong else ""
        way_out = (
            "Use a list of sklearn.metrics.get_scorer_names(), or a dict of names and scorers"
        )
        raise InvalidArgument.of("scoring", given, rule, way_out)
    return named


def _own_score(model: Any, X: Any, *y: Any, **params: Any) -> Any:
    """The estimator's own score; the accuracy is computed without the checks of its inputs."""
    plain = getattr(type(model), "score", None) is ClassifierMixin.score and not params
    if plain and y and y[0].ndim == 1:
        predicted = model.predict(X)
        if predicted.shape == y[0].shape:
            return float(np.mean(predicted == y[0]))
    return model.score(X, *y, **params)


def _own_loss(model: Any, X: Any, y: Any, weights: Any) -> float:
    """1 − accuracy for classifiers, the mean squared error for regressors."""
    predicted = np.reshape(model.predict(X), y.shape)
    if is_classifier(model):
        wrong = predicted != y
        return float(np.average(wrong if y.ndim == 1 else wrong.any(axis=1), weights=weights))
    with np.errstate(over="ignore", invalid="ignore"):  # an arm may diverge
        errors = (predicted - y) ** 2
        if weights is None:
            return float(np.mean(errors))
        return float(np.mean(np.average(errors, weights=weights, axis=0)))


def _not_a_metric(metric: str | None, names: Iterable[str]) -> InvalidArgument:
    rule = "it is the metric that configs are compared by, and there are several"
    way_out = f"Use one of {', '.join(map(repr, names))}, which HalvingSearch takes as `refit`"
    return InvalidArgument.of("metric", metric, rule, way_out)
