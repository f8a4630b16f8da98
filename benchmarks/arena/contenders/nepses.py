"""NePS: its Bayesian optimisation, a Gaussian process, with full trainings."""

from __future__ import annotations

import random
from typing import Any

import neps
import numpy as np
import torch

from arena.desk import Desk
from lastarm.space.domains import Choice, Domain, Integer, LogUniform


def _parameter(domain: Domain) -> Any:
    if isinstance(domain, Integer):
        return neps.HPOInteger(domain.low, domain.high, log=domain.log)
    if isinstance(domain, Choice):
        return neps.HPOCategorical(list(domain.options))
    low, high = (getattr(domain, end) for end in ("low", "high"))
    return neps.HPOFloat(low, high, log=isinstance(domain, LogUniform))


def bayesian_optimization(desk: Desk) -> None:
    """As it comes."""
    for seed in (random.seed, np.random.seed, torch.manual_seed):  # it draws by global states
        seed(desk.seed)
    space = neps.SearchSpace(
        {name: _parameter(domain) for name, domain in desk.problem.space.items()}
    )
    asked = neps.AskAndTell(neps.algorithms.bayesian_optimization(space))
    while True:
        trial = asked.ask()
        asked.tell(trial, desk.look(trial.config, desk.problem.max_pulls))
