"""The policies against the published pseudo-code, on tables full of ties."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import RecordedCurves, SuccessiveHalving, SuccessiveRejects, UniformAllocation, search
from lastarm.errors import AllArmsFailed
from lastarm.papers.jamieson2015 import pseudocode
from lastarm.papers.jamieson2015.pseudocode import Outcome
from lastarm.policies.parts.budgeted import Budgeted

TIES = [0.0, 0.25, 0.5, 1.0]
PAIRS: list[tuple[type[Budgeted], Callable[..., Outcome]]] = [
    (UniformAllocation, pseudocode.uniform_allocation),
    (SuccessiveHalving, pseudocode.successive_halving),
    (SuccessiveRejects, pseudocode.successive_rejects),
]


def played(policy: Budgeted, table: list[list[float]]) -> Outcome:
    rows = [{"row": row} for row in range(policy.arms)]
    try:
        result = search(RecordedCurves(table), rows, policy=policy)
    except AllArmsFailed:
        return Outcome(None, 0, 0)
    assert result.complete
    return Outcome(result.arm, result.spent.pulls, result.spent.observations)


def expected(
    oracle: Callable[..., Outcome], table: list[list[float]], budget: int, **arguments: Any
) -> Outcome:
    def loss(i: int, k: int) -> float:
        return table[i][min(k, len(table[i])) - 1]

    answer = oracle(loss, len(table), budget, **arguments)
    return answer if answer.arm is not None else Outcome(None, 0, 0)


@st.composite
def tables(draw: st.DrawFn, values: list[float], most_arms: int = 40) -> list[list[float]]:
    arms, steps = draw(st.integers(1, most_arms)), draw(st.integers(1, 12))
    row = st.lists(st.sampled_from(values), min_size=steps, max_size=steps)
    return draw(st.lists(row, min_size=arms, max_size=arms))


@pytest.mark.parametrize(("policy", "oracle"), PAIRS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_answer_pull_and_look_is_the_pseudocodes(
    policy: type[Budgeted], oracle: Callable[..., Outcome], data: st.DataObject
) -> None:
    values = data.draw(st.sampled_from([TIES, [*TIES, math.inf, -math.inf, math.nan]]))
    table = data.draw(tables(values))
    least = policy(len(table), 10**9).least_budget(len(table))
    budget = data.draw(st.integers(least, 30 * least))
    assert played(policy(len(table), budget), table) == expected(oracle, table, budget)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), eta=st.sampled_from([2, 3, 4, 7, 10]))
def test_halving_by_any_eta_is_the_pseudocodes(data: st.DataObject, eta: int) -> None:
    table = data.draw(tables([*TIES, math.nan]))
    least = SuccessiveHalving(len(table), 10**9, eta).least_budget(len(table))
    budget = data.draw(st.integers(least, 30 * least))
    policy = SuccessiveHalving(len(table), budget, eta)
    answer = expected(pseudocode.successive_halving, table, budget, eta=eta)
    assert played(policy, table) == answer


@pytest.mark.parametrize(("policy", "oracle"), PAIRS)
def test_every_number_of_arms_from_the_least_budget_upwards(
    policy: type[Budgeted], oracle: Callable[..., Outcome]
) -> None:
    for arms in [*range(1, 34), 63, 64, 65, 81, 100, 127, 128, 129, 200]:
        table = [[TIES[(7 * i * i + 3 * k + i) % 4] for k in range(9)] for i in range(arms)]
        least = policy(arms, 10**9).least_budget(arms)
        for budget in (least, least + 1, 3 * least + 2):
            assert played(policy(arms, budget), table) == expected(oracle, table, budget)
