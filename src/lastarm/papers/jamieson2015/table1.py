"""The paper's Table 1, counted: how many losses each algorithm looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2
from typing import NamedTuple

from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.theorems import played
from lastarm.policies import EXP3, POLICIES
from lastarm.report.figures.drawing import Figure
from lastarm.report.figures.palette import LABELS


class FormulaLine(NamedTuple):
    """A line of the table: its algorithms, and the formula as printed and as a function."""

    policies: tuple[str, ...]
    formula: str
    value: Callable[[int, int], float]  # of n and B
    exact: bool = False  # in the worst case the count is near it


TABLE = (
    FormulaLine(("uniform",), "n", lambda n, B: n, exact=True),
    FormulaLine(("successive-halving",), "2n + 1", lambda n, B: 2 * n + 1),
    FormulaLine(("successive-rejects",), "(n + 1)n/2", lambda n, B: (n + 1) * n / 2),
    FormulaLine(("successive-elimination",), "n·log₂(2B)", lambda n, B: n * log2(2 * B)),
    FormulaLine(("lucb", "lil-ucb", "exp3"), "B", lambda n, B: B, exact=True),
)

KINDS: dict[str, Callable[[int, int], float]] = {
    "alike": lambda arm, pulls: 0.5,
    "apart": lambda arm, pulls: float(arm > 0),
}
NEAR = 0.9  # of the formula

TEXT = f"""\
Every algorithm runs on two kinds of arms, and the losses that it looks at are counted. Arms that
are alike have equal losses for ever. Nothing can tell them apart, so an algorithm that stops when
it is sure never stops early, and uses its whole budget. This is the worst case, which the table is
about. Of arms that are apart, the first has a loss of 0 and all others a loss of 1, from the first
pull on; some algorithms stop sooner there. A line of the table holds if no count is above its
formula; where the formula is n or B, the counts must also reach {NEAR:.0%} of it where arms are
alike. Successive Elimination looks at t = 1, 2, 4, … as the table assumes, and once more when its
budget ends."""


def table1(settings: Settings) -> Part:
    """Count the losses that every algorithm of Table 1 looks at, and compare with the formula."""
    sizes = (8, 33) if settings.quick else (8, 10, 33, 64, 100)
    times = (16, 64) if settings.quick else (16, 64, 256)
    games = [(line, n, n * k) for line in TABLE for n in sizes for k in times]
    rows: list[Row] = []
    for done, (line, n, B) in enumerate(games, start=1):
        for kind, loss in KINDS.items():
            for policy in line.policies:
                options = {"seed": settings.seed} if policy == EXP3.name else {}
                seen = played(POLICIES[policy](n, B, **options), loss).observations
                formula = line.value(n, B)
                rows.append(
                    {"policy": policy, "curves": kind, "n": n, "budget": B}
                    | {"formula": line.formula, "most": round(formula, 1)}
                    | {"observed": seen, "at_most": seen <= formula}
                )
        settings.progress(done, len(games))
    part = Part(
        "table1",
        "Table 1: the number of observed losses",
        " ".join(TEXT.split()),
        [*(of_line(line, rows) for line in TABLE), proportional(rows)],
        command=command("table1", settings),
    )
    return figures.publish(part, drawn(rows), rows, settings)


def drawn(rows: Sequence[Row]) -> Figure:
    """What is observed of arms that are alike, against the budget: of 64 arms, if there are."""
    sizes = {row["n"] for row in rows}
    n = 64 if 64 in sizes else max(sizes)
    own = [row for row in rows if row["n"] == n]
    budgets = sorted({row["budget"] for row in own})
    return figures.scaling(
        {
            policy: _points([row for row in own if row["policy"] == policy])
            for line in TABLE
            for policy in line.policies
        },
        title=f"Table 1: losses observed of {n} arms that are alike",
        xlabel="budget B (pulls of all arms together)",
        ylabel="observed losses",
        references={
            line.formula: (budgets, [line.value(n, budget) for budget in budgets])
            for line in TABLE[2:4]
        },
    )


def _points(rows: list[Row]) -> tuple[list[float], list[float]]:
    counted = sorted((row["budget"], row["observed"]) for row in rows if row["curves"] == "alike")
    return [budget for budget, _ in counted], [seen for _, seen in counted]


def of_line(line: FormulaLine, rows: list[Row]) -> Claim:
    """It holds if no count is above the formula and, if that is exact, the worst case is near."""
    names = [LABELS[policy] for policy in line.policies]
    own = [row for row in rows if row["policy"] in line.policies]
    ours, shares = [], {}
    for kind in KINDS:
        counts = [row["observed"] for row in own if row["curves"] == kind]
        shares[kind] = [row["observed"] / row["most"] for row in own if row["curves"] == kind]
        ours.append(
            f"{min(counts):,} to {max(counts):,} where arms are {kind}, "
            f"{min(shares[kind]):.1%} to {max(shares[kind]):.1%} of the formula"
        )
    within = all(row["at_most"] for row in own)
    near = not line.exact or min(shares["alike"]) >= NEAR
    said = f"{', '.join(names)}: {line.formula} observed losses"
    return Claim(said, line.formula, "; ".join(ours), "made curves", verdict(within and near))


def proportional(rows: list[Row]) -> Claim:
    """Whether only uniform and halving are proportional to n and independent of B.

    Independent: for every n the counts at all budgets are equal. Proportional: the count for each
    arm at the greatest n is at most 1.5 times that at the least.
    """
    worst = [row for row in rows if row["curves"] == "alike"]
    sizes = sorted({row["n"] for row in worst})
    both = []
    for policy in (policy for line in TABLE for policy in line.policies):
        counts = {
            n: {row["observed"] for row in worst if (row["policy"], row["n"]) == (policy, n)}
            for n in sizes
        }
        independent = all(len(seen) == 1 for seen in counts.values())
        each = [max(counts[n]) / n for n in sizes]
        if independent and each[-1] <= 1.5 * each[0]:
            both.append(policy)
    return Claim(
        "along with the baseline, Successive Halving is the only algorithm that observes losses "
        "proportional to the number of arms and independent of the budget",
        "only these two",
        "of all, these: " + (", ".join(LABELS[policy] for policy in both) or "none"),
        "made curves",
        verdict(both == ["uniform", "successive-halving"]),
    )
