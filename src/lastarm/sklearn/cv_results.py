"""The losses of all arms, fold by fold, as scikit-learn's `cv_results_` has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import isfinite, nan
from numbers import Number
from typing import Any

import numpy as np

from lastarm.events import Failure, Loss
from lastarm.trainers.estimators import Estimator, Trained


class FoldByFold:
    """The trainer, with the score of each fold beside the loss."""

    def __init__(self, trainer: Estimator) -> None:
        self._trainer = trainer
        self.start, self.train = trainer.start, trainer.train

    def loss(self, state: Trained) -> Mapping[str, float]:
        """The mean loss of all folds, and the score of each."""
        return fold_by_fold(self._trainer.losses(state))


def fold_by_fold(losses: Sequence[float]) -> dict[str, float]:
    """The mean of the losses of all folds, and the score of each."""
    scores = {f"split{fold}_test_score": -loss for fold, loss in enumerate(losses)}
    return {"loss": float(np.mean(losses)), **scores}


def cv_results(
    configs: list[dict[str, Any]],
    told: list[list[Loss | Failure]],
    *,
    best: int,
    levels: list[int],
    n_splits: int,
    error_score: Any,
) -> dict[str, Any]:
    """The table `cv_results_`, in which row i is arm i as it was observed last.

    - `configs`: the config of each arm.
    - `told`: all losses and failures of each arm, in their order.
    - `best`: the arm that is recommended.
    - `levels`: the numbers of pulls at which arms were compared.
    - `n_splits`: the number of folds.
    - `error_score`: the score of arms that failed.

    The ranks put the best arm first, then arms with more pulls, and compare scores only among arms
    with equal pulls, because other scores cannot be compared.
    """
    folds = range(n_splits)
    scores = np.full((len(configs), n_splits), nan)
    for arm, events in enumerate(told):
        match events[-1:]:
            case [Failure()]:
                scores[arm] = error_score
            case [Loss(metrics=dict() as seen)]:
                scores[arm] = [float(seen[f"split{fold}_test_score"]) for fold in folds]
    with np.errstate(invalid="ignore"):  # a score may be infinite
        means, deviations = scores.mean(axis=1), scores.std(axis=1)
    level = [events[-1].pull.upto if events else 0 for events in told]
    order = []
    for arm, events in enumerate(told):
        out = not events or isinstance(events[-1], Failure) or not isfinite(means[arm])
        place = (0, 0.0) if out else (-level[arm], -means[arm])
        order.append((arm != best, out, *place))
    in_order = sorted(order)
    names = list(dict.fromkeys(name for config in configs for name in config))
    work = [[event.work for event in events] for events in told]
    return {
        "mean_fit_time": np.array(
            [sum(done.train_seconds for done in arm) / n_splits for arm in work]
        ),
        "mean_score_time": np.array(
            [sum(done.loss_seconds for done in arm) / n_splits for arm in work]
        ),
        **{f"param_{name}": _column(name, configs) for name in names},
        "params": [dict(config) for config in configs],
        **{f"split{fold}_test_score": scores[:, fold] for fold in folds},
        "mean_test_score": means,
        "std_test_score": deviations,
        "rank_test_score": np.array([1 + bisect_left(in_order, arm) for arm in order]),
        "n_resources": np.array(level),
        "iter": np.array([bisect_left([0, *levels], upto) - 1 for upto in level]),
    }


def _column(name: str, configs: list[dict[str, Any]]) -> Any:
    """The value of each arm under that name, masked if it has none."""
    values = [config[name] for config in configs if name in config]
    numbers = all(isinstance(value, Number) for value in values)
    dtype = np.array(values).dtype if numbers else object
    column = np.ma.MaskedArray(np.zeros(len(configs), dtype), mask=True)
    for arm, config in enumerate(configs):
        if name in config:
            column[arm] = config[name]
    return column
