"""HistGradientBoosting: trees by `warm_start`, on rows that are put into bins once for all arms.

To put 50,000 rows of 50 features into bins takes as long as 15 trees. scikit-learn does it in
every `fit`, also in one that continues. Here arms on the same rows share the bins, as far as their
settings allow it: `max_bins`, `categorical_features` and weights make others, and so does the
`random_state` above 200,000 rows, of which bins are then drawn. What the trees so far predict for
TRAIN is kept, too, beside a model that stays in memory. A model that was pickled predicts it anew.
"""

from __future__ import annotations

from typing import Any

from lastarm.trainers.estimators import scikit_learn
from lastarm.trainers.estimators.compat import BinnedRows, can_share_bins
from lastarm.trainers.estimators.family import Lesson, Randomness


def _trees(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """As other ensembles; with the bins of all arms where the installed scikit-learn allows it."""
    grow = scikit_learn.ENSEMBLES.further
    if not can_share_bins(model):
        return grow(model, lesson, done, upto, random)
    rows = lesson.kept.setdefault("bins", BinnedRows(lesson.X))
    with rows.fitting(model):
        return grow(model, lesson, done, upto, random)


HISTOGRAM_BOOSTING = scikit_learn.ENSEMBLES._replace(
    accepts=lambda one: (
        hasattr(one, "warm_start") and "HistGradientBoosting" in type(one).__name__
    ),
    further=_trees,
    counted=("max_iter",),
)
