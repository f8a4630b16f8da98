"""Tune a training loop that is written already: let it report where an epoch ends, and search.

The loop is an ordinary one. It draws its first weights and the order of rows from NumPy's global
generator, which belongs to the arm while it runs. Kill this script and run it again: the search
goes on where it was, because each report has the state to continue from.
"""

from typing import Any

import numpy as np

from lastarm import Integer, LogUniform, SuccessiveHalving, search
from lastarm.data import digits

images, labels = digits()
inputs = np.hstack([images / 16.0, np.ones((len(images), 1))])
order = np.random.default_rng(0).permutation(len(images))
val, train = order[:360], order[360:]


class Network:
    """One hidden layer, and its gradients."""

    def __init__(self, width: int) -> None:
        self.hidden = np.random.normal(0, 0.1, (65, width))
        self.output = np.zeros((width, 10))

    def chances(self, rows: Any) -> tuple[Any, Any]:
        """What the hidden units and the outputs are for some rows."""
        units = np.tanh(inputs[rows] @ self.hidden)
        scores = np.exp(units @ self.output)
        return units, scores / scores.sum(axis=1, keepdims=True)

    def step(self, rows: Any, rate: float) -> None:
        """One step of gradient descent."""
        units, chances = self.chances(rows)
        chances[np.arange(len(rows)), labels[rows]] -= 1
        into_hidden = (chances @ self.output.T) * (1 - units**2)
        self.output -= rate * units.T @ chances / len(rows)
        self.hidden -= rate * inputs[rows].T @ into_hidden / len(rows)

    def error(self, rows: Any) -> float:
        """The share of rows that it reads wrong."""
        return float((self.chances(rows)[1].argmax(axis=1) != labels[rows]).mean())


def training(config: dict[str, Any], report: Any) -> None:
    """Train for as many epochs as the search asks for."""
    network = Network(config["width"])
    network = report.restore() or network
    while True:
        shuffled = np.random.permutation(train)
        for rows in np.array_split(shuffled, len(shuffled) // 64):
            network.step(rows, config["learning_rate"])
        report(network.error(val), state=network)


if __name__ == "__main__":
    result = search(
        training,
        {"learning_rate": LogUniform(1e-3, 10), "width": Integer(8, 64, log=True)},
        policy=SuccessiveHalving(arms=16, budget=256),
        journal="network.jsonl",
    )
    print(result)
