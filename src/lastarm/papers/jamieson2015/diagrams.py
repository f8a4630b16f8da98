"""Figures that the paper does not have: of its theorems, the doubling trick and its examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lastarm.batched.arrays import Array
from lastarm.report.figures.drawing import Figure, draw, log, sheet
from lastarm.report.figures.palette import COLOURS, GREY, LOOKS

Rows = Sequence[Mapping[str, Any]]
Points = tuple[Sequence[float], Sequence[float]]


def ranks(rows: Rows, bounds: Mapping[str, str]) -> Figure:
    """Theorem 3: the rank of the returned arm against the budget, a panel an envelope.

    `bounds` names, for each policy, the column of the budget that is enough.
    """
    n = max(row["n"] for row in rows)
    panels: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["n"] == n:
            panels[row["envelope"]].append(row)
    with sheet(10, 4.2, len(panels), columns=2) as (figure, every):
        for axes, (name, its) in zip(every, panels.items(), strict=True):
            budgets = [row["budget"] for row in its]
            for policy, bound in bounds.items():
                look = LOOKS[policy]
                (line,) = axes.step(budgets, [row[policy] for row in its], where="post")
                line.set(color=look.colour, lw=look.width, label=look.label)
                line.set_zorder(3 - look.width / 10)
                axes.axvline(its[0][bound], color=look.colour, ls=":", lw=1.4)
            axes.set(xlabel="budget (pulls)", title=f"β(t) = {name}")
            log(axes, "x")
        every[0].set_ylabel("rank of the returned arm (1 is the best)")
        every[0].locator_params(axis="y", integer=True)
        figure.suptitle(f"Theorem 3's losses, n = {n}; dotted: the bounds of Theorems 1 and 2")
    return figure


def doubling(rows: Rows) -> Figure:
    """What the doubling trick spent as a multiple of B′, against B′."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    titles = {"cold": "each run starts anew", "warm": "each run goes on"}
    with sheet(10, 4.8, len(titles), columns=len(families)) as (figure, every):
        for axes, (kind, title) in zip(every, titles.items(), strict=True):
            for family, look in zip(families, LOOKS.values(), strict=False):
                its = [row for row in rows if row["family"] == family]
                x, y = [row["needed"] for row in its], [row[f"{kind}_times"] for row in its]
                axes.plot(x, y, look.marker, color=look.colour, ms=6, label=family)
            for bound in (2, 4):
                axes.axhline(bound, color=GREY.colour, ls="--", lw=1.2)
                text = axes.text(1, bound, f"{bound} B′ ", ha="right", va="bottom")
                text.set(color=GREY.colour, transform=axes.get_yaxis_transform())
            axes.set(xlabel="B′: the least fixed budget that is enough (pulls)", title=title)
            log(axes, "x")
        every[0].set(ylabel="pulls spent, as a multiple of B′", ylim=(0, 4.3))
        figure.suptitle("The doubling trick, when its budget has reached B′")
    return figure


def found(rows: Rows) -> Figure:
    """Example 1: the share of trials in which the best subset is found, against the budget."""
    panels: dict[float, dict[str, dict[int, list[bool]]]] = {}
    for row in rows:
        policies = panels.setdefault(row["q"], {})
        policies.setdefault(row["policy"], {}).setdefault(row["budget"], []).append(row["found"])
    with sheet(10, 4.2, len(panels), columns=2) as (figure, every):
        for axes, (q, policies) in zip(every, panels.items(), strict=True):
            for policy, at in policies.items():
                share = [sum(right) / len(right) for right in at.values()]
                draw(axes, LOOKS[policy], list(at), share)
            axes.set(xlabel="budget (samples, all arms)", title=f"weights fall by q = {q}")
            log(axes, "x")
        every[0].set(ylabel="share of trials that find the best subset", ylim=(-0.03, 1.03))
        figure.suptitle(f"Example 1: the best of {rows[0]['n']} subsets of features")
    return figure


def penalties(
    by_theta: tuple[Array, Array],
    chosen: Mapping[str, float],
    errors: Mapping[str, Points],
    everyone: float,
    trials: int,
) -> Figure:
    """Example 4: the error on VAL against θ in one trial; the mean test error against the budget.

    `chosen` is what each policy chose there, and `everyone` the mean error if all are trained.
    """
    with sheet(10, 4.6, panels=2, columns=3, sharey=False) as (figure, (left, right)):
        losses = dict(zip(*by_theta, strict=True))
        left.plot(*by_theta, color=GREY.colour, marker=".", lw=1)
        for (policy, theta), size in zip(chosen.items(), (13, 8), strict=True):
            (mark,) = left.plot([theta], [losses[theta]], LOOKS[policy].marker, ms=size, mew=2)
            mark.set(color=COLOURS[policy], fillstyle="none")
        for policy, points in errors.items():
            draw(right, LOOKS[policy], *points)
        right.axhline(everyone, color=GREY.colour, ls="--", label="all fully trained")
        most = max(max(budgets) for budgets, _ in errors.values())
        left.set(xlabel="θ", ylabel="share of VAL misclassified, fully trained")
        left.set_title(f"the first trial; marked: chosen with B = {most:,.0f}")
        right.set(xlabel="budget (samples, all arms)", ylabel="mean test error")
        right.set_title(f"mean of {trials} trial{'s' * (trials > 1)}")
        for axes in (left, right):
            log(axes, "x")
        figure.suptitle("Example 4: a linear support vector machine on even and odd digits")
    return figure
