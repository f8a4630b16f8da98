"""Theorem 4 and Example 3: how much worse than the best the returned arm can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.theorems import DELTA, ENVELOPES, SIGMA, grid, played
from lastarm.policies import POLICIES
from lastarm.policies.parts.integers import ceil_log
from lastarm.report.figures.palette import LABELS

RIVALS = ("successive-halving", "uniform")
EXAMPLE = "σ·log(nt/δ)/t"  # the envelope of Examples 1 to 3

TEXT = """\
The losses are as deceptive as an envelope β allows. The limits are a/n. After t pulls, the best
arm is β(t) above its limit, and every arm whose limit is at most 2β(t) above the best one has
exactly the same loss. Ties go to worse arms, because these have lower numbers. All other losses
are at their limits. So γ̄ = β, and uniform allocation returns the worst arm that Theorem 4 allows.
Four budgets are tried in every doubling, from the least that Successive Halving takes until both
return the best arm. Theorem 4 holds if no arm is further from the best than its bound. Example 3
holds if on its envelope ν_î − ν_1 is at most 4σ·log(2B/δ)·n/B for uniform allocation, and ⌈log₂
n⌉² times that for Successive Halving, with every budget: that is n/B but for logarithms. Both
follow from Theorem 4, since ⌊x⌋ ≥ x/2 from 1 on."""


@dataclass(frozen=True)
class Deceptive:
    """Arms on the limits a/n, from the worst to the best, that tie as long as β allows.

    >>> three = Deceptive(3, lambda t: 1 / (2 * t))
    >>> [round(three.loss(arm, 1), 2) for arm in range(3)]  # 2β = 1: all tie
    [0.83, 0.83, 0.83]
    >>> [round(three.loss(arm, 2), 2) for arm in range(3)]  # 2β = 1/2: the worst does not
    [1.0, 0.58, 0.58]
    """

    n: int
    beta: Callable[[int], float]

    def limit(self, arm: int) -> float:
        """ν of an arm."""
        return (self.n - arm) / self.n

    def loss(self, arm: int, pulls: int) -> float:
        """ν_1 + β where the envelope allows it, else ν."""
        limit, best, bound = self.limit(arm), 1 / self.n, self.beta(pulls)
        return best + bound if limit - best <= 2 * bound else limit


def bound(policy: str, beta: Callable[[int], float], n: int, budget: int) -> float:
    """Theorem 4's, as `theory.halving_regret` and `uniform_regret` have it for a table."""
    rounds = ceil_log(n, 2) if policy == RIVALS[0] else 1
    return rounds * 2 * beta(budget // (n * rounds))


def theorem_4(settings: Settings) -> Part:
    """How far from the best the arms are that halving and uniform allocation return."""
    rows: list[Row] = []
    for n in (16,) if settings.quick else (16, 64, 256):
        for name, envelope in ENVELOPES.items():
            losses = Deceptive(n, envelope(n))
            first = n * ceil_log(n, 2)
            for budget in grid(first, _settled(losses), each=4):
                row: Row = {"envelope": name, "n": n, "budget": budget}
                for policy in RIVALS:
                    arm = played(POLICIES[policy](n, budget), losses.loss).arm
                    assert arm is not None
                    row[policy] = round(losses.limit(arm) - 1 / n, 9)
                    row[f"bound-{policy}"] = bound(policy, losses.beta, n, budget)
                rows.append(row)
    settings.progress(1, 1)
    part = Part(
        "theorem4",
        "Theorem 4 and Example 3: a pretty good arm",
        " ".join(TEXT.split()),
        [*(within(rows, policy) for policy in RIVALS), example_3(rows)],
        command=command("theorems", settings),
    )
    return figures.publish(part, figures.regrets(rows, RIVALS), rows, settings)


def _settled(losses: Deceptive) -> int:
    """A budget with which both tell the best two arms apart."""
    t = 1
    while 2 * losses.beta(t) >= 1 / losses.n:
        t *= 2
    return ceil(t * losses.n * ceil_log(losses.n, 2) / 2)


def within(rows: Sequence[Row], policy: str) -> Claim:
    """Theorem 4 for a policy, and how much of its bound is used."""
    shares = [row[policy] / row[f"bound-{policy}"] for row in rows]
    printed = "⌈log₂ n⌉·2γ̄(⌊B/(n⌈log₂ n⌉)⌋)" if policy == RIVALS[0] else "2γ̄(B/n)"
    return Claim(
        f"Theorem 4: ν of the arm that {LABELS[policy]} returns is at most {printed} above ν_1",
        "for all losses and budgets",
        f"at most {max(shares):.0%} of the bound, in {len(shares)} games",
        "made curves",
        verdict(max(shares) <= 1 + 1e-9),
    )


def example_3(rows: Sequence[Row]) -> Claim:
    """Whether both distances are n/B but for logarithms."""
    own = [row for row in rows if row["envelope"] == EXAMPLE]
    most = dict.fromkeys(RIVALS, 0.0)
    for row in own:
        n, B = row["n"], row["budget"]
        logs = 4 * SIGMA * log(2 * B / DELTA)
        for policy, rounds in zip(RIVALS, (ceil_log(n, 2), 1), strict=True):
            most[policy] = max(most[policy], row[policy] * B / n / (rounds**2 * logs))
    ratios = [row[RIVALS[0]] / row[RIVALS[1]] for row in own if row[RIVALS[1]]]
    return Claim(
        "Example 3: with either algorithm ν_î − ν_1 is at most Õ(n/B)",
        "n/B, but for logarithms",
        f"at most {most[RIVALS[0]]:.0%} of n/B with its logarithms for Successive Halving, "
        f"{most[RIVALS[1]]:.0%} for uniform allocation; the distance with Successive Halving is "
        f"{min(ratios):.2f} to {max(ratios):.2f} times that with uniform allocation",
        "made curves",
        verdict(max(most.values()) <= 1),
    )
