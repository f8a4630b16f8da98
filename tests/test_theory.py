"""Each theorem as a property: above its budget the best arm always wins, below it need not."""

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lastarm import (
    RecordedCurves,
    Result,
    RunningMean,
    SuccessiveHalving,
    SuccessiveRejects,
    UniformAllocation,
    search,
)
from lastarm.errors import BudgetTooSmall
from lastarm.papers.jamieson2015.theorems import ENVELOPES, Adversary, Instance, least_enough
from lastarm.papers.jamieson2015.theorems import played as game
from lastarm.policies import Doubling
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policies.parts.integers import ceil_log
from lastarm.theory import (
    Envelopes,
    Truth,
    adversary,
    audit,
    ends_lower,
    envelope,
    halving_budget,
    halving_budget_by_rung,
    halving_budget_by_sum,
    halving_budget_of_example_2,
    halving_regret,
    hoeffding_envelope,
    inverse_of_example_1,
    safe_rungs,
    settling_time,
    sgd_envelope,
    told_apart,
    tolerated_settling,
    uniform_budget,
    uniform_budget_of_example_2,
    uniform_regret,
)
from lastarm.theory.gain import likely_gain
from tests.refusals import refused

Table = NDArray[np.float64]


def played(policy: Budgeted, table: Table) -> Result:
    return search(RecordedCurves(table), [{"row": i} for i in range(len(table))], policy=policy)


@st.composite
def settling_tables(draw: st.DrawFn, least_arms: int = 2) -> Table:
    """Curves that jump about, tie often, and settle at limits of which the least is unique."""
    n, steps = draw(st.integers(least_arms, 12)), draw(st.integers(1, 12))
    grid = st.integers(0, 8).map(lambda k: k / 8)
    rows = draw(st.lists(st.lists(grid, min_size=steps, max_size=steps), min_size=n, max_size=n))
    table = np.array(rows)
    best = draw(st.integers(0, n - 1))
    table[:, -1] += 1 / 8
    table[best, -1] = 0.0
    return table


@given(curve=st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_an_envelope_is_the_least_non_increasing_bound(curve: list[float]) -> None:
    gamma = envelope(curve)
    distance = np.abs(np.array(curve) - curve[-1])
    assert (gamma >= distance).all()
    assert all(later <= earlier for earlier, later in pairwise(gamma))
    assert all(gamma[t] == distance[t:].max() for t in range(len(curve)))


@given(table=settling_tables(), data=st.data())
def test_once_told_apart_two_losses_are_in_the_order_of_their_limits(
    table: Table, data: st.DataObject
) -> None:
    best = int(np.argmin(table[:, -1]))
    other = data.draw(st.sampled_from([i for i in range(len(table)) if i != best]))
    t_i, t_1 = (data.draw(st.integers(1, table.shape[1])) for _ in range(2))
    gap = table[other, -1] - table[best, -1]
    if told_apart(envelope(table[other]), envelope(table[best]), gap, t_i, t_1):
        assert table[other, t_i - 1] > table[best, t_1 - 1]


def test_with_the_printed_inequality_two_losses_can_tie() -> None:
    table = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])  # γ = 1/2 = half the gap, at t = 1
    gamma = envelope(table).max(axis=0)
    assert gamma[0] <= 0.5, "as printed, γ⁻¹(1/2) = 1"
    assert table[0, 1] == table[1, 1], "and yet at t = 2 > 1 the losses tie"
    assert settling_time(gamma, 0.5) == 3


@settings(max_examples=300, deadline=None)
@given(table=settling_tables(), more=st.integers(1, 50))
def test_theorem_1_above_its_budget_halving_finds_the_best_arm(table: Table, more: int) -> None:
    z = halving_budget(Envelopes(table).gaps_settle)
    policy = SuccessiveHalving(len(table), math.floor(z) + more)
    assert played(policy, table).arm == int(np.argmin(table[:, -1]))


@settings(max_examples=200, deadline=None)
@given(table=settling_tables())
def test_theorem_1_turned_round_is_theorem_1(table: Table) -> None:
    settling = Envelopes(table).gaps_settle
    n, z = len(table), int(halving_budget(settling))
    for budget in (z, z + 1):
        tolerated = tolerated_settling(n, budget)
        covered = all(time < tolerated[i] for i, time in enumerate(settling, start=2))
        assert covered == (budget > z)


