"""The arms of a `HalvingSearch`, and the policy that decides about them."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from dataclasses import replace
from typing import Any

from lastarm.arguments import Number, whole_number
from lastarm.errors import InvalidArgument
from lastarm.policies.named import make_policy, name_of, takes
from lastarm.policies.parts.integers import ceil_log
from lastarm.policy import Policy
from lastarm.space import Space, draw, size

# Where no budget is given:
PULLS_AT_FIRST = 4  # of every arm
PART_OF_ALL = 5  # of training every arm fully, where it is known how far that is


def policy_and_configs(
    given: Policy | str | None,
    space: Space,
    *,
    n_arms: int,
    budget: int | None,
    max_pulls: int | None,
    eta: Number,
    seed: int,
) -> tuple[Policy, list[dict[str, Any]]]:
    """The policy, and the configs of its arms."""
    if isinstance(given, str | type | None) or not hasattr(given, "ask"):
        name = name_of(given, max_pulls)
        configs = _drawn(space, n_arms, seed)
        return _with_numbers(name, len(configs), budget, max_pulls, eta, seed), configs
    if max_pulls is not None:
        raise InvalidArgument(
            f"max_pulls={max_pulls} will not do beside policy={given!r}, which has numbers of its "
            "own. Leave one of them out."
        )
    configs = _drawn(space, given.arms, seed)
    return replace(given, arms=len(configs)), configs


def _with_numbers(
    name: str, arms: int, budget: int | None, max_pulls: int | None, eta: Number, seed: int
) -> Policy:
    """The policy of that name. Without a horizon, it is an even share of the budget."""
    known: dict[str, Any] = {"eta": eta, "seed": seed}
    if max_pulls is None:
        eta = whole_number("eta", eta, 2, "the part of a rung that is kept, as 1/eta")
        rungs = max(1, ceil_log(arms, eta))
        budget = PULLS_AT_FIRST * arms * rungs if budget is None else budget
        budget = whole_number("budget", budget, 1, "the total of pulls over all settings")
        known["max_pulls"] = max(1, budget // rungs)
    elif budget is None:
        most = whole_number("max_pulls", max_pulls, 1, "the most pulls that one setting may get")
        budget = max(1, arms * most // PART_OF_ALL)
    taken = {key: value for key, value in known.items() if takes(name, key)}
    return make_policy(name, {"arms": arms, "budget": budget, "max_pulls": max_pulls} | taken)


def _drawn(space: Space, n_arms: int, seed: int) -> list[dict[str, Any]]:
    """So many configs, or all there are."""
    n_arms = whole_number("n_arms", n_arms, 1, "how many settings are tried")
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
            f"there are only {arms} settings to choose from, fewer than n_arms={n_arms}: all of "
            "them are tried",
            stacklevel=4,
        )
    return configs
