"""What the paper says of its experiments, held against the numbers of ours.

A policy reaches an error when its mean over trials first comes down to it; between two budgets,
that is where a line on logarithmic axes does. "So many times faster" is the ratio of what two
policies take to reach the same error, for every new low that the slower one shows after its first
budget. Where the faster one is there with its first, the ratio is a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import exp, inf, isnan, log, nan
from statistics import mean, median
from typing import Any, Literal, NamedTuple

from lastarm.papers.jamieson2015.figures import LABELS
from lastarm.papers.jamieson2015.parts import Claim, Holds

Rows = Sequence[Mapping[str, Any]]
Cost = Literal["iterations", "seconds"]


class Curve(NamedTuple):
    """What a policy takes, and its error, at every budget: means over trials."""

    costs: list[float]
    errors: list[float]

    @classmethod
    def of(cls, rows: Rows, policy: str, cost: Cost) -> Curve:
        """The curve of one policy."""
        own = [row for row in rows if row["policy"] == policy]
        costs, errors = [], []
        for budget in sorted({row["budget"] for row in own}):
            at = [row for row in own if row["budget"] == budget]
            seconds = mean(row["train_seconds"] + row["loss_seconds"] for row in at)
            costs.append(float(budget) if cost == "iterations" else seconds)
            errors.append(mean(row["test_loss"] for row in at))
        return cls(costs, errors)

    def reaches(self, error: float) -> float:
        """What it takes to come down to an error; infinity if it never does.

        >>> Curve([1, 10, 100], [0.5, 0.4, 0.3]).reaches(0.35)
        31.62...
        """
        before: tuple[float, float] | None = None
        for cost, reached in zip(self.costs, self.errors, strict=True):
            if reached <= error:
                if before is None or before[1] == reached:
                    return cost
                share = (before[1] - error) / (before[1] - reached)
                return exp(log(before[0]) + share * (log(cost) - log(before[0])))
            before = cost, reached
        return inf


def times_faster(rows: Rows, fast: str, slow: str, cost: Cost) -> list[float]:
    """How many times faster `fast` reaches the lows that `slow` shows, from high to low."""
    ours, theirs = Curve.of(rows, fast, cost), Curve.of(rows, slow, cost)
    lows = list(dict.fromkeys(accumulate(theirs.errors, min)))[1:]
    ratios = [theirs.reaches(error) / ours.reaches(error) for error in lows]
    return [ratio for ratio in ratios if ratio > 0]  # 0: `fast` never gets there


class Lead(NamedTuple):
    """How many times faster one policy is than another, or at least is."""

    ratio: float
    at_least: bool

    def __str__(self) -> str:
        if isnan(self.ratio):
            return "not reached"
        return f"{'at least ' * self.at_least}{self.ratio:.1f} times"


def near_the_lowest(rows: Rows, fast: str, slow: str, cost: Cost) -> dict[float, Lead]:
    """How many times faster `fast` comes so near to the lowest error that any policy shows.

    Very near to it there is little but noise, so there are three answers.
    """
    policies = dict.fromkeys(row["policy"] for row in rows)
    lowest = min(min(Curve.of(rows, policy, cost).errors) for policy in policies)
    ours, theirs = Curve.of(rows, fast, cost), Curve.of(rows, slow, cost)
    leads = {}
    for share in (1.0, 0.5, 0.25):
        mine, its = (curve.reaches((1 + share) * lowest) for curve in (ours, theirs))
        leads[share] = Lead(min(its, max(theirs.costs)) / mine or nan, at_least=its == inf)
    return leads


def spelled(ratios: Sequence[float]) -> str:
    """Ratios in words: their median and their range."""
    if not ratios:
        return "no error that both reach"
    if len(ratios) == 1:
        return f"{ratios[0]:.1f} times"
    return f"{median(ratios):.1f} times (median; {min(ratios):.1f} to {max(ratios):.1f})"


def of_completion(rows: Rows, data: str) -> list[Claim]:
    """§5.3, one sentence, of two policies."""
    claims = []
    for fast, label in (
        ("successive-halving", "Successive Halving"),
        ("successive-rejects", "Successive Rejects"),
    ):
        ratios = times_faster(rows, fast, "uniform", "iterations")
        claims.append(
            Claim(
                f"Uniform allocation takes longer than {label} to the same error",
                "2 to 8 times, in iterations",
                spelled(ratios),
                data,
                _if(bool(ratios) and median(ratios) >= 2),
            )
        )
    return claims


def of_svm(rows: Rows, data: str) -> list[Claim]:
    """§5.2: wall-clock time, and iterations."""
    claims = []
    for slow in ("uniform", "successive-rejects"):
        leads = near_the_lowest(rows, "successive-halving", slow, "seconds")
        told = [f"{share:.0%} above the lowest: {lead}" for share, lead in leads.items()]
        enough = [lead.ratio >= 10 for lead in leads.values()]
        claims.append(
            Claim(
                f"Successive Halving obtains the same low error faster than {LABELS[slow]}, in "
                "wall-clock time",
                "more than 10 times",
                "; ".join(told),
                data,
                _if(all(enough), in_part=any(enough)),
            )
        )
    ratios_in_iterations = times_faster(
        rows, "successive-halving", "successive-rejects", "iterations"
    )
    claims.append(
        Claim(
            "Successive Halving and Successive Rejects perform comparably in iterations",
            "comparably (here: within a factor of 2)",
            f"Successive Rejects takes {spelled(ratios_in_iterations)}",
            data,
            _if(bool(ratios_in_iterations) and 0.5 <= median(ratios_in_iterations) <= 2),
        )
    )
    return claims


def of_ridge(rows: Rows, data: str) -> list[Claim]:
    """§5.1: iterations, lines on top of each other, and wall-clock time."""
    return [
        *(_ahead_in_iterations(rows, data, fast) for fast in ("lucb", "lil-ucb")),
        _on_top_of_each_other(rows, data),
        _first_in_seconds(rows, data),
    ]


def _ahead_in_iterations(rows: Rows, data: str, fast: str) -> Claim:
    others = ("uniform", "successive-halving", "successive-rejects", "successive-elimination")
    found = {slow: _median(rows, fast, slow, "iterations") for slow in (*others, "exp3")}
    ahead = [slow for slow, ratio in found.items() if ratio >= 2]
    return Claim(
        f"{LABELS[fast]} achieves a small test error faster than most other methods",
        "2 to 4 times, in iterations",
        ", ".join(
            f"than {LABELS[slow]}: {Lead(ratio, at_least=False)}" for slow, ratio in found.items()
        ),
        data,
        _if(len(ahead) > len(found) / 2, in_part=bool(ahead)),
    )


def _on_top_of_each_other(rows: Rows, data: str) -> Claim:
    uniform, *others = (
        (policy, dict(zip(*Curve.of(rows, policy, "iterations"), strict=True)))
        for policy in ("uniform", "successive-elimination", "exp3")
    )
    apart = {
        policy: max(abs(errors[budget] / uniform[1][budget] - 1) for budget in errors)
        for policy, errors in others
    }
    near = [distance <= 0.02 for distance in apart.values()]
    return Claim(
        "Uniform, EXP3 and Successive Elimination are on top of each other in iterations",
        "on top of each other (here: within 2 %)",
        ", ".join(f"{LABELS[policy]} up to {far:.1%} away" for policy, far in apart.items())
        + " from uniform",
        data,
        _if(all(near), in_part=any(near)),
    )


def _first_in_seconds(rows: Rows, data: str) -> Claim:
    """Of each of the two, how far it is ahead of whoever of the others comes closest to it."""
    first = ("successive-halving", "successive-rejects")
    others = dict.fromkeys(row["policy"] for row in rows if row["policy"] not in first)
    told, won = [], []
    for fast in first:
        found = {slow: _median(rows, fast, slow, "seconds") for slow in others}
        found = {slow: ratio for slow, ratio in found.items() if ratio > 0}
        next_best = min(found, key=lambda slow: found[slow], default=None)
        if next_best:
            told.append(f"{LABELS[fast]} {found[next_best]:.1f} times to {LABELS[next_best]}")
        won.append(next_best is not None and found[next_best] > 1)
    return Claim(
        "Successive Halving and Successive Rejects are the top performers in wall-clock time",
        "first and second",
        f"ahead of the next of the others: {'; '.join(told)}",
        data,
        _if(all(won), in_part=any(won)),
    )


def _median(rows: Rows, fast: str, slow: str, cost: Cost) -> float:
    ratios = times_faster(rows, fast, slow, cost)
    return median(ratios) if ratios else nan


def _if(whole: bool, *, in_part: bool = False) -> Holds:
    return "yes" if whole else "in part" if in_part else "no"
