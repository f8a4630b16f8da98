"""What is not public in scikit-learn: where metadata goes, and how histograms are fitted.

Where its own search sends weights: whether the scorers get them, too, depends on the version of
scikit-learn, on the scorers and on metadata routing. So the installed `GridSearchCV` is asked.

How HistGradientBoosting puts rows into bins: it does so anew in every `fit`, also with
`warm_start`, and has no public way to be given bins.

No other file uses a name from `PRIVATE`; they are in scikit-learn 1.6 to 1.9.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import _check_method_params

PRIVATE = (
    "_bin_data",
    "_bin_mapper",
    "_check_method_params",
    "_get_routed_params_for_fit",
    "_is_categorical_remapped",
    "_predictors",
    "_preprocess_X",
    "_preprocessor",
    "_raw_predict",
)
SHARES_BINS = (1, 6) <= tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 10)
BINS_KEPT = 8  # tables of bins for the same rows, of a byte a value
PREDICTED_BYTES = 2**27  # of what models in memory predict for the same rows


class Metadata(NamedTuple):
    """What goes with the rows: to `fit`, to the splitter and to the scorers."""

    fit: dict[str, Any]
    split: dict[str, Any]
    score: dict[str, Any]


def like_grid_search(estimator: Any, *, scoring: Any, metric: str | None, cv: Any) -> Any:
    """A search of scikit-learn with these choices. Its messages call it by our name.

    - `estimator`: the estimator or Pipeline.
    - `scoring`: as `GridSearchCV` takes it.
    - `metric`: the one that arms are compared by, if there are several.
    - `cv`: a splitter, or None.
    """
    kind = type("HalvingSearch", (GridSearchCV,), {})
    return kind(estimator, {}, scoring=scoring, refit=metric or True, cv=cv)


def routed(search: Any, X: Any, params: Mapping[str, Any]) -> Metadata:
    """Where a search of scikit-learn would send what its `fit` is given beside the rows."""
    sent = search._get_routed_params_for_fit(_check_method_params(X, params=params))
    return Metadata(dict(sent.estimator.fit), dict(sent.splitter.split), dict(sent.scorer.score))


def of_rows(X: Any, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """The same parameters for some of the rows of X; what has no entry per row stays as it is."""
    cut: dict[str, Any] = _check_method_params(X, params=params, indices=rows) if params else {}
    return cut


def can_share_bins(model: Any) -> bool:
    """Whether `BinnedRows` knows how this model is fitted.

    It does for the versions of scikit-learn that it was tried with, if no method that it replaces,
    or that calls these, was overridden, and if no rows are set apart to stop early.
    """
    own = ("fit", "_preprocess_X", "_bin_data", "_raw_predict")
    kind, base = type(model), HistGradientBoostingRegressor
    return (
        SHARES_BINS
        and model.early_stopping is False
        and all(getattr(kind, name, None) is getattr(base, name, kind) for name in own)
    )


class Prepared(NamedTuple):
    """What `fit` learns of the columns of its rows before they are put into bins."""

    shape: tuple[int, int]
    known_categories: Any
    attributes: dict[str, Any]  # of the model


class BinnedRows:
    """What fits of HistGradientBoosting on the same rows have in common, computed once.

    Within `fitting(model)`, three methods of the model are replaced: the one that checks and
    encodes its rows, the one that puts them into bins, and the one by which `warm_start` predicts
    them with all trees so far. All that they return is what the model's own methods would, so the
    trees are the same, bit for bit.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._prepared: dict[Any, Prepared] = {}
        self._bins: OrderedDict[Any, tuple[Any, dict[str, Any]]] = OrderedDict()
        # By model: how many iterations it had, and what it predicts for the rows.
        self._predicted: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()

    @contextmanager
    def fitting(self, model: Any) -> Iterator[None]:
        """Within, `model.fit` on these rows uses what is known of them."""
        settings = (pickle.dumps(model.categorical_features), model.max_bins)
        before, predictions = self._predicted.pop(model, (0, None))

        def preprocess(X: Any, *, reset: bool) -> Any:
            if not reset:
                return type(model)._preprocess_X(model, X, reset=False)
            if settings not in self._prepared:
                return self._prepare(model, settings)
            shape, known_categories, attributes = self._prepared[settings]
            vars(model).update(attributes)
            # Of rows that are in bins, only the shape is asked for.
            return np.broadcast_to(np.nan, shape), known_categories

        def bin_data(X: Any, *weights: Any, is_training_data: bool) -> Any:
            mapper = model._bin_mapper
            drawn = mapper.subsample is not None and len(X) > mapper.subsample
            key = (
                *(*settings, mapper.random_state if drawn else None),
                *(None if one is None else hashlib.sha256(one).digest() for one in weights),
            )
            found = self._bins.pop(key, None)
            if found is None:
                if not any(X.strides):  # only a shape: other arms differ in weights or the seed
                    X, _ = self._prepare(model, settings)
                X = type(model)._bin_data(model, X, *weights, is_training_data=is_training_data)
                given = mapper.get_params()
                found = X, {name: v for name, v in vars(mapper).items() if name not in given}
            self._bins[key] = found
            if len(self._bins) > BINS_KEPT:
                self._bins.popitem(last=False)
            X, fitted = found
            vars(mapper).update(fitted)
            return X

        def raw_predict(X: Any, n_threads: int | None = None) -> Any:
            nonlocal predictions
            if predictions is None or before != len(model._predictors):
                predictions = type(model)._raw_predict(model, X, n_threads=n_threads)
            return predictions  # `fit` adds what new trees predict to this very array

        replaced = {
            "_preprocess_X": preprocess,
            "_bin_data": bin_data,
            "_raw_predict": raw_predict,
        }
        vars(model).update(replaced)
        try:
            yield
        finally:
            for name in replaced:
                delattr(model, name)
        if predictions is not None:
            self._predicted[model] = len(model._predictors), predictions
            while len(self._predicted) * predictions.nbytes > PREDICTED_BYTES:
                self._predicted.pop(next(iter(self._predicted)))

    def _prepare(self, model: Any, settings: Any) -> tuple[Any, Any]:
        X, known_categories = type(model)._preprocess_X(model, self._X, reset=True)
        attributes = {
            "is_categorical_": model.is_categorical_,
            "_is_categorical_remapped": model._is_categorical_remapped,
            "_preprocessor": model._preprocessor,
            "n_features_in_": model.n_features_in_,
        }
        if hasattr(model, "feature_names_in_"):
            attributes["feature_names_in_"] = model.feature_names_in_
        self._prepared[settings] = Prepared(X.shape, known_categories, attributes)
        return X, known_categories
