"""Schedules, written out; and what the policies refuse."""

import copy
import dataclasses
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import partial
from inspect import signature
from random import Random
from typing import Any

import numpy as np
import pytest

from lastarm import Loss, Pull, Rounds, SuccessiveHalving, SuccessiveRejects, UniformAllocation
from lastarm.errors import BudgetTooSmall, InvalidArgument
from lastarm.policies import (
    ASHA,
    EXP3,
    LUCB,
    POLICIES,
    Doubling,
    HorizonHalving,
    PricedHalving,
    TimedHalving,
)
from lastarm.policies.named import takes
from lastarm.policies.plan import MOST_OBSERVATIONS
from lastarm.policy import Algorithm, NoHealthyArm, added_later, describe, fresh
from tests.refusals import refused

WITH_A_HORIZON = {n for n, kind in POLICIES.items() if "max_pulls" in signature(kind).parameters}


def horizon(name: str) -> Any:
    """The policy of that name, with a horizon if it knows one."""
    return partial(POLICIES[name], **({"max_pulls": 9} if name in WITH_A_HORIZON else {}))


def rungs(policy: Any) -> list[tuple[int, int, int]]:
    return [dataclasses.astuple(rung) for rung in policy.plan().rungs]


def test_halving_ten_arms() -> None:
    plan = SuccessiveHalving(arms=10, budget=1000).plan()
    assert [dataclasses.astuple(rung) for rung in plan.rungs] == [
        (10, 25, 25),
        (5, 50, 75),
        (2, 125, 200),
        (1, 250, 450),
    ]
    assert (plan.pulls, plan.observations) == (1000, 18)


def test_rejecting_ten_arms() -> None:
    plan = SuccessiveRejects(arms=10, budget=1000).plan()
    assert [rung.upto for rung in plan.rungs] == [41, 46, 51, 59, 68, 82, 102, 136, 204]
    assert [rung.arms for rung in plan.rungs] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert (plan.pulls, plan.observations) == (993, 54)


@pytest.mark.parametrize(
    ("arms", "eta", "sizes"),
    [
        (243, 3, [243, 81, 27, 9, 3]),  # floating-point log(243, 3) is 4.999…
        (244, 3, [244, 81, 27, 9, 3, 1]),
        (1000, 10, [1000, 100, 10]),  # log(1000, 10) is 2.999…
        (31, 2, [31, 15, 7, 3, 1]),
        (32, 2, [32, 16, 8, 4, 2]),
        (33, 2, [33, 16, 8, 4, 2, 1]),
        (2, 2, [2]),
        (3, 2, [3, 1]),
        (7, 10, [7]),
    ],
)
def test_the_number_of_rungs_is_exact_at_powers(arms: int, eta: int, sizes: list[int]) -> None:
    assert [n for n, _, _ in rungs(SuccessiveHalving(arms, 10**6, eta))] == sizes


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - WITH_A_HORIZON))
def test_a_single_arm_gets_the_whole_budget(name: str) -> None:
    policy = POLICIES[name](arms=1, budget=17)
    assert policy.ask(3) == [Pull(0, 17)]
    policy.tell(Loss(Pull(0, 17), 0.5))
    assert policy.finished
    assert policy.recommendation == 0


@pytest.mark.parametrize("name", sorted(WITH_A_HORIZON))
def test_a_single_arm_gets_no_more_than_max_pulls(name: str) -> None:
    alone: Any = horizon(name)(arms=1, budget=100)
    level = 0
    while pulls := alone.ask():
        level = pulls[0].upto
        alone.tell(Loss(pulls[0], 0.5))
    assert level == 9


@pytest.mark.parametrize("arms", [2, 5, 12, 17, 40])
@pytest.mark.parametrize("budget", [69, 200, 1000])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_an_exact_plan_is_what_any_losses_spend_and_another_the_most(
    name: str, arms: int, budget: int
) -> None:
    make: Any = partial(horizon(name), arms, budget)
    try:
        plan = make().plan()
    except BudgetTooSmall:
        return
    for seed in range(10):
        random, policy = Random(seed), make()
        level: dict[int, int] = {}
        looks = 0
        while pulls := policy.ask(arms):
            for pull in pulls:
                level[pull.arm] = pull.upto
                policy.tell(Loss(pull, random.choice([0.0, 0.25, 0.5, 1.0])))
            looks += len(pulls)
        spent = sum(level.values())
        if plan.exact:
            assert (spent, looks) == (plan.pulls, plan.observations)
            assert spent == sum(rung.arms * rung.pulls for rung in plan.rungs)
        else:
            assert spent <= plan.pulls
            assert looks <= plan.observations


