"""The peers of `decisions`: what one of their decisions costs, each in the way they are fastest.

Only the decision is counted. Not counted: drawing settings, surrogate models, files, and trials'
beginnings and ends.
"""

from __future__ import annotations

import importlib
import tempfile
from bisect import insort
from collections.abc import Callable
from datetime import datetime
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
from ConfigSpace import Configuration, ConfigurationSpace
from optuna.trial import TrialState
from ray.tune.schedulers import AsyncHyperBandScheduler
from sklearn import model_selection
from sklearn.base import BaseEstimator
from smac import RandomFacade, Scenario
from smac.initial_design import RandomInitialDesign
from smac.intensifier import SuccessiveHalving
from smac.runhistory import TrialValue
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import randint
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

importlib.import_module("sklearn.experimental.enable_halving_search_cv")  # or it is not there

Curves = Callable[[int, int], float]
LEVELS = (1, 3, 9, 27, 81)


def optuna_seconds(loss: Curves, arms: int, timed: int, of: int) -> float:
    """Seconds for each report and should_prune, in `timed` of every `of` trials.

    A decision reads all trials so far, and all of them would take minutes. The trials that are not
    timed are left in the study as the pruner would leave them, by its own rule; the timed ones
    check that.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
    )
    rungs: list[list[float]] = [[] for _ in range(7)]
    decisions, seconds = 0, 0.0
    for arm in range(arms):
        trial = study.ask()
        for k, rung in enumerate(rungs):
            value = loss(arm, 2**k)
            insort(rung, value)
            pruned = value > rung[max(len(rung) // 2, 1) - 1]
            if 0 <= arm % of - (of - timed) // 2 < timed:
                began = process_time()
                trial.report(value, 2**k)
                stops = trial.should_prune()
                seconds += process_time() - began
                decisions += 1
                assert stops == pruned, "the study is not as it would be"
            else:
                trial.report(value, 2**k)
                study._storage.set_trial_system_attr(trial._trial_id, f"completed_rung_{k}", value)
            if pruned:
                break
        state = TrialState.PRUNED if pruned else TrialState.COMPLETE
        study.tell(trial, None if pruned else value, state=state)
    return seconds / decisions


def ray_seconds(loss: Curves, arms: int) -> float:
    """Seconds for each on_trial_result of trials that stop when they are told to."""
    scheduler = AsyncHyperBandScheduler(
        metric="loss", mode="min", max_t=81, grace_period=1, reduction_factor=3
    )
    decisions, seconds = 0, 0.0
    for arm in range(arms):
        trial = SimpleNamespace(trial_id=str(arm))
        scheduler.on_trial_add(None, trial)
        for level in LEVELS:
            result = {"loss": loss(arm, level), "training_iteration": level}
            began = process_time()
            action = scheduler.on_trial_result(None, trial, result)
            seconds += process_time() - began
            decisions += 1
            if action == "STOP":
                break
    return seconds / decisions


def syne_tune_seconds(loss: Curves, arms: int) -> float:
    """Seconds for each on_trial_result of trials that stop when they are told to."""
    scheduler = AsynchronousSuccessiveHalving(
        {"arm": randint(0, arms - 1)},
        metric="loss",
        time_attr="pulls",
        max_t=81,
        grace_period=1,
        reduction_factor=3,
        random_seed=0,
    )
    decisions, seconds = 0, 0.0
    for arm in range(arms):
        trial = Trial(arm, {"arm": arm}, datetime(2000, 1, 1))
        scheduler.on_trial_add(trial)
        for level in LEVELS:
            result = {"loss": loss(arm, level), "pulls": level}
            began = process_time()
            action = scheduler.on_trial_result(trial, result)
            seconds += process_time() - began
            decisions += 1
            if action == "STOP":
                break
    return seconds / decisions


def smac_seconds(loss: Curves, arms: int) -> float:
    """Seconds for each ask and tell, in brackets of 81 arms that are given, not modelled."""
    space = ConfigurationSpace({"arm": (0, arms - 1)})
    decisions, seconds = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, min_budget=1, max_budget=81, n_trials=10 * arms, output_directory=folder, seed=0
        )
        given = [Configuration(space, {"arm": arm}) for arm in range(arms)]
        facade = RandomFacade(
            scenario,
            intensifier=SuccessiveHalving(scenario, eta=3),
            initial_design=RandomInitialDesign(scenario, n_configs=0, additional_configs=given),
            logging_level=False,
        )
        while decisions < arms // 81 * (81 + 27 + 9 + 3 + 1):
            began = process_time()
            trial = facade.ask()
            seconds += process_time() - began
            value = TrialValue(cost=loss(trial.config["arm"], round(trial.budget)))
            began = process_time()
            facade.tell(trial, value, save=False)
            seconds += process_time() - began
            decisions += 1
    return seconds / decisions


class Curve(BaseEstimator):  # type: ignore[misc]
    """An arm as scikit-learn wants it, which takes no time to fit."""

    def __init__(self, arm: int = 0, pulls: int = 1) -> None:
        self.arm = arm
        self.pulls = pulls

    def fit(self, X: Any, y: Any = None) -> Curve:
        """Nothing."""
        return self


def sklearn_seconds(loss: Curves, arms: int) -> float:
    """Seconds for each candidate that HalvingRandomSearchCV fits and scores, on one split."""
    search = model_selection.HalvingRandomSearchCV(
        Curve(),
        {"arm": list(range(arms))},
        n_candidates=arms,
        factor=3,
        resource="pulls",
        min_resources=1,
        max_resources=81,
        cv=[([0], [1])],
        scoring=lambda model, *_: -loss(model.arm, model.pulls),
        refit=False,
        random_state=0,
    )
    began = process_time()
    search.fit(np.zeros((2, 1)))
    seconds = process_time() - began
    fitted: int = sum(search.n_candidates_)
    return seconds / fitted
