"""Halving up to a horizon: against naive code, its guarantees and its edges."""

import math
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lastarm import (
    EnvelopeHalving,
    Failure,
    HorizonHalving,
    Loss,
    PricedHalving,
    Pull,
    TimedHalving,
)
from lastarm.policies.parts.rungs import entering
from lastarm.theory import Envelopes, halving_regret, horizon_budget, horizon_regret
from tests.refusals import refused

Table = list[list[float]]
TIES = [0.0, 0.25, 0.5, 1.0]
ETAS = ["2", "3/2", "5/4", "3", "10", "1.001", "1000000007"]


@st.composite
def tables(draw: st.DrawFn, values: list[float]) -> Table:
    arms, steps = draw(st.integers(1, 25)), draw(st.integers(1, 12))
    row = st.lists(st.sampled_from(values), min_size=steps, max_size=steps)
    return draw(st.lists(row, min_size=arms, max_size=arms))


def play(policy: Any, table: Table) -> list[Pull]:
    """What it asks for, told the losses of a table; past its end a loss stays as it is."""
    asked: list[Pull] = []
    while pulls := policy.ask(len(table)):
        for pull in pulls:
            policy.tell(Loss(pull, table[pull.arm][min(pull.upto, len(table[0])) - 1]))
        asked += pulls
    assert policy.finished
    return asked


def naive(
    table: Table,
    drawn: list[int],
    B: int,
    M: int,
    eta: Fraction,
    c: Fraction,
    restarts: bool = False,
    by_slopes: bool = False,
) -> Any:
    """The algorithm once more, trying one share after the other: the arm, and all pulls."""
    S, R, left = sorted(drawn), 0, Fraction(B)
    looks: dict[int, list[float]] = {i: [] for i in S}
    trust = before = 0
    asked: list[Pull] = []
    seen: dict[int, float] = {}
    while True:
        sizes: list[int] = []
        n = len(S)
        while n > 1 or not sizes:
            sizes.append(n)
            n = max(1, min(n - 1, math.floor(n / eta)))
        best: list[int] = []
        for share in range(M * len(S) + 1):
            tried, before, price = [], R, Fraction(0)
            for n in sizes:
                tried.append(max(R, min(M, math.ceil(Fraction(share, n)))))
                if not restarts:
                    price += n * (tried[-1] - before)
                elif tried[-1] > R and before < M:
                    price += n * tried[-1]
                price += c * n if before < M else 0
                before = tried[-1]
            if price <= left:
                best = tried
        if not best or best[0] == R:
            return S[0], asked
        left -= len(S) * (best[0] - (0 if restarts else R) + c)
        before, R = R, best[0]
        asked += [Pull(i, R) for i in S]
        seen |= {i: table[i][min(R, len(table[0])) - 1] for i in S}
        healthy = sorted((i for i in S if math.isfinite(seen[i])), key=lambda i: (seen[i], i))
        if not healthy:
            rest = [i for i in seen if math.isfinite(seen[i])]
            return min(rest, key=lambda i: (seen[i], i), default=None), asked
        kept = [n for n, level in zip(sizes, best, strict=True) if level > R]
        n = kept[0] if kept else 1
        for i in S:
            looks[i].append(seen[i])
        trust += naive_agreement([looks[i][-3:] for i in sorted(healthy)])
        if by_slopes and before and n > 1 and trust >= 0:
            half = math.ceil(n / 2)
            healthy = healthy[:half] + sorted(
                healthy[half:],
                key=lambda i: (expected(looks[i][-2], looks[i][-1], before, R, M), seen[i], i),
            )
        S = sorted(healthy[:n])
        if len(S) == 1:
            return S[0], asked


def expected(earlier: float, now: float, before: int, R: int, M: int) -> float:
    """Half the loss at the horizon, if it falls as much whenever pulls are multiplied."""
    return now / 2 - max(0.0, earlier / 2 - now / 2) * (math.log(M / R) / math.log(R / before))


def naive_agreement(looks: list[list[float]]) -> int:
    """The rank correlation of the falls before the last look with those before that, times m³ − m.

    Ranks are numbers of arms with a smaller fall, or with the same and a lower number.
    """
    m = len(looks)
    if not m or len(looks[0]) < 3:
        return 0
    falls = [[(a - b, i) for i, (a, b, _) in enumerate(looks)]]
    falls += [[(b - c, i) for i, (_, b, c) in enumerate(looks)]]
    ranks = [[sum(other < fall for other in row) for fall in row] for row in falls]
    return int(m**3 - m - 6 * sum((ranks[0][k] - ranks[1][k]) ** 2 for k in range(m)))


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    eta=st.sampled_from(ETAS),
    look_cost=st.sampled_from([0, "1/3", 2]),
    restarts=st.booleans(),
)
def test_every_answer_and_pull_is_that_of_naive_code(
    data: st.DataObject, eta: str, look_cost: Any, restarts: bool
) -> None:
    values = data.draw(st.sampled_from([TIES, [*TIES * 2, math.inf, -math.inf, math.nan]]))
    table = data.draw(tables(values))
    n, M = len(table), len(table[0])
    budget = data.draw(st.integers(4, 2 * n * M + 4))
    policy: Any = PricedHalving(n, budget, M, eta, look_cost=look_cost, seed=n, restarts=restarts)
    arms = policy.draw(policy.drawn)
    asked = play(policy, table)
    assert (policy.recommendation, asked) == naive(
        table, arms, budget, M, Fraction(eta), Fraction(look_cost), restarts
    )
    if look_cost == 0:
        trusting = HorizonHalving(n, budget, M, eta, seed=n, restarts=restarts)
        asked = play(trusting, table)
        assert (trusting.recommendation, asked) == naive(
            table, arms, budget, M, Fraction(eta), Fraction(0), restarts, by_slopes=True
        )


