"""The arms of a `HalvingSearch`, and the policy that decides about them."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from dataclasses import replace
from typing import Any

from lastarm.errors import InvalidArgument, whole_number
from lastarm.integers import ceil_log
from lastarm.policies import POLICIES, SuccessiveHalving
from lastarm.policy import Policy
from lastarm.space import Space, draw, size

PULLS_AT_FIRST = 4  # of every arm, where no budget is given


def policy_and_configs(
    given: Policy | str | None,
    space: Space,
    *,
    n_arms: int,
    budget: int | None,
    eta: int,
    seed: int,
) -> tuple[Policy, list[dict[str, Any]]]:
    """The policy, and the configs of its arms."""
    policy = SuccessiveHalving.name if given is None else given
    own = None if isinstance(policy, str) else policy
    if policy not in POLICIES and not hasattr(own, "arms"):
        raise InvalidArgument(
            f"policy={policy!r} is no policy. Give one of {', '.join(POLICIES)}, or one of "
            "lastarm's with its numbers, like SuccessiveHalving(arms=64, budget=4096)."
        )
    configs = _drawn(space, own.arms if own else n_arms, seed)
    arms = len(configs)
    if own:
        return replace(own, arms=arms), configs
    eta = whole_number("eta", eta, 2, "the part of a rung that is kept, as 1/eta")
    rungs = max(1, ceil_log(arms, eta))
    if budget is None:
        budget = PULLS_AT_FIRST * arms * rungs
    budget = whole_number("budget", budget, 1, "the total of pulls over all settings")
    numbers = {
        "arms": arms,
        "budget": budget,
        "eta": eta,
        "max_pulls": max(1, budget // rungs),
        "seed": seed,
    }
    kind = POLICIES[str(policy)]
    fields = kind.__dataclass_fields__
    return kind(**{k: v for k, v in numbers.items() if k in fields}), configs


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
