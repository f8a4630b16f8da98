"""LightGBM and XGBoost: a step is a tree, and an arm is a booster that lives on between pulls.

Rows are binned once for all arms, a pull adds trees to a live booster, and a look uses the scores
that it keeps: see `live.py`. A booster that was loaded and draws nothing continues on these rows.
One that draws rows or features is grown again from its first tree, because a saved model does not
say what would have been drawn next. A random forest of XGBoost is one round of trees side by side,
so each level has a forest of its own. With settings that are not known here, `fit` continues from
the model's own booster instead, and looks at all rows in every call.

The packages are told by name, so that neither need be installed.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import NotFittedError

from lastarm.trainers.estimators.family import Family, Lesson, NotStopping, Randomness
from lastarm.trainers.estimators.live import DRAWS, LIVE, Engine

# All names that LightGBM has for it. XGBoost has one of them.
STOPPING_ROUNDS = (
    "early_stopping_round",
    "early_stopping_rounds",
    "early_stopping",
    "n_iter_no_change",
)
# The names of what kind a booster is. Some are LightGBM's own, which its wrapper passes on.
KINDS = ("booster", "boosting_type", "boosting", "boost")
FORESTS = ("rf", "random_forest")
# Settings by which a booster may draw rows or features, and the values with which it does not.
NOT_DRAWING: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(KINDS, (None, "gbtree", "gbdt")),
    **dict.fromkeys(("subsample", "num_parallel_tree", "sampling_method"), (None, 1)),
    **{f"colsample_{of}": (None, 1) for of in ("bytree", "bylevel", "bynode")},
    "callbacks": (None,),  # which may do anything
}
# Of those that only `**kwargs` of a wrapper takes: what draws nothing, and what draws.
NEVER_DRAWING = (
    *("verbosity", "verbose", "num_threads", "force_row_wise", "force_col_wise", "metric"),
    *("max_bin", "min_data_in_bin", "bin_construct_sample_cnt", "use_missing", "zero_as_missing"),
    *("enable_bundle", "is_unbalance", "scale_pos_weight", "sigmoid", "boost_from_average"),
    *("min_data_in_leaf", "min_sum_hessian_in_leaf", "lambda_l1", "lambda_l2", "linear_lambda"),
    *("min_gain_to_split", "max_delta_step", "path_smooth", "monotone_constraints"),
    *("monotone_constraints_method", "monotone_penalty", "interaction_constraints"),
    *("max_cat_threshold", "cat_l2", "cat_smooth", "max_cat_to_onehot", "min_data_per_group"),
    *("alpha", "fair_c", "poisson_max_delta_step", "tweedie_variance_power", "deterministic"),
    *STOPPING_ROUNDS,
)
DRAWING = (
    *KINDS,
    *("bagging_fraction", "bagging_freq", "bagging_seed", "feature_fraction", "extra_trees"),
    *("feature_fraction_bynode", "feature_fraction_seed", "extra_seed", "data_sample_strategy"),
    *("pos_bagging_fraction", "neg_bagging_fraction", "top_rate", "other_rate", "drop_rate"),
    *("max_drop", "skip_drop", "xgboost_dart_mode", "uniform_drop", "drop_seed"),
    *("rate_drop", "one_drop", "sample_type", "normalize_type", "seed_per_iteration"),
)
# How many rows LightGBM makes bins from, drawn by its seed if there are more.
SAMPLES_FOR_BINS = ("subsample_for_bin", "bin_construct_sample_cnt")


class Library(NamedTuple):
    """What `fit` of a library is like."""

    base: str  # the class that its models are made from
    kinds: tuple[str, ...]  # whose `fit` can set up a live booster
    params: tuple[str, ...]  # of `fit`, with which it can
    continued_by: str  # the parameter of `fit` that is the booster to continue from


LIGHTGBM_LIBRARY = Library(
    "lightgbm.LGBMModel",
    ("LGBMClassifier", "LGBMRegressor"),
    ("sample_weight", "feature_name", "categorical_feature", "eval_metric"),
    "init_model",
)
XGBOOST_LIBRARY = Library(
    "xgboost.XGBModel",
    ("XGBClassifier", "XGBModel"),  # a regressor has that of XGBModel
    ("sample_weight", "verbose"),
    "xgb_model",
)


def _is_a(name: str, estimator: Any) -> bool:
    kind: Any = type(estimator)
    return name in _names_of(kind)


@lru_cache(64)  # a few, since it keeps them alive
def _names_of(kind: Any) -> Collection[str]:
    return {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in kind.__mro__}


def _trees(
    library: Library, model: Any, lesson: Lesson, done: int, upto: int, random: Randomness
) -> None:
    """Grow a live booster. One that is not live is resumed, or grown again if it draws."""
    engine = _engine(library)
    if not (done and engine.booster(model) in LIVE):
        given = _settings(model)
        if not (_lives(library, model, lesson.params, given) and _can_be_shared(lesson)):
            _trees_by_fit(library, model, lesson, done, upto, random)
            return
        random.of(0)
        draws = _draws(model, given)
        if done and not draws:
            engine.resume(model, lesson, (upto - done) * lesson.steps)
            done = upto
        else:
            engine.begin(model, lesson, draws=draws)
            done = 0
        DRAWS[engine.booster(model)] = draws
    engine.grow(model, (upto - done) * lesson.steps)
    model.n_estimators = upto * lesson.steps  # by `set_params`, XGBoost gives its booster all


def _trees_by_fit(
    library: Library, model: Any, lesson: Lesson, done: int, upto: int, random: Randomness
) -> None:
    """By `fit`, which continues from the booster that there is."""
    # Each call looks at all rows anew, so that few calls are better; but a booster that draws rows
    # or features begins with its first numbers in each, so that then every pull has its own.
    pulls = range(done, upto) if _draws(model, _settings(model)) else [done]
    for pull in pulls:
        random.of(pull)
        model.set_params(n_estimators=lesson.steps * ((upto - done) // len(pulls)))
        before = {library.continued_by: _engine(library).booster(model)} if pull else {}
        model.fit(lesson.X, lesson.y, **lesson.params, **before)
    model.set_params(n_estimators=upto * lesson.steps)


def _parallel_trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """All trees of a forest of XGBoost, anew: their leaves are shares of the one round."""
    random.of(0)
    model.n_estimators = upto * lesson.steps
    model.fit(lesson.X, lesson.y, **lesson.params)


def _engine(library: Library) -> Engine:
    """What trains its boosters. The package is there, because a model is of it."""
    package = library.base.partition(".")[0]
    return cast(Engine, importlib.import_module(f"lastarm.trainers.estimators.live_{package}"))


def _lives(
    library: Library, model: Any, params: Mapping[str, Any], given: Mapping[str, Any]
) -> bool:
    """Whether a model can be a live booster, with parameters of `fit` and the settings given."""
    fit = type(model).fit
    return (
        fit.__module__.partition(".")[0] == library.base.partition(".")[0]
        and fit.__qualname__.partition(".")[0] in library.kinds
        and _known(model).issuperset(given)
        and set(library.params).issuperset(params)
        and given.get("booster") != "gblinear"
        and given.get("device") in (None, "cpu")
        and given.get("callbacks") is None
        and not callable(given.get("objective"))
    )


def _usual(model: Any) -> Collection[str]:
    """The settings that a model of its kind always has."""
    kind: Any = type(model)
    return _settings_of(kind)


@cache
def _settings_of(kind: Any) -> Collection[str]:
    for one in kind.__mro__:
        with suppress(TypeError):  # a class of the user's may require arguments
            return frozenset(one().get_params())
    raise AssertionError(f"{kind} is not made from a class of its library")


def _known(model: Any) -> set[str]:
    """The settings with which it can be a live booster."""
    return {*_usual(model), *NEVER_DRAWING, *DRAWING}


def _can_be_shared(lesson: Lesson) -> bool:
    """Whether `fit` takes the rows as they are. It says what is wrong with others."""
    if "can be shared" not in lesson.kept:
        X, y, weights = lesson.X, lesson.y, lesson.params.get("sample_weight")
        given = [np.asarray(one) for one in (y, weights) if one is not None]
        lesson.kept["can be shared"] = hasattr(X, "shape") and (
            (hasattr(X, "iloc") or hasattr(X, "tocsr") or np.asarray(X[:1]).dtype.kind in "biuf")
            and np.ndim(y) == 1
            and np.unique(y).size > 1
            and all(one.dtype.kind != "f" or np.isfinite(one).all() for one in given)
        )
    return bool(lesson.kept["can be shared"])


def _settings(model: Any) -> dict[str, Any]:
    """The settings that it is trained with."""
    given: dict[str, Any] = model.get_params(deep=False)  # takes longer than a small tree
    return given | _without_stopping(given)


def _draws(model: Any, given: Mapping[str, Any], tuned: Collection[str] = ()) -> bool:
    """Whether it may draw anything at random: a parameter may unless it is known not to.

    `tuned` are the names of those that have other values in other arms.
    """
    usual = _usual(model)
    # LightGBM draws rows only if it is told how often.
    never = given.get("subsample_freq") == 0 and "subsample_freq" not in tuned
    return any(
        name in tuned or value not in NOT_DRAWING[name]
        if name in NOT_DRAWING
        else name not in usual and name not in NEVER_DRAWING
        for name, value in {**dict.fromkeys(tuned), **given}.items()
        if not (never and name == "subsample")
    )


def _judged(library: Library, model: Any, X: Any) -> Any:
    """The model as scorers see it: a live booster has kept its predictions for VAL."""
    engine = _engine(library)
    # Trees that are weighed anew leave other last bits in scores that are kept.
    anew = "dart" in _kinds(model) or _is_forest(model)
    return model if anew or engine.booster(model) not in LIVE else engine.judged(model, X)


def _size(library: Library, model: Any) -> int:
    """About how many bytes a booster holds; of one that is not live, those of the model."""
    engine = _engine(library)
    return engine.size(model) if engine.booster(model) in LIVE else len(pickle.dumps(model))


def _kinds(model: Any) -> list[Any]:
    """What kind of booster it is, by whichever name that was given."""
    return [getattr(model, name) for name in KINDS if getattr(model, name, None) is not None]


def _is_forest(model: Any) -> bool:
    """Whether LightGBM grows its trees side by side, each as the only one."""
    return any(kind in FORESTS for kind in _kinds(model))


def _trained_otherwise_before(
    library: Library, model: Any, params: Mapping[str, Any], tuned: Collection[str], rows: int
) -> bool:
    """Version 0.1 drew anew in every pull, and binned the rows of each arm by its own seed."""
    given = _settings(model)
    if not _known(model).issuperset(tuned) or not _lives(library, model, params, given):
        return False
    for_bins = [given[name] for name in SAMPLES_FOR_BINS if name in given]
    return (
        _draws(model, given, tuned)
        or any(rows > most for most in for_bins)
        or not {*SAMPLES_FOR_BINS}.isdisjoint(tuned)
    )


def _described(
    library: Library, model: Any, params: Mapping[str, Any], shape: tuple[int, int] | None
) -> dict[str, Any]:
    """What a live booster does that `fit` would not, or not on every machine."""
    lives = _lives(library, model, params, _settings(model))
    return _engine(library).described(model, shape) if lives else {}


def _continues(library: Library, model: Any, params: Mapping[str, Any]) -> bool:
    """Whether a saved copy can be trained further: what is drawn next is not saved."""
    with suppress(NotFittedError):
        draws = DRAWS.get(_engine(library).booster(model))
        if draws is not None:
            return not draws
    given = _settings(model)
    return not (_lives(library, model, params, given) and _draws(model, given))


def _end_training(library: Library, model: Any) -> None:
    """Let a live booster become a plain model."""
    engine = _engine(library)
    if engine.booster(model) in LIVE:
        engine.end_training(model)


def _not_stopping(model: Any, params: Mapping[str, Any]) -> NotStopping:
    """Without rounds of early stopping, and without callbacks that stop."""
    if any(map(_stops, params.get("callbacks") or ())):
        params = {**params, "callbacks": _others(params["callbacks"])}
    given = {name: getattr(model, name, None) for name in (*STOPPING_ROUNDS, "callbacks")}
    given |= getattr(model, "kwargs", None) or {}  # where XGBoost has what it does not know
    return NotStopping(_without_stopping(given), params)


def _without_stopping(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in place of those by which a model would stop early."""
    settings: dict[str, Any] = {name: None for name in STOPPING_ROUNDS if given.get(name)}
    if any(map(_stops, given.get("callbacks") or ())):  # XGBoost has them among its settings
        settings["callbacks"] = _others(given["callbacks"])
    return settings


