"""What the parts of the reproduction conclude: from made rows, of which the answer is known."""

from typing import Any

import numpy as np
import pytest

from lastarm.papers.jamieson2015 import examples, table1, theorems
from lastarm.papers.jamieson2015.examples import RIVALS


def counted(*of: tuple[str, str, int, int, int]) -> list[dict[str, Any]]:
    """Rows of Table 1, from policy, kind of arms, n, what is printed and what was observed."""
    return [
        {"policy": policy, "curves": kind, "n": n, "most": most}
        | {"observed": seen, "at_most": seen <= most}
        for policy, kind, n, most, seen in of
    ]


@pytest.mark.parametrize(
    ("place", "alike", "apart", "holds"),
    [
        (0, 100, 100, "yes"),
        (0, 80, 100, "no"),  # n is exact
        (1, 80, 80, "yes"),  # 2n + 1 is a bound
        (1, 80, 101, "no"),
        (4, 90, 3, "yes"),  # B is reached in the worst case only
        (4, 89, 3, "no"),
        (4, 101, 3, "no"),
    ],
)
def test_a_line_of_table_1_holds_if_it_is_a_bound_and_near_where_it_is_exact(
    place: int, alike: int, apart: int, holds: str
) -> None:
    line = table1.TABLE[place]
    of = line.policies[-1]
    rows = counted((of, "alike", 8, 100, alike), (of, "apart", 8, 100, apart))
    assert table1.of_line(line, rows).holds == holds


def test_proportional_to_n_alone_is_who_is_so() -> None:
    policies = [policy for line in table1.TABLE for policy in line.policies]
    rows = counted(
        *(
            (of, "alike", n, 10**6, n * (k if of == "exp3" else n if of == "lucb" else 2))
            for of in policies
            for n in (8, 64)
            for k in (16, 32)
        )
    )
    assert table1.proportional(rows).holds == "no", "there are more than the two"
    two = [row for row in rows if row["policy"] in ("uniform", "successive-halving")]
    bad = [row | {"observed": row["observed"] ** 2} for row in rows if row not in two]
    assert table1.proportional([*two, *bad]).holds == "yes"
    assert table1.proportional([*two, *bad]).ours.endswith(": uniform, Successive Halving")
    none = [row | {"observed": row["observed"] ** 2} for row in rows]
    assert table1.proportional(none)[2:5:2] == ("of all, these: none", "no")


@pytest.mark.parametrize(
    ("last", "warm", "cold", "holds"),
    [
        ([100, 199], [80, 200], [150, 210], ["yes", "yes", "in part"]),
        ([100, 200], [201, 200], [250, 210], ["in part", "in part", "no"]),
    ],
)
def test_doublings_claims_are_of_the_table(
    last: list[int], warm: list[int], cold: list[int], holds: list[str]
) -> None:
    rows = [
        {"needed": 100, "last_budget": a, "warm": b, "cold": c, "warm_right": True}
        | {"last_times": a / 100, "warm_times": b / 100, "cold_times": c / 100}
        for a, b, c in zip(last, warm, cold, strict=True)
    ]
    assert [claim.holds for claim in theorems.of_doubling(rows)] == holds