def test_a_policy_survives_the_journals_header() -> None:
    policies: list[Any] = [
        *(horizon(name)(5, 100) for name in POLICIES),
        HorizonHalving(5, 100, 9, eta=Fraction(3, 2)),
        PricedHalving(5, 100, 9, look_cost=0.5),
        TimedHalving(5, 100, 9, seconds=7),
        LUCB(5, 100, Fraction(1, 20)),  # type: ignore[arg-type]
        LUCB(5, 100, np.float32(0.05)),  # type: ignore[arg-type]
        SuccessiveHalving(np.int64(5), np.int32(100)),  # type: ignore[arg-type]
    ]
    for policy in policies:
        described = describe(policy)
        read = json.loads(json.dumps(described))
        assert read == described
        kind = POLICIES[read.pop("name")]
        assert read.pop("version", 1) == kind.version
        again = kind(**read)
        assert describe(again) == described


def test_a_round_that_would_exceed_the_total_ends_the_algorithm() -> None:
    def greedy() -> Algorithm:
        for level in range(1, 100):
            yield [Pull(arm, level) for arm in range(3)]
        return 0

    policy = Rounds(greedy(), total=10)
    spent = 0
    while pulls := policy.ask(3):
        for pull in pulls:
            spent += 1
            policy.tell(Loss(pull, 0.5 if pull.arm == 2 else 0.75))
    assert spent == 9
    assert policy.finished
    assert policy.recommendation == 2


@pytest.mark.parametrize("of", ["uniform", "successive-halving", "successive-rejects"])
@pytest.mark.parametrize(("arms", "budget"), [(4, 100), (10, 1000), (64, 10_000), (64, 100_000)])
def test_doubling_reaches_most_of_its_total(of: str, arms: int, budget: int) -> None:
    policy = Doubling(arms, budget, of)
    level: dict[int, int] = {}
    while pulls := policy.ask(arms):
        for pull in pulls:
            level[pull.arm] = pull.upto
            policy.tell(Loss(pull, (pull.arm * 7 % arms) / arms + 1 / pull.upto))
    assert budget * 0.6 < sum(level.values()) <= budget


def test_doubling_counts_only_pulls_that_were_made() -> None:
    policy = Doubling(16, 5000, of="uniform")
    level: dict[int, int] = {}
    while pulls := policy.ask(16):
        for pull in pulls:
            level[pull.arm] = pull.upto
            policy.tell(Loss(pull, 0.5 if pull.arm < 2 else math.nan))
    assert level == {0: 312, 1: 312} | dict.fromkeys(range(2, 16), 4), "⌊5000 / 16⌋ is reached"


@pytest.mark.parametrize("arms", [2, 3, 4, 5, 9, 64, 100, 200])
@pytest.mark.parametrize("budget", [10**3, 10**4, 123_457])
def test_observations_are_those_of_the_papers_table_1(arms: int, budget: int) -> None:
    if budget >= 8 * arms:
        halving = SuccessiveHalving(arms, budget).plan()
        assert halving.observations <= 2 * arms + 1
        assert halving.pulls <= budget
    assert UniformAllocation(arms, budget).plan().observations == arms
    rejects = SuccessiveRejects(arms, budget).plan()
    assert rejects.observations <= arms * (arms + 1) // 2
    assert rejects.pulls <= budget


def test_a_phase_whose_level_did_not_rise_looks_at_no_arm() -> None:
    plan = SuccessiveRejects(arms=10, budget=12).plan()
    assert [rung.upto for rung in plan.rungs] == [1]  # n_1 = … = n_9 = 1
    assert plan.observations == 10


@pytest.mark.parametrize(
    ("policy", "least"), [("uniform", 10), ("successive-halving", 40), ("successive-rejects", 11)]
)
def test_a_budget_too_small_names_the_least_and_both_ways_out(policy: str, least: int) -> None:
    POLICIES[policy](arms=10, budget=least)
    with pytest.raises(BudgetTooSmall) as refusal:
        POLICIES[policy](arms=10, budget=least - 1)
    assert refusal.value.least == least
    assert (refusal.value.given, refusal.value.most_arms) == (least - 1, 9)
    POLICIES[policy](arms=9, budget=least - 1)


@pytest.mark.parametrize("policy", [UniformAllocation, SuccessiveHalving, LUCB, EXP3, Doubling])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "3x", "3", None, float("inf"), float("nan"), True])
@pytest.mark.parametrize("argument", ["arms", "budget"])
def test_what_is_not_a_count_is_refused_by_name(policy: Any, bad: Any, argument: str) -> None:
    with refused(argument, bad):
        policy(**{"arms": 4, "budget": 100, argument: bad})


