"""The search behind a `HalvingSearch`, and what scikit-learn expects of its failures."""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from sklearn.exceptions import FitFailedWarning

from lastarm.batched import BatchedTrainer, Single, is_batched
from lastarm.errors import AllArmsFailed
from lastarm.events import Event, Failure, Loss
from lastarm.policy import Policy
from lastarm.result import Result
from lastarm.searching import search
from lastarm.space import Configs
from lastarm.trainers import Config, Trainer, arm_seed
from lastarm.trainers.estimators import Estimator, Trained


class AllFitsFailed(AllArmsFailed, ValueError, TypeError):
    """No arm could be fitted. Whoever gives bad data to scikit-learn awaits one of these two."""


def searched(
    trainer: Trainer[Any] | BatchedTrainer[Any, Any],
    policy: Policy,
    configs: list[dict[str, Any]],
    *,
    seed: int,
    workers: int,
    error_score: float | Literal["raise"],
    progress: bool,
) -> tuple[Result, list[list[Loss | Failure]]]:
    """The result, and all that was seen of each arm."""
    told: list[list[Loss | Failure]] = [[] for _ in configs]

    def note(event: Event) -> None:
        match event:
            case Failure(retried=False) if error_score == "raise":
                _raise_again(trainer, configs[event.pull.arm], seed, event)
            case Loss() | Failure(retried=False):
                told[event.pull.arm].append(event)

    try:
        result = search(
            trainer,
            Configs(configs),
            policy=policy,
            workers=workers,
            seed=seed,
            on_event=note,
            progress=progress,
        )
    except AllArmsFailed as error:
        raise AllFitsFailed(error.causes) from error
    if result.stopped_by == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # it was meant for the program, not for the search
    if result.arm is None:
        raise KeyboardInterrupt
    if not result.complete:
        warnings.warn(
            f"the search was stopped after {result.spent.pulls} pulls of {policy.budget}; the "
            "best so far is taken",
            stacklevel=4,
        )
    if result.failures:
        causes = Counter(failure.error for failure in result.failures.values())
        shown = "; ".join(f"{error} ({count})" for error, count in causes.most_common(5))
        warnings.warn(
            f"{len(result.failures)} of {len(configs)} settings failed, and have the score "
            f'{error_score}: {shown}. See error_score="raise".',
            FitFailedWarning,
            stacklevel=4,
        )
    return result, told


class FoldByFold:
    """The trainer, telling the score of each fold beside the loss."""

    def __init__(self, trainer: Estimator) -> None:
        self._trainer = trainer
        self.start, self.train = trainer.start, trainer.train

    def loss(self, state: Trained) -> Mapping[str, float]:
        """The mean, and what it is the mean of."""
        return fold_by_fold(self._trainer.losses(state))


def fold_by_fold(losses: Sequence[float]) -> dict[str, float]:
    """The mean of the losses of all folds, and the score of each."""
    scores = {f"split{fold}_test_score": -loss for fold, loss in enumerate(losses)}
    return {"loss": float(np.mean(losses)), **scores}


def trained_alone(
    trainer: Trainer[Any] | BatchedTrainer[Any, Any], config: Config, seed: int, pulls: int
) -> Any:
    """The state of an arm after so many pulls, trained here and now, and looked at."""
    alone: Any = Single(cast(Any, trainer)) if is_batched(trainer) else trainer
    state = alone.train(alone.start(config, seed), pulls)
    alone.loss(state)
    return state


def _raise_again(trainer: Any, config: Config, seed: int, failure: Failure) -> None:
    """The error of an arm itself: it is trained again, here, since only its words are told."""
    arm, upto = failure.pull.arm, failure.pull.upto
    if failure.traceback:  # else its worker died, and so might we
        try:
            trained_alone(trainer, config, arm_seed(seed, arm), upto)
        except SystemExit as end:
            raise RuntimeError(f"{dict(config)} failed: {failure.error}") from end
    raise RuntimeError(f"{dict(config)} failed: {failure.error}\n{failure.traceback}".rstrip())
