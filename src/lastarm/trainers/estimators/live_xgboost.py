"""Live boosters of XGBoost: see `live.py`.

The wrapper's own `fit` makes the booster, of a few rows and without trees. The booster looks at
the rows for the first time when it grows a tree, and these are all rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from xgboost import DMatrix, QuantileDMatrix, XGBModel

from lastarm.trainers.estimators.family import Lesson, cut
from lastarm.trainers.estimators.live import LIVE, Binned, Judged, answering, few_rows


def booster(model: Any) -> Any:
    """The booster of a fitted model."""
    return model.get_booster()


def begin(model: Any, lesson: Lesson, *, draws: bool) -> None:
    """Give a model a live booster without trees, with all that its own `fit` would set."""
    few = few_rows(model, lesson)
    model.n_estimators = 0  # by `set_params`, a booster that is there gets all settings, too
    model.fit(cut(lesson.X, few), cut(lesson.y, few))
    live = model.get_booster()
    if draws:  # otherwise by numbers that all boosters of the process draw from
        live.set_param("seed_per_iteration", True)
    LIVE[live] = _binned(model, lesson)


def resume(model: Any, lesson: Lesson, trees: int) -> None:
    """Make the booster of a model that was loaded live, and add `trees` trees."""
    LIVE[model.get_booster()] = _binned(model, lesson)
    grow(model, trees)


def grow(model: Any, trees: int) -> None:
    """Add `trees` trees."""
    live = model.get_booster()
    rows, done = LIVE[live].train, live.num_boosted_rounds()
    for number in range(done, done + trees):
        live.update(rows, number)


def judged(model: Any, X: Any) -> Any:
    """The model with predictions for X from the scores that its live booster keeps."""
    binned = LIVE[model.get_booster()]
    if binned.judged is None or binned.judged.X is not X:
        binned.judged = Judged(X, DMatrix(X, **_as_given(model), nthread=model.n_jobs))
    return answering(model, _Answering, binned.judged)


class _Answering(XGBModel):
    """A model whose predictions for the rows of VAL are those that its booster has kept."""

    judged: Judged

    def predict(self, X: Any, *, output_margin: bool = False, **others: Any) -> Any:
        """Predictions. For rows that a booster has seen before, it adds those of new trees."""
        asked = {**others, "validate_features": None}  # the features are those of VAL
        if X is not self.judged.X or any(value is not None for value in asked.values()):
            return super().predict(X, output_margin=output_margin, **others)
        return self.get_booster().predict(self.judged.rows, output_margin=output_margin)


def size(model: Any) -> int:
    """About how many bytes a live booster holds, without the rows that it shares.

    Of these, histograms are the most: one of each node, of 16 bytes for each bin.
    """
    live = model.get_booster()
    binned = LIVE[live]
    rows = binned.train.num_row()
    if not binned.bins:
        quantiles = isinstance(binned.train, QuantileDMatrix)
        of_column = model.max_bin or 256
        cuts = binned.train.get_quantile_cut()[1].size if quantiles else 0
        binned.bins = cuts or binned.train.num_col() * of_column
    scores = rows + (binned.judged.rows.num_row() if binned.judged else 0)
    classes = max(2, getattr(model, "n_classes_", 2)) - 1
    leaves = model.max_leaves or 2 ** min(24, 6 if model.max_depth is None else model.max_depth)
    trees = live.num_boosted_rounds() * classes
    histograms = min(leaves, rows) * (16 * binned.bins + 100 * trees)
    return int(16 * scores * classes + 16 * rows + histograms)


def described(model: Any, shape: tuple[int, int] | None) -> dict[str, Any]:
    """How rows of this shape are binned and added up, for the fingerprint."""
    return {"bins": model.max_bin or 256}


def end_training(model: Any) -> None:
    """Let go of the rows and of what only training needs."""
    live = model.get_booster()
    del LIVE[live]
    live.reset()


def _binned(model: Any, lesson: Lesson) -> Binned:
    """The rows for all arms with the same settings for bins."""
    quantiles = model.tree_method in (None, "auto", "hist")
    given = _as_given(model)
    key = f"XGBoost {quantiles and model.max_bin} {given} {quantiles} {model.feature_weights!r}"
    if key not in lesson.kept:
        given |= {"weight": lesson.params.get("sample_weight"), "nthread": model.n_jobs}
        kind = partial(QuantileDMatrix, max_bin=model.max_bin) if quantiles else DMatrix
        rows = kind(lesson.X, lesson.y, feature_weights=model.feature_weights, **given)
        lesson.kept[key] = Binned(rows)
    binned: Binned = lesson.kept[key]
    return binned


def _as_given(model: Any) -> dict[str, Any]:
    names = ("missing", "feature_types", "enable_categorical")
    return {name: getattr(model, name) for name in names}