@settings(max_examples=400, deadline=None)
@given(table=settling_tables(), more=st.integers(0, 50))
def test_if_every_rung_is_safe_halving_finds_the_best_arm(table: Table, more: int) -> None:
    n, settling = len(table), Envelopes(table).gaps_settle
    enough = halving_budget_by_rung(settling)
    assert enough <= halving_budget(settling)
    policy = SuccessiveHalving(n, int(enough) + more)
    assert played(policy, table).arm == int(np.argmin(table[:, -1]))


@settings(max_examples=200, deadline=None)
@given(table=settling_tables(), more=st.integers(0, 50))
def test_the_same_for_trainers_that_restart(table: Table, more: int) -> None:
    enough = halving_budget_by_rung(Envelopes(table).gaps_settle, restarts=True)
    assert enough >= halving_budget_by_rung(Envelopes(table).gaps_settle)
    policy = SuccessiveHalving(len(table), int(enough) + more, restarts=True)

    def loss(arm: int, t: int) -> float:
        return float(table[arm, min(t, table.shape[1]) - 1])

    assert game(policy, loss).arm == int(np.argmin(table[:, -1]))


@settings(max_examples=300, deadline=None)
@given(data=st.data(), n=st.integers(2, 70), restarts=st.booleans())
def test_one_share_less_than_all_rungs_need_is_not_enough_for_some_losses(
    data: st.DataObject, n: int, restarts: bool
) -> None:
    """For every n and every rung there are losses for which the sharper budget is needed."""
    rung = data.draw(st.sampled_from(safe_rungs(n, n * ceil_log(n, 2))))
    late = data.draw(st.integers(2, 60))
    settling = [late] * (rung.rank - 1) + [1] * (n - rung.rank)  # ranks 2 to n
    enough = int(halving_budget_by_rung(settling, restarts=restarts))

    def loss(arm: int, t: int) -> float:
        """Arm n − 1 is the best: until `late` it ties with those of rank 2 to `rung.rank`."""
        rank = (arm - n) % n + 2 if arm < n - 1 else 1
        limit = 0.0 if rank == 1 else 1.0 if rank <= rung.rank else 4.0
        return limit + (0.5 if t < late else 0.0) * (1 if rank == 1 else -1)

    best = n - 1
    assert game(SuccessiveHalving(n, enough, restarts=restarts), loss).arm == best
    less = enough - 1
    if less >= n * ceil_log(n, 2):
        assert game(SuccessiveHalving(n, less, restarts=restarts), loss).arm != best


@given(data=st.data(), n=st.integers(2, 200), budget=st.integers(1, 10**6))
def test_safe_rungs_are_those_of_the_plan(data: st.DataObject, n: int, budget: int) -> None:
    budget = max(budget, n * ceil_log(n, 2))
    restarts = data.draw(st.booleans())
    planned = SuccessiveHalving(n, budget, restarts=restarts).plan().rungs
    dropping = [(rung.arms, rung.upto) for rung in planned if rung.arms > 1]
    assert [(r.arms, r.upto) for r in safe_rungs(n, budget, restarts=restarts)] == dropping


def test_where_a_gap_never_settles_no_budget_is_enough() -> None:
    assert halving_budget_by_rung([]) == 0
    assert halving_budget_by_rung([math.inf, 1]) == math.inf
    assert safe_rungs(1, 10) == []


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_theorem_1s_sum_is_a_bound_once_it_has_its_first_term(times: list[int]) -> None:
    settling = sorted(times, reverse=True)  # a wider gap settles no later
    assert halving_budget(settling) <= halving_budget_by_sum(settling)


def test_theorem_1s_sum_as_printed_is_no_bound_and_its_budget_can_fail() -> None:
    assert halving_budget([100, 1]) == 808
    assert halving_budget_by_sum([100, 1], as_printed=True) == 416
    steps = 120
    best, second = np.full(steps, 0.0), np.full(steps, 0.5)
    best[:99], second[:99] = 0.3, 0.2  # they cross until t = 99
    third = np.full(steps, 10.0)
    table = np.array([best, second, third])
    assert Envelopes(table).gaps_settle == [100, 1]
    assert played(SuccessiveHalving(3, 417), table).arm == 1, "above 416, and wrong"
    assert played(SuccessiveHalving(3, 809), table).arm == 0


@settings(max_examples=200, deadline=None)
@given(table=settling_tables(), more=st.integers(1, 50))
def test_theorem_2_above_its_budget_uniform_finds_the_best_arm(table: Table, more: int) -> None:
    z = uniform_budget(Envelopes(table).gaps_settle)
    policy = UniformAllocation(len(table), math.floor(z) + more)
    assert played(policy, table).arm == int(np.argmin(table[:, -1]))


