"""Optuna's samplers, with full trainings or with its pruners."""

from __future__ import annotations

import warnings
from typing import Any

import optuna
from optuna.trial import TrialState

from arena.desk import Desk
from lastarm.space.domains import Choice, Integer, LogUniform

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def _config(trial: Any, desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, domain in desk.problem.space.items():
        if isinstance(domain, Integer):
            found[name] = trial.suggest_int(name, domain.low, domain.high, log=domain.log)
        elif isinstance(domain, Choice):
            found[name] = trial.suggest_categorical(name, domain.options)
        else:
            low, high = (getattr(domain, end) for end in ("low", "high"))
            log = isinstance(domain, LogUniform)
            found[name] = trial.suggest_float(name, low, high, log=log)
    return found


def _study(desk: Desk, sampler: Any, pruner: Any = None) -> None:
    """Trial after trial; one that a pruner watches is reported after every epoch."""
    M = desk.problem.max_pulls
    study = optuna.create_study(
        sampler=sampler,
        pruner=pruner or optuna.pruners.NopPruner(),
        study_name=f"arena {desk.seed}",  # by which trials are assigned to Hyperband's brackets
    )
    while True:
        trial = study.ask()
        config = _config(trial, desk)
        for level in range(1 if pruner else M, M + 1):
            loss = desk.look(config, level)
            if pruner:
                trial.report(loss, level)
                if trial.should_prune():
                    study.tell(trial, state=TrialState.PRUNED)
                    break
        else:
            study.tell(trial, loss)


def _hyperband(desk: Desk) -> Any:
    return optuna.pruners.HyperbandPruner(1, desk.problem.max_pulls, 3)


def tpe(desk: Desk) -> None:
    """TPE as it comes, full trainings."""
    _study(desk, optuna.samplers.TPESampler(seed=desk.seed))


def tpe_hyperband(desk: Desk) -> None:
    """TPE as it comes, with the Hyperband pruner."""
    _study(desk, optuna.samplers.TPESampler(seed=desk.seed), _hyperband(desk))


def gaussian_process(desk: Desk) -> None:
    """The Gaussian process as it comes, full trainings."""
    _study(desk, optuna.samplers.GPSampler(seed=desk.seed))


def gaussian_process_hyperband(desk: Desk) -> None:
    """The Gaussian process as it comes, with the Hyperband pruner."""
    _study(desk, optuna.samplers.GPSampler(seed=desk.seed), _hyperband(desk))
