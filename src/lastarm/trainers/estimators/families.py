"""How an estimator is trained a few pulls further, without learning again what it knows.

All ways keep one law: pulls a + b are pulls a, then b, bit for bit. What is random in a pull is
drawn from the arm's seed and the number of the pull, never from what happened before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn import ensemble
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

# These go on with their own random numbers, so that all trees of a few pulls can be grown at once.
AT_ONCE = (
    ensemble.BaggingClassifier,
    ensemble.BaggingRegressor,
    ensemble.ExtraTreesClassifier,
    ensemble.ExtraTreesRegressor,
    ensemble.GradientBoostingClassifier,
    ensemble.GradientBoostingRegressor,
    ensemble.HistGradientBoostingClassifier,
    ensemble.HistGradientBoostingRegressor,
    ensemble.RandomForestClassifier,
    ensemble.RandomForestRegressor,
)


class Lesson(NamedTuple):
    """What an estimator learns from: TRAIN, every class there is, and how much a pull is."""

    X: Any
    y: Any
    classes: Any
    steps: int


class Randomness:
    """Every `random_state` of an estimator, to be set for a pull and put back afterwards.

    Where the user left None, the arm's seed decides; a number of theirs takes the seed's place.
    """

    def __init__(self, estimator: Any, seed: int) -> None:
        own = estimator.get_params()
        names = [name for name in own if name.rpartition("__")[2] == "random_state"]
        self._own = [(own.get(name.rpartition("__")[0], estimator), own[name]) for name in names]
        self._seeds = [seed % 2**31 if value is None else number(value) for _, value in self._own]

    def of(self, pull: int) -> None:
        """The first pull has the seed itself: it is what the estimator would do by itself."""
        for (estimator, _), seed in zip(self._own, self._seeds, strict=True):
            estimator.random_state = mixed(seed, pull) if pull else seed

    def put_back(self) -> None:
        """The user's own again."""
        for estimator, value in self._own:
            estimator.random_state = value


def number(random_state: Any) -> int:
    """A `random_state` as a number; a generator gives one, and is left as it was."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(deepcopy(random_state)).randint(2**31))


def mixed(seed: int, pull: int) -> int:
    """A number for one pull, within the 31 bits that every library takes."""
    return int(np.random.SeedSequence([seed, pull]).generate_state(1)[0]) >> 1


def passes(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`partial_fit`: a step is a pass over TRAIN, in an order of its own."""
    for step in range(done * lesson.steps, upto * lesson.steps):
        random.of(step)
        first = {"classes": lesson.classes} if step == 0 and is_classifier(model) else {}
        model.partial_fit(lesson.X, lesson.y, **first)


def lightgbm_trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """LightGBM: goes on from its own booster."""
    _boosted(model, lesson, done, upto, random, lambda: {"init_model": model.booster_})


def xgboost_trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """XGBoost: goes on from its own booster."""
    _boosted(model, lesson, done, upto, random, lambda: {"xgb_model": model.get_booster()})


def _boosted(
    model: Any,
    lesson: Lesson,
    done: int,
    upto: int,
    random: Randomness,
    before: Callable[[], dict[str, Any]],
) -> None:
    # Each call looks at all rows anew, so that few calls are better; but a booster that draws rows
    # or features begins with its first numbers in each, so that then every pull has its own.
    pulls = range(done, upto) if _draws(model) else [done]
    for pull in pulls:
        random.of(pull)
        model.set_params(n_estimators=lesson.steps * ((upto - done) // len(pulls)))
        model.fit(lesson.X, lesson.y, **(before() if pull else {}))
    model.set_params(n_estimators=upto * lesson.steps)


def _draws(booster: Any) -> bool:
    """Whether it may draw anything at random: what is not known to be harmless may."""
    given = booster.get_params()
    usual = type(booster)().get_params()
    harmless = {
        **dict.fromkeys(("booster", "boosting_type"), (None, "gbtree", "gbdt")),
        **dict.fromkeys(("subsample", "num_parallel_tree", "sampling_method"), (None, 1)),
        **dict.fromkeys((name for name in usual if name.startswith("colsample")), (None, 1)),
        **dict.fromkeys(("early_stopping_rounds", "callbacks"), (None,)),
        **dict.fromkeys(("verbose", "verbosity"), (given.get("verbose"), given.get("verbosity"))),
    }
    return any(
        value not in harmless[name] if name in harmless else name not in usual
        for name, value in given.items()
    )


def trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with a total of trees, under one seed: ensembles skip what they have drawn."""
    total = _total(model)
    own = {"warm_start": model.warm_start}
    model.set_params(warm_start=True)
    stops = getattr(model, "early_stopping", getattr(model, "n_iter_no_change", None))
    if stops == "auto":  # when to stop is the policy's affair
        own["early_stopping"] = stops
        model.set_params(early_stopping=False)
    at_once = isinstance(model, AT_ONCE) and stops in {None, False, "auto"}
    random.of(0)
    warnings.filterwarnings("ignore", "class_weight presets")  # are for one TRAIN, and it is one
    for pulls in [upto] if at_once else range(done + 1, upto + 1):
        model.set_params(**{total: pulls * lesson.steps})
        model.fit(lesson.X, lesson.y)
    model.set_params(**own)  # with warm_start a later fit of the user's would add nothing


def iterations(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """`warm_start` with `max_iter`: each pull goes on from the coefficients of the one before."""
    own = {name: getattr(model, name) for name in ("warm_start", "max_iter")}
    model.set_params(warm_start=True, max_iter=lesson.steps)
    for pull in range(done, upto):
        random.of(pull)
        model.fit(lesson.X, lesson.y)
    model.set_params(**own)


def _total(model: Any) -> str:
    return "n_estimators" if hasattr(model, "n_estimators") else "max_iter"


Way = Callable[[Any, Lesson, int, int, Randomness], None]


def way(estimator: Any) -> tuple[Way, str | None] | None:
    """How it can be trained further, and the parameter that pulls decide; None if it cannot.

    >>> from sklearn.linear_model import LogisticRegression, SGDClassifier
    >>> from sklearn.svm import SVC
    >>> way(SGDClassifier())[0].__name__, way(LogisticRegression())[0].__name__, way(SVC())
    ('passes', 'iterations', None)
    """
    kin = {
        f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(estimator).__mro__
    }
    if "lightgbm.LGBMModel" in kin:  # told by name: neither package need be there
        return lightgbm_trees, "n_estimators"
    if "xgboost.XGBModel" in kin:
        return xgboost_trees, "n_estimators"
    if hasattr(estimator, "partial_fit"):
        return passes, None
    if not hasattr(estimator, "warm_start"):
        return None
    if hasattr(estimator, "n_estimators") or "HistGradientBoosting" in type(estimator).__name__:
        return trees, _total(estimator)
    if hasattr(estimator, "max_iter") and getattr(estimator, "solver", "") != "liblinear":
        return iterations, "max_iter"  # liblinear begins anew whatever warm_start says
    return None


def further(model: Any, lesson: Lesson, done: int, upto: int, seed: int) -> None:
    """Train a model that had `done` pulls up to `upto`; its settings are the user's again then."""
    found = way(model)
    assert found is not None
    random = Randomness(model, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after one iteration it is no news
        found[0](model, lesson, done, upto, random)
    random.put_back()
    for name, value in vars(model).items():
        # Pickled, a view becomes contiguous, and BLAS then adds in another order: do it at once.
        if isinstance(value, np.ndarray) and not value.flags.forc:
            setattr(model, name, value.copy(order="C"))