@settings(max_examples=200, deadline=None)
@given(
    limits=st.lists(st.integers(0, 50), min_size=2, max_size=10, unique=True),
    scale=st.floats(0.5, 50),
    data=st.data(),
)
def test_theorem_3_below_that_budget_uniform_loses_to_the_adversary(
    limits: list[int], scale: float, data: st.DataObject
) -> None:
    steps, n = 200, len(limits)
    table = adversary([float(nu) for nu in limits], lambda t: scale / t, steps)
    settling = Envelopes(table).gaps_settle
    assert settling[0] == max(settling)
    z = int(uniform_budget(settling))
    assume(z > n)
    budget = data.draw(st.integers(n, z - 1))
    assert played(UniformAllocation(n, budget), table).arm != n - 1
    assert played(UniformAllocation(n, z), table).arm == n - 1


@settings(max_examples=300, deadline=None)
@given(table=settling_tables(), times=st.integers(1, 20))
def test_theorem_4_neither_is_ever_further_off_than_its_bound(table: Table, times: int) -> None:
    n, gamma, best = len(table), Envelopes(table).joint, table[:, -1].min()
    for policy, regret in (
        (SuccessiveHalving(n, times * n * ceil_log(n, 2)), halving_regret),
        (UniformAllocation(n, times * n), uniform_regret),
    ):
        arm = played(policy, table).arm
        assert table[arm, -1] - best <= regret(gamma, n, policy.budget) + 1e-12


def test_where_there_is_no_bound_none_is_claimed() -> None:
    assert halving_regret([0.5, 0.1, 0.0], arms=8, budget=3) == math.inf
    assert uniform_regret([0.5, 0.1, 0.0], arms=8, budget=3) == math.inf
    assert halving_regret([0.5, 0.1], arms=1, budget=3) == 0
    assert halving_budget([]) == halving_budget_by_sum([]) == uniform_budget([]) == 0


def test_an_arm_must_not_look_better_by_overflow() -> None:
    table = np.array([[1.0, 0.5], [1.0, -math.inf], [1.0, 0.25], [1.0, math.nan]])
    assert ends_lower(table, 0) == [2]
    assert ends_lower(table, 3) == [2, 0]
    assert Truth.of(table, 0).better == (2,)


def test_hoeffdings_envelope_holds_for_all_arms_and_times_at_once() -> None:
    arms, pulls, delta, wrong = 20, 300, 0.2, 0
    trainer = RunningMean(lambda config, random, k: random.random(k) < config["p"])
    for run in range(100):
        outside = False
        for arm in range(arms):
            p = (arm + 0.5) / arms
            state = trainer.start({"p": p}, seed=1000 * run + arm)
            for t in range(1, pulls + 1, 7):
                state = trainer.train(state, t - state.pulls)
                outside |= abs(trainer.loss(state) - p) > hoeffding_envelope(arms, t, delta)
        wrong += outside
    assert wrong <= delta * 100


@pytest.mark.parametrize("arms", [2, 3, 10, 64, 1000])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("alpha", [0.001, 0.1, 0.4])
def test_example_1s_inverse_is_late_enough(arms: int, sigma: float, alpha: float) -> None:
    t = inverse_of_example_1(alpha, arms, sigma, delta=0.05)
    for later in (1, 2, 10):
        assert sgd_envelope(later * t, arms, sigma, delta=0.05) < alpha


@pytest.mark.parametrize("n", [3, 10, 64, 1000])
def test_example_2_follows_from_example_1_and_as_printed_does_not(n: int) -> None:
    sigma, delta = 2.0, 0.05
    terms = [a * inverse_of_example_1((a - 1) / n / 2, n, sigma, delta) for a in range(2, n + 1)]
    halving = 2 * ceil_log(n, 2) * max(terms)
    uniform = n * inverse_of_example_1(1 / n / 2, n, sigma, delta)
    assert halving_budget_of_example_2(n, sigma, delta) == pytest.approx(halving)
    assert uniform_budget_of_example_2(n, sigma, delta) == pytest.approx(uniform)
    printed = halving_budget_of_example_2(n, sigma, delta, as_printed=True)
    assert printed < 0.52 * halving
    assert halving / uniform == pytest.approx(4 * ceil_log(n, 2) / n)
    other = uniform_budget_of_example_2(n, sigma, delta, as_printed=True)
    assert printed / other == pytest.approx(halving / uniform), "the ratio stands"


