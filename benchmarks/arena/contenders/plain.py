"""What needs no package: random search, and a few epochs for all, then the best few."""

from __future__ import annotations

from arena.desk import Desk
from arena.problems.problem import Config
from lastarm.space import draw

BEST = 3  # that Egele et al. train fully


def random_search(desk: Desk) -> None:
    """One random config after the other, each fully trained."""
    M = desk.problem.max_pulls
    for config in draw(desk.problem.space, desk.budget // M + 1, desk.seed):
        desk.look(config, M)


def some_epochs(desk: Desk, first: int) -> Config:
    """`first` epochs for as many random configs as there is room for, then all for the best three.

    Egele, Mohr, Viering & Balaprakash, "The unreasonable effectiveness of early discarding after
    one epoch in neural network hyperparameter optimization" (2024, arXiv 2404.04111): i-Epoch.
    """
    M = desk.problem.max_pulls
    arms = max(1, (desk.budget - BEST * (M - first)) // first)
    configs = draw(desk.problem.space, arms, desk.seed)
    losses = [desk.look(config, first) for config in configs]
    best = sorted(range(arms), key=lambda arm: (losses[arm], arm))[:BEST]
    ends = {arm: desk.look(configs[arm], M) for arm in best}
    return configs[min(ends, key=lambda arm: (ends[arm], arm))]
