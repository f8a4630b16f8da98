"""A policy by its name and numbers, or the default where none is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.policies import POLICIES
from lastarm.policies.horizon_halving import HorizonHalving
from lastarm.policies.parts.budgeted import Budgeted, Facts
from lastarm.policies.successive_halving import SuccessiveHalving

MOST_ARMS = 10**5  # of a header, which may claim any number of them


def name_of(given: Any, max_pulls: Any) -> str:
    """The name that was given. Left out, it is halving's, up to the horizon where that is known.

    >>> name_of(None, max_pulls=None), name_of(None, max_pulls=51), name_of("asha", max_pulls=51)
    ('successive-halving', 'horizon-halving', 'asha')
    """
    if given is None:
        return (SuccessiveHalving if max_pulls is None else HorizonHalving).name
    if not isinstance(given, str) or given not in POLICIES:
        raise InvalidArgument(
            f"policy={given!r} is no policy. Give one of {', '.join(POLICIES)}, or one of "
            "lastarm's with its numbers, like SuccessiveHalving(arms=64, budget=4096)."
        )
    return given


def facts_of(name: str) -> type[Facts]:
    """What is known of the policy of that name; if it is unknown here, what is true of most."""
    return POLICIES.get(name, Facts)


def from_header(described: Mapping[str, Any]) -> Budgeted | None:
    """The policy that the header of a journal describes, if it can be had here.

    It is None if its name or its version is unknown here, or if its arguments are not valid: a
    header may be anybody's.

    >>> from_header({"name": "asha", "arms": 9, "budget": 99, "max_pulls": 9, "sampler": "Forest"})
    ASHA(arms=9, budget=99, max_pulls=9, eta=3)
    >>> from_header({"name": "asha", "version": 3, "arms": 9, "budget": 99, "max_pulls": 9})
    """
    kind, arms = POLICIES.get(str(described.get("name"))), described.get("arms")
    if not kind or described.get("version", 1) != kind.version:
        return None
    if not isinstance(arms, int) or arms > MOST_ARMS:
        return None
    known = {field.name for field in dataclasses.fields(kind)} & described.keys()
    try:
        return make_policy(kind.name, {name: described[name] for name in known})
    except InvalidArgument:
        return None


def takes(name: str, argument: str) -> bool:
    """Whether the policy of that name has such an argument."""
    return argument in (field.name for field in dataclasses.fields(POLICIES[name]))


def make_policy(
    name: str, arguments: Mapping[str, Any], spelled: Callable[[str], str] = str
) -> Budgeted:
    """The policy of that name; an argument that it does not have is refused, None is left out.

    >>> make_policy("successive-halving", {"arms": 64, "budget": 652, "eta": None})
    SuccessiveHalving(arms=64, budget=652, eta=2)

    `spelled` is how the user writes an argument's name.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    for argument, value in given.items():
        if not takes(name, argument):
            having = ", ".join(policy for policy in POLICIES if takes(policy, argument))
            raise InvalidArgument(
                f"{argument}={value} will not do with {name}, which does not take it. Leave it "
                f"out, or use one of {having}."
            )
    for field in dataclasses.fields(POLICIES[name]):
        if field.default is dataclasses.MISSING and field.name not in given:
            raise InvalidArgument(
                f"{name} needs {spelled(field.name)}. Add it, with a whole number."
            )
    return POLICIES[name](**given)
