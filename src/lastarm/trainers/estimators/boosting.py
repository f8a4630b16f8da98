"""LightGBM and XGBoost: a step is a tree, and a model continues from its own booster.

Both are told by name, so that neither package need be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lastarm.trainers.estimators.family import Family, Lesson, Randomness


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
        model.fit(lesson.X, lesson.y, **(before(model) if pull else {}))
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


LIGHTGBM = Family(
    partial(_is_a, "lightgbm.LGBMModel"),
    partial(_trees, lambda model: {"init_model": model.booster_}),
    counted="n_estimators",
)
XGBOOST = Family(
    partial(_is_a, "xgboost.XGBModel"),
    partial(_trees, lambda model: {"xgb_model": model.get_booster()}),
    counted="n_estimators",
)
