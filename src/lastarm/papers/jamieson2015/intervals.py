"""Intervals over trials, and verdicts that respect them.

Trials are drawn again with replacement, the same ones for all policies and budgets (a paired
bootstrap). Every curve, level and ratio is computed anew for each such resample. Its 95 % interval
goes from the 2.5 % that are lowest to the 2.5 % that are highest.

A policy reaches an error where its mean over trials first comes down to it; between two budgets,
this is read from a line over the logarithm of the cost. If it gets there with its first budget, or
not at all, only a bound of its cost is known, and so only a bound of a ratio. A sentence holds if
it holds for all ratios that are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.papers.jamieson2015.page import Holds
from lastarm.papers.jamieson2015.rules import RULES

Array = NDArray[np.float64]
Row = Mapping[str, Any]


class Axis(NamedTuple):
    """What a search costs: its name for the page, and of a row."""

    name: str
    cost: Callable[[Row], float]


ITERATIONS = Axis("iterations", lambda row: float(row["budget"]))
SECONDS = Axis("seconds", lambda row: float(row["train_seconds"]) + float(row["loss_seconds"]))
KERNELS = Axis("kernel evaluations", lambda row: float(row["kernel_evaluations"]))


def with_looks(c: float) -> Axis:
    """Pulls + c·looks: no machine, and nothing but what the policy does."""
    return Axis(
        f"pulls + {c:g}·looks",
        lambda row: float(row["pulls"]) + c * float(row["observations"]),
    )


def enough(trials: int) -> bool:
    """Whether the rules allow an interval with this number of trials."""
    return trials >= int(RULES["interval"]["least_trials"])


class Bounded(NamedTuple):
    """Numbers of which two bounds are known: that of the rows, and then one for each resample.

    Where a number is known exactly, its bounds are equal.
    """

    low: Array
    high: Array
    trials: int

    @property
    def settles(self) -> bool:
        """Whether there are enough trials for an interval."""
        return enough(self.trials)

    @property
    def interval(self) -> tuple[float, float]:
        """What holds the share of the resamples that the rules ask for."""
        tail = (1 - RULES["interval"]["share"]) / 2
        low = np.quantile(self.low[1:], tail, method="lower")
        high = np.quantile(self.high[1:], 1 - tail, method="higher")
        return float(low), float(high)

    def is_at_least(self, least: float) -> Holds:
        """Whether it is: "yes" or "no" if all of the interval says so."""
        low, high = self.interval
        if not self.settles:
            return "not settled"
        return "yes" if low >= least else "no" if high < least else "not settled"

    def is_within(self, least: float, most: float) -> Holds:
        """Whether it is between two numbers."""
        low, high = self.interval
        if not self.settles:
            return "not settled"
        if least <= low and high <= most:
            return "yes"
        return "no" if high < least or low > most else "not settled"

    def told(self, spelled: Callable[[float], str]) -> str:
        """It, and its interval if there are enough trials for one."""
        only = spelled_range(float(self.low[0]), float(self.high[0]), spelled)
        return f"{only} ({spelled_range(*self.interval, spelled)})" if self.settles else only

    @property
    def times(self) -> str:
        """The same of a ratio."""
        told = self.told(lambda ratio: f"{ratio:.1f}")
        if told.startswith("not known"):
            return "not known"
        return told.replace(" (", " times (", 1) if " (" in told else f"{told} times"


def spelled_range(low: float, high: float, spelled: Callable[[float], str] = str) -> str:
    """Two bounds in words.

    >>> spelled_range(2, 2), spelled_range(2, 3), spelled_range(2, inf), spelled_range(0, 3)
    ('2', '2 to 3', 'at least 2', 'at most 3')
    """
    if low == high or spelled(low) == spelled(high):
        return spelled(low) if not isinf(low) else "not known"
    if low == 0:
        return "not known" if isinf(high) else f"at most {spelled(high)}"
    return f"at least {spelled(low)}" if isinf(high) else f"{spelled(low)} to {spelled(high)}"


def all_hold(verdicts: Iterable[Holds]) -> Holds:
    """Of a sentence about several things: "in part" is settled, too.

    >>> all_hold(["yes", "yes"]), all_hold(["yes", "not settled"]), all_hold(["no", "no"])
    ('yes', 'not settled', 'no')
    >>> all_hold(["yes", "no", "not settled"]), all_hold(["no", "not settled"])
    ('in part', 'not settled')
    """
    found = set(verdicts)
    if {"yes", "no"} <= found or "in part" in found:
        return "in part"
    return found.pop() if len(found) == 1 else "not settled"


class MeanCurves(NamedTuple):
    """Costs and errors at every budget, a row each: those of the rows, and of each resample."""

    costs: Array
    errors: Array

    def reach(self, error: Array) -> tuple[Array, Array]:
        """Bounds of the cost to come down to an error, which is one for each row."""
        reached = self.errors <= error[:, np.newaxis]
        at, rows = reached.argmax(axis=1), np.arange(len(self.errors))
        before = np.maximum(at - 1, 0)
        cost, reached_error = self.costs[rows, at], self.errors[rows, at]
        cost_before, error_before = self.costs[rows, before], self.errors[rows, before]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (error_before - error) / (error_before - reached_error)
            between = np.exp(np.log(cost_before) + share * np.log(cost / cost_before))
        between = np.where(np.isfinite(between), between, cost)  # the error before was infinite
        never = ~reached.any(axis=1)
        low = np.where(never, self.costs.max(axis=1), np.where(at == 0, 0.0, between))
        high = np.where(never, inf, np.where(at == 0, cost, between))
        return low, high

    @property
    def is_low(self) -> NDArray[np.bool_]:
        """Where an error is a new low; the first budget has none."""
        lowest = np.minimum.accumulate(self.errors, axis=1)
        new = np.zeros(self.errors.shape, dtype=bool)
        new[:, 1:] = self.errors[:, 1:] < lowest[:, :-1]
        return new


class Sample:
    """The rows of an experiment, trial by trial, and their resamples."""

    def __init__(self, rows: Sequence[Row], error: str = "test_loss") -> None:
        self.rows = rows
        self.policies = list(dict.fromkeys(str(row["policy"]) for row in rows))
        number = {trial: at for at, trial in enumerate(dict.fromkeys(r["trial"] for r in rows))}
        self.trials = len(number)
        self._error = error
        self._of: dict[str, dict[int, list[Row]]] = {policy: {} for policy in self.policies}
        for row in sorted(rows, key=lambda row: (int(row["budget"]), number[row["trial"]])):
            self._of[str(row["policy"])].setdefault(int(row["budget"]), []).append(row)
        self._curves: dict[tuple[str, str], MeanCurves] = {}

    @property
    def settles(self) -> bool:
        """Whether there are enough trials for intervals."""
        return enough(self.trials)

    @cached_property
    def shares(self) -> Array:
        """What each trial counts for: of the rows all the same, and of each resample."""
        rules = RULES["interval"]
        return resampled(self.trials, rules["resamples"], rules["seed"])

    def budgets(self, policy: str) -> list[int]:
        """Those of a policy, ascending."""
        return list(self._of[policy])

    def means(self, policy: str, value: Callable[[Row], float]) -> Array:
        """The mean of a value over trials at every budget, for the rows and for each resample."""
        of = self._of[policy].values()
        table = np.array([[value(row) for row in trials] for trials in of], dtype=float)
        whole = np.isfinite(table).all(axis=1)
        means: Array = self.shares @ np.where(np.isfinite(table), table, 0.0).T
        return np.where(whole, means, inf)

    def curves(self, policy: str, axis: Axis) -> MeanCurves:
        """The mean curves of a policy."""
        key = policy, axis.name
        if key not in self._curves:
            errors = self.means(policy, lambda row: float(row[self._error]))
            self._curves[key] = MeanCurves(self.means(policy, axis.cost), errors)
        return self._curves[key]

    def known(self, low: Array, high: Array) -> Bounded:
        """Bounds, with the number of trials that they are of."""
        return Bounded(low, high, self.trials)

    def ratio(self, error: Array, fast: str, slow: str, axis: Axis) -> Bounded:
        """How many times more the slow policy needs than the fast one to reach an error."""
        low, high = self.curves(fast, axis).reach(error)
        their_low, their_high = self.curves(slow, axis).reach(error)
        with np.errstate(divide="ignore"):
            return self.known(np.round(their_low / high, 9), np.round(their_high / low, 9))

    def over_lows(self, fast: str, slow: str, axis: Axis, untrained: float = inf) -> Bounded:
        """The median of that ratio over all new lows of the slow policy.

        A low above `untrained` times the error with the first budget does not count. Where there
        are no lows, nothing is known.
        """
        theirs = self.curves(slow, axis)
        counts = theirs.is_low & (theirs.errors <= untrained * theirs.errors[:, :1])
        columns = [self.ratio(error, fast, slow, axis) for error in theirs.errors.T]
        low, high = (
            _medians(np.stack([column[bound] for column in columns], axis=1), counts)
            for bound in (0, 1)
        )
        return self.known(np.where(np.isnan(low), 0, low), np.where(np.isnan(high), inf, high))


def _medians(table: Array, counts: NDArray[np.bool_]) -> Array:
    """The median of what counts in each row, nan where nothing does; two infinities are one."""
    ordered = np.sort(np.where(counts, table, np.nan), axis=1)  # nan comes last
    number = counts.sum(axis=1)
    rows = np.arange(len(table))
    one, other = (ordered[rows, np.maximum(k, 0)] for k in ((number - 1) // 2, number // 2))
    other = np.where(number > 0, other, np.nan)
    middle: Array = np.where(one == other, one, (one + other) / 2)
    return middle


def resampled(trials: int, resamples: int, seed: int) -> Array:
    """Shares of trials: 1/n of each, and then those of the resamples, in rows that add up to 1.

    >>> resampled(2, 3, seed=0).tolist()[0]
    [0.5, 0.5]
    """
    random = np.random.default_rng([seed, trials])
    drawn = random.multinomial(trials, np.full(trials, 1 / trials), size=resamples) / trials
    return np.concatenate([np.full((1, trials), 1 / trials), drawn])


def regions(found: Sequence[tuple[float, Holds]]) -> str:
    """Which verdict holds for which costs of a look.

    >>> regions([(0, "no"), (1, "yes"), (2, "yes"), (4, "no")])
    'no for c = 0; yes for c from 1 to 2; no for c = 4'
    """
    told: list[tuple[Holds, list[float]]] = []
    for c, holds in found:
        if not told or told[-1][0] != holds:
            told.append((holds, []))
        told[-1][1].append(c)
    return "; ".join(
        f"{holds} for c = {costs[0]:,g}"
        if len(costs) == 1
        else f"{holds} for c from {costs[0]:,g} to {costs[-1]:,g}"
        for holds, costs in told
    )
