"""Syne Tune's BOHB: an ASHA that stops trials, whose configs come from density ratios."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import BOHB

from arena.desk import Desk
from lastarm.space.domains import Choice, Domain, Integer, LogUniform

logging.disable(logging.WARNING)  # it tells of every model that it fits


def _domain(domain: Domain) -> Any:
    if isinstance(domain, Integer):
        return (lograndint if domain.log else randint)(domain.low, domain.high)
    if isinstance(domain, Choice):
        return choice(list(domain.options))
    low, high = (getattr(domain, end) for end in ("low", "high"))
    return (loguniform if isinstance(domain, LogUniform) else uniform)(low, high)


def bohb(desk: Desk) -> None:
    """As it comes: trial after trial, told after every epoch, until stopped or at the end."""
    np.random.seed(desk.seed)  # it draws brackets by NumPy's global state
    M = desk.problem.max_pulls
    space = {name: _domain(domain) for name, domain in desk.problem.space.items()}
    scheduler = BOHB(
        space, metric="loss", time_attr="epoch", max_t=M, random_seed=desk.seed, do_minimize=True
    )
    number = 0
    while True:
        config = scheduler.suggest().config
        trial = Trial(number, config, datetime(2000, 1, 1))
        scheduler.on_trial_add(trial)
        for level in range(1, M + 1):
            result = {"loss": desk.look(config, level), "epoch": level}
            if scheduler.on_trial_result(trial, result) == "STOP":
                break
        number += 1
