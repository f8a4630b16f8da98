"""Dask-ML's successive halving on the arms of a task of `sooner`, with the Dask that it supports.

Reads one line of JSON: where the rows are, the arms, and the settings to try until the test loss
is within the limit. Prints another: what was tried, as setting, test loss, epochs and seconds.
"""

from __future__ import annotations

import json
import logging
import sys
from time import perf_counter
from typing import Any

import numpy as np
from dask_ml.model_selection import SuccessiveHalvingSearchCV
from distributed import Client, LocalCluster
from sklearn.linear_model import SGDClassifier


class Search(SuccessiveHalvingSearchCV):  # type: ignore[misc]
    """Judged by the same rows as everybody's, where Dask-ML would draw some."""

    learnt: int

    def _get_train_test_split(self, X: Any, y: Any, **_: Any) -> tuple[Any, Any, Any, Any]:
        n = self.learnt
        return X[:n], X[n:], y[:n], y[n:]


def searched(order: dict[str, Any], X: Any, y: Any, learnt: int, numbers: dict[str, Any]) -> Any:
    """A search, with the seconds it took."""
    search = Search(
        SGDClassifier(random_state=np.random.RandomState(order["seed"])),
        [{name: [value] for name, value in arm.items()} for arm in order["arms"]],
        n_initial_parameters=len(order["arms"]),
        random_state=order["seed"],
        **numbers,
    )
    search.learnt = learnt
    began = perf_counter()
    search.fit(X, y, classes=[0, 1])
    search.seconds_ = perf_counter() - began
    return search


def main() -> None:
    """Try one setting after another, start-up apart."""
    logging.getLogger("distributed").setLevel(logging.ERROR)
    order = json.loads(sys.stdin.read())
    with np.load(order["rows"]) as rows:
        X, y, X_test, y_test = (rows[name] for name in ("X", "y", "X_test", "y_test"))
    learnt = order["learnt"]
    tried: list[tuple[str, float, int, float]] = []
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster),
    ):
        few = [*range(200), *range(learnt, learnt + 100)]  # the first search imports
        tiny = {**order, "arms": order["arms"][:8]}
        searched(tiny, X[few], y[few], 200, next(iter(order["settings"].values())))
        for setting, numbers in order["settings"].items():
            if tried and tried[-1][1] <= order["limit"]:
                break
            search = searched(order, X, y, learnt, numbers)
            loss = float(np.mean(search.best_estimator_.predict(X_test) != y_test))
            epochs = int(search.metadata_["partial_fit_calls"])
            tried.append((setting, loss, epochs, search.seconds_))
    print(json.dumps(tried))


if __name__ == "__main__":
    main()
