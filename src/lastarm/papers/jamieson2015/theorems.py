"""The theorems and the doubling trick at work: budgets that are needed, and those that are proven.

Here are also the losses that they are tested on, and how a policy is played on them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, log, log2, nan, sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from lastarm.events import Loss
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.pseudocode import Outcome
from lastarm.policies import POLICIES, SuccessiveHalving
from lastarm.policies.doubling import doubling
from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.successive_halving import successive_halving
from lastarm.policy import Policy, Rounds
from lastarm.report.figures.drawing import Figure
from lastarm.theory import halving_budget, sgd_envelope, uniform_budget
from lastarm.theory.envelopes import Array

LATEST = 2**50  # by then all envelopes here have settled
ALL = 2**31  # the pulls of a round
SIGMA, DELTA = 1.0, 0.05  # of Example 1
BOUNDS = {"successive-halving": halving_budget, "uniform": uniform_budget}
OF_THEOREM_3 = {"successive-halving": "halving_bound", "uniform": "uniform_need"}  # columns
CLOSE = 0.1  # of two slopes

BUDGETS_TEXT = f"""\
Example 2: the limits are ν_a = a/n, and all arms settle along Example 1's σ·log(nt/δ)/t, with
σ = 1 and δ = 0.05. The losses are Theorem 3's: the best arm comes down to its limit while all
others come up to theirs, and it loses ties. A greater budget is not always better for Successive
Halving. So the budget needed is the least budget such that the best arm is returned with it and
with every greater one that was tried, up to twice the theorem's. Eight budgets are tried in every
doubling. A theorem holds if no budget above its bound fails. Example 2 says what is sufficient for
Successive Halving and necessary for uniform allocation: ∝ n·log₂ n·log(2n²σ/δ) and
∝ n²·log(2n²σ/δ). It holds if the slope of log budget against log n, fitted by least squares over
the same n, is at most {CLOSE} above that of the first formula for Successive Halving, and at most
{CLOSE} below that of the second for uniform allocation. Its constants are off by a factor
(docs/theory.md)."""

ADVERSARY_TEXT = """\
Theorem 3's losses on the limits ν_a = a/n, for three envelopes. Four budgets in every doubling are
tried, from the least that Successive Halving takes to twice what uniform allocation needs; also
exactly that need, and one pull less. Theorem 3 holds if uniform allocation is wrong with every
budget below its need. The gap is real if there are budgets above the bound of Successive Halving
and below that need, and Successive Halving is right with all of them."""


@dataclass(frozen=True)
class Adversary:
    """Theorem 3's losses on the limits of Example 2, ν_a = a/n.

    The best arm comes down to its limit, 1/n, along β; all others come up to theirs. The best arm
    has the last number, so it also loses ties. Like `theory.adversary`, but without a table.

    >>> two = Adversary(2, lambda t: 0.5 / t)
    >>> two.loss(0, pulls=2), two.loss(two.best, pulls=2), two.settling
    (0.75, 0.75, [3])
    """

    n: int
    beta: Callable[[int], float]

    @property
    def best(self) -> int:
        """The arm of the least limit."""
        return self.n - 1

    def limit(self, arm: int) -> float:
        """ν of an arm."""
        return (1 if arm == self.best else arm + 2) / self.n

    def loss(self, arm: int, pulls: int) -> float:
        """ν + β for the best arm, ν − β for any other."""
        return self.limit(arm) + (1 if arm == self.best else -1) * self.beta(pulls)

    @cached_property
    def settling(self) -> list[int]:
        """γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n, exactly."""
        return [self._settled(gap / self.n / 2) for gap in range(1, self.n)]

    def _settled(self, alpha: float) -> int:
        """The least t for which β(t) < α: β decreases."""
        times = range(1, LATEST)
        return times[bisect_left(times, True, key=lambda t: self.beta(t) < alpha)]


ENVELOPES: dict[str, Callable[[int], Callable[[int], float]]] = {
    "1/t": lambda n: lambda t: 1 / t,
    "1/√t": lambda n: lambda t: 1 / sqrt(t),
    "σ·log(nt/δ)/t": lambda n: lambda t: sgd_envelope(t, n, SIGMA, DELTA),
}
"""β by its name, for n arms; the last is that of Example 1."""


def played(policy: Policy | Rounds, loss: Callable[[int, int], float]) -> Outcome:
    """Play a policy to its end; the loss of an arm is a function of its pulls."""
    level: dict[int, int] = {}
    observations = 0
    while pulls := policy.ask(ALL):
        for pull in pulls:
            level[pull.arm] = pull.upto
            policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
        observations += len(pulls)
    return Outcome(policy.recommendation, sum(level.values()), observations)


def budgets_needed(settings: Settings) -> Part:
    """What halving and uniform allocation need, against n: Theorems 1 and 2, Example 2."""
    sizes = [2**k for k in range(2, 6 if settings.quick else 11)]
    rows: list[Row] = []
    for done, n in enumerate(sizes, start=1):
        losses = Adversary(n, ENVELOPES["σ·log(nt/δ)/t"](n))
        factor = log(2 * n**2 * SIGMA / DELTA)
        formulas = {"successive-halving": n * log2(n) * factor, "uniform": n**2 * factor}
        for policy, bound in BOUNDS.items():
            enough = ceil(bound(losses.settling))
            wrong, least = last_wrong(policy, losses, enough)
            rows.append(
                {"policy": policy, "n": n, "needed": least, "last_wrong": wrong}
                | {"bound": enough, "formula": round(formulas[policy])}
            )
        settings.progress(done, len(sizes))
    measured, formulas = (columns(rows, name) for name in ("needed", "formula"))
    slopes = {
        policy: (slope(sizes, measured[policy]), slope(sizes, formulas[policy]))
        for policy in BOUNDS
    }
    ours, theirs = zip(*slopes.values(), strict=True)
    kept = ours[0] <= theirs[0] + CLOSE and ours[1] >= theirs[1] - CLOSE
    n, ratio = sizes[-1], measured["uniform"][-1] / measured["successive-halving"][-1]
    claims = [
        _sufficient(1, "Successive Halving", [r for r in rows if r["policy"] != "uniform"]),
        _sufficient(2, "uniform allocation", [r for r in rows if r["policy"] == "uniform"]),
        Claim(
            "Example 2: a difference of essentially 4n·log₂ n versus n²",
            f"by its formulas, slopes {theirs[0]:.2f} and {theirs[1]:.2f} from n = {sizes[0]} to "
            f"{n}; at n = {n} uniform needs {n / (4 * ceil_log(n, 2)):.1f} times as much",
            f"slopes {ours[0]:.2f} and {ours[1]:.2f}; at n = {n} uniform needs {ratio:.1f} times "
            "as much",
            "Theorem 3's losses",
            verdict(kept),
        ),
    ]
    part = Part(
        "theorem1-and-2",
        "Theorems 1 and 2: the budget needed",
        " ".join(BUDGETS_TEXT.split()),
        claims,
        command=command("theorems", settings),
    )
    return figures.publish(part, drawn(rows), rows, settings)


def columns(rows: Sequence[Row], name: str) -> dict[str, list[float]]:
    """A column of the rows of each policy."""
    return {policy: [row[name] for row in rows if row["policy"] == policy] for policy in BOUNDS}


def drawn(rows: Sequence[Row]) -> Figure:
    """What each policy needs, and the bounds of Theorems 1 and 2."""
    sizes = columns(rows, "n")["uniform"]
    measured, bounds = columns(rows, "needed"), columns(rows, "bound")
    return figures.scaling(
        {policy: (sizes, measured[policy]) for policy in BOUNDS},
        title="Example 2: the budget needed to find the best arm",
        xlabel="number of arms n",
        ylabel="budget (pulls of all arms together)",
        references={
            "Theorem 1's bound": (sizes, bounds["successive-halving"]),
            "Theorem 2's bound (covered)": (sizes, bounds["uniform"]),
            "∝ n·log₂ n and, steeper, ∝ n²": (
                [*sizes, nan, *sizes],
                [n * log2(n) for n in sizes] + [nan] + [float(n**2) for n in sizes],
            ),
        },
    )


def last_wrong(policy: str, losses: Adversary, enough: int) -> tuple[int, int]:
    """The greatest budget tried with which the best arm is not found, and the next one tried.

    The first is 0 if there is none.
    """
    tried = grid(POLICIES[policy](1, 1).least_budget(losses.n), 2 * enough, each=8)
    least = tried[-1]
    for budget in reversed(tried):
        if played(POLICIES[policy](losses.n, budget), losses.loss).arm != losses.best:
            return budget, least
        least = budget
    return 0, least


def grid(first: int, last: int, each: int) -> list[int]:
    """Budgets from first to last, `each` in every doubling."""
    count = int(each * log2(last / first))
    return sorted({int(first * 2 ** (k / each)) for k in range(count + 1)} | {last})


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _sufficient(theorem: int, policy: str, rows: Sequence[Row]) -> Claim:
    """A bound is sufficient if the last budget to fail is not above it."""
    wrong = [row["last_wrong"] / row["bound"] for row in rows]
    return Claim(
        f"Theorem {theorem}: with B > z {policy} returns the best arm",
        "every budget above z",
        f"the last budget with which it fails is at {min(wrong):.0%} to {max(wrong):.0%} of z, of "
        "eight in every doubling",
        "Theorem 3's losses",
        verdict(max(wrong) <= 1),
    )


def adversary_at_work(settings: Settings) -> Part:
    """Which arm each returns, budget by budget: Theorem 3."""
    rows: list[Row] = []
    for n in (32,) if settings.quick else (64, 256):
        for name, envelope in ENVELOPES.items():
            losses = Adversary(n, envelope(n))
            enough, need = (ceil(bound(losses.settling)) for bound in BOUNDS.values())
            tried = grid(n * ceil_log(n, 2), 2 * need, each=4)
            for budget in sorted({*tried, need - 1, need}):
                row = {"envelope": name, "n": n, "budget": budget}
                row |= {"uniform_need": need, "halving_bound": enough}
                for policy in BOUNDS:
                    arm = played(POLICIES[policy](n, budget), losses.loss).arm
                    assert arm is not None
                    row[policy] = round(n * losses.limit(arm))  # ν = rank/n
                rows.append(row)
    settings.progress(1, 1)
    below = [row for row in rows if row["budget"] < row["uniform_need"]]
    between = [row for row in below if row["budget"] > row["halving_bound"]]
    wrong = sum(row["uniform"] > 1 for row in below)
    right = sum(row["successive-halving"] == 1 for row in between)
    claims = [
        Claim(
            "Theorem 3: below n·γ̄⁻¹((ν_2 − ν_1)/2) there are losses for which uniform allocation "
            "does not return the best arm",
            "with no smaller budget",
            f"wrong with {wrong} of {len(below)} budgets below",
            "Theorem 3's losses",
            verdict(wrong == len(below)),
        ),
        Claim(
            "the real gap between Successive Halving and the naive uniform allocation strategy",
            "Theorem 1's bound is far below what uniform allocation needs",
            f"with budgets between the two, Successive Halving is right {right} times of "
            f"{len(between)}, uniform allocation {sum(row['uniform'] == 1 for row in between)}",
            "Theorem 3's losses",
            verdict(0 < right == len(between)),
        ),
    ]
    part = Part(
        "theorem3",
        "Theorem 3: the adversary at work",
        " ".join(ADVERSARY_TEXT.split()),
        claims,
        command=command("theorems", settings),
    )
    return figures.publish(part, figures.ranks(rows, OF_THEOREM_3), rows, settings)


# The doubling trick --------------------------------------------------------------------------


DOUBLING_TEXT = """\
B′ is the least budget such that Successive Halving returns the best arm with it and with every
larger one. It is found by trying all budgets downwards from Theorem 1's bound; only ⌊B/⌈log₂ n⌉⌋
matters. The doubling trick runs with n·⌈log₂ n⌉, then twice that, and so on. (The paper begins at
B ← n, but then r_0 is 0 for more than two arms; beginning later is our change.) What it has spent
is counted at the end of the first run whose budget reaches B′. Cold means that each run starts
anew; warm means that arms continue from where they are, as in the policy `doubling`. Warm runs
compare arms at other levels, so B′ promises nothing for them; how often they return the best arm
is counted. The losses are Theorem 3's on the limits a/n, for three envelopes; losses a/n + c/t
with a c between −8 and 8 for each arm, drawn by the seed; and the instance in docs/theory.md. A
bound holds if all instances are within it; "in part" means at least half of them."""


class Instance(NamedTuple):
    """Arms whose best is known, and a budget that is enough by Theorem 1."""

    family: str
    n: int
    loss: Callable[[int, int], float]
    best: int
    enough: float


def doubling_trick(settings: Settings) -> Part:
    """Pulls spent by doubling, cold and warm, against the least fixed budget that is enough."""
    rows = [measured(instance) for instance in _instances(settings)]
    settings.progress(1, 1)
    part = Part(
        "doubling",
        "The doubling trick",
        " ".join(DOUBLING_TEXT.split()),
        of_doubling(rows),
        command=command("theorems", settings),
    )
    return figures.publish(part, figures.doubling(rows), rows, settings)


def _instances(settings: Settings) -> Iterator[Instance]:
    for n in (4, 8, 12) if settings.quick else (4, 8, 12, 16, 24, 32, 48, 64):
        for name, beta in (
            ("β = 1/t", lambda t: 1 / t),
            ("β = 1/(4√t)", lambda t: 1 / (4 * sqrt(t))),
            ("β = log(nt/δ)/16t", lambda t, n=n: sgd_envelope(t, n, 1 / 16, 0.05)),
        ):
            hard = Adversary(n, beta)
            yield Instance(name, n, hard.loss, hard.best, halving_budget(hard.settling))
        for draw in range(2 if settings.quick else 10):
            random = np.random.default_rng([settings.seed, n, draw])
            limits, c = (random.permutation(n) + 1) / n, random.uniform(-8, 8, n)
            settling = [16 * n // gap + 1 for gap in range(1, n)]  # 8/t < gap/2n
            loss, best = partial(_drawn, limits, c), int(np.argmin(limits))
            yield Instance("a/n + c/t, drawn", n, loss, best, halving_budget(settling))
    yield Instance("of docs/theory.md", 3, _kept, 0, halving_budget([65, 65]))


def _drawn(limits: Array, c: Array, arm: int, t: int) -> float:
    return float(limits[arm] + c[arm] / t)


def _kept(arm: int, t: int) -> float:
    """The instance with B′ = 390: 65 steps, which end at the limits."""
    sign = (1, -0.99, -1)[arm]
    return arm / 10 + (sign * 6.5 / t if t < 65 else 0)


def measured(instance: Instance) -> Row:
    """B′ of an instance, and what doubling has spent when its budget has reached B′."""
    family, n, loss, best, _ = instance
    needed = least_enough(instance)
    cold, B = 0, n * ceil_log(n, 2)
    while True:
        cold += played(SuccessiveHalving(n, B), loss).pulls
        if needed <= B:
            break
        B *= 2
    # Up to this budget, each run continues from the one before.
    runs = doubling(partial(successive_halving, range(n)), n * ceil_log(n, 2), B, lambda: True)
    warm = played(Rounds(runs), loss)
    return {
        "family": family,
        "n": n,
        "needed": needed,
        "last_budget": B,
        "cold": cold,
        "warm": warm.pulls,
        "warm_right": warm.arm == best,
        "last_times": round(B / needed, 3),
        "cold_times": round(cold / needed, 3),
        "warm_times": round(warm.pulls / needed, 3),
    }


def least_enough(instance: Instance) -> int:
    """B′: with this budget and every larger one, halving finds the best arm."""
    _, n, loss, best, enough = instance
    rounds = ceil_log(n, 2)
    for each in range(int(enough) // rounds + 1, n - 1, -1):  # B = each·⌈log₂ n⌉
        if played(SuccessiveHalving(n, each * rounds), loss).arm != best:
            return (each + 1) * rounds
    return n * rounds


def of_doubling(rows: Sequence[Row]) -> list[Claim]:
    """The paper's sentence, read in three ways."""
    data = f"{len(rows)} instances"
    last, cold, warm = (
        [row[f"{what}_times"] for row in rows] for what in ("last", "cold", "warm")
    )
    right = sum(row["warm_right"] for row in rows)
    return [
        Claim(
            "if B′ is necessary, the doubling trick will have used a budget of 2B′ in the worst "
            "case: read as the budget of its last run",
            "2 B′",
            "less than 2 B′ by arithmetic, whatever the losses, from the first budget on; here at "
            f"most {max(last):.2f} B′, half of them at most {median(last):.2f} B′",
            data,
            _share([row["last_budget"] < 2 * row["needed"] for row in rows]),
        ),
        Claim(
            "the same, read as all pulls spent, reusing progress",
            "2 B′",
            f"at most {max(warm):.2f} B′, half of them at most {median(warm):.2f} B′; the best "
            f"arm is returned in {right} of {len(rows)}",
            data,
            _share([row["warm"] <= 2 * row["needed"] for row in rows]),
        ),
        Claim(
            "the same, read as all pulls spent, starting anew",
            "2 B′; by our count less than 4 B′",
            f"at most {max(cold):.2f} B′, half of them at most {median(cold):.2f} B′; less than "
            f"4 B′ in {sum(times < 4 for times in cold)} of {len(rows)}",
            data,
            _share([row["cold"] <= 2 * row["needed"] for row in rows]),
        ),
    ]


def _share(within: Sequence[bool]) -> Holds:
    return verdict(all(within), in_part=2 * sum(within) >= len(within))
