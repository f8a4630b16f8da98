"""CatBoost: a step is a tree, and a model continues from itself while it stays in its process.

A model that was just trained keeps the scores of all rows and what it would draw next. `fit` with
this model as its `init_model` then adds the trees that it would have grown at once, bit for bit.
One that was loaded has lost both, and even without draws its trees differ in their last bits. So
it is grown again from its first tree.

Rows are quantised once, for all arms with the same settings for it.
"""

from __future__ import annotations

import importlib
import pickle
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from lastarm.trainers.estimators.compat_catboost import change_settings, settings_meanwhile
from lastarm.trainers.estimators.family import Family, Lesson, NotStopping, Randomness

COUNTED = ("iterations", "n_estimators", "num_boost_round", "num_trees")
SEEDS = ("random_seed", "random_state")
LOUDNESS = ("verbose", "verbose_eval", "silent", "logging_level", "metric_period")
OF_QUANTISING = ("border_count", "max_bin", "feature_border_type", "nan_mode", "ignored_features")
OTHER_FEATURES = ("text_features", "embedding_features", "per_float_feature_quantization")
# With these, CatBoost cannot continue a model, or it has not been tried.
NOT_CONTINUED = ("langevin", "posterior_sampling", "model_shrink_rate", "task_type")


class Live(NamedTuple):
    """A model that is being trained in this process, and how many rows it learns from."""

    model: weakref.ref[Any]
    rows: int


LIVE: dict[int, Live] = {}  # by the ids of models, which have no hash


def _is_catboost(estimator: Any) -> bool:
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(estimator).__mro__}
    return "catboost.core.CatBoost" in names


def _is_live(model: Any) -> bool:
    return id(model) in LIVE and LIVE[id(model)].model() is model


def _trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """Add trees to a live model; any other is grown from its first tree."""
    own = {name: value for name, value in model.get_params().items() if name not in COUNTED}
    settings = {"allow_writing_files": False, **own}
    if not own.keys() & SEEDS:
        settings["random_seed"] = random.seed
    if not own.keys() & LOUDNESS:
        settings["logging_level"] = "Silent"
    if "thread_count" not in own and lesson.threads is not None:
        settings["thread_count"] = lesson.threads
    begun = bool(done) and _is_live(model) and not _restarts(model)
    settings["iterations"] = (upto - (done if begun else 0)) * lesson.steps
    with settings_meanwhile(model, settings):
        model.fit(**_rows(own, lesson), init_model=model if begun else None)
    change_settings(model, {**own, "iterations": upto * lesson.steps})
    key = id(model)
    LIVE[key] = Live(weakref.ref(model, lambda _: LIVE.pop(key, None)), len(lesson.y))


def _rows(own: Mapping[str, Any], lesson: Lesson) -> dict[str, Any]:
    """What `fit` learns from: rows that all arms share, if nothing else goes with them."""
    X, y, params = lesson.X, lesson.y, lesson.params
    if not {"sample_weight", "cat_features"}.issuperset(params) or own.keys() & OTHER_FEATURES:
        return {"X": X, "y": y, **params}
    how = {name: own[name] for name in OF_QUANTISING if name in own}
    categories = params.get("cat_features", own.get("cat_features"))
    key = f"CatBoost {how} {categories}"
    if key not in lesson.kept:
        threads = {} if lesson.threads is None else {"thread_count": lesson.threads}
        weights = params.get("sample_weight")
        pool = importlib.import_module("catboost").Pool(
            X, y, cat_features=categories, weight=weights, **threads
        )
        if categories is None and hasattr(X, "dtype"):
            pool.quantize(**how)
        lesson.kept[key] = pool
    return {"X": lesson.kept[key]}


def _restarts(model: Any) -> bool:
    """Whether every level is trained from the first tree."""
    given = model.get_params()
    return any(given.get(name) for name in NOT_CONTINUED)


def _size(model: Any) -> int:
    """About how many bytes it holds. For each row and class there are 60 to 100."""
    trees = len(pickle.dumps(model))
    if not _is_live(model):
        return trees
    classes = max(2, len(getattr(model, "classes_", ()))) - 1
    return trees + 80 * LIVE[id(model)].rows * classes


def _described(
    model: Any, params: Mapping[str, Any], shape: tuple[int, int] | None
) -> dict[str, Any]:
    """Its settings, which do not show in a text about it, and the number of bins."""
    given = model.get_params()
    bins = given.get("border_count", given.get("max_bin", 254))
    return {"parameters": repr(sorted(given.items())), "bins": bins}


CATBOOST = Family(
    _is_catboost,
    _trees,
    counted=COUNTED,
    not_stopping=lambda model, params: NotStopping({}, params),  # it needs an `eval_set` to stop
    boosts=lambda model: True,
    own_params=("init_model", "eval_set", "early_stopping_rounds", "use_best_model"),
    continues=lambda model, params: False,
    size=_size,
    restarts=_restarts,
    described=_described,
)
