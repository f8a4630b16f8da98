"""Searches of live boosters, for the tests of every runner.

What draws cannot be continued from a copy. So when a worker is lost, such arms are trained again
from zero.
"""

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from xgboost import XGBClassifier

from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.events import Event, Loss
from lastarm.trainers.estimators import Estimator

ROWS = make_classification(200, 8, n_informative=5, random_state=0)
KINDS: dict[str, Any] = {
    "LightGBM": LGBMClassifier(num_leaves=5, verbose=-1, subsample_freq=1),
    "XGBoost": XGBClassifier(max_depth=2),
}
DRAWS = {"subsample": 0.5, "colsample_bytree": 0.5}


def scored(model: Any, X: Any, y: Any) -> dict[str, float]:
    """How good a model is, and the process that it is in."""
    return {"likelihood": -log_loss(y, model.predict_proba(X)), "process": os.getpid()}


def boosted(kind: str, *, draws: bool) -> Callable[..., Result]:
    """A search of eight arms, to be given a runner; a trainer is made for it anew."""
    rates = [{"learning_rate": k / 10, **(DRAWS if draws else {})} for k in range(1, 9)]
    trainer = Estimator(KINDS[kind], *ROWS, scoring=scored, metric="likelihood")
    return partial(search, trainer, Configs(rates), policy=SuccessiveHalving(8, 72))


class KillsAWorker:
    """Kills the process that told the tenth loss, which has states of the arms that go on."""

    def __init__(self) -> None:
        self.losses, self.killed = 0, False

    def __call__(self, event: Event) -> None:
        self.losses += isinstance(event, Loss)
        if isinstance(event, Loss) and self.losses == 10:
            assert event.metrics
            os.kill(int(event.metrics["process"]), signal.SIGKILL)
            self.killed = True