@pytest.mark.parametrize(
    ("trials", "holds", "words"),
    [
        (["01 01"], "no", "a factor of 1.0 (1.0) in the median"),
        (["011 001"], "yes", "a factor of 2.0 (2.0) in the median"),
        (
            ["01 01", "01 01", "11 01"],
            "not settled",
            "less is needed in 4 of 12 trials, more in 0",
        ),
        (["01 01", "11 01"], "not settled", "a factor of 1.5"),
        (["001 101"], "no", "more in 0"),  # a success before a failure does not count
        (["11 01", "01 11", "01 11"], "not settled", "a factor of 0.5"),
        (["00 00", "10 00"], "not settled", "a factor of not known"),
        (["11 00"], "yes", "a factor of at least 4.0"),
        (["00 11"], "no", "a factor of at most 0.2"),
    ],
)
def test_halvings_factor_is_of_what_each_needed(trials: list[str], holds: str, words: str) -> None:
    rows = [
        {"q": 0.9, "trial": trial, "policy": policy, "n": 8, "budget": 10 * 2**k}
        | {"found": right == "1"}
        for trial, both in enumerate(trials * (12 // len(trials)))
        for policy, found in zip(RIVALS, both.split(), strict=True)
        for k, right in enumerate(found)
    ]
    claim = examples.needs_less(rows)
    assert claim.holds == holds, claim.ours
    assert words in claim.ours


def test_a_median_counts_each_trial_as_often_as_it_was_drawn() -> None:
    numbers, shares = np.array([3.0, 1.0, 2.0, 9.0]), np.array([[1, 1, 1, 1], [0, 3, 0, 1]]) / 4
    assert examples.medians(numbers, shares).tolist() == [2.5, 1.0]


def svm_rows(errors: dict[tuple[str, int, float | str], list[float]]) -> list[dict[str, Any]]:
    """Rows of policy, budget and sigmoid, with a test error a trial."""
    return [
        {"trial": trial, "policy": policy, "budget": budget, "sigmoid": sigmoid}
        | {"theta": 0.1, "test_error": error}
        for (policy, budget, sigmoid), trials in errors.items()
        for trial, error in enumerate(trials)
    ]


@pytest.mark.parametrize(
    ("halving", "uniform", "holds", "words"),
    [
        # Uniform has its lowest error from the first budget on: nobody is faster.
        ([0.2, 0.1, 0.1], [0.1, 0.1, 0.1], "no", "at most 0.2 times"),
        ([0.1, 0.1, 0.1], [0.1, 0.1, 0.1], "not settled", "not known faster"),
        ([0.3, 0.1, 0.1], [0.3, 0.2, 0.1], "yes", "4.0 times"),
        ([0.3, 0.2, 0.0], [0.3, 0.2, 0.1], "yes", "2.0 times"),
        ([0.3, 0.2, 0.08], [0.3, 0.2, 0.1], "in part", "1.3 times"),
        ([0.3, 0.2, 0.15], [0.3, 0.2, 0.1], "no", "at most 1.0 times"),
        ([0.1, 0.1, 0.1], [0.3, 0.2, 0.1], "yes", "with 16 samples, Successive Halving at least"),
        # An error that it reached goes up again.
        ([0.3, 0.1, 0.2], [0.3, 0.1, 0.2], "no", "uniform allocation comes to 10.00% with 4"),
    ],
)
def test_faster_is_by_what_both_need_for_the_same_error(
    halving: list[float], uniform: list[float], holds: str, words: str
) -> None:
    budgets = [1, 4, 16]
    games = zip(RIVALS, (halving, uniform), strict=True)
    rows = svm_rows(
        {
            (policy, budget, ""): [error - 0.01, error + 0.01] * 6
            for policy, errors in games
            for budget, error in zip(budgets, errors, strict=True)
        }
        | {("uniform", 999, ""): [0.0] * 12, (RIVALS[0], 1, 10.0): [0.0] * 12}
    )
    claim = examples.faster(rows, budgets)
    assert claim.holds == holds
    assert words in claim.ours


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ([0.001, -0.001, 0.002, 0.0, -0.002], "yes"),
        ([0.009] * 5, "yes"),
        ([0.011] * 5, "no"),
        ([-0.011] * 5, "no"),
        ([0.03, 0.02, 0.03, 0.02, 0.03], "no"),
        ([0.1, -0.1, 0.05, -0.05, 0.0], "not settled"),  # not significant is not the same
        ([0.0], "not settled"),  # too few trials
    ],
)
def test_a_sigmoid_will_do_if_the_error_is_the_same_for_sure(
    changes: list[float], holds: str
) -> None:
    steepest = max(examples.SIGMOIDS)
    errors: dict[tuple[str, int, float | str], list[float]] = {
        (RIVALS[0], 16, s): [0.2 + (s == steepest) * change for change in changes * 3]
        for s in ("", *examples.SIGMOIDS)
    }
    assert examples.footnote(svm_rows(errors), 16).holds == holds


def test_a_function_of_theta_is_convex_if_its_slopes_never_fall() -> None:
    x = np.array([1e-6, 1e-3, 0.1, 0.5, 1.0])
    for convex in ((x - 0.3) ** 2, np.full(5, 0.1), np.maximum(0.1, x)):
        assert examples.not_convex([(x, convex)]).holds == "no"
    some = [(x, (x - 0.3) ** 2), (x, np.array([0.1, 0.1, 0.2, 0.2, 0.2]))]
    claim = examples.not_convex(some)
    assert claim.holds == "yes"
    assert claim.ours.startswith("not convex in 1 of 2 trials; 2 to 5 values")
