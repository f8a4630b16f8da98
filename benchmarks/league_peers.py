"""The peers of `league`: schedulers that stop arms, asked through their own objects.

None of them knows a budget. Each takes one arm after the other, in the order of the draw, and says
at its rungs whether it goes on.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from types import SimpleNamespace

import optuna
from optuna.trial import TrialState
from ray.tune.schedulers import AsyncHyperBandScheduler
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import randint
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

from league_curves import Draw, Looks, cut, rungs


def optuna_pruner(draw: Draw) -> Looks:
    """Its defaults; `min_resource` is what "auto" finds out when the first trial is complete."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    first, eta = max(draw.columns // 100, 1), 4
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=draw.number),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=eta),
    )
    for arm in range(draw.arms):
        trial = study.ask()
        for level in rungs(first, eta, draw.columns):
            yield arm, level
            trial.report(draw.loss(arm, level), level)
            if trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                break
        else:
            study.tell(trial, draw.loss(arm, draw.columns))


def ray_tune(draw: Draw) -> Looks:
    """Its defaults, and `max_t`."""
    scheduler = AsyncHyperBandScheduler(metric="loss", mode="min", max_t=draw.columns)
    for arm in range(draw.arms):
        trial = SimpleNamespace(trial_id=str(arm))
        scheduler.on_trial_add(None, trial)
        for level in rungs(1, 4, draw.columns):
            yield arm, level
            result = {"loss": draw.loss(arm, level), "training_iteration": level}
            if scheduler.on_trial_result(None, trial, result) == "STOP":
                break


def syne_tune(draw: Draw) -> Looks:
    """Its defaults, and `max_t`."""
    scheduler = AsynchronousSuccessiveHalving(
        {"arm": randint(0, draw.arms - 1)},
        metric="loss",
        max_t=draw.columns,
        random_seed=draw.number,
    )
    for arm in range(draw.arms):
        trial = Trial(arm, {"arm": arm}, datetime(2000, 1, 1))
        scheduler.on_trial_add(trial)
        for level in rungs(1, 3, draw.columns):
            yield arm, level
            result = {"loss": draw.loss(arm, level), "training_iteration": level}
            if scheduler.on_trial_result(trial, result) == "STOP":
                break


PEERS = {
    "Optuna's SuccessiveHalvingPruner": partial(cut, optuna_pruner),
    "Ray Tune's ASHA": partial(cut, ray_tune),
    "Syne Tune's ASHA": partial(cut, syne_tune),
}
