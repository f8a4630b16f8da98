"""What the paper's text says and does not mean: a counterexample or a computation for each slip.

docs/theory.md lists them; some more are kept in tests/test_theory.py.
"""

from fractions import Fraction
from math import ceil, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastarm import RunningMean, SuccessiveHalving, UniformAllocation
from lastarm.papers.jamieson2015.theorems import ENVELOPES, Adversary, played
from lastarm.policies.parts.integers import ceil_log
from lastarm.theory import (
    halving_budget_of_example_2,
    inverse_of_example_1,
    uniform_budget,
    uniform_budget_of_example_2,
)


def survivors_as_printed(losses: dict[int, float]) -> set[int]:
    """S_{k+1} = {i ∈ S_k : ℓ_{σ_k(i)} ≤ ℓ_{σ_k(⌊|S_k|/2⌋)}}, arms counted from 1."""
    sigma = dict(enumerate(sorted(losses, key=lambda i: losses[i]), start=1))
    threshold = losses[sigma[len(losses) // 2]]
    return {i for i in losses if losses[sigma[i]] <= threshold}


def test_the_figures_survivors_are_by_number_where_they_should_be_by_loss() -> None:
    losses = {1: 0.9, 2: 0.8, 3: 0.1, 4: 0.2}
    assert survivors_as_printed(losses) == {1, 2}, "the two worst"
    for permuted in ((0.1, 0.2, 0.8, 0.9), (0.5, 0.1, 0.9, 0.3)):
        assert survivors_as_printed(dict(enumerate(permuted, start=1))) == {1, 2}
    with pytest.raises(KeyError):
        survivors_as_printed({3: 0.1, 4: 0.2})  # σ(3), of two arms


def test_with_ties_the_figures_set_does_not_become_a_singleton() -> None:
    losses = dict.fromkeys(range(1, 9), 0.5)
    assert survivors_as_printed(losses) == set(losses), "and so on in every round"
    with pytest.raises(KeyError):
        survivors_as_printed({1: 0.5})  # there is no arm number ⌊1/2⌋


def test_with_the_natural_logarithm_the_budget_would_be_exceeded() -> None:
    n, B = 16, 192
    sizes = [16, 8, 4, 2]
    assert len(sizes) == ceil_log(n, 2)
    assert sum(size * (B // (size * ceil(log(n)))) for size in sizes) == 256 > B
    assert sum(size * (B // (size * ceil_log(n, 2))) for size in sizes) == B


def test_the_appendixs_levels_are_too_high_as_printed() -> None:
    n, B = 8, 24
    rungs = SuccessiveHalving(n, B).plan().rungs
    assert [rung.upto for rung in rungs] == [1, 3, 7]
    printed = [(k + 1) * (B // (rung.arms * 3)) for k, rung in enumerate(rungs)]
    assert printed == [1, 4, 12]


@given(n=st.integers(2, 300), times=st.integers(1, 50), more=st.integers(0, 500))
def test_the_appendixs_bound_of_the_levels_holds(n: int, times: int, more: int) -> None:
    rounds = ceil_log(n, 2)
    B = times * n * rounds + more
    for rung in SuccessiveHalving(n, B).plan().rungs:
        assert rung.upto >= Fraction(B, 2 * (rung.arms // 2 + 1) * rounds) - 1


def test_the_best_arm_is_dropped_if_as_many_look_better_as_are_kept() -> None:
    limits, first = [0.0, 0.1, 0.2, 0.9], [0.3, 0.1, 0.2, 0.9]
    found = played(SuccessiveHalving(4, 8), lambda arm, t: first[arm] if t < 3 else limits[arm])
    better = sum(loss < first[0] for loss in first)
    assert not better > 4 // 2, "so by the printed condition it is kept"
    assert better >= 4 // 2
    assert found.arm == 1


def test_the_running_mean_as_printed_is_the_last_draw() -> None:
    draws = np.tile([0.0, 1.0], 500)
    T = np.arange(1, len(draws) + 1)
    printed = np.array([np.full(t, draws[t - 1]).sum() / t for t in T])
    assert np.array_equal(printed, draws), "0, 1, 0, 1, … has no limit"
    meant = np.cumsum(draws) / T
    assert abs(meant[-1] - 0.5) < 1e-9
    trainer = RunningMean(lambda config, random, k: draws[:k])
    state = trainer.train(trainer.start({}, seed=0), 300)
    assert trainer.loss(state) == pytest.approx(meant[299])


@pytest.mark.parametrize("n", [4, 10, 64, 1000])
def test_example_2s_printed_constants_are_those_of_a_best_limit_of_zero(n: int) -> None:
    sigma, delta = 2.0, 0.05
    inverses = [inverse_of_example_1(a / n / 2, n, sigma, delta) for a in range(2, n + 1)]
    halving = 2 * ceil_log(n, 2) * max(a * t for a, t in enumerate(inverses, start=2))
    printed = halving_budget_of_example_2(n, sigma, delta, as_printed=True)
    assert printed == pytest.approx(halving, rel=1e-12)
    printed = uniform_budget_of_example_2(n, sigma, delta, as_printed=True)
    assert printed == pytest.approx(n * inverses[0], rel=1e-12)


def test_less_is_enough_than_what_example_2_says_is_needed_at_least() -> None:
    n = 64
    losses = Adversary(n, ENVELOPES["σ·log(nt/δ)/t"](n))
    needed = int(uniform_budget(losses.settling))
    assert needed < 0.65 * uniform_budget_of_example_2(n, sigma=1.0, delta=0.05)
    assert played(UniformAllocation(n, needed), losses.loss).arm == losses.best
    assert played(UniformAllocation(n, needed - 1), losses.loss).arm != losses.best
