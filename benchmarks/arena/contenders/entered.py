"""All contenders, in the order of the tables. A peer's file is loaded when it plays."""

from __future__ import annotations

import importlib
from functools import partial

from arena.contenders import lastarms, plain
from arena.contenders.contender import Contender, Play
from arena.desk import Desk
from arena.problems.problem import Config

SLOW = 50  # full trainings, where a peer that is slow ends


def _loaded(file: str, function: str, desk: Desk) -> Config | None:
    play = getattr(importlib.import_module(f"arena.contenders.{file}"), function)
    found: Config | None = play(desk)
    return found


def _peer(
    name: str, where: str, packages: str, until: int = 200, seeds: int = 1000, apart: bool = False
) -> Contender:
    file, _, function = where.partition(".")
    play = partial(_loaded, file, function)
    those = tuple(packages.split())
    return Contender(name, play, until=until, seeds=seeds, packages=those, apart=apart)


def _ours(name: str, play: Play, until: int = 200, seeds: int = 1000) -> Contender:
    return Contender(f"lastarm: {name}", play, knows_budget=True, until=until, seeds=seeds)


REFERENCE = "lastarm: random arms, horizon-halving"
CHOSEN = "lastarm: brackets, GaussianProcess"

ENTERED = [
    Contender("random search", plain.random_search),
    Contender("1 epoch for all, then the best 3", partial(plain.some_epochs, first=1), True),
    Contender("5 epochs for all, then the best 3", partial(plain.some_epochs, first=5), True),
    Contender(REFERENCE, lastarms.horizon_halving, True),
    _ours("random arms, envelope-halving", lastarms.envelope_halving),
    _ours("Hyperband, its brackets once", lastarms.hyperband_once),
    _ours("Hyperband", lastarms.hyperband),
    _ours("ASHA", lastarms.asha),
    _ours("ASHA, Forest", lastarms.asha_forest, until=50, seeds=3),
    _ours("random arms, brackets", lastarms.brackets),
    _ours("brackets, Forest", lastarms.brackets_forest, until=50, seeds=3),
    Contender(CHOSEN, lastarms.brackets_chosen, True),
    _peer("Optuna: TPE", "optunas.tpe", "optuna"),
    _peer("Optuna: TPE, Hyperband pruner", "optunas.tpe_hyperband", "optuna", SLOW),
    _peer("Optuna: GP", "optunas.gaussian_process", "optuna torch", SLOW, 3),
    _peer(
        "Optuna: GP, Hyperband pruner", "optunas.gaussian_process_hyperband", "optuna torch", 20, 1
    ),
    _peer("SMAC3: multi-fidelity", "smacs.multi_fidelity", "smac ConfigSpace", SLOW, 3),
    _peer("DEHB", "dehbs.dehb", "dehb ConfigSpace", apart=True),
    _peer("Syne Tune: BOHB", "syne_tunes.bohb", "syne-tune", SLOW, 3),
    _peer("NePS: GP", "nepses.bayesian_optimization", "neural-pipeline-search torch", SLOW, 1),
]
