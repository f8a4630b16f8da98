"""How tight Theorem 1 is for Successive Halving, beside its sharper form, rung by rung."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from statistics import median

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.theorems import ENVELOPES, Adversary, grid, played
from lastarm.policies import SuccessiveHalving
from lastarm.policies.parts.integers import ceil_log
from lastarm.report.figures.drawing import Figure
from lastarm.theory import halving_budget, halving_budget_by_rung

LATE = 1000  # pulls by which the close arms have settled
HALF = "half are close"

TEXT = f"""\
z is Theorem 1's budget, z′ that of its sharper form, rung by rung (docs/theory.md). There are two
families of losses: Theorem 3's on the limits a/n, for three envelopes; and arms of which half are
close. There n = 2^k − 1, and the best arm and those of rank 2 to 2^(k−1) change places at
{LATE:,} pulls, while all others are far behind from the first pull on. Eight budgets are tried in
every doubling, up to twice z, and also z′ and one pull less. A budget is enough if the best arm is
returned with it and with every greater one that was tried. z′ is tight for some losses if one pull
less fails."""


@dataclass(frozen=True)
class HalfClose:
    """Arms of which the best and those up to rank (n + 1)/2 cross at `LATE` pulls.

    The best arm has the last number, so it also loses ties, as in `Adversary`.

    >>> seven = HalfClose(7)
    >>> [seven.loss(arm, 1) for arm in range(7)]
    [0.5, 0.5, 0.5, 3.5, 3.5, 3.5, 0.5]
    >>> [seven.loss(arm, LATE) for arm in range(7)], seven.settling
    ([1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 0.0], [1000, 1000, 1000, 1, 1, 1])
    """

    n: int

    @property
    def best(self) -> int:
        """The arm of the least limit."""
        return self.n - 1

    def loss(self, arm: int, pulls: int) -> float:
        """Up to `LATE` the best arm is half a gap above its limit, and all others as far below."""
        off = 0.5 if pulls < LATE else 0.0
        if arm == self.best:
            return off
        return (1.0 if arm < self.n // 2 else 4.0) - off

    @cached_property
    def settling(self) -> list[int]:
        """γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n."""
        close = self.n // 2
        return [LATE] * close + [1] * (self.n - 1 - close)


def _families(settings: Settings) -> Iterator[tuple[str, Adversary | HalfClose]]:
    most = 32 if settings.quick else 128
    for k in range(2, most.bit_length()):
        yield HALF, HalfClose(2**k - 1)
        for n in (2**k - 1, 2**k, 3 * 2 ** (k - 1)):
            for name, envelope in ENVELOPES.items():
                yield f"a/n, {name}", Adversary(n, envelope(n))


def rung_by_rung(settings: Settings) -> Part:
    """Theorem 1's budget, the sharper one, and the last budget that fails."""
    families = list(_families(settings))
    rows: list[Row] = []
    for done, (family, losses) in enumerate(families, start=1):
        n, rounds = losses.n, ceil_log(losses.n, 2)
        theorem, sharper = (
            ceil(bound(losses.settling)) for bound in (halving_budget, halving_budget_by_rung)
        )
        tried = {*grid(n * rounds, 2 * theorem, each=8), sharper, max(n * rounds, sharper - 1)}
        wrong = (
            B
            for B in sorted(tried, reverse=True)
            if played(SuccessiveHalving(n, B), losses.loss).arm != losses.best
        )
        rows.append(
            {"family": family, "n": n, "theorem_1": theorem, "by_rung": sharper}
            | {"last_wrong": next(wrong, 0)}
        )
        settings.progress(done, len(families))
    close = [row for row in rows if row["family"] == HALF]
    part = Part(
        "theorem1-sharper",
        "Theorem 1, sharper",
        " ".join(TEXT.split()),
        [sufficient(rows), tight(close)],
        command=command("theorems", settings),
    )
    return figures.publish(part, drawn(rows), rows, settings)


def drawn(rows: Sequence[Row]) -> Figure:
    """Theorem 1's bound, the sharper one and the last budget that fails, where half are close."""
    close = [row for row in rows if row["family"] == HALF]
    sizes = [row["n"] for row in close]
    return figures.scaling(
        {"last budget that fails": (sizes, [row["last_wrong"] for row in close])},
        title=f"n = 2^k − 1 arms, of which {HALF}; z′ is where the line is",
        xlabel="number of arms n",
        ylabel="budget (pulls of all arms together)",
        references={
            "Theorem 1's bound z": (sizes, [row["theorem_1"] for row in close]),
            "rung by rung, z′": (sizes, [row["by_rung"] for row in close]),
        },
    )


def sufficient(rows: Sequence[Row]) -> Claim:
    """Whether no budget from z′ on fails, and how much less it is than Theorem 1's."""
    shares = [row["by_rung"] / row["theorem_1"] for row in rows]
    fails = [row["last_wrong"] / row["by_rung"] for row in rows]
    return Claim(
        "Here: Successive Halving returns the best arm with every budget from z′ on",
        "no such theorem; Theorem 1 asks for z",
        f"z′ is {min(shares):.0%} to {max(shares):.0%} of z, in the median {median(shares):.0%}; "
        f"the last budget with which it fails is at {min(fails):.1%} to {max(fails):.1%} of z′",
        f"{len(rows)} instances",
        verdict(all(row["last_wrong"] < row["by_rung"] for row in rows)),
    )


def tight(close: Sequence[Row]) -> Claim:
    """How near to z, and to z′, the last budget that fails is where half of the arms are close."""
    of_z = [row["last_wrong"] / row["theorem_1"] for row in close]
    exact = [row["last_wrong"] == row["by_rung"] - 1 for row in close]
    first, last = close[0]["n"], close[-1]["n"]
    return Claim(
        "the above result may be nearly tight: read as Theorem 1's budget for Successive Halving",
        "suggested, not proven",
        "where half of the arms are close, the last budget with which it fails is at "
        f"{of_z[0]:.0%} of z for n = {first} and {of_z[-1]:.0%} of z for n = {last}; one pull "
        f"less than z′ fails for {sum(exact)} of {len(exact)} n",
        "made curves",
        verdict(all(exact) and of_z[-1] > 0.9, in_part=all(exact)),
    )
