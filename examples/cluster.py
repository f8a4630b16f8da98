"""The same search on a laptop, on a Dask cluster and on Ray: one argument differs, no answer does.

`LocalCluster` and a Ray of our own stand in for clusters of yours. With those, write
`Client("tcp://scheduler:8786")`, or `ray.init("auto")` before, on a machine of Ray's; install
lastarm on all of their machines, and put the journals into a folder that all of them see: then
states are saved there, and what a lost worker had is loaded by another. Kill this script and run
it again: it goes on from where it was.

Needs lastarm[dask,ray].
"""

from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.data import digits
from lastarm.runners import AnyRunner


class SoftmaxRegression:
    """A pull is a pass over the data. States are arrays, which travel."""

    def __init__(self) -> None:
        images, labels = digits()
        self.inputs, self.labels = np.hstack([images / 16, np.ones((len(images), 1))]), labels
        order = np.random.default_rng(0).permutation(len(images))
        self.val, self.train_rows = order[:360], order[360:]

    def start(self, config: Any, seed: int) -> Any:
        """The step size, and weights."""
        return [config["learning_rate"], np.zeros((65, 10))]

    def train(self, state: Any, pulls: int) -> Any:
        """Some passes of gradient descent."""
        rate, weights = state
        for rows in np.array_split(np.tile(self.train_rows, pulls), 20 * pulls):
            chances = self._chances(weights, rows)
            chances[np.arange(len(rows)), self.labels[rows]] -= 1
            weights = weights - rate * self.inputs[rows].T @ chances / len(rows)
        return [rate, weights]

    def loss(self, state: Any) -> float:
        """The share of digits that are taken for others."""
        guesses = self._chances(state[1], self.val).argmax(axis=1)
        return float((guesses != self.labels[self.val]).mean())

    def _chances(self, weights: Any, rows: Any) -> Any:
        scores = self.inputs[rows] @ weights
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)


def tune(runner: AnyRunner, journal: str, **more: Any) -> str:
    """Search, or go on with it, and show what was found and how busy the workers were."""
    result = search(
        SoftmaxRegression(),
        {"learning_rate": LogUniform(1e-4, 10)},
        policy=SuccessiveHalving(arms=16, budget=160),
        runner=runner,
        journal=journal,
        **more,
    )
    print(result.config, result.loss, result.utilisation or "all was done before", "", sep="\n")
    return result.digest


def main() -> None:
    """Three times the same."""
    digests = [tune("processes", "laptop.jsonl", workers=2)]
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        digests.append(tune(client, "dask.jsonl"))
    digests.append(tune("ray", "ray.jsonl", workers=2))
    print("One answer:", len(set(digests)) == 1)


if __name__ == "__main__":  # workers that are started afresh read this file
    main()