@pytest.mark.parametrize("argument", ["arms", "budget", "max_pulls"])
def test_a_number_that_cannot_be_compared_is_refused_by_name(argument: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:  # and not by an error of `decimal`
        TimedHalving(**{"arms": 4, "budget": 100, "max_pulls": 9, argument: Decimal("sNaN")})  # type: ignore[arg-type]
    assert refusal.value.argument == argument


@pytest.mark.parametrize("policy", [one for one in POLICIES.values() if takes(one.name, "eta")])
def test_an_array_is_refused_as_eta(policy: Any) -> None:
    numbers = {"arms": 4, "budget": 100, "max_pulls": 9}
    known = {name: number for name, number in numbers.items() if takes(policy.name, name)}
    with refused("eta"):
        policy(**known, eta=np.array([1, 2]))


@pytest.mark.parametrize("bad", [1, 0, -2, 1.5, "2"])
def test_eta_is_a_whole_number_from_two(bad: Any) -> None:
    with refused("eta", bad):
        SuccessiveHalving(arms=4, budget=100, eta=bad)


def test_a_policy_is_described_by_plain_numbers_and_made_anew_from_them() -> None:
    policy = SuccessiveHalving(arms=9, budget=99, eta=3)
    assert describe(policy) == {"name": "successive-halving", "arms": 9, "budget": 99, "eta": 3}
    policy.ask(5)
    assert fresh(policy).ask(1) == [Pull(0, 5)]
    assert repr(policy) == "SuccessiveHalving(arms=9, budget=99, eta=3)"


def test_a_plan_too_long_to_play_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("arms", MOST_OBSERVATIONS + 1):
        UniformAllocation(arms=MOST_OBSERVATIONS + 1, budget=10**9).plan()
    monkeypatch.setattr("lastarm.policies.plan.MOST_OBSERVATIONS", 1000)
    with refused("arms", 100):
        SuccessiveRejects(arms=100, budget=10**6).plan()


def test_many_arms_that_mostly_tie_are_rejected_quickly() -> None:
    plan = SuccessiveRejects(arms=30_000, budget=40_000).plan()
    assert plan.observations <= 60_000


@pytest.mark.parametrize("bad", [None, "0.5", 1j, [0.5], 10**400])
def test_what_is_not_a_loss_is_refused_and_changes_nothing(bad: Any) -> None:
    for policy in (UniformAllocation(2, 4), ASHA(2, 4, max_pulls=3)):
        first, second = policy.ask(2)
        with refused("value", bad):
            policy.tell(Loss(first, bad))
        policy.tell(Loss(first, 0.5))
        policy.tell(Loss(second, 0.25))
        assert policy.recommendation == 1


def test_a_plan_counts_only_real_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastarm.policies.plan.MOST_OBSERVATIONS", 50)
    assert UniformAllocation(arms=30, budget=30).plan().observations == 30
    with refused("arms", 51):
        UniformAllocation(arms=51, budget=51).plan()


def test_a_round_that_asks_for_nothing_is_sent_nothing() -> None:
    def idle_first() -> Algorithm:
        losses = yield []
        assert losses == {}
        yield [Pull(0, 1)]
        return 0

    assert Rounds(idle_first()).ask() == [Pull(0, 1)]


def test_asking_for_no_pulls_gives_none() -> None:
    assert UniformAllocation(2, 2).ask(0) == UniformAllocation(2, 2).ask(-1) == []


def test_a_pull_is_of_an_arm_and_upwards() -> None:
    with refused("arm", -1):
        Pull(-1, upto=1)
    with refused("upto", 0):
        Pull(0, upto=0)


def test_an_algorithm_with_other_arms_to_turn_to_may_go_on_when_a_round_is_lost() -> None:
    def two_tries() -> Algorithm:
        try:
            yield [Pull(0, 1)]
        except NoHealthyArm:
            yield [Pull(1, 1)]
        return 1

    policy = Rounds(two_tries())
    policy.tell(Loss(policy.ask()[0], float("nan")))
    assert not policy.finished
    assert policy.ask() == [Pull(1, 1)]


def test_when_the_last_arms_diverge_the_best_of_the_dropped_is_recommended() -> None:
    policy = SuccessiveHalving(arms=4, budget=16)
    for pull in policy.ask(4):
        policy.tell(Loss(pull, [0.1, 0.2, 0.3, 0.4][pull.arm]))
    for pull in policy.ask(4):
        policy.tell(Loss(pull, float("nan")))
    assert policy.finished
    assert policy.recommendation == 2


@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_a_policy_has_not_begun(name: str) -> None:
    policy: Any = horizon(name)(4, 64)
    begun = policy.ask(1)
    for copied in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert describe(copied) == describe(policy)
        assert copied.ask(1) == begun


@dataclasses.dataclass(eq=False)
class Renewed(UniformAllocation):
    """A policy whose rule has changed since its first journals, and that got an argument since."""

    name = "renewed"
    version = 2
    patience: int = added_later(3)


def test_a_header_has_a_version_from_two_on_and_later_arguments_only_when_given() -> None:
    assert describe(Renewed(4, 64)) == {"name": "renewed", "version": 2, "arms": 4, "budget": 64}
    assert describe(Renewed(4, 64, patience=5))["patience"] == 5
    assert fresh(Renewed(4, 64, patience=5)).patience == 5  # type: ignore[attr-defined]
    changed = {"horizon-halving": 2, "hyperband": 2}  # since 0.1.0
    for name in POLICIES:
        assert describe(horizon(name)(4, 64)).get("version", 1) == changed.get(name, 1)
