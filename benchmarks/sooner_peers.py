"""The contenders of `sooner`: each climbs its settings, from cheap to dear, until one will do."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import optuna
import ray
from sklearn import model_selection
from sklearn.linear_model import SGDClassifier

from lastarm import Configs
from lastarm.sklearn import HalvingSearch
from record import DASK_ML
from sooner_arms import EPOCHS, Attempt, Task
from sooner_ray import asha

importlib.import_module("sklearn.experimental.enable_halving_search_cv")  # or it is not there

SHORT = 2.0  # seconds
Settings = dict[str, dict[str, Any]]
Run = Callable[[Task, str, dict[str, Any]], Attempt]


def lastarm(task: Task, setting: str, numbers: dict[str, Any]) -> Attempt:
    """HalvingSearch, which hands over the model that it trained."""
    rows = np.arange(len(task.y))
    search = HalvingSearch(
        SGDClassifier(),
        Configs(task.arms),
        n_arms=len(task.arms),
        cv=[(rows[: task.learnt], rows[task.learnt :])],
        refit="keep",
        random_state=task.seed,
        **numbers,
    )
    began = perf_counter()
    search.fit(task.X, task.y)
    seconds = perf_counter() - began
    return Attempt(setting, task.test(search.best_estimator_), search.spent_.pulls, seconds)


def halving(task: Task, setting: str, numbers: dict[str, Any]) -> Attempt:
    """HalvingRandomSearchCV; its trainings all count, and so does the winner's last."""
    search, seconds = _sklearns(
        task,
        model_selection.HalvingRandomSearchCV,
        SGDClassifier(tol=None, random_state=task.seed),
        n_candidates=len(task.arms),
        resource="max_iter",
        max_resources=EPOCHS,
        return_train_score=False,
        **numbers,
    )
    rungs = zip(search.n_candidates_, search.n_resources_, strict=True)
    epochs = sum(arms * level for arms, level in rungs) + search.n_resources_[-1]
    return Attempt(setting, task.test(search.best_estimator_), epochs, seconds)


def randomized(task: Task, setting: str, numbers: dict[str, Any]) -> Attempt:
    """RandomizedSearchCV of all arms, each trained for `max_iter` epochs."""
    model = SGDClassifier(tol=None, random_state=task.seed, **numbers)
    search, seconds = _sklearns(
        task, model_selection.RandomizedSearchCV, model, n_iter=len(task.arms)
    )
    epochs = (len(task.arms) + 1) * numbers["max_iter"]
    return Attempt(setting, task.test(search.best_estimator_), epochs, seconds)


def _sklearns(task: Task, kind: Any, model: Any, **settings: Any) -> tuple[Any, float]:
    part = np.where(np.arange(len(task.y)) < task.learnt, -1, 0)
    arms = [{name: [value] for name, value in arm.items()} for arm in task.arms]
    cv = model_selection.PredefinedSplit(part)
    search = kind(model, arms, cv=cv, random_state=task.seed, **settings)
    began = perf_counter()
    search.fit(task.X, task.y)
    return search, perf_counter() - began


def optunas(task: Task, setting: str, numbers: dict[str, Any]) -> Attempt:
    """A study with the SuccessiveHalvingPruner, its trials the arms in their order."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    epochs, models = 0, {}

    def trained(trial: Any) -> float:
        nonlocal epochs
        arm = trial.suggest_int("arm", 0, len(task.arms) - 1)
        model = task.begun(arm)
        for epoch in range(1, numbers["epochs"] + 1):
            loss = task.epoch(model)
            epochs += 1
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        models[arm] = model
        return loss

    began = perf_counter()
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=task.seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1),
    )
    for arm in range(len(task.arms)):
        study.enqueue_trial({"arm": arm})
    study.optimize(trained, n_trials=len(task.arms))
    best = models[study.best_trial.params["arm"]]
    seconds = perf_counter() - began
    return Attempt(setting, task.test(best), epochs, seconds)


def climb(
    run: Run, settings: Settings, task: Task, limit: float, *, warm: int = 8
) -> list[Attempt]:
    """Try the settings until the model that is handed over is good enough."""
    run(task.tiny(warm), *next(iter(settings.items())))
    tried: list[Attempt] = []
    for setting in settings.items():
        if not tried or tried[-1].loss > limit:
            tried.append(_timed(run, task, setting))
    return tried


def _timed(run: Run, task: Task, setting: tuple[str, dict[str, Any]]) -> Attempt:
    """What is short is done three times, and takes the median."""
    attempts = [run(task, *setting)]
    if attempts[0].seconds < SHORT:
        attempts += [run(task, *setting) for _ in range(2)]
    return attempts[0]._replace(seconds=median(attempt.seconds for attempt in attempts))


def climb_ray(settings: Settings, task: Task, limit: float) -> list[Attempt]:
    """With an engine of its own, since one that waits takes time from the others."""
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # it speaks even when told not to
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init("local", num_cpus=1, **quiet)
    try:
        return climb(asha, settings, task, limit)
    finally:
        ray.shutdown()


def climb_dask_ml(settings: Settings, task: Task, limit: float) -> list[Attempt]:
    """As `benchmarks/sooner_dask_ml.py` measures it, with the Dask that it supports."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.npz")
        np.savez(rows, X=task.X, y=task.y, X_test=task.X_test, y_test=task.y_test)
        order = {
            "rows": str(rows),
            "learnt": task.learnt,
            "arms": task.arms,
            "seed": task.seed,
            "limit": limit,
            "settings": settings,
        }
        script = Path(__file__).with_name("sooner_dask_ml.py")
        said = subprocess.run(
            [DASK_ML, script], input=json.dumps(order), check=True, capture_output=True, text=True
        ).stdout
    return [Attempt(*attempt) for attempt in json.loads(said.splitlines()[-1])]
