"""The one place that turns names and numbers into a policy, and a journal's header too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lastarm.arguments import one_of, time_limit, whole_number
from lastarm.errors import InvalidArgument, shown
from lastarm.policies import POLICIES
from lastarm.policies.brackets import Brackets
from lastarm.policies.horizon_halving import HorizonHalving
from lastarm.policies.parts.budgeted import NEEDED, WHOLE_NUMBERS, Budgeted, Facts
from lastarm.policies.parts.expectation import worth_drawing
from lastarm.policies.successive_halving import SuccessiveHalving
from lastarm.policies.timed_halving import MOST_DRAWN, TimedHalving
from lastarm.policy import Policy, fresh

FULL_TRAININGS = 10  # that a budget is worth, for arms to be chosen as the search goes
MOST_ARMS = 10**5  # of a header, which may claim any number of them


class Picked(NamedTuple):
    """A policy, and what a search by it has to know.

    - `seconds`: how long until it is to be stopped.
    - `chooses_arms`: whether its arms are to be chosen as the search goes, because policy and
      arms were left out and the budget allows for it.
    """

    policy: Policy
    seconds: float
    chooses_arms: bool = False


def choose(
    policy: Policy | str | None,
    numbers: Mapping[str, Any],
    *,
    seed: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    restarts: bool | None = None,
    suggested: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    there_are: float | None = None,
    spelled: Callable[[str], str] = str,
) -> Picked:
    """The policy that was asked for. All who take names or numbers have it chosen here.

    - `policy`: its name; None for `SuccessiveHalving`, for `HorizonHalving` if `max_pulls` is
      among the numbers, for `Brackets` if `arms` is left out besides and the budget is worth ten
      full trainings or more, or for `TimedHalving` if there are `seconds` and no `budget`; or a
      policy with numbers of its own, beside which none may be given.
    - `numbers`: those that were given, such as `arms` and `budget`; None is one left out.
    - `seed`: for a policy that draws.
    - `seconds`: how long to search. A policy that plans for them gets them, and is not stopped
      unless they are its only budget.
    - `workers`: how many pulls are performed at the same time, which is how often a second of a
      search without a budget can be used.
    - `restarts`: whether the trainer trains every level from zero, if that is known. The policy
      then plans for it, or is refused.
    - `suggested`: numbers for a policy that takes them, where they were left out.
    - `horizon`: the most pulls that the trainer has a use for, None if there is no such number.
      `max_pulls` is this number where it was left out, and not more.
    - `there_are`: if `arms` may be left out, how many configs there are, inf for no end of them.
      Brackets begin arms as they go; with less budget, a model of curves says how many are worth
      drawing.
    - `spelled`: how the user writes the name of a number.

    >>> choose("asha", {"arms": 64, "budget": 652, "eta": None}, suggested={"max_pulls": 51})
    Picked(policy=ASHA(arms=64, budget=652, max_pulls=51, eta=3), seconds=inf, chooses_arms=False)
    >>> choose(None, {"arms": 64, "budget": 652, "max_pulls": 51}, seed=7, seconds=60)[:2]
    (HorizonHalving(arms=64, budget=652, max_pulls=51, eta=2, seed=7), 60.0)
    >>> choose(None, {"budget": 652, "max_pulls": 51}, there_are=1000).chooses_arms
    True
    """
    given = {name: number for name, number in numbers.items() if number is not None}
    if horizon is not None:
        suggested = {**(suggested or {}), "max_pulls": horizon}
        if policy is None and ("budget" in given or "budget" in suggested or seconds is None):
            given.setdefault("max_pulls", horizon)
    stop_after, chooses_arms = seconds, False
    if isinstance(policy, str | None):
        only_seconds = seconds is not None and "budget" not in {**given, **(suggested or {})}
        name = TimedHalving.name if policy is None and only_seconds else ""
        if policy is None and not only_seconds and there_are is not None and "arms" not in given:
            name, given = _without_arms({**(suggested or {}), **given}, there_are, restarts)
            chooses_arms = name == Brackets.name
        name = name or name_of(policy, given.get("max_pulls"))
        known = {"seed": seed, "seconds": seconds, **(suggested or {})}
        if restarts:
            _require_restarts(name, POLICIES[name])
            known["restarts"] = True
        if name == TimedHalving.name and only_seconds:
            known |= {"at_once": workers or 1}
            known |= {} if "arms" in given else {"arms": MOST_DRAWN, "open_ended": True}
        else:
            stop_after = None if takes(name, "seconds") else seconds
        known = {key: value for key, value in known.items() if takes(name, key)}
        policy = make_policy(name, known | given, spelled)
    else:
        _require_policy(policy)
        if given:
            listed = ", ".join(f"{name}={shown(value)}" for name, value in given.items())
            argument, number = next(iter(given.items()))
            raise InvalidArgument(
                f"{listed} cannot be used with policy={policy!r}, which has numbers of its own. "
                "Leave one of the two out.",
                argument=argument,
                given=number,
            )
    if restarts and not getattr(policy, "restarts", False):
        _require_restarts(policy.name, policy)
        policy = fresh(policy, restarts=True)
    elif restarts is False and getattr(policy, "restarts", False):
        rule = "restarts=True is for a trainer that trains every level from zero, and this one "
        rule += "continues from where it was"
        way_out = "Leave it out, or set `restarts = True` on the trainer, if it does so"
        raise InvalidArgument.of("policy", policy, rule, way_out)
    if horizon is not None:
        _require_within(policy, horizon)
    limit = time_limit("seconds", stop_after, "how long to search")
    return Picked(policy, limit, chooses_arms)


def _without_arms(
    numbers: dict[str, Any], there_are: float, restarts: bool | None
) -> tuple[str, dict[str, Any]]:
    """The name of a policy, and its numbers, where the number of arms is left to it."""
    if "max_pulls" not in numbers:
        return "", numbers
    if "budget" not in numbers:
        return Brackets.name, numbers  # it is said what is missing
    budget, most = (
        whole_number(name, numbers[name], *WHOLE_NUMBERS[name]) for name in ("budget", "max_pulls")
    )
    eta = numbers.get("eta", HorizonHalving.eta)
    if budget >= FULL_TRAININGS * most and isinstance(eta, int):
        return Brackets.name, numbers
    arms = int(min(MOST_DRAWN, budget, there_are))
    worth, _ = worth_drawing(arms, budget, most, eta, restarts=bool(restarts))
    return HorizonHalving.name, {**numbers, "arms": worth}


def _require_restarts(name: str, policy: Any) -> None:
    """Refuse a policy that does not plan for a trainer that trains every level from zero."""
    if "restarts" not in (field.name for field in dataclasses.fields(policy)):
        having = [one for one in POLICIES if takes(one, "restarts")]
        rule = "the trainer trains every level from zero (`restarts = True`), and this policy "
        rule += "plans as if arms went on from where they were"
        way_out = f"Use one of {', '.join(having)}"
        raise InvalidArgument.of("policy", name, rule, way_out)


def _require_within(policy: Policy, horizon: int) -> None:
    """Refuse a policy that brings arms past the horizon: a trainer has one if pulls are rows."""
    most = getattr(policy, "max_pulls", None)
    if most is not None and most > horizon:
        rule = f"a pull is 1 % of the rows, so after {horizon} pulls an arm has seen all of them"
        raise InvalidArgument.of("max_pulls", most, rule, f"Use at most {horizon}")
    if most is None and isinstance(policy, Budgeted):
        highest = max((rung.upto for rung in policy.plan().rungs), default=0)
        if highest > horizon:
            rule = f"it brings arms to {highest} pulls, but a pull is 1 % of the rows"
            way_out = f"Use less budget, or a policy that takes max_pulls={horizon}"
            raise InvalidArgument.of("policy", policy, rule, way_out)


def _require_policy(policy: Any) -> None:
    example = "such as SuccessiveHalving(arms=64, budget=4096)"
    if isinstance(policy, type) or not hasattr(policy, "ask"):
        way_out = f"Use one of {', '.join(POLICIES)}, or an instance {example}"
        raise InvalidArgument.of("policy", policy, "it is a policy, or the name of one", way_out)
    missing = [name for name in ("name", "arms", "budget") if not hasattr(policy, name)]
    if missing or not dataclasses.is_dataclass(policy):
        raise InvalidArgument.of(
            "policy",
            policy,
            "a search needs a policy that is a dataclass with `name`, `arms` and `budget`: they "
            "say how many arms to draw, and a journal describes a policy by them",
            f"Use an instance {example}, or derive a class from `lastarm.policies.InRounds`, "
            "whose `algorithm` is what `Rounds` was given",
        )


def name_of(given: Any, max_pulls: Any) -> str:
    """The name that was given. Left out, it is halving's, up to the horizon where that is known.

    >>> name_of(None, max_pulls=None), name_of(None, max_pulls=51), name_of("asha", max_pulls=51)
    ('successive-halving', 'horizon-halving', 'asha')
    """
    if given is None:
        return (SuccessiveHalving if max_pulls is None else HorizonHalving).name
    return one_of("policy", given, POLICIES, "what decides which arm is pulled")


def takes(name: str, argument: str) -> bool:
    """Whether the policy of that name has such an argument."""
    return argument in (field.name for field in dataclasses.fields(POLICIES[name]))


def make_policy(
    name: str, arguments: Mapping[str, Any], spelled: Callable[[str], str] = str
) -> Budgeted:
    """The policy of that name; an argument that it does not have is refused, None is left out.

    >>> make_policy("successive-halving", {"arms": 64, "budget": 652, "eta": None})
    SuccessiveHalving(arms=64, budget=652, eta=2)
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    for argument, value in given.items():
        if not takes(name, argument):
            having = [policy for policy in POLICIES if takes(policy, argument)]
            way_out = f"Leave it out, or use one of {', '.join(having)}"
            raise InvalidArgument.of(argument, value, f"{name} does not take it", way_out)
    given = POLICIES[name].completed(given)
    for field in dataclasses.fields(POLICIES[name]):
        needed = field.default is dataclasses.MISSING or field.metadata.get(NEEDED)
        if needed and field.name not in given:
            raise InvalidArgument(
                f"{name} needs {spelled(field.name)}, which was not given. Add it, with a whole "
                "number.",
                argument=field.name,
            )
    return POLICIES[name](**given)


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
    kind = POLICIES.get(str(described.get("name")))
    if not kind or described.get("version", 1) != kind.version:
        return None
    arms = described.get("arms", None if kind.counts_arms else 1)
    if not isinstance(arms, int) or arms > MOST_ARMS:
        return None
    known = {field.name for field in dataclasses.fields(kind)} & described.keys()
    try:
        return make_policy(kind.name, {name: described[name] for name in known})
    except InvalidArgument:
        return None
