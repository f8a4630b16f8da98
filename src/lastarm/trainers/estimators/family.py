"""What a family of estimators is, and what it is given to train a model a few pulls further."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state


class Lesson(NamedTuple):
    """The rows that a model learns from, all classes that there are, and the steps of a pull.

    `kept` is for what a family computes from the rows once, for all arms that learn from them. It
    lives as long as the rows do, and is never pickled.
    """

    X: Any
    y: Any
    classes: Any  # also those that these rows lack; None unless it is a classifier
    steps: int
    params: Mapping[str, Any]  # of `fit`, such as the weights of these rows
    kept: dict[str, Any]
    threads: int | None = None  # for a library that takes no notice of OpenMP's limit


WITHOUT_ESTIMATORS = ("lightgbm", "xgboost")  # among the settings of whose models there are none


class Randomness:
    """Every `random_state` of an estimator, set for each pull and put back afterwards.

    Where the user left None, the arm's seed decides. A number of the user's takes the seed's
    place.
    """

    def __init__(self, estimator: Any, seed: int) -> None:
        self.seed = seed % 2**31  # for a library that has another name for it
        own = _all_settings(estimator)
        names = [name for name in own if name.rpartition("__")[2] == "random_state"]
        self._own = [(own.get(name.rpartition("__")[0], estimator), own[name]) for name in names]
        self._seeds = [self.seed if value is None else _number(value) for _, value in self._own]

    def of(self, pull: int) -> None:
        """Set it for a pull. The first has the seed itself, as the estimator's own `fit` would."""
        for (estimator, _), seed in zip(self._own, self._seeds, strict=True):
            estimator.random_state = _mixed(seed, pull) if pull else seed

    def put_back(self) -> None:
        """Set what the user had set."""
        for estimator, value in self._own:
            estimator.random_state = value


def _all_settings(estimator: Any) -> dict[str, Any]:
    """What `get_params` gives. That asks for the signature of `__init__`, which takes long."""
    kind: Any = type(estimator)
    if kind.get_params.__module__.partition(".")[0] in WITHOUT_ESTIMATORS:
        return {"random_state": estimator.random_state}
    if kind.get_params is BaseEstimator.get_params:
        if kind not in _PARAMETERS:
            _PARAMETERS[kind] = tuple(estimator.get_params(deep=False))
        own = {name: getattr(estimator, name) for name in _PARAMETERS[kind]}
        if not any(hasattr(value, "get_params") for value in own.values()):
            return own
    settings: dict[str, Any] = estimator.get_params()
    return settings


_PARAMETERS: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()  # of a class


def _number(random_state: Any) -> int:
    """A `random_state` as a number; a generator gives one, and is left as it was."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(deepcopy(random_state)).randint(2**31))


def _mixed(seed: int, pull: int) -> int:
    """A number for one pull, within the 31 bits that every library takes."""
    return int(np.random.SeedSequence([seed, pull]).generate_state(1)[0]) >> 1


class NotStopping(NamedTuple):
    """What keeps a model from stopping early, because pulls decide how long it is trained."""

    settings: dict[str, Any]  # of the model, while it is trained
    params: Mapping[str, Any]  # of `fit`, without what would stop it


def never(model: Any) -> bool:
    """What is true of no model."""
    return False


class Family(NamedTuple):
    """Estimators that are trained further in one and the same way.

    `further(model, lesson, done, upto, random)` trains a model that had `done` pulls up to `upto`.
    All families keep one law: pulls a + b are pulls a, then b, bit for bit. What is random in a
    pull is drawn from the arm's seed and the number of the pull, never from what happened before.
    Where a model `restarts`, `further` trains it from zero to `upto`, whatever it had before.

    A family may know more of its models than that they can be pickled and predict:

    - `judged(model, X)`: the model as scorers see it. It may answer for the rows X of VAL from
      scores that it has kept.
    - `continues(model, params)`: whether a saved copy can be trained further. If not, `further`
      trains it again from zero.
    - `finished(model, steps)`: whether a model of so many steps would be the same after more.
    - `size(model)`: about how many bytes it holds while it is trained.
    - `trained_otherwise_before(model, params, tuned, rows)`: whether version 0.1 gave other losses
      for a model with this many rows, if the settings `tuned` are searched over.
    - `described(model, params, shape)`: what decides the losses besides the settings, for the
      fingerprint. The shape is that of TRAIN, or None if transformers decide it.
    - `end_training(model)`: let go of what only training needs.
    """

    accepts: Callable[[Any], bool]
    further: Callable[[Any, Lesson, int, int, Randomness], None]
    counted: tuple[str, ...]  # parameters that say how far a model is trained: pulls decide it
    not_stopping: Callable[[Any, Mapping[str, Any]], NotStopping]
    boosts: Callable[[Any], bool]  # whether it overfits with more pulls, as boosted trees do
    method: str = "fit"  # what `further` calls
    own_params: tuple[str, ...] = ()  # of that method, which `further` gives itself
    threads: str | None = None  # the parameter with their number, if OpenMP's limit is ignored
    judged: Callable[[Any, Any], Any] = lambda model, X: model
    continues: Callable[[Any, Mapping[str, Any]], bool] = lambda model, params: True
    size: Callable[[Any], int] | None = None
    restarts: Callable[[Any], bool] = never  # whether each level is trained from zero, in one go
    finished: Callable[[Any, int], bool] = lambda model, steps: False
    trained_otherwise_before: Callable[[Any, Mapping[str, Any], Collection[str], int], bool] = (
        lambda model, params, tuned, rows: False
    )
    described: Callable[[Any, Mapping[str, Any], tuple[int, int] | None], dict[str, Any]] = (
        lambda model, params, shape: {}
    )
    end_training: Callable[[Any], None] = lambda model: None


def cut(X: Any, rows: Any) -> Any:
    """Some of the rows, as a table of the same kind."""
    if X is None:
        return None
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


@contextmanager
def set_meanwhile(model: Any, settings: Mapping[str, Any]) -> Iterator[None]:
    """Within, the model has these settings; afterwards its own."""
    if not settings:  # asking for its own takes longer than some pulls
        yield
        return
    # scikit-learn's own way to set them looks at all parameters, which takes longer, too.
    plain = type(model).set_params is BaseEstimator.set_params
    given = {name: getattr(model, name) for name in settings} if plain else model.get_params()

    def put(values: Mapping[str, Any]) -> None:
        if not plain:
            model.set_params(**values)
        else:
            for name, value in values.items():
                setattr(model, name, value)

    put(settings)
    try:
        yield
    finally:
        put({name: given[name] for name in settings})
