"""Halving with Optuna: an objective that reports after every epoch, and a pruner that stops it."""

from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

X_train, X_val, y_train, y_val = train_test_split(*load_digits(return_X_y=True), random_state=0)


def objective(trial: Any) -> float:
    """A trial is trained to the end, or until it is pruned."""
    alpha = trial.suggest_float("alpha", 1e-7, 1, log=True)
    loss = trial.suggest_categorical("loss", ["hinge", "log_loss"])
    model = SGDClassifier(alpha=alpha, loss=loss, random_state=0)
    error = 1.0
    for epoch in range(1, 33):
        model.partial_fit(X_train, y_train, classes=range(10))
        error = 1 - model.score(X_val, y_val)
        trial.report(error, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return error


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=4, reduction_factor=2),
    storage=JournalStorage(JournalFileBackend("digits.log")),
    study_name="digits",
    load_if_exists=True,
)
study.optimize(objective, n_trials=8)
print(study.best_params, study.best_value)
