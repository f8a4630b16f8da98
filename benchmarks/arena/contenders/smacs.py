"""SMAC3's multi-fidelity facade: Hyperband whose configs a random forest chooses."""

from __future__ import annotations

import tempfile
from typing import Any

from smac import MultiFidelityFacade, Scenario
from smac.runhistory.dataclasses import TrialValue

from arena.contenders.config_spaces import config_space
from arena.desk import Desk

TRIALS = 2000  # of which it draws at most a quarter at random before it models


def multi_fidelity(desk: Desk) -> None:
    """As it comes, with eta 3 and budgets from one epoch to all of them."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            config_space(desk.problem.space, desk.seed),
            deterministic=True,
            n_trials=TRIALS,
            min_budget=1,
            max_budget=desk.problem.max_pulls,
            output_directory=folder,
            seed=desk.seed,
        )

        def never(config: Any, seed: int, budget: float) -> float:
            raise AssertionError("it is asked, and told")

        facade: Any = MultiFidelityFacade(scenario, never, logging_level=False, overwrite=True)
        for _ in range(TRIALS):
            trial = facade.ask()
            loss = desk.look(dict(trial.config), round(trial.budget))
            facade.tell(trial, TrialValue(cost=loss), save=False)
