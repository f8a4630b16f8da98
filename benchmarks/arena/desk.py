"""The desk: the only place where a contender has a config trained, which counts the epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, NamedTuple

from arena.problems.problem import Arm, Config, Problem, cleaned


class Spent(Exception):
    """The budget has no room for the next look, so the search is over."""


class Look(NamedTuple):
    """A loss that a contender has seen."""

    arm: int
    level: int
    loss: float
    spent: int  # epochs in all, with those of this look
    seconds: float  # of processor time that the contender has taken for itself by then


@dataclass
class Training:
    """A config that is being trained, and what was seen of it last."""

    number: int
    arm: Arm
    level: int = 0
    loss: float = float("nan")


class Desk:
    """Trains configs for one contender, and sees to it that all pay the same.

    - `problem`: what is tuned.
    - `budget`: how many epochs there are, over all configs.
    - `seed`: of the search; a contender derives all its randomness from it.

    To bring a config from a to b epochs costs b − a, whoever asks, and a look costs nothing. A
    config is known by its values: if it is proposed again, it goes on from where it is. A level
    that it has passed costs nothing, and tells the latest loss again.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self.spent = 0
        self.refused = False
        self.looks: list[Look] = []
        self.configs: list[Config] = []
        self._training: dict[tuple[Any, ...], Training] = {}
        self._inside = 0.0
        self._began = process_time()

    @property
    def seconds(self) -> float:
        """The processor time that the contender has taken for itself."""
        return process_time() - self._began - self._inside

    def look(self, given: Mapping[str, Any], level: int) -> float:
        """The loss of a config after `level` epochs; raises `Spent` if they are not there."""
        own = self.seconds
        came = process_time()
        config = cleaned(self.problem.space, given)
        level = min(max(1, level), self.problem.max_pulls)
        key = tuple(config.values())
        before = self._training.get(key)
        more = level - (before.level if before else 0)
        if more > 0:
            if self.spent + more > self.budget:
                self.refused = True
                raise Spent
            if before is None:
                arm = self.problem.arm(config, self.seed)
                before = self._training[key] = Training(len(self.configs), arm)
                self.configs.append(config)
            self.spent += more
            before.level, before.loss = level, before.arm.loss(level)
            self.looks.append(Look(before.number, level, before.loss, self.spent, own))
        assert before is not None
        self._inside += process_time() - came
        return before.loss


def incumbent(looks: list[Look], budget: int) -> int | None:
    """The arm that anybody would choose after these epochs: the best of those trained furthest.

    >>> looks = [Look(0, 1, 0.5, 1, 0.0), Look(1, 1, 0.1, 2, 0.0), Look(0, 9, 0.4, 10, 0.0)]
    >>> incumbent(looks, 9), incumbent(looks, 10), incumbent(looks, 0)
    (1, 0, None)
    """
    latest = {look.arm: look for look in looks if look.spent <= budget}
    ranked = sorted(latest.values(), key=lambda look: (-look.level, look.loss, look.arm))
    return ranked[0].arm if ranked else None
