"""Stochastic arms in the non-stochastic setting: the two reductions of the paper's §2.

A stochastic arm gives an independent draw at every pull. Its losses have no limit, but statistics
of them do: the mean of the draws so far converges to the expectation, and their minimum, a bounded
decreasing sequence, to the least value (max-bandits, Cicirello & Smith 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lastarm.trainers.protocol import Config

Draw = Callable[[Config, np.random.Generator, int], ArrayLike]
"""`draw(config, random, k)`: the next k draws of the arm with this config."""


@dataclass
class Draws:
    """An arm: its config, its own random numbers, its pulls, and its statistic so far."""

    config: Config
    random: np.random.Generator
    pulls: int
    statistic: float


@dataclass(frozen=True)
class RunningMean:
    """Arms whose loss is the mean of their draws so far: ℓ_{i,T} = (1/T) Σ ℓ′_{i,t}.

    - `draw`: is called as draw(config, random, k), and returns the next k draws of an arm.

    >>> coin = RunningMean(lambda config, random, k: random.random(k) < config["p"])
    >>> heads = coin.train(coin.start({"p": 0.25}, seed=0), pulls=10_000)
    >>> abs(coin.loss(heads) - 0.25) < 0.02
    True
    """

    draw: Draw

    def start(self, config: Config, seed: int) -> Draws:
        """An arm without draws; their sum is 0."""
        return Draws(config, np.random.default_rng(seed), 0, 0.0)

    def train(self, state: Draws, pulls: int) -> Draws:
        """Add `pulls` draws to the sum, from left to right, so that a + b is a, then b."""
        terms = np.empty(pulls + 1)
        terms[0], terms[1:] = state.statistic, self.draw(state.config, state.random, pulls)
        total = float(np.cumsum(terms)[-1])
        return Draws(state.config, state.random, state.pulls + pulls, total)

    def loss(self, state: Draws) -> float:
        """The mean of the draws so far."""
        return state.statistic / state.pulls


@dataclass(frozen=True)
class RunningMinimum:
    """Arms whose loss is the least of their draws so far: ℓ_{i,T} = min ℓ′_{i,t}.

    - `draw`: is called as draw(config, random, k), and returns the next k draws of an arm.

    >>> dice = RunningMinimum(lambda config, random, k: random.integers(config["low"], 100, k))
    >>> dice.loss(dice.train(dice.start({"low": 3}, seed=0), pulls=10_000))
    3.0
    """

    draw: Draw

    def start(self, config: Config, seed: int) -> Draws:
        """An arm without draws; their minimum is infinite."""
        return Draws(config, np.random.default_rng(seed), 0, np.inf)

    def train(self, state: Draws, pulls: int) -> Draws:
        """Take `pulls` more draws into account."""
        draws = np.asarray(self.draw(state.config, state.random, pulls), dtype=float)
        least = float(draws.min(initial=state.statistic))
        return Draws(state.config, state.random, state.pulls + pulls, least)

    def loss(self, state: Draws) -> float:
        """The least draw so far."""
        return state.statistic