@pytest.mark.parametrize("n", [4, 16, 64, 256, 1024])
def test_example_2s_budget_of_uniform_allocation_is_enough_but_not_needed(n: int) -> None:
    needed = uniform_budget(Adversary(n, ENVELOPES["σ·log(nt/δ)/t"](n)).settling)
    enough = uniform_budget_of_example_2(n, sigma=1.0, delta=0.05)
    assert 1.49 <= enough / needed <= 1.71
    assert "needs" not in (uniform_budget_of_example_2.__doc__ or "").split("\n")[0]


def test_r_k_of_the_theory_page_is_the_level_of_rung_k_everywhere() -> None:
    page = (Path(__file__).parent.parent / "docs" / "theory.md").read_text()
    assert "R_k = r_0 + … + r_k" in page
    assert "R_{k+1}" not in page


def test_hoeffdings_envelope_as_printed_promises_next_to_nothing() -> None:
    n, times = 10, np.arange(1, 100_000)
    printed = np.sqrt(np.log(4 * n * times**2) / (2 * times))
    assert printed[999] == pytest.approx(hoeffding_envelope(n, 1000, delta=1))
    chance_of_error = (n * 2 * np.exp(-2 * times * printed**2)).sum()
    assert chance_of_error == pytest.approx(math.pi**2 / 12, rel=1e-4)


