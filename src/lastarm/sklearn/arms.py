"""The arms of a `HalvingSearch`, and the policy that decides about them."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from typing import Any

from lastarm.arguments import Number, whole_number
from lastarm.errors import InvalidArgument
from lastarm.policies.named import choose
from lastarm.policies.parts.integers import ceil_log
from lastarm.policy import Policy, fresh
from lastarm.space import Space, draw, size

ARMS = 32  # if their number is not given
# Where no budget is given:
PULLS_AT_FIRST = 4  # of every arm
PART_OF_ALL = 5  # of training every arm fully, where it is known how far that is


def policy_and_configs(
    given: Policy | str | None,
    space: Space,
    *,
    n_arms: int | None,
    budget: int | None,
    max_pulls: int | None,
    eta: Number | None,
    seed: int,
) -> tuple[Policy, list[dict[str, Any]]]:
    """The policy, and the configs of its arms."""
    numbers = {"budget": budget, "max_pulls": max_pulls, "eta": eta}
    if not isinstance(given, str | None):
        policy, _ = choose(given, {"n_arms": n_arms, **numbers})
        configs = _drawn(space, policy.arms, seed)
        return fresh(policy, arms=len(configs)), configs
    configs = _drawn(space, ARMS if n_arms is None else n_arms, seed)
    suggested = _suggested(len(configs), budget, max_pulls, 2 if eta is None else eta)
    numbers["arms"] = len(configs)
    return choose(given, numbers, seed=seed, suggested=suggested).policy, configs


def _suggested(
    arms: int, budget: int | None, max_pulls: int | None, eta: Number
) -> dict[str, int]:
    """The budget and the horizon, if they are left out: the horizon is a rung's share."""
    if max_pulls is not None:
        most = whole_number("max_pulls", max_pulls, 1, "the most pulls that one setting may get")
        return {"budget": max(1, arms * most // PART_OF_ALL)}
    eta = whole_number("eta", eta, 2, "the part of a rung that is kept, as 1/eta")
    rungs = max(1, ceil_log(arms, eta))
    budget = PULLS_AT_FIRST * arms * rungs if budget is None else budget
    budget = whole_number("budget", budget, 1, "the total of pulls over all settings")
    return {"budget": budget, "max_pulls": max(1, budget // rungs)}


def _drawn(space: Space, n_arms: int, seed: int) -> list[dict[str, Any]]:
    """`n_arms` configs, or all configs if there are fewer."""
    n_arms = whole_number("n_arms", n_arms, 1, "how many configs are tried")
    most = size(space)
    arms = n_arms if most is None else min(n_arms, most)

    def too_many(arms: int) -> bool:
        try:
            draw(space, arms, seed)
        except InvalidArgument:
            return True
        return False

    if arms > 1 and isinstance(space, list | tuple):  # its parts may share configs
        arms = bisect_left(range(2, arms + 1), True, key=too_many) + 1
    configs = draw(space, arms, seed)
    if arms < n_arms:
        warnings.warn(
            f"there are only {arms} configs, fewer than n_arms={n_arms}: all of them are tried",
            stacklevel=4,
        )
    return configs
