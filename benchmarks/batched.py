"""Many arms in one kernel, beside one arm at a time in NumPy and in numba.

Contenders take turns in one thread, and learn the same from the same samples in the same order and
in the same precision; what they learned is compared. One arm at a time is trained by loops that a
good engineer would write for one arm (`batched_alone.py`), once compiled as they are, once with
fastmath, and by NumPy. These find the samples laid out in the order of the pass, and compiling and
laying out are not in their time; ours counts all that `train` does. A ratio is the median over the
turns. Some contenders are given some of the arms only, and their time is scaled: each row says so.

Then how the cost grows: the exponent b of cost = a·size^b, fitted to the medians.

    make bench
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from batched_alone import (
    completion_in_numpy,
    completion_loops,
    fast,
    pegasos_in_numpy,
    pegasos_loops,
    plain,
    ridge_in_numpy,
    ridge_loops,
)
from batched_problems import Completion, Learned, Pegasos, Ridge, Train
from record import Record

TURNS = 3
CLOSE = {"float64": 1e-7, "float32": 1e-2}  # of the greatest number, after all steps


class Problem(Protocol):
    """Arms, and how they are trained: see `batched_problems.py`."""

    arms: int

    def together(self) -> tuple[float, Learned]:
        """All in one batch."""

    def alone(self, train: Train, arms: Sequence[int]) -> tuple[float, Learned]:
        """Some, one at a time."""


def compare(
    record: Record,
    title: str,
    problem: Problem,
    dtype: str,
    loops: Train,
    in_numpy: Train,
    some: Sequence[int],
    few: Sequence[int],
    goal: str,
    turns: int = TURNS,
) -> None:
    """Contenders in turns: numba with some of the arms, NumPy with few of them, and once."""
    compiled = {"numba": plain(loops), "numba, fastmath": fast(loops)}
    _, expected = problem.together()
    for train in compiled.values():
        problem.alone(train, some[:1])  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in ("lastarm", *compiled)}
    for _ in range(turns):
        seconds["lastarm"].append(problem.together()[0])
        for name, train in compiled.items():
            took, learned = problem.alone(train, some)
            same(learned, expected, CLOSE[dtype])
            seconds[name].append(took)
    record.section(f"{title}, {dtype}")
    record.row(f"lastarm, {problem.arms} arms together", median(seconds["lastarm"]), "s")
    for name in compiled:
        given = "" if len(some) == problem.arms else f" ({len(some)} arms, scaled)"
        record.row(f"{name}, one arm at a time{given}", median(seconds[name]), "s")
    if dtype == "float64":
        took, learned = problem.alone(in_numpy, few)
        same(learned, expected, CLOSE[dtype])
        record.row(f"NumPy, one arm at a time ({len(few)} arms, scaled)", took, "s")
        record.row("NumPy / lastarm", took / median(seconds["lastarm"]), "times")
    for name in compiled:
        ratios = [them / us for us, them in zip(seconds["lastarm"], seconds[name], strict=True)]
        record.row(f"{name} / lastarm", median(ratios), "times", goal if name == "numba" else "")


def same(learned: Learned, expected: Learned, close: float) -> None:
    """Stop if an arm learned something else alone than beside others."""
    for arm, alone in learned.items():
        assert np.isfinite(alone).all()
        np.testing.assert_allclose(alone, expected[arm], rtol=0, atol=close * np.abs(alone).max())


def growth(
    record: Record,
    what: str,
    sizes: Sequence[int],
    make: Callable[[int], Any],
    cost: Callable[[Any], float] = lambda problem: problem.together()[0],
) -> None:
    """The exponent with which the cost of training grows, in turns over all sizes."""
    problems = [make(size) for size in sizes]
    turns = [[cost(problem) for problem in problems] for _ in range(TURNS + 1)]
    costs = np.median(turns[1:], axis=0)  # the first turn warms up
    exponent = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
    record.row(f"{what}, {sizes[0]:,} to {sizes[-1]:,}", exponent, "", goal="at most 1.1")


def doublings(first: int, count: int = 5) -> list[int]:
    """`count` sizes, each twice the one before."""
    return [first * 2**k for k in range(count)]


def comparisons(record: Record) -> None:
    """Each model in both precisions."""
    for dtype, goal in (("float64", "at least 5"), ("float32", "at least 8")):
        compare(
            record,
            "Ridge regression: 1,000 arms, 41,000 pulls, 90 features",
            Ridge(dtype),
            dtype,
            *(ridge_loops, ridge_in_numpy),
            some=range(0, 1000, 4),
            few=range(0, 1000, 100),
            goal=goal,
        )
    for dtype in CLOSE:
        compare(
            record,
            "Kernel SVM by Pegasos: 10 γ × 10 λ, 6,000 pulls, 4,000 points, 16 features",
            Pegasos(dtype),
            dtype,
            *(pegasos_loops, pegasos_in_numpy),
            some=range(0, 100, 11),  # of each γ and of each λ one
            few=range(0, 100, 55),
            goal="at least 10",
        )
    for dtype in CLOSE:
        compare(
            record,
            "Matrix completion: 4 ranks × 16 others, 100,000 ratings of 943 × 1,682, two epochs",
            Completion(dtype),
            dtype,
            *(completion_loops, completion_in_numpy),
            some=range(64),
            few=range(0, 64, 16),  # of each rank one
            goal="at least 2",
            turns=5 * TURNS,  # they are short
        )


def growths(record: Record) -> None:
    """With arms, pulls and features."""
    record.section("How the cost of training grows, float64: exponents")
    measure, dtype = partial(growth, record), "float64"
    measure("ridge, arms", doublings(64), lambda arms: Ridge(dtype, arms, 4_000))
    measure("ridge, pulls", doublings(2_000), lambda pulls: Ridge(dtype, 64, pulls))
    measure("ridge, features", doublings(30), lambda k: Ridge(dtype, 64, 4_000, k))
    few = partial(Pegasos, dtype, points=1_000)
    measure("Pegasos, arms", doublings(10), lambda arms: few(grid=(arms // 2, 2), pulls=1_000))
    measure(
        "Pegasos, pulls after the first pass",
        doublings(250),
        lambda pulls: few(pulls=pulls),
        lambda problem: problem.further(1_000, problem.pulls)[0],
    )
    measure("Pegasos, features", doublings(8), lambda k: few(pulls=1_000, features=k))
    measure("completion, arms", doublings(8), lambda arms: Completion(dtype, (16,), arms, 1))
    measure("completion, epochs", doublings(1), lambda n: Completion(dtype, (16,), 8, n))
    measure("completion, rank", doublings(4), lambda rank: Completion(dtype, (rank,), 8, 1))


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("batched", "make bench", ["lastarm", "numba", "numpy"])
    with threadpool_limits(1):
        comparisons(record)
        growths(record)
    record.write()


if __name__ == "__main__":
    main()
