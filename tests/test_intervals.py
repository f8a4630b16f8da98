"""Intervals over trials: what they are of, and what may be concluded from them."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastarm.papers.jamieson2015.intervals import (
    ITERATIONS,
    Bounded,
    MeanCurves,
    Sample,
    all_hold,
    resampled,
    with_looks,
)
from lastarm.papers.jamieson2015.rules import RULES

BUDGETS = (64, 128, 256, 512)


def rows(trials: int, noise: float = 0.0, **errors: list[float]) -> list[dict[str, Any]]:
    random = np.random.default_rng(7)
    return [
        {"trial": trial, "policy": policy, "budget": budget, "pulls": budget, "observations": 4}
        | {"test_loss": error + noise * offset}
        for trial, offset in enumerate(random.normal(size=trials))
        for policy, column in errors.items()
        for budget, error in zip(BUDGETS, column, strict=True)
    ]


def test_an_error_is_reached_where_the_line_comes_down_to_it() -> None:
    curves = MeanCurves(np.array([[1.0, 10, 100, 1000]]), np.array([[0.5, 0.4, 0.45, 0.2]]))
    for error, cost in ((0.45, 10**0.5), (0.4, 10.0), (0.3, 100 * 10**0.6)):
        low, high = curves.reach(np.array([error]))
        assert low == high == pytest.approx(cost)
    first, never = (np.ravel(curves.reach(np.array([error]))).tolist() for error in (0.5, 0.1))
    assert first == [0, 1], "with the first budget: an upper bound"
    assert never == [1000, inf], "never: a lower bound"


def test_a_ratio_of_bounds_is_a_bound() -> None:
    sample = Sample(rows(16, slow=[1.0, 0.75, 0.625, 0.5], fast=[0.75, 0.5, 0.375, 0.25]))

    def ratio(error: float, fast: str, slow: str) -> tuple[float, float]:
        found = sample.ratio(np.full(len(sample.shares), error), fast, slow, ITERATIONS)
        return float(found.low[0]), float(found.high[0])

    assert ratio(0.625, "fast", "slow") == pytest.approx((256 / 64 / 2**0.5,) * 2)
    assert ratio(0.75, "fast", "slow") == (2, inf), "the fast one may have needed less"
    assert ratio(0.375, "fast", "slow") == (2, inf), "the slow one may need any number"
    assert ratio(0.375, "slow", "fast") == (0, 0.5)
    assert ratio(0.1, "slow", "fast") == (0, inf), "nothing is known"


def test_a_bound_decides_only_where_it_is_enough() -> None:
    known = Bounded(np.full(9, 4.0), np.full(9, inf), trials=20)
    assert known.is_at_least(4) == "yes"
    assert known.is_at_least(5) == "not settled", "at least 4 may be 10"
    assert known.is_within(0.5, 2) == "no"
    assert known.times == "at least 4.0 times (at least 4.0)"
    assert known._replace(trials=2).is_at_least(4) == "not settled"


@given(noise=st.floats(0, 0.5), shift=st.floats(-0.05, 0.05))
def test_what_trials_have_in_common_does_not_widen_the_interval(
    noise: float, shift: float
) -> None:
    """Paired: both policies have the same trials in every resample."""
    sample = Sample(rows(16, noise, a=[0.9, 0.8, 0.7, 0.6], b=[0.9, 0.8, 0.7, 0.6 + shift]))
    a, b = (sample.curves(policy, ITERATIONS).errors[:, -1] for policy in "ab")
    assert np.allclose(b - a, shift, atol=1e-12)


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says() -> None:
    random, rules = np.random.default_rng(0), RULES["interval"]
    shares = resampled(32, rules["resamples"], rules["seed"])
    covered = 0
    for _ in range(300):
        means = shares @ random.normal(size=32)
        low, high = Bounded(means, means, 32).interval
        covered += low <= 0 <= high
    assert 0.89 <= covered / 300 <= 0.98


def test_resamples_follow_from_the_seed_and_the_number_of_trials() -> None:
    one = resampled(12, 50, seed=3)
    assert np.array_equal(one, resampled(12, 50, seed=3))
    assert not np.array_equal(one, resampled(12, 50, seed=4))
    assert np.allclose(one.sum(axis=1), 1)
    assert np.array_equal(one[0], np.full(12, 1 / 12)), "first the rows themselves"


def test_only_a_new_low_is_a_level_and_the_median_is_over_levels() -> None:
    sample = Sample(rows(16, slow=[1.0, 0.75, 0.875, 0.5], fast=[1.0, 0.75, 0.5, 0.25]))
    found = sample.over_lows("fast", "slow", ITERATIONS)
    assert found.low[0] == found.high[0] == pytest.approx((128 / 128 + 512 / 256) / 2)
    untrained = sample.over_lows("fast", "slow", ITERATIONS, untrained=0.7)
    assert untrained.low[0] == pytest.approx(512 / 256), "0.75 is above 0.7 times the first"
    flat = Sample(rows(16, slow=[0.5] * 4, fast=[0.9, 0.7, 0.6, 0.5]))
    none = flat.over_lows("fast", "slow", ITERATIONS)
    assert (none.low[0], none.high[0]) == (0, inf), "without a low nothing is known"


def test_a_look_costs_c_pulls() -> None:
    sample = Sample(rows(12, a=[0.9, 0.8, 0.7, 0.6]))
    assert sample.curves("a", with_looks(0)).costs[0] == pytest.approx(BUDGETS)
    assert sample.curves("a", with_looks(10)).costs[0] == pytest.approx([b + 40 for b in BUDGETS])


def test_in_part_is_settled_once_one_part_holds_and_another_does_not() -> None:
    assert all_hold(["yes", "not settled", "no"]) == "in part"
    assert all_hold(["not settled", "not settled"]) == "not settled"


def test_rules_that_changed_say_what_they_were() -> None:
    for change in RULES["changed"]:
        assert change.keys() == {"rule", "was", "now", "when"}