def test_the_figures_survivors_as_printed_never_come_down_to_one() -> None:
    losses = {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}
    sigma = sorted(losses, key=losses.__getitem__)
    kept = {i for i in losses if losses[i] <= losses[sigma[len(losses) // 2 - 1]]}
    assert kept == set(losses), "all tie, so all are kept, rung after rung"
    assert played(SuccessiveHalving(4, 8), np.full((4, 3), 0.5)).arm == 0


def test_the_doubling_trick_cannot_begin_with_one_pull_for_each_arm() -> None:
    with pytest.raises(BudgetTooSmall):
        SuccessiveHalving(arms=8, budget=8)
    assert SuccessiveHalving(arms=8, budget=8 * 3).plan().rungs[0].pulls == 1


def test_envelopes_are_of_finite_losses() -> None:
    with refused("losses"):
        _ = Envelopes([[0.0, math.nan]]).joint


# The doubling trick ----------------------------------------------------------------------------


def enough(table: Table, most: int) -> int:
    """B′: with this budget and every larger one, halving finds the best arm."""
    n, steps = table.shape
    loss = table.tolist()
    best = int(np.argmin(table[:, -1]))
    of_table = Instance("table", n, lambda arm, t: loss[arm][min(t, steps) - 1], best, most)
    return least_enough(of_table)


def spent_by_doubling(table: Table, enough: int) -> tuple[int, int, int]:
    """Pulls when each run goes on from where arms are, when it starts anew; the last budget."""
    n, steps = table.shape
    rounds = ceil_log(n, 2)
    level, cold, B = dict.fromkeys(range(n), 0), 0, n * rounds
    while True:
        S, R = list(range(n)), 0
        for _ in range(rounds):
            r = B // (len(S) * rounds)
            R, cold = R + r, cold + r * len(S)
            level |= {i: max(level[i], R) for i in S}
            S = sorted(S, key=lambda i: (table[i, min(level[i], steps) - 1], i))
            S = S[: max(1, len(S) // 2)]
        if enough <= B:
            return sum(level.values()), cold, B
        B *= 2


@settings(max_examples=60, deadline=None)
@given(table=settling_tables())
def test_doubling_ends_below_twice_the_budget_and_spends_less_than_four_times(
    table: Table,
) -> None:
    n, steps = table.shape
    B_enough = enough(table, most=2 * n * ceil_log(n, 2) * steps)
    warm, cold, last = spent_by_doubling(table, B_enough)
    assert last < 2 * B_enough or last == n * ceil_log(n, 2)
    assert warm <= cold < 2 * last
    assert warm < 4 * B_enough


def test_doubling_can_spend_more_than_twice_what_is_enough() -> None:
    """The paper's 2B′ is of the last budget; the pulls of the runs before come on top."""
    steps = 65
    t = np.arange(1, steps + 1)
    table = np.array([0.0 + 6.5 / t, 0.1 - 6.5 / t * 0.99, 0.2 - 6.5 / t])
    table[:, -1] = [0.0, 0.1, 0.2]
    B_enough = enough(table, most=2000)
    warm, cold, last = spent_by_doubling(table, B_enough)
    assert (B_enough, last, warm, cold) == (390, 768, 896, 1530)
    assert 2 * B_enough < warm < cold < 4 * B_enough


@settings(max_examples=60, deadline=None)
@given(table=settling_tables(), times=st.integers(2, 40))
def test_doubling_spends_only_what_is_new(table: Table, times: int) -> None:
    n = len(table)
    for of in ("successive-halving", "successive-rejects", "uniform"):
        total = times * n * (ceil_log(n, 2) + 1)
        result = played(Doubling(n, total, of), table)
        assert result.spent.pulls == sum(curve[-1][0] for curve in result.curves.values())
        assert result.spent.pulls <= total


# The audit -------------------------------------------------------------------------------------


def test_the_audit_finds_the_close_call_and_the_truth_tells_that_it_went_wrong() -> None:
    steps = 40
    table = np.array([np.full(steps, 0.5), np.full(steps, 0.6), np.full(steps, 5.0)])
    table = np.vstack([table, 0.1 + 0.8 * 0.95 ** np.arange(steps)])  # a slow starter, dropped
    table[0, :10], table[1, :10] = 0.7, 0.2
    result = played(SuccessiveHalving(4, 40), table)
    assert result.arm == 0
    report = audit(result.curves, 0)
    assert [e.arm for e in report.eliminations] == [3, 1, 2]
    assert [e.arm for e in report.close_calls] == [3]
    assert Truth.of(table, 0).better == (3,)
    assert Truth.of(table, 3).better == ()


@settings(max_examples=100, deadline=None)
@given(table=settling_tables(), times=st.integers(2, 30))
def test_every_dropped_arm_is_audited(table: Table, times: int) -> None:
    n = len(table)
    for policy in (
        SuccessiveHalving(n, times * n * ceil_log(n, 2)),
        SuccessiveRejects(n, times * n + 1),
    ):
        result = played(policy, table)
        assert result.arm is not None
        report = audit(result.curves, result.arm)
        last = {arm: curve[-1] for arm, curve in result.curves.items()}
        furthest = max(level for level, _ in last.values())
        assert {e.arm for e in report.eliminations} == last.keys() - {result.arm}
        for e in report.eliminations:
            assert e.margin == last[e.arm][1] - last[result.arm][1]
            assert (e.moved is None) == (e.level == furthest)


def test_where_nobody_went_further_the_audit_knows_nothing() -> None:
    table = np.array([[0.5, 0.5], [0.6, 0.6], [0.7, 0.7]])
    result = played(UniformAllocation(3, 6), table)
    report = audit(result.curves, 0)
    assert [e.moved for e in report.eliminations] == [None, None]
    assert report.close_calls == ()
    assert report.budget == math.inf


@given(
    curves=st.dictionaries(
        st.integers(0, 9),
        st.lists(st.integers(-40, 40), min_size=1, max_size=4),
        min_size=1,
        max_size=6,
    ),
    shift=st.integers(-8, 8),
    factor=st.sampled_from([1, 2, 4, 0.5]),
)
def test_what_more_budget_would_bring_does_not_depend_on_the_unit_of_losses(
    curves: dict[int, list[int]], shift: int, factor: float
) -> None:
    def seen(change: Callable[[float], float]) -> dict[int, list[tuple[int, float]]]:
        return {
            arm: [(4**k, change(loss / 8)) for k, loss in enumerate(losses)]
            for arm, losses in curves.items()
        }

    arm = min(curves)
    gain = likely_gain(seen(float), arm)
    moved = likely_gain(seen(lambda loss: factor * loss + shift), arm)
    assert (gain is None) == (moved is None)
    if gain and moved:
        assert moved == pytest.approx((factor * gain.low, factor * gain.high))
        assert gain.low < 0 < gain.high


def test_nothing_is_foreseen_of_arms_that_were_looked_at_once() -> None:
    assert likely_gain({0: [(1, 0.5)], 1: [(1, 0.6)]}, 0) is None
    assert likely_gain({0: [(1, math.nan)], 1: [(1, 0.5), (2, 0.4)]}, 0) is None
    assert likely_gain({0: [(1, 0.5), (2, 0.4)]}, 0, out=[0]) is None
    assert likely_gain({0: [(1, 0.5), (2, 0.5)]}, 0) is None, "nothing moves"
