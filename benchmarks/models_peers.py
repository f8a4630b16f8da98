"""What lastarm is set against: plain fits, bare updates, scikit-learn's searches, and Optuna."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import lightgbm
import numpy as np
import optuna
import optuna_integration
import xgboost
from sklearn import model_selection
from sklearn.neural_network import MLPClassifier

from models_arms import Clock, Spent, Task

importlib.import_module("sklearn.experimental.enable_halving_search_cv")  # or it is not there

Levels = Mapping[int, int]
"""From the arms of lastarm's search to their last levels."""


def floor(task: Task, levels: Levels) -> Spent:
    """Every arm to the level that it had in lastarm's search, by one plain `fit` and one look."""
    clock = Clock()
    for arm, level in levels.items():
        task.model(arm, level).fit(*task.train).score(*task.validation)
    return clock.spent(None, sum(levels.values()))


def updates(task: Task, levels: Levels) -> Spent:
    """The same by `update()` on one table of bins for all arms, without looks."""
    if isinstance(task.family.estimator, xgboost.XGBModel):
        return _updates_of_xgboost(task, levels)
    X, y = task.train
    classes = len(np.unique(y))
    kind = {"objective": "multiclass", "num_class": classes} if classes > 2 else {}
    shared = {"objective": "binary", **kind, "num_threads": 1, "feature_pre_filter": False}
    clock = Clock()
    rows = lightgbm.Dataset(X, y, params={**shared, "verbose": -1})
    for arm, level in levels.items():
        given = task.model(arm, level).get_params()
        params = {name: v for name, v in given.items() if v is not None and name != "n_estimators"}
        booster = lightgbm.Booster({**params, **shared}, rows)
        for _ in range(level):
            booster.update()
    return clock.spent(None, sum(levels.values()))


def _updates_of_xgboost(task: Task, levels: Levels) -> Spent:
    X, y = task.train
    classes = len(np.unique(y))
    kind = {"objective": "multi:softprob", "num_class": classes} if classes > 2 else {}
    clock = Clock()
    rows = xgboost.QuantileDMatrix(X, y, nthread=1)
    for arm, level in levels.items():
        params = {
            "objective": "binary:logistic",
            **task.model(arm, level).get_xgb_params(),
            **kind,
        }
        booster = xgboost.Booster({**params, "nthread": 1}, [rows])
        for i in range(level):
            booster.update(rows, i)
    return clock.spent(None, sum(levels.values()))


def halving(task: Task, seed: int) -> Spent:
    """HalvingRandomSearchCV of all arms, the last as near to full training as it can."""

    def pulls(search: Any) -> int:
        return int(np.dot(search.n_candidates_, search.n_resources_))

    return _by_scikit_learn(
        task,
        seed,
        model_selection.HalvingRandomSearchCV,
        pulls,
        n_candidates=len(task.arms),
        resource=task.family.counted,
        min_resources="exhaust",
        max_resources=task.max_pulls,
        return_train_score=False,
    )


def randomized(task: Task, seed: int, pulls: int) -> Spent:
    """RandomizedSearchCV of as many arms as can be trained fully for this many pulls."""
    n = min(max(1, round(pulls / task.max_pulls)), len(task.arms))
    kind = model_selection.RandomizedSearchCV
    return _by_scikit_learn(task, seed, kind, lambda _: n * task.max_pulls, n_iter=n)


def _by_scikit_learn(
    task: Task, seed: int, kind: Any, pulls: Callable[[Any], int], **given: Any
) -> Spent:
    arms = [{name: [value] for name, value in arm.items()} for arm in task.arms]
    model = task.model(0, task.max_pulls, seed)
    pairs = [(task.learnt, task.judged)]
    clock = Clock()
    search = kind(model, arms, cv=pairs, refit=False, random_state=seed, **given)
    search.fit(*task.searched)
    best = {name: search.best_params_[name] for name in task.arms[0]}
    return clock.spent(task.arms.index(best), pulls(search))


def optunas(task: Task, seed: int) -> Spent:
    """A study with the SuccessiveHalvingPruner, its trials the arms in their order."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    train = {
        "lightgbm": _lightgbm_trial,
        "xgboost": _xgboost_trial,
        "catboost": _catboost_trial,
    }.get(task.setting.family.partition("-")[0], _stepwise_trial)
    clock = Clock()
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(),
    )
    for arm in range(len(task.arms)):
        study.enqueue_trial({"arm": arm})

    def objective(trial: Any) -> float:
        arm = trial.suggest_int("arm", 0, len(task.arms) - 1)
        return train(task, trial, task.model(arm, task.max_pulls, seed))

    study.optimize(objective, n_trials=len(task.arms))
    pulls = sum(len(trial.intermediate_values) for trial in study.trials)
    return clock.spent(study.best_trial.params["arm"], pulls)


def _lightgbm_trial(task: Task, trial: Any, model: Any) -> float:
    error = "multi_error" if task.train.y.max() > 1 else "binary_error"
    prune = optuna_integration.LightGBMPruningCallback(trial, error, valid_name="valid_0")
    X, y = task.validation
    model.fit(*task.train, eval_X=X, eval_y=y, eval_metric=error, callbacks=[prune])
    return float(model.evals_result_["valid_0"][error][-1])


def _xgboost_trial(task: Task, trial: Any, model: Any) -> float:
    error = "merror" if task.train.y.max() > 1 else "error"
    prune = optuna_integration.XGBoostPruningCallback(trial, f"validation_0-{error}")
    model.set_params(eval_metric=error, callbacks=[prune])
    model.fit(*task.train, eval_set=[task.validation], verbose=False)
    return float(model.evals_result()["validation_0"][error][-1])


def _catboost_trial(task: Task, trial: Any, model: Any) -> float:
    prune = optuna_integration.CatBoostPruningCallback(trial, "ZeroOneLoss")
    model.set_params(eval_metric="ZeroOneLoss")
    model.fit(*task.train, eval_set=task.validation, use_best_model=False, callbacks=[prune])
    prune.check_pruned()
    return float(model.evals_result_["validation"]["ZeroOneLoss"][-1])


def _stepwise_trial(task: Task, trial: Any, model: Any) -> float:
    """By `partial_fit`, or by `warm_start`: what Optuna has no callback for."""
    X, y = task.train
    classes = np.unique(y)
    loss = 1.0
    if task.setting.family == "lbfgs":
        model.set_params(max_iter=1)  # which it continues by, from its coefficients
    for level in range(1, task.max_pulls + 1):
        if isinstance(model, MLPClassifier):
            model.partial_fit(X, y, classes=classes)
        else:
            if task.setting.family != "lbfgs":
                model.set_params(**{task.family.counted: level})
            model.set_params(warm_start=True).fit(X, y)
        loss = 1 - float(model.score(*task.validation))
        trial.report(loss, level)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss
