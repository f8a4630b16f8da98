"""The other policies against the naive forms of their papers' pseudo-code, on tables of ties."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import Loss, Pull
from lastarm.papers.jamieson2015 import pseudocode
from lastarm.papers.jamieson2015.pseudocode import Outcome
from lastarm.policies import (
    ASHA,
    EXP3,
    LUCB,
    Doubling,
    ExponentialGap,
    Hyperband,
    LilUCB,
    SuccessiveElimination,
    SuccessiveHalving,
)
from lastarm.policies.hyperband import brackets
from lastarm.policies.parts.budgeted import Budgeted

FINITE = [0.0, 0.25, 0.5, 1.0]
VALUES = [*FINITE, math.inf, math.nan]
tables = st.integers(2, 25).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([*VALUES[:4] * 3, *VALUES[4:]]), min_size=7, max_size=7),
        min_size=n,
        max_size=n,
    )
)


def loss_of(table: list[list[float]]) -> Callable[[int, int], float]:
    return lambda arm, pulls: table[arm][pulls % len(table[arm])]


def play(policy: Budgeted, table: list[list[float]]) -> tuple[Outcome, list[Pull]]:
    loss, level, asked = loss_of(table), dict.fromkeys(range(policy.arms), 0), []
    while pulls := policy.ask(1):
        (pull,) = pulls
        asked.append(pull)
        level[pull.arm] = pull.upto
        policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
    assert policy.finished
    return Outcome(policy.recommendation, sum(level.values()), len(asked)), asked


@pytest.mark.parametrize(
    ("policy", "oracle", "arguments"),
    [
        (SuccessiveElimination, pseudocode.successive_elimination, {"delta": 0.05}),
        (SuccessiveElimination, pseudocode.successive_elimination, {"delta": 0.9}),
        (LUCB, pseudocode.lucb, {"delta": 0.05}),
        (LUCB, pseudocode.lucb, {"delta": 0.9}),
        (EXP3, pseudocode.exp3, {"seed": 0}),
        (EXP3, pseudocode.exp3, {"seed": 5}),
        (ExponentialGap, pseudocode.exponential_gap, {"delta": 0.05}),
        (ExponentialGap, pseudocode.exponential_gap, {"delta": 0.9}),
    ],
)
@settings(max_examples=60, deadline=None)
@given(table=tables, times=st.sampled_from([1, 2, 7, 40]))
def test_every_answer_pull_and_look_is_the_oracles(
    policy: Any,
    oracle: Callable[..., Outcome],
    arguments: dict[str, Any],
    table: list[list[float]],
    times: int,
) -> None:
    n, B = len(table), times * len(table) + times
    expected = oracle(loss_of(table), n, B, **arguments)
    assert play(policy(n, B, **arguments), table)[0] == expected


@settings(max_examples=100, deadline=None)
@given(table=tables, times=st.sampled_from([1, 7, 40]), delta=st.sampled_from([0.05, 0.5]))
def test_lil_ucb_is_the_oracles(table: list[list[float]], times: int, delta: float) -> None:
    n, B = len(table), times * len(table)
    expected = pseudocode.lil_ucb(loss_of(table), n, B, delta)
    assert play(LilUCB(n, B, delta), table)[0] == expected


@settings(max_examples=40, deadline=None)
@given(table=tables, times=st.sampled_from([200, 400_000, 3_000_000]))
def test_exponential_gap_with_a_budget_for_its_phases_is_the_oracles(
    table: list[list[float]], times: int
) -> None:
    n, B = len(table), times * len(table)
    expected = pseudocode.exponential_gap(loss_of(table), n, B, 0.9)
    assert play(ExponentialGap(n, B, 0.9), table)[0] == expected


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(),
    R=st.integers(1, 30),
    eta=st.sampled_from([2, 3, 4]),
    times=st.integers(1, 3),
)
def test_hyperband_is_the_oracles_again_and_again(
    data: st.DataObject, R: int, eta: int, times: int
) -> None:
    """Where no arm fails: what a failed arm leaves is spent on others, by version 2."""
    sizes = [bracket.arms for bracket in brackets(R, eta)]
    n = times * sum(sizes)
    B = times * sum(bracket.pulls for bracket in brackets(R, eta))
    values = st.lists(st.sampled_from(FINITE), min_size=5, max_size=5)
    table = data.draw(st.lists(values, min_size=n, max_size=n))
    seed = data.draw(st.integers(0, 99))
    for policy in (Hyperband(n, B, R, eta, seed), Hyperband(budget=B, max_pulls=R, eta=eta)):
        played, asked = play(policy, table)
        drawn = list(dict.fromkeys(pull.arm for pull in asked))  # in the order of their first pull
        draws = [[drawn.pop(0) for _ in range(size)] for size in sizes * times]
        every = [
            pseudocode.hyperband(loss_of(table), draws[start : start + len(sizes)], R, eta)
            for start in range(0, len(draws), len(sizes))
        ]
        last = loss_of(table)
        assert played.arm == min((last(one.arm or 0, R), one.arm) for one in every)[1]
        assert (played.pulls, played.observations) == (
            sum(one.pulls for one in every),
            sum(one.observations for one in every),
        )


@settings(max_examples=150, deadline=None)
@given(table=tables, R=st.integers(1, 30), eta=st.sampled_from([2, 3, 4]), B=st.integers(3, 200))
def test_asha_with_one_worker_is_the_oracles(
    table: list[list[float]], R: int, eta: int, B: int
) -> None:
    policy = ASHA(len(table), B, R, eta)
    expected = pseudocode.asha(loss_of(table), len(table), B, R, eta)
    assert play(policy, table)[0] == expected


@settings(max_examples=60, deadline=None)
@given(table=tables, times=st.integers(1, 40))
def test_doubling_is_halving_again_and_again_from_where_arms_are(
    table: list[list[float]], times: int
) -> None:
    n, total = len(table), times * 5 * len(table)
    world = pseudocode.World(loss_of(table))
    B, rounds = SuccessiveHalving(n, 10**9).least_budget(n), (n - 1).bit_length()

    def run() -> int | None:
        """The winner, or None where no arm is left; ends early by raising."""
        S, R = list(range(n)), 0
        for _ in range(rounds):
            R += B // (len(S) * rounds)
            new = sum(max(0, R - world.T.get(i, 0)) for i in S if i not in world.out)
            if sum(world.T.values()) + new > total:
                raise OverflowError
            world.bring(S, R)
            S, entered = world.healthy(S), len(S)
            S = sorted(S, key=lambda i: (world.latest[i], i))[: max(1, entered // 2)]
            if not S:
                return None
        return S[0]

    try:
        winner = run()
        while total > B and (winner is not None or world.latest):
            B = min(2 * B, total)
            winner = run()
    except OverflowError:
        winner = None
    expected = world.end(world.best() if winner is None else winner)
    assert play(Doubling(n, max(total, B)), table)[0] == expected
