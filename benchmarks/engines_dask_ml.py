"""Dask-ML on the pulls of `benchmarks/busy.py`, in an environment with the Dask that it supports.

Prints one line of JSON: the seconds of a pull, with 10 models of 30 pulls each on two workers.
"""

from __future__ import annotations

import json
import logging
from time import perf_counter
from typing import Any

import numpy as np
from dask_ml.model_selection import IncrementalSearchCV
from distributed import Client, LocalCluster
from sklearn.base import BaseEstimator, ClassifierMixin

from busy import Busy

MODELS, PULLS, WORKERS = 10, 30, 2
BUSY = Busy()


class Model(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An arm as Dask-ML wants it: each call of `partial_fit` is a pull."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Model:
        """A pull."""
        if not hasattr(self, "classes_"):
            self.classes_ = np.unique(y)
            self.state_ = BUSY.start(None, self.seed)
        self.state_ = BUSY.train(self.state_, 1)
        return self

    def fit(self, X: Any, y: Any) -> Model:
        """Only asked for whether it is there."""
        return self.partial_fit(X, y)

    def predict(self, X: Any) -> Any:
        """Something."""
        return np.zeros(len(X))


def main() -> None:
    """Measure a whole search, start-up apart."""
    logging.getLogger("distributed").setLevel(logging.ERROR)
    X, y = np.zeros((200, 2)), np.arange(200) % 2
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster),
    ):
        for turn in range(2):  # the first one imports
            search = IncrementalSearchCV(
                Model(),
                {"seed": list(range(MODELS))},
                n_initial_parameters=MODELS,
                decay_rate=None,
                max_iter=PULLS if turn else 2,
                random_state=0,
                scores_per_fit=1,
            )
            began = perf_counter()
            search.fit(X, y, classes=[0, 1])
            seconds = perf_counter() - began
        pulls = sum(records[-1]["partial_fit_calls"] for records in search.model_history_.values())
    print(json.dumps({"seconds": seconds / pulls, "pulls": pulls}))


if __name__ == "__main__":
    main()
