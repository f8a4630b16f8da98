"""What the demo tunes: a small neural network that reads handwritten digits, in plain NumPy.

It is not meant for users: it is here because the command has a demo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.data import digits
from lastarm.space import Integer, LogUniform, Uniform
from lastarm.trainers import Config

Array = NDArray[np.float64]

SPACE = {
    "learning_rate": LogUniform(1e-3, 3.0),
    "momentum": Uniform(0.0, 0.95),
    "weight_decay": LogUniform(1e-6, 1e-2),
    "hidden": Integer(4, 64, log=True),
    "batch": Integer(16, 256, log=True),
    "initial_scale": LogUniform(0.1, 3.0),
}


@dataclass
class Network:
    """The weights of two layers, their momentum, and a source of randomness of its own."""

    config: Config
    weights: tuple[Array, Array]
    momentum: tuple[Array, Array]
    random: np.random.Generator


class DigitsNetwork:
    """One hidden layer and a softmax, trained by SGD with momentum. A pull is a pass over TRAIN.

    The loss is the log loss on VAL. TRAIN, VAL and TEST are split as in the paper: 90/10, then
    80/20.
    """

    def __init__(self, seed: int = 0) -> None:
        images, labels = digits()
        self._inputs = _with_ones(images / 16.0)
        self._labels = labels
        shuffled = np.random.default_rng(seed).permutation(len(images))
        self._test, rest = np.split(shuffled, [len(shuffled) // 10])
        self._val, self._train = np.split(rest, [len(rest) // 5])

    def start(self, config: Config, seed: int) -> Network:
        """Random weights."""
        random = np.random.default_rng(seed)
        hidden, scale = config["hidden"], config["initial_scale"]
        inner = random.normal(0, scale / 8, (65, hidden))
        outer = random.normal(0, scale / np.sqrt(hidden), (hidden + 1, 10))
        return Network(config, (inner, outer), (0 * inner, 0 * outer), random)

    def train(self, state: Network, pulls: int) -> Network:
        """`pulls` passes over TRAIN, each in an order of its own."""
        config, (inner, outer) = state.config, state.weights
        with np.errstate(all="ignore"):  # a rate that is too high overflows: the arm diverges
            for _ in range(pulls):
                order = state.random.permutation(self._train)
                for batch in np.split(order, range(config["batch"], len(order), config["batch"])):
                    inputs = self._inputs[batch]
                    hidden, log_odds = _forward(inputs, inner, outer)
                    error = np.exp(log_odds)
                    error[np.arange(len(batch)), self._labels[batch]] -= 1
                    error /= len(batch)
                    back = (error @ outer[:-1].T) * (1 - hidden[:, :-1] ** 2)
                    gradients = inputs.T @ back, hidden.T @ error
                    for layer, gradient in enumerate(gradients):
                        weights, momentum = state.weights[layer], state.momentum[layer]
                        momentum *= config["momentum"]
                        step = gradient + config["weight_decay"] * weights
                        momentum -= config["learning_rate"] * step
                        weights += momentum
        return state

    def loss(self, state: Network) -> float:
        """The log loss on VAL."""
        return self._log_loss(state, self._val)

    def test(self, state: Network) -> float:
        """The log loss on TEST."""
        return self._log_loss(state, self._test)

    def share_misread(self, state: Network) -> float:
        """The share of TEST that it reads wrongly."""
        _, log_odds = _forward(self._inputs[self._test], *state.weights)
        return float(np.mean(log_odds.argmax(axis=1) != self._labels[self._test]))

    def _log_loss(self, state: Network, samples: NDArray[Any]) -> float:
        with np.errstate(all="ignore"):
            _, log_odds = _forward(self._inputs[samples], *state.weights)
            return float(-log_odds[np.arange(len(samples)), self._labels[samples]].mean())


def _forward(inputs: Array, inner: Array, outer: Array) -> tuple[Array, Array]:
    """The hidden layer, and the logarithm of the softmax."""
    hidden = _with_ones(np.tanh(inputs @ inner))
    z = hidden @ outer
    z -= z.max(axis=1, keepdims=True)
    return hidden, z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def _with_ones(rows: Array) -> Array:
    return np.hstack([rows, np.ones((len(rows), 1))])
