"""lastarm's ways, through its front door: `search` with a trainer that asks the desk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from arena.desk import Desk
from arena.problems.problem import Config
from lastarm import ASHA, EnvelopeHalving, Forest, HorizonHalving, Hyperband, Sampler, search
from lastarm.policy import Policy

PLENTY = 1000  # arms that there are to draw, for policies that choose how many


class Position(NamedTuple):
    """How far a config is trained."""

    config: Mapping[str, Any]
    level: int


class AtTheDesk:
    """A trainer whose losses are the desk's."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def start(self, config: Mapping[str, Any], seed: int) -> Position:
        """A config without training."""
        return Position(config, 0)

    def train(self, state: Position, pulls: int) -> Position:
        """So many epochs further; the desk trains when it is asked for the loss."""
        return Position(state.config, state.level + pulls)

    def loss(self, state: Position) -> float:
        """What the desk says."""
        return self._desk.look(state.config, state.level)


def searched(desk: Desk, policy: Policy | None = None, sampler: Sampler | None = None) -> Config:
    """The config that a search recommends, which never asks for more than the budget."""
    given: dict[str, Any] = (
        {"policy": policy, "sampler": sampler}
        if policy
        else {"budget": desk.budget, "max_pulls": desk.problem.max_pulls}
    )
    result = search(
        AtTheDesk(desk), desk.problem.space, seed=desk.seed, progress=False, **given
    )
    assert not desk.refused, "it asked for more than its budget"
    assert result.spent.pulls == desk.spent, "it counts otherwise than the desk"
    assert result.config is not None
    return dict(result.config)


def horizon_halving(desk: Desk) -> Config:
    """Random arms, as many as the budget is good for: what lastarm did when arms were left out."""
    M = desk.problem.max_pulls
    return searched(desk, HorizonHalving(PLENTY, desk.budget, max_pulls=M, seed=desk.seed))


def envelope_halving(desk: Desk) -> Config:
    """The same, with the arms that go on chosen by their envelopes."""
    M = desk.problem.max_pulls
    return searched(desk, EnvelopeHalving(PLENTY, desk.budget, max_pulls=M, seed=desk.seed))


def hyperband_once(desk: Desk) -> Config:
    """All brackets once, as far as they fit; what is left stays unspent."""
    M = desk.problem.max_pulls
    numbers = Hyperband.completed({"max_pulls": M})
    budget = min(desk.budget, numbers["budget"])
    return searched(desk, Hyperband(numbers["arms"], budget, max_pulls=M, seed=desk.seed))


def asha(desk: Desk, sampler: Sampler | None = None) -> Config:
    """ASHA, with as many arms as it wants to begin."""
    M = desk.problem.max_pulls
    return searched(desk, ASHA(desk.budget, desk.budget, max_pulls=M), sampler)


def asha_forest(desk: Desk) -> Config:
    """ASHA whose arms are chosen by trees."""
    return asha(desk, Forest())


def as_it_comes(desk: Desk) -> Config:
    """`search` with a budget and `max_pulls`, and nothing else."""
    return searched(desk)
