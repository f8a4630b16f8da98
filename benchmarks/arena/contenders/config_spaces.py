"""Spaces for SMAC3 and DEHB, which share a package for them and no environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float
from ConfigSpace import Integer as Whole

from lastarm.space.domains import Choice, Domain, Integer, LogUniform


def config_space(space: Mapping[str, Domain], seed: int) -> Any:
    """A space as ConfigSpace has it."""
    found = ConfigurationSpace(seed=seed)
    for name, domain in space.items():
        if isinstance(domain, Integer):
            found.add(Whole(name, (domain.low, domain.high), log=domain.log))
        elif isinstance(domain, Choice):
            found.add(Categorical(name, list(domain.options)))
        else:
            low, high = (getattr(domain, end) for end in ("low", "high"))
            found.add(Float(name, (low, high), log=isinstance(domain, LogUniform)))
    return found
