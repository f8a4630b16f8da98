"""Table 1 as counted, and the promises that are about chance, tried a thousand times."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from lastarm import Loss, SuccessiveHalving, SuccessiveRejects, UniformAllocation
from lastarm.errors import BudgetTooSmall
from lastarm.policies import (
    ASHA,
    EXP3,
    LUCB,
    Doubling,
    ExponentialGap,
    Hyperband,
    LilUCB,
    SuccessiveElimination,
)
from lastarm.policies.hyperband import brackets
from lastarm.policies.parts.budgeted import Budgeted
from tests.refusals import refused

DELTA = 0.05
TABLE_1: list[tuple[Any, Callable[[int, int], float]]] = [
    (UniformAllocation, lambda n, B: n),
    (SuccessiveHalving, lambda n, B: 2 * n + 1),
    (SuccessiveRejects, lambda n, B: n * (n + 1) / 2),
    (SuccessiveElimination, lambda n, B: n * np.log2(2 * B)),
    (LUCB, lambda n, B: B),
    (LilUCB, lambda n, B: B),
    (EXP3, lambda n, B: B),
]


def counted(policy: Budgeted, loss: Callable[[int, int], float]) -> tuple[int, int, int | None]:
    """Observations and pulls to the end, and the arm."""
    level: dict[int, int] = {}
    observations = 0
    while pulls := policy.ask(policy.arms):
        for pull in pulls:
            level[pull.arm] = pull.upto
            policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
        observations += len(pulls)
    return observations, sum(level.values()), policy.recommendation


@pytest.mark.parametrize(("policy", "most"), TABLE_1)
def test_the_papers_table_1_on_arms_with_known_limits(
    policy: Any, most: Callable[[int, int], float]
) -> None:
    for n in [*range(2, 12), 16, 31, 32, 33, 64, 100, 127, 200]:
        for B in (n * 8, 1700, 3000):
            if n * 8 > B:
                continue
            observations, pulls, _ = counted(
                policy(n, B),
                lambda arm, t, n=n: arm / n + 1 / t,  # type: ignore[misc]
            )
            assert observations <= most(n, B)
            assert pulls <= B
            if policy is UniformAllocation:
                assert observations == n


def test_elimination_that_never_eliminates_still_keeps_table_1() -> None:
    for n in (2, 3, 7, 50):
        for B in (n, 2 * n - 1, 2 * n, 1000, 1023, 1024, 1025):
            if n <= B:
                policy = SuccessiveElimination(n, B)
                observations, pulls, _ = counted(policy, lambda arm, t: 0.5)
                assert observations <= n * np.log2(2 * B)
                assert observations <= policy.most_observations()
                assert B - n < pulls <= B


class Coins:
    """Arms whose loss is the mean of so many tosses; means are brought up to date at once."""

    def __init__(self, chances: list[float], seed: int) -> None:
        self._chances = chances
        self._random = np.random.default_rng(seed)
        self._heads, self._tosses = [0] * len(chances), [0] * len(chances)

    def loss(self, arm: int, pulls: int) -> float:
        more = pulls - self._tosses[arm]
        self._heads[arm] += int(self._random.binomial(more, self._chances[arm]))
        self._tosses[arm] = pulls
        return self._heads[arm] / pulls


CHANCES = [0.9, 0.8, 0.15, 0.75, 0.85]


@pytest.mark.parametrize(
    "make",
    [
        SuccessiveElimination,
        LUCB,
        LilUCB,
        partial(LilUCB, constants="proven"),
        ExponentialGap,
    ],
    ids=["successive-elimination", "lucb", "lil-ucb", "lil-ucb, proven", "exponential-gap"],
)
def test_given_enough_budget_the_best_arm_is_found_as_often_as_promised(make: Any) -> None:
    runs, right = 60, 0
    for seed in range(runs):
        policy = make(len(CHANCES), 10**8, delta=DELTA)
        _, pulls, arm = counted(policy, Coins(CHANCES, seed).loss)
        assert pulls < 10**8, "it stopped because it was sure"
        right += arm == 2
    assert right >= (1 - DELTA) * runs


@pytest.mark.parametrize("make", [SuccessiveElimination, LilUCB, LUCB])
def test_with_a_known_range_it_also_holds_for_coins_that_seldom_fall(make: Any) -> None:
    chances, wrong, runs = [0.12, 0.02], 0, 40
    for seed in range(runs):
        policy = make(2, 10**7, delta=DELTA, low=0, high=1)
        wrong += counted(policy, Coins(chances, seed).loss)[2] != 1
    assert wrong <= DELTA * runs


@pytest.mark.parametrize(("low", "high"), [(1, 0), (0, 0), (0, float("inf")), ("0", 1)])
def test_a_range_has_two_ends(low: Any, high: Any) -> None:
    with refused("low", low):
        LUCB(3, 100, low=low, high=high)


def test_losses_over_the_whole_range_of_floats_are_scaled() -> None:
    for make in (SuccessiveElimination, LUCB, LilUCB):
        losses = [1.7e308, -1.7e308, 0.0, 1e300]
        _, pulls, arm = counted(make(4, 4000), lambda arm, t, v=losses: v[arm])  # type: ignore[misc]
        assert arm == 1
        assert pulls > 100


def test_lil_ucb_and_lucb_take_fewer_pulls_than_successive_elimination() -> None:
    def mean_pulls(make: Any) -> float:
        played = [counted(make(5, 10**7), Coins(CHANCES, seed).loss)[1] for seed in range(30)]
        return float(np.mean(played))

    elimination = mean_pulls(SuccessiveElimination)
    assert mean_pulls(LUCB) < elimination
    assert mean_pulls(LilUCB) < elimination


def test_exp3_comes_to_prefer_the_good_arm() -> None:
    level: dict[int, int] = {}
    policy = EXP3(4, 4000, seed=3)
    while pulls := policy.ask():
        level[pulls[0].arm] = pulls[0].upto
        policy.tell(Loss(pulls[0], [0.9, 0.8, 0.1, 0.95][pulls[0].arm]))
    assert level[2] == max(level.values()) > 2000
    assert sum(level.values()) == 4000


def test_exponential_gap_with_a_modest_budget_is_uniform_allocation() -> None:
    assert ExponentialGap(10, 1000).ask(20) == UniformAllocation(10, 1000).ask(20)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, "0.05", None, float("nan"), 1e-300])
def test_delta_is_a_chance(bad: Any) -> None:
    with refused("delta", bad):
        LUCB(3, 100, delta=bad)


def test_names_that_are_not_known_are_refused() -> None:
    with refused("constants", "best"):
        LilUCB(3, 100, constants="best")
    with refused("of", "asha"):
        Doubling(3, 100, of="asha")
    with pytest.raises(BudgetTooSmall):
        Doubling(3, 5)


def test_hyperbands_brackets() -> None:
    assert [b.arms for b in brackets(81, 3)] == [81, 34, 15, 8, 5]
    assert [sum(b.pulls for b in brackets(R, 3)) for R in (9, 27, 81)] == [69, 357, 1581]
    assert len(brackets(243, 3)) == 6, "floating-point log(243, 3) would lose one"
    assert len(brackets(1000, 10)) == 4
    assert brackets(1, 3) == [(1, (1,), 3)]


@pytest.mark.parametrize("budget", [1, 5, 20, 21, 68, 69, 500])
def test_hyperband_opens_only_what_fits_and_lowers_max_pulls_until_something_does(
    budget: int,
) -> None:
    policy = Hyperband(arms=30, budget=budget, max_pulls=9)
    opened = policy.brackets()
    assert opened
    assert sum(bracket.pulls for bracket in opened) <= budget
    plan = policy.plan()  # what no bracket fits into is spent, too, on arms that were dropped
    assert (plan.pulls, plan.exact) == ((budget, True) if budget < 500 else (30 * 9, False))
    assert max(bracket.levels[-1] for bracket in opened) == {1: 1, 5: 3, 20: 3}.get(budget, 9)


def test_hyperband_draws_arms_afresh_while_there_are_any() -> None:
    fresh = Hyperband(arms=17, budget=69, max_pulls=9, seed=5)
    seen: list[int] = []
    while pulls := fresh.ask(17):
        seen += [pull.arm for pull in pulls if pull.arm not in seen]
        for pull in pulls:
            fresh.tell(Loss(pull, pull.arm / 17))
    assert sorted(seen) == list(range(17)), "9 + 5 + 3, none twice"
    few = Hyperband(arms=4, budget=10**4, max_pulls=81)
    _, pulls_spent, arm = counted(few, lambda arm, t: arm + 1 / t)
    assert arm == 0
    assert pulls_spent <= 4 * 81


def test_an_arm_that_asha_paused_can_come_back() -> None:
    policy = ASHA(arms=9, budget=1000, max_pulls=9)
    losses = {0: 0.9, 1: 0.5, 2: 0.8}
    for pull in policy.ask(3):
        policy.tell(Loss(pull, losses[pull.arm]))
    (first,) = policy.ask(1)
    assert (first.arm, first.upto) == (1, 3)
    for arm in (3, 4, 5):  # worse ones arrive, so that arm 2 is among the best third
        (pull,) = policy.ask(1)
        assert pull.arm == arm
        policy.tell(Loss(pull, 1.0))
    (back,) = policy.ask(1)
    assert (back.arm, back.upto) == (2, 3)


@pytest.mark.parametrize("kind", [EXP3, LUCB])
@pytest.mark.parametrize(
    "given", [{"low": 1.0, "high": 0.0}, {"low": float("nan")}, {"high": "much"}]
)
def test_a_range_that_cannot_be_is_refused(kind: type[Budgeted], given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="low"):
        kind(3, 30, **given)


def test_exp3_scales_by_a_known_range() -> None:
    """With losses in a thousandth of their range, no arm stands out."""
    drawn = {}
    for name, options in {"seen": {}, "known": {"low": 0.0, "high": 1.0}}.items():
        policy, pulls = EXP3(4, 4000, seed=1, **options), [0] * 4
        while asked := policy.ask(1):
            pulls[asked[0].arm] += 1
            policy.tell(Loss(asked[0], 0.5 + 0.001 * asked[0].arm))
        drawn[name] = pulls
    assert drawn["seen"][0] > 2 * drawn["known"][0]
    assert max(drawn["known"]) < 1.3 * min(drawn["known"])