@pytest.mark.parametrize(
    ("arms", "eta", "sizes"),
    [
        (243, "3", [243, 81, 27, 9, 3]),  # floating-point log(243, 3) is 4.999…
        (244, "3", [244, 81, 27, 9, 3]),
        (1000, "10", [1000, 100, 10]),
        (31, "2", [31, 15, 7, 3]),
        (32, "2", [32, 16, 8, 4, 2]),
        (33, "2", [33, 16, 8, 4, 2]),
        (81, "3/2", [81, 54, 36, 24, 16, 10, 6, 4, 2]),
        (5, "1.0000001", [5, 4, 3, 2]),
        (7, "1000000007", [7]),
        (2, "2", [2]),
        (1, "2", [1]),
    ],
)
def test_the_rungs_are_exact_at_powers(arms: int, eta: str, sizes: list[int]) -> None:
    assert list(entering(arms, Fraction(eta))) == sizes


@given(
    arms=st.integers(1, 300) | st.sampled_from([3**5, 10**3, 2**9 - 1, 2**9, 2**9 + 1]),
    max_pulls=st.integers(1, 400) | st.sampled_from([3**5, 10**3, 2**9 + 1]),
    share=st.floats(0.001, 1.5),
    eta=st.sampled_from(["2", "3/2", "3", "10"]),
)
@settings(max_examples=150, deadline=None)
def test_the_whole_budget_is_used_and_no_arm_is_asked_past_the_horizon(
    arms: int, max_pulls: int, share: float, eta: str
) -> None:
    budget = max(1, int(share * arms * max_pulls))
    policy = HorizonHalving(arms, budget, max_pulls, eta)
    plan = policy.plan()
    first, last = plan.rungs[0], plan.rungs[-1]
    assert plan.exact
    assert first.arms == policy.drawn <= arms
    assert [rung.upto for rung in plan.rungs] == sorted({rung.upto for rung in plan.rungs})
    assert last.upto <= max_pulls
    assert plan.pulls <= budget
    assert last.upto == max_pulls or budget - plan.pulls < last.arms, "one more would fit"
    if eta == "2":
        assert plan.observations <= 2 * arms


@pytest.mark.parametrize("kind", [HorizonHalving, EnvelopeHalving, PricedHalving])
def test_a_budget_for_everything_trains_all_arms_to_the_horizon_and_leaves_the_rest(
    kind: Any,
) -> None:
    for budget in (36, 37, 10**18):
        plan = kind(arms=4, budget=budget, max_pulls=9).plan()
        assert [astuple(rung) for rung in plan.rungs] == [(4, 9, 9)]
        assert plan.pulls == 36


def test_a_single_arm_is_trained_as_far_as_it_may_be_and_the_budget_allows() -> None:
    assert HorizonHalving(1, 5, 9).ask(3) == [Pull(0, 5)]
    assert HorizonHalving(1, 50, 9).ask(3) == [Pull(0, 9)]
    assert PricedHalving(1, 5, 9, look_cost="3/2").ask(3) == [Pull(0, 3)]


def test_with_less_than_a_pull_for_each_arm_fewer_are_drawn() -> None:
    for budget in range(1, 40):
        policy = HorizonHalving(40, budget, 20, seed=budget)
        asked = play(policy, [[0.5] * 20] * 40)
        assert 1 <= len({pull.arm for pull in asked}) == policy.drawn <= budget
    drawn = {tuple(HorizonHalving(40, 30, 20, seed=seed).draw(5)) for seed in range(20)}
    assert len(drawn) > 15, "they are drawn by the seed"


def test_where_an_arm_may_get_one_pull_all_are_looked_at_once() -> None:
    policy = HorizonHalving(9, 9, max_pulls=1)
    assert play(policy, [[(7 - i) ** 2 * 1.0] for i in range(9)]) == [Pull(i, 1) for i in range(9)]
    assert policy.recommendation == 7
    assert HorizonHalving(9, 5, max_pulls=1).drawn == 5