def _stops(callback: Any) -> bool:
    return "EarlyStopping" in type(callback).__name__


def _others(callbacks: Any) -> Any:
    return [callback for callback in callbacks if not _stops(callback)] or None


# With the other names of it that the libraries know.
COUNTED = (
    *("n_estimators", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees"),
    *("num_round", "num_rounds", "nrounds", "num_boost_round", "max_iter"),
)


def _family(library: Library, **others: Any) -> Family:
    return Family(
        partial(_is_a, library.base),
        partial(_trees, library),
        counted=COUNTED,
        not_stopping=_not_stopping,
        judged=partial(_judged, library),
        continues=partial(_continues, library),
        size=partial(_size, library),
        end_training=partial(_end_training, library),
        trained_otherwise_before=partial(_trained_otherwise_before, library),
        described=partial(_described, library),
        **others,
    )


LIGHTGBM = _family(
    LIGHTGBM_LIBRARY,
    boosts=lambda model: not _is_forest(model),
    # Scores to begin with are replaced by those of the trees that a model continues from.
    own_params=("init_model", "init_score"),
    threads="n_jobs",  # left out, it asks for as many as there are cores
)
XGBOOST = _family(XGBOOST_LIBRARY, boosts=lambda _: True, own_params=("xgb_model",))
# A forest is one round of trees side by side, so no further tree can be added.
XGBOOST_FORESTS = Family(
    lambda model: any(
        _is_a(f"xgboost.XGBRF{kind}", model) for kind in ("Classifier", "Regressor")
    ),
    _parallel_trees,
    counted=(*COUNTED, "num_parallel_tree"),
    not_stopping=_not_stopping,
    boosts=lambda _: False,
    own_params=("xgb_model",),
    restarts=lambda _: True,
)
