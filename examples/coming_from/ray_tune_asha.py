"""Halving with Ray Tune: a function that reports after every epoch, and a scheduler."""

from typing import Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

X_train, X_val, y_train, y_val = train_test_split(*load_digits(return_X_y=True), random_state=0)


def training(config: dict[str, Any]) -> None:
    """A trial is trained to the end, or until it is stopped."""
    model = SGDClassifier(**config, random_state=0)
    for _ in range(32):
        model.partial_fit(X_train, y_train, classes=range(10))
        tune.report({"error": 1 - model.score(X_val, y_val)})


tuner = tune.Tuner(
    training,
    param_space={"alpha": tune.loguniform(1e-7, 1), "loss": tune.choice(["hinge", "log_loss"])},
    tune_config=tune.TuneConfig(
        metric="error",
        mode="min",
        num_samples=8,
        scheduler=ASHAScheduler(max_t=32, grace_period=4, reduction_factor=2),
    ),
)
best = tuner.fit().get_best_result()
print(best.config, best.metrics["error"])