def test_what_failed_arms_do_not_use_raises_the_next_levels() -> None:
    policy, planned = HorizonHalving(16, 64, 30), HorizonHalving(16, 64, 30).plan()
    for pull in policy.ask(16):
        well = pull.arm < 2
        policy.tell(Loss(pull, pull.arm / 4) if well else Failure(pull, "it fails"))
    after = policy.ask(16)
    first, second = planned.rungs[0], planned.rungs[1]
    assert [pull.arm for pull in after] == [0, 1]
    assert after[0].upto > second.upto
    assert 16 * first.upto + 2 * (after[0].upto - first.upto) <= 64


@pytest.mark.parametrize("bad", [1, 0, -2, "1", "x", "1/0", math.nan, math.inf, True, None, [2]])
def test_eta_is_a_rational_of_more_than_one(bad: Any) -> None:
    with refused("eta", bad):
        HorizonHalving(4, 100, 9, eta=bad)


def test_numbers_are_kept_in_a_form_that_a_journal_can_hold() -> None:
    twos: list[Any] = [2, 2.0, "4/2", Fraction(2), np.int64(2)]
    halves: list[Any] = [1.5, "1.5", np.float32(1.5), Fraction(3, 2)]
    kept = [HorizonHalving(4, 100, 9, eta=eta).eta for eta in twos + halves]
    assert kept == [2] * 5 + ["3/2"] * 4
    with refused("look_cost", -1):
        PricedHalving(4, 100, 9, look_cost=-1)
    with refused("max_pulls", 0):
        HorizonHalving(4, 100, 0)
    with refused("seconds", 0):
        TimedHalving(4, 100, 9, seconds=0)


# Guarantees -------------------------------------------------------------------------------------


@st.composite
def settling_tables(draw: st.DrawFn) -> NDArray[np.float64]:
    """Curves that jump about, tie often, and end at limits of which the least is unique."""
    n, steps = draw(st.integers(2, 20)), draw(st.integers(1, 15))
    grid = st.integers(0, 8).map(lambda k: k / 8)
    rows = draw(st.lists(st.lists(grid, min_size=steps, max_size=steps), min_size=n, max_size=n))
    table = np.array(rows)
    table[:, -1] += 1 / 8
    table[draw(st.integers(0, n - 1)), -1] = 0.0
    return table


@settings(max_examples=150, deadline=None)
@given(
    table=settling_tables(),
    more=st.integers(0, 50),
    eta=st.sampled_from(ETAS),
    restarts=st.booleans(),
)
def test_from_its_budget_on_the_best_of_the_arms_drawn_is_found(
    table: NDArray[np.float64], more: int, eta: str, restarts: bool
) -> None:
    n, M = table.shape
    z = horizon_budget(Envelopes(table).gaps_settle, M, eta, restarts=restarts)
    assert z <= n * M
    policy = HorizonHalving(n, z + more, M, eta, restarts=restarts)
    assume(policy.drawn == n)
    play(policy, table.tolist())
    assert policy.recommendation == int(np.argmin(table[:, -1]))


def test_a_pull_less_than_that_budget_can_fail() -> None:
    best, other = np.full(60, 0.0), np.full(60, 1.0)
    best[:19], other[:19] = 0.8, 0.7  # they cross at t = 20
    table = np.array([best, other])
    z = horizon_budget(Envelopes(table).gaps_settle, 60)
    assert z == 40
    for budget, found in ((z, 0), (z - 1, 1)):
        policy = HorizonHalving(2, budget, 60)
        play(policy, table.tolist())
        assert policy.recommendation == found


@settings(max_examples=100, deadline=None)
@given(table=settling_tables(), share=st.floats(0.02, 1), kind=st.sampled_from([0, 1]))
def test_the_arm_found_is_never_further_behind_than_the_bound(
    table: NDArray[np.float64], share: float, kind: int
) -> None:
    n, M = table.shape
    budget = max(1, int(share * n * M))
    policy: Any = (HorizonHalving, EnvelopeHalving)[kind](n, budget, M)
    drawn = table[sorted(policy.draw(policy.drawn))]
    gamma = Envelopes(drawn).joint
    play(policy, table.tolist())
    bound = horizon_regret(gamma, n, budget, M)
    assert table[policy.recommendation, -1] - drawn[:, -1].min() <= bound + 1e-12


@settings(max_examples=100, deadline=None)
@given(n=st.integers(2, 300), M=st.integers(1, 200), data=st.data(), restarts=st.booleans())
def test_where_all_arms_are_drawn_that_bound_is_at_most_theorem_4s(
    n: int, M: int, data: st.DataObject, restarts: bool
) -> None:
    budget = data.draw(st.integers(n, n * M)) if M > 1 else n
    assume(HorizonHalving(n, budget, M, restarts=restarts).drawn == n)
    drops = data.draw(st.lists(st.floats(0, 1), min_size=M - 1, max_size=M - 1))
    gamma = [*np.cumsum(drops)[::-1], 0.0]
    bound = horizon_regret(gamma, n, budget, M, restarts=restarts)
    assert bound <= halving_regret(gamma, n, budget) + 1e-9
