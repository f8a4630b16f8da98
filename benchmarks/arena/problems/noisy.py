"""Any problem, with noise on every look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arena.problems.problem import Arm, Config, Final, Problem
from lastarm.plain import fingerprint

NOISY = ", noisy"  # what is added to names
SHARE = 0.1  # of the distance between the best known and the median random config


class Noisy(Problem):
    """The same problem, but a contender never sees a loss as it is.

    What is added is normal. It depends on seed, config and epoch alone, so that a second look at
    the same place tells nothing new, and all contenders see the same. Nobody is scored by it.
    """

    def __init__(self, problem: Problem, deviation: float) -> None:
        self.name, self.family = problem.name + NOISY, problem.family + NOISY
        self.space, self.max_pulls = problem.space, problem.max_pulls
        self.has_test = problem.has_test
        self.without = problem
        self._deviation = deviation

    def arm(self, config: Config, seed: int) -> Arm:
        """The arm, behind its noise."""
        random = np.random.default_rng(int(fingerprint([seed, config])[:16], 16))
        return Hidden(
            self.without.arm(config, seed),
            (self._deviation * random.standard_normal(self.max_pulls)).tolist(),
        )

    def final(self, configs: Sequence[Config], seed: int) -> list[Final]:
        """Without noise."""
        return self.without.final(configs, seed)


class Hidden:
    """An arm of which only noisy losses are seen."""

    def __init__(self, arm: Arm, noise: list[float]) -> None:
        self._arm, self._noise = arm, noise

    def loss(self, level: int) -> float:
        """The loss and its noise."""
        return self._arm.loss(level) + self._noise[level - 1]
