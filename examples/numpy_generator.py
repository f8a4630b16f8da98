"""Tune a plain NumPy training loop: put a `yield` where an epoch ends, and search.

The generator yields a function, so that the validation loss is computed only when the policy
looks at it. Kill this script and run it again: the search goes on where it was. `resume` is what
lets it: the generator also yields what it takes to go on from there.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from lastarm import Integer, LogUniform, SuccessiveHalving, Uniform, search
from lastarm.data import digits

images, labels = digits()
inputs = np.hstack([images / 16.0, np.ones((len(images), 1))])
order = np.random.default_rng(0).permutation(len(images))
val, train = order[:360], order[360:]


def log_loss(weights: Any, rows: Any) -> float:
    """Mean log loss of a softmax regression."""
    scores = inputs[rows] @ weights
    scores -= scores.max(axis=1, keepdims=True)
    chances = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-chances[np.arange(len(rows)), labels[rows]].mean())


def softmax_regression(
    config: dict[str, Any], seed: int, resume: Any = None
) -> Iterator[tuple[Callable[[], float], Any]]:
    """Yield once an epoch: how to look at the loss, and what it takes to go on."""
    epoch, weights, momentum = resume or (0, np.zeros((65, 10)), np.zeros((65, 10)))
    while True:
        epoch += 1
        shuffled = np.random.default_rng([seed, epoch]).permutation(train)
        for rows in np.array_split(shuffled, len(shuffled) // config["batch"]):
            scores = inputs[rows] @ weights
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            chances[np.arange(len(rows)), labels[rows]] -= 1
            momentum = config["momentum"] * momentum + inputs[rows].T @ chances / len(rows)
            weights = weights - config["learning_rate"] * momentum
        yield partial(log_loss, weights, val), (epoch, weights, momentum)


if __name__ == "__main__":
    result = search(
        softmax_regression,
        {
            "learning_rate": LogUniform(1e-3, 10),
            "momentum": Uniform(0, 0.95),
            "batch": Integer(16, 256, log=True),
        },
        policy=SuccessiveHalving(arms=32, budget=480),
        journal="softmax.jsonl",
    )
    print(result)
