"""The peers of `digits`: scikit-learn's searches and Optuna's pruner, on the arms of a task."""

from __future__ import annotations

import importlib
from time import perf_counter
from typing import Any

import numpy as np
import optuna
from lightgbm import LGBMClassifier
from sklearn import model_selection
from sklearn.base import clone

from digits_arms import ARMS, MISTAKES, SHARE, Found, Task
from lastarm.trainers.protocol import arm_seed

importlib.import_module("sklearn.experimental.enable_halving_search_cv")  # or it is not there


def halving(task: Task) -> Found:
    """HalvingRandomSearchCV of all the arms, the last as near to full training as it can."""
    found = sklearns(
        task,
        model_selection.HalvingRandomSearchCV,
        n_candidates=ARMS,
        resource=task.family.counted,
        min_resources="exhaust",
        max_resources=task.family.max_pulls,
        return_train_score=False,
    )
    rungs = zip(found.n_candidates_, found.n_resources_, strict=True)
    pulls = sum(arms * level for arms, level in rungs) + found.n_resources_[-1]
    return as_found(task, found, pulls)


def random(task: Task) -> Found:
    """RandomizedSearchCV of 15 arms: with the winner's last training that is a quarter."""
    n_iter = ARMS // SHARE - 1
    found = sklearns(task, model_selection.RandomizedSearchCV, n_iter=n_iter)
    return as_found(task, found, (n_iter + 1) * task.family.max_pulls)


def sklearns(task: Task, kind: Any, **settings: Any) -> Any:
    """A search of scikit-learn's, with the seconds it took."""
    model = clone(task.family.estimator)
    model.set_params(random_state=task.seed, **{task.family.counted: task.family.max_pulls})
    X, y = (np.concatenate(pair) for pair in zip(task.train, task.validation, strict=True))
    part = np.repeat([-1, 0], [len(task.train[1]), len(task.validation[1])])
    arms = [{name: [value] for name, value in arm.items()} for arm in task.arms]
    cv = model_selection.PredefinedSplit(part)
    search = kind(model, arms, cv=cv, random_state=task.seed, **settings)
    began = perf_counter()
    search.fit(X, y)
    search.seconds_ = perf_counter() - began
    return search


def as_found(task: Task, search: Any, pulls: int) -> Found:
    """The number of the arm that it found, and the rest."""
    names = task.arms[0].keys()
    arm = task.arms.index({name: search.best_params_[name] for name in names})
    return Found(arm, 1 - search.score(*task.test), pulls, search.seconds_)


def optunas(task: Task) -> Found:
    """A study with the SuccessiveHalvingPruner, its trials the arms in their order."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pulls, models = 0, {}

    def report(trial: Any, loss: float) -> None:
        nonlocal pulls
        pulls += 1
        trial.report(loss, pulls_of[trial.number])
        pulls_of[trial.number] += 1
        if trial.should_prune():
            raise optuna.TrialPruned

    def steps(trial: Any, arm: int) -> float:
        state = task.trainer.start(task.arms[arm], arm_seed(task.seed, arm))
        for _ in range(task.family.max_pulls):
            state = task.trainer.train(state, 1)
            report(trial, loss := task.trainer.loss(state))
        models[arm] = state.model
        return float(loss)

    def callback(trial: Any, arm: int) -> float:
        model = clone(task.family.estimator)
        model.set_params(**task.arms[arm], n_estimators=task.family.max_pulls)

        def after(env: Any) -> None:
            report(trial, dict(entry[1:3] for entry in env.evaluation_result_list)[MISTAKES])

        X, y = task.validation
        seen = {"eval_X": X, "eval_y": y, "eval_metric": MISTAKES, "callbacks": [after]}
        model.fit(*task.train, **seen)
        models[arm] = model
        return float(model.evals_result_["valid_0"][MISTAKES][-1])

    pulls_of = [1] * ARMS
    trained = callback if isinstance(task.family.estimator, LGBMClassifier) else steps
    began = perf_counter()
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=task.seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(),
    )
    for arm in range(ARMS):
        study.enqueue_trial({"arm": arm})
    study.optimize(lambda t: trained(t, t.suggest_int("arm", 0, ARMS - 1)), n_trials=ARMS)
    seconds = perf_counter() - began
    best = study.best_trial.params["arm"]
    X, y = task.test
    return Found(best, float(np.mean(models[best].predict(X) != y)), pulls, seconds)
