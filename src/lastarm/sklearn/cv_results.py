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
from lastarm.trainers.estimators.scoring import ONLY


class FoldByFold:
    """The trainer, with the scores of each fold beside the loss.

    - `trainer`: it trains and scores the arms.
    - `train_scores`: whether to look at the scores on TRAIN, too.
    """

    def __init__(self, trainer: Estimator, *, train_scores: bool = False) -> None:
        self._trainer = trainer
        self.train_scores = train_scores
        self.start, self.train = trainer.start, trainer.train
        self.on_all_rows, self.continues = trainer.on_all_rows, trainer.continues
        if hasattr(trainer, "size"):
            self.size = trainer.size
        self.version, self.shown_as = trainer.version, trainer.shown_as
        self.restarts, self.max_pulls = trainer.restarts, trainer.max_pulls

    def loss(self, state: Trained) -> Mapping[str, float]:
        """The mean loss of all folds, and the scores of each."""
        on_train = self._trainer.scores(state, "train") if self.train_scores else []
        return self.told(self._trainer.scores(state), on_train)

    def told(
        self, scores: Sequence[Mapping[str, float]], on_train: Sequence[Mapping[str, float]] = ()
    ) -> dict[str, float]:
        """The mean loss of all folds, the mean of each metric by its name, and all scores.

        - `scores`: of each fold, by the name of the metric.
        - `on_train`: the same on TRAIN.
        """
        loss = float(np.mean([-fold[self._trainer.metrics.compared] for fold in scores]))
        named = [name for name in scores[0] if name != ONLY]
        return {
            **{name: float(np.mean([fold[name] for fold in scores])) for name in named},
            "loss": loss,
            **{
                f"split{fold}_{part}_{name}": score
                for part, folds in (("test", scores), ("train", on_train))
                for fold, found in enumerate(folds)
                for name, score in found.items()
            },
        }

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the trainer, and whether scores on TRAIN are in the journal."""
        train_scores = {"train_scores": True} if self.train_scores else {}
        return self._trainer.fingerprint() | train_scores


def cv_results(
    configs: list[dict[str, Any]],
    told: list[list[Loss | Failure]],
    *,
    best: int,
    metric: str,
    at_best: bool,
    levels: list[int],
    n_splits: int,
    error_score: Any,
) -> dict[str, Any]:
    """The table `cv_results_`, in which row i is arm i as it was observed last.

    - `configs`: the config of each arm.
    - `told`: all losses and failures of each arm, in their order.
    - `best`: the arm that is recommended.
    - `metric`: the name of the metric that arms are compared by.
    - `at_best`: whether the rows are of arms as they were when their loss was lowest.
    - `levels`: the numbers of pulls at which arms were compared.
    - `n_splits`: the number of folds.
    - `error_score`: the score of arms that failed.

    The ranks put arms with more pulls first, and compare scores only among arms with equal pulls,
    because other scores cannot be compared; by the metric of the search, the best arm is first. If
    arms are shown at their best, all scores are compared.
    """
    shown = [_shown(events, at_best=at_best) for events in told]
    level = [event.pull.upto if event else 0 for event in shown]
    names = list(dict.fromkeys(name for config in configs for name in config))
    work = [[event.work for event in events] for events in told]
    table = {
        "mean_fit_time": np.array(
            [sum(done.train_seconds for done in arm) / n_splits for arm in work]
        ),
        "mean_score_time": np.array(
            [sum(done.loss_seconds for done in arm) / n_splits for arm in work]
        ),
        **{f"param_{name}": _column(name, configs) for name in names},
        "params": [dict(config) for config in configs],
    }
    seen = next(event.metrics for event in shown if isinstance(event, Loss) and event.metrics)
    for column in [name.removeprefix("split0_") for name in seen if name.startswith("split0_")]:
        scores = np.full((len(configs), n_splits), nan)
        for arm, event in enumerate(shown):
            match event:
                case Failure():
                    scores[arm] = error_score
                case Loss(metrics=dict() as found):
                    columns = [f"split{fold}_{column}" for fold in range(n_splits)]
                    scores[arm] = [float(found[name]) for name in columns]
        with np.errstate(invalid="ignore"):  # a score may be infinite
            means, deviations = scores.mean(axis=1), scores.std(axis=1)
        table |= {f"split{fold}_{column}": scores[:, fold] for fold in range(n_splits)}
        table |= {f"mean_{column}": means, f"std_{column}": deviations}
        if column.startswith("test_"):
            order = []
            for arm, event in enumerate(shown):
                out = not isinstance(event, Loss) or not isfinite(means[arm])
                place = (0, 0.0) if out else (0 if at_best else -level[arm], -means[arm])
                order.append((arm != best and column == f"test_{metric}", out, *place))
            in_order = sorted(order)
            table[f"rank_{column}"] = np.array([1 + bisect_left(in_order, arm) for arm in order])
    return table | {
        "n_resources": np.array(level),
        "iter": np.array([bisect_left([0, *levels], upto) - 1 for upto in level]),
    }


def _shown(events: Sequence[Loss | Failure], *, at_best: bool) -> Loss | Failure | None:
    """The observation of an arm that its row is about, if it has one."""
    last = events[-1] if events else None
    if not at_best or not isinstance(last, Loss) or not isfinite(last.value):
        return last
    finite = [event for event in events if isinstance(event, Loss) and isfinite(event.value)]
    return min(finite, key=lambda event: event.value)


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
