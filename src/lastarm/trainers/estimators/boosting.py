"""LightGBM and XGBoost: a step is a tree, and a model continues from its own booster.

Both are told by name, so that neither package need be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lastarm.trainers.estimators.family import Family, Lesson, NotStopping, Randomness

# All names that LightGBM has for it. XGBoost has one of them.
STOPPING_ROUNDS = (
    "early_stopping_round",
    "early_stopping_rounds",
    "early_stopping",
    "n_iter_no_change",
)


def _is_a(name: str, estimator: Any) -> bool:
    kinds = type(estimator).__mro__
    return name in {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds}


def _trees(
    before: Callable[[Any], dict[str, Any]],
    model: Any,
    lesson: Lesson,
    done: int,
    upto: int,
    random: Randomness,
) -> None:
    # Each call looks at all rows anew, so that few calls are better; but a booster that draws rows
    # or features begins with its first numbers in each, so that then every pull has its own.
    pulls = range(done, upto) if _draws(model) else [done]
    for pull in pulls:
        random.of(pull)
        model.set_params(n_estimators=lesson.steps * ((upto - done) // len(pulls)))
        model.fit(lesson.X, lesson.y, **lesson.params, **(before(model) if pull else {}))
    model.set_params(n_estimators=upto * lesson.steps)


def _draws(booster: Any) -> bool:
    """Whether it may draw anything at random: a parameter may unless it is known not to."""
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


def _not_stopping(model: Any, params: Mapping[str, Any]) -> NotStopping:
    """Without rounds of early stopping, and without callbacks that stop."""
    given = model.get_params(deep=False)
    settings: dict[str, Any] = {name: None for name in STOPPING_ROUNDS if given.get(name)}
    if any(map(_stops, given.get("callbacks") or ())):  # XGBoost has them among its settings
        settings["callbacks"] = _others(given["callbacks"])
    if any(map(_stops, params.get("callbacks") or ())):
        params = {**params, "callbacks": _others(params["callbacks"])}
    return NotStopping(settings, params)


def _stops(callback: Any) -> bool:
    return "EarlyStopping" in type(callback).__name__


def _others(callbacks: Any) -> Any:
    return [callback for callback in callbacks if not _stops(callback)] or None


# With the other names of it that the libraries know.
COUNTED = (
    *("n_estimators", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees"),
    *("num_round", "num_rounds", "nrounds", "num_boost_round", "max_iter"),
)
LIGHTGBM = Family(
    partial(_is_a, "lightgbm.LGBMModel"),
    partial(_trees, lambda model: {"init_model": model.booster_}),
    counted=COUNTED,
    not_stopping=_not_stopping,
    boosts=lambda model: getattr(model, "boosting_type", None) != "rf",
    # Scores to begin with are replaced by those of the trees that a model continues from.
    own_params=("init_model", "init_score"),
    threads="n_jobs",  # left out, it asks for as many as there are cores
)
XGBOOST = Family(
    partial(_is_a, "xgboost.XGBModel"),
    partial(_trees, lambda model: {"xgb_model": model.get_booster()}),
    counted=COUNTED,
    not_stopping=_not_stopping,
    boosts=lambda _: True,
    own_params=("xgb_model",),
)
