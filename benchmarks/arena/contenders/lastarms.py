"""lastarm's ways, through its front door: `search` with a trainer that asks the desk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from arena.desk import Desk
from arena.problems.problem import Config
from lastarm import (
    ASHA,
    Brackets,
    EnvelopeHalving,
    Forest,
    GaussianProcess,
    HorizonHalving,
    Hyperband,
    Sampler,
    search,
)
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
    result = search(AtTheDesk(desk), desk.problem.space, seed=desk.seed, progress=False, **given)
    assert not desk.refused, "it asked for more than its budget"
    assert desk.spent <= result.spent.pulls  # the desk knows equal configs for one
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
    """All brackets once, as far as they fit; the rest stays unspent, as version 1 left it."""
    once: int = Hyperband.completed({"max_pulls": desk.problem.max_pulls})["budget"]
    return hyperband(desk, min(desk.budget, once))


def hyperband(desk: Desk, budget: int | None = None) -> Config:
    """Its brackets again and again, until the budget is spent."""
    M = desk.problem.max_pulls
    policy = Hyperband(budget=budget or desk.budget, max_pulls=M, seed=desk.seed)
    return searched(desk, policy)


def brackets(desk: Desk, sampler: Sampler | None = None) -> Config:
    """Small brackets one after another, of random arms or of chosen ones."""
    return searched(desk, Brackets(budget=desk.budget, max_pulls=desk.problem.max_pulls), sampler)


def brackets_chosen(desk: Desk) -> Config:
    """Small brackets, whose arms a Gaussian process chooses."""
    return brackets(desk, GaussianProcess())


def brackets_forest(desk: Desk) -> Config:
    """Small brackets, whose arms are chosen by trees."""
    return brackets(desk, Forest())


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
