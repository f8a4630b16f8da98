"""`lastarm demo`: tune a small neural network, twice with the same budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from lastarm.arguments import whole_number
from lastarm.cli import display
from lastarm.data import digits
from lastarm.policies import SuccessiveHalving, UniformAllocation
from lastarm.result import Result
from lastarm.searching import search
from lastarm.space import Integer, LogUniform, Uniform
from lastarm.trainers import Config

Array = NDArray[np.float64]

ARMS, BUDGET = 64, 768
SPACE = {
    "learning_rate": LogUniform(1e-3, 3.0),
    "momentum": Uniform(0.0, 0.95),
    "weight_decay": LogUniform(1e-6, 1e-2),
    "hidden": Integer(4, 64, log=True),
    "batch": Integer(16, 256, log=True),
    "initial_scale": LogUniform(0.1, 3.0),
}


def demo(seed: Any, as_json: bool) -> int:
    """Tune a small network on handwritten digits."""
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    trainer = DigitsNetwork(seed)
    results: dict[str, Result] = {}
    for policy in (SuccessiveHalving(ARMS, BUDGET), UniformAllocation(ARMS, BUDGET)):
        result = search(trainer, SPACE, policy=policy, seed=seed)
        if result.stopped_by:
            display.stopped(journal=None)
            return display.exit_code(result.stopped_by)
        results[policy.name] = result

    misread = {name: trainer.share_misread(result.state) for name, result in results.items()}
    if as_json:
        fields = {
            name: {**result.as_dict(), "test_error": misread[name]}
            for name, result in results.items()
        }
        display.print_json({"arms": ARMS, "budget": BUDGET, **fields})
        return 0

    halving = results[SuccessiveHalving.name]
    display.say(
        f"{ARMS} settings of a small neural network that reads handwritten digits. A pull is one "
        f"pass over the training data.\nWhat Successive Halving saw with {BUDGET:,} pulls:"
    )
    display.console.print(display.rungs(halving))
    display.answer(halving)
    display.say("\nThe same settings and the same budget with uniform allocation:")
    display.console.print(_side_by_side(results, misread))
    display.say("The settings that won:")
    display.settings(halving.config or {})
    return 0


def _side_by_side(results: dict[str, Result], misread: dict[str, float]) -> Table:
    table = display.table("", *results)
    table.columns[0].justify = "left"
    found = results.values()
    rows = {
        "recommended arm": [f"{r.arm}" for r in found],
        "passes it was trained for": [f"{r.curves[r.arm or 0][-1][0]}" for r in found],
        "validation loss": [f"{r.loss:.4f}" for r in found],
        "test loss": [f"{r.test_loss:.4f}" for r in found],
        "test digits misread": [f"{share:.1%}" for share in misread.values()],
        "pulls spent": [f"{r.spent.pulls:,}" for r in found],
        "looks at a loss": [f"{r.spent.observations:,}" for r in found],
        "seconds of training": [f"{r.spent.train_seconds:.1f}" for r in found],
    }
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


# What is tuned ----------------------------------------------------------------------------------


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
