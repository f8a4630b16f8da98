"""The figures: those of the paper, and those of its theorems, the doubling trick and examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.papers.jamieson2015.intervals import ITERATIONS, SECONDS, Axis, Sample
from lastarm.papers.jamieson2015.page import Part, Settings, write
from lastarm.papers.jamieson2015.provenance import provenance
from lastarm.report.figures.drawing import Figure, draw, house, log, mark_end, sheet, wide
from lastarm.report.figures.palette import COLOURS, GREY, LOOKS

Array = NDArray[np.float64]
Points = tuple[Sequence[float], Sequence[float]]
Curve = Sequence[tuple[int, float]]
Rows = Sequence[Mapping[str, Any]]


class PolicyLine(NamedTuple):
    """A policy over all trials, a point a budget."""

    budgets: Array
    costs: Array  # the mean over trials, along the axis
    mean: Array  # of the test error
    low: Array  # its interval, nan if there are too few trials
    high: Array

    @classmethod
    def of(cls, sample: Sample, policy: str, axis: Axis = SECONDS) -> PolicyLine:
        """The line of one policy; where a trial diverged, it has a gap."""
        costs, errors = sample.curves(policy, axis)
        errors = np.where(np.isfinite(errors), errors, nan)
        low = high = np.full(errors.shape[1], nan)
        points = [sample.known(column, column) for column in errors.T]
        if points[0].settles:
            bands = [(nan, nan) if np.isnan(of.low).any() else of.interval for of in points]
            low, high = np.array(bands).T
        return cls(np.array(sample.budgets(policy), float), costs[0], errors[0], low, high)


def comparison(rows: Rows, *, title: str, unit: str, ylabel: str) -> Figure:
    """Test error against iterations and against seconds: the mean over trials, and its interval.

    `unit` says what an iteration is. If a policy's rows end before those of others, its end is
    marked.
    """
    sample = Sample(rows)
    known = [policy for policy in LOOKS if policy in sample.policies]
    others = [policy for policy in sample.policies if policy not in LOOKS]
    lines = {policy: PolicyLine.of(sample, policy) for policy in (*known, *others)}
    most = max(line.budgets[-1] for line in lines.values())
    trials = sample.trials
    with sheet(10, 5.2, panels=2, columns=4) as (figure, (left, right)):
        for policy, line in lines.items():
            look = LOOKS.get(policy, GREY._replace(label=policy))
            for axes, x in ((left, line.budgets), (right, line.costs)):
                axes.fill_between(x, line.low, line.high, color=look.colour, alpha=0.12, lw=0)
                draw(axes, look, x, line.mean)
                if line.budgets[-1] < most:
                    mark_end(axes, look, x[-1], line.mean[-1])
        left.set(xlabel=f"iterations ({unit}), all arms together", ylabel=ylabel)
        right.set(xlabel="wall-clock seconds of training and looking")
        drawn = [np.r_[line.low, line.mean, line.high] for line in lines.values()]
        log(left, "xy" if wide(np.concatenate(drawn)) else "x")
        log(right, "x")
        bands = "; the bands are its 95 % intervals" * bool(np.isfinite(line.low).any())
        figure.suptitle(f"{title}\nmean of {trials} trial{'s' * (trials > 1)}{bands}")
    return figure


def traces(
    curves: Mapping[int, Curve], *, title: str, ylabel: str, highlight: Sequence[int]
) -> Figure:
    """The paper's first figure: the error of every arm against its iterations, some in colour."""
    points = {arm: np.array(curve, dtype=float).T for arm, curve in curves.items()}
    with sheet(8, 5, columns=2) as (figure, (axes,)):
        for arm in sorted(points.keys() - set(highlight)):
            axes.plot(*points[arm], color="#555555", alpha=0.25, lw=0.7)
        for arm, look in zip(highlight, cycle(LOOKS.values()), strict=False):
            label = f"arm {arm}, which ends at {points[arm][1, -1]:.3g}"
            axes.plot(*points[arm], color=look.colour, ls=look.dashes, lw=2, label=label, zorder=3)
        axes.set(xlabel="iterations of the arm", ylabel=ylabel, title=title)
        log(axes, "xy" if wide(np.concatenate([y for _, y in points.values()])) else "x")
    return figure


def scaling(
    lines: Mapping[str, Points],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    references: Mapping[str, Points] = MappingProxyType({}),
) -> Figure:
    """Lines on two logarithmic axes, and dashed grey lines to compare them with.

    A line with the name of a policy looks as that policy does elsewhere.
    """
    with sheet(8, 5, columns=3) as (figure, (axes,)):
        free = (look for policy, look in LOOKS.items() if policy not in lines)
        for name, (x, y) in lines.items():
            draw(axes, LOOKS.get(name) or next(free, GREY)._replace(label=name), x, y)
        grey = cycle([(0, (5, 3)), (0, (1, 2)), (0, (5, 2, 1, 2))])
        for name, (x, y) in references.items():
            axes.plot(x, y, color=GREY.colour, ls=next(grey), lw=1.3, label=name, zorder=1.5)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        log(axes, "xy")
    return figure


def ranks(rows: Rows, bounds: Mapping[str, str]) -> Figure:
    """Theorem 3: the rank of the returned arm against the budget, a panel an envelope.

    `bounds` has, for each policy, the column with the budget that is enough.
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


def regrets(rows: Rows, policies: Sequence[str]) -> Figure:
    """Theorem 4: how far the returned arm is from the best, a panel an envelope, with bounds."""
    n = max(row["n"] for row in rows)
    envelopes = list(dict.fromkeys(row["envelope"] for row in rows))
    with sheet(10, 4.2, len(envelopes), columns=2) as (figure, every):
        for axes, name in zip(every, envelopes, strict=True):
            its = [row for row in rows if row["n"] == n and row["envelope"] == name]
            budgets = [row["budget"] for row in its]
            for policy in policies:
                look = LOOKS[policy]
                distances = [row[policy] or nan for row in its]  # 0 has no place on this axis
                draw(axes, look, budgets, distances)
                bounds = [row[f"bound-{policy}"] for row in its]
                axes.plot(budgets, bounds, color=look.colour, ls=":", lw=1.4)
            axes.set(xlabel="budget (pulls)", title=f"β(t) = {name}", ylim=(0.5 / n, None))
            log(axes, "xy")
        every[0].set_ylabel("limit of the returned arm, above the best")
        figure.suptitle(f"The most deceptive losses, n = {n}; dotted: the bounds of Theorem 4")
    return figure


def missed(rows: Rows, trials: int) -> Figure:
    """The reductions of §2: how often the best arm is not returned, a panel each."""
    kinds = list(dict.fromkeys(str(row["kind"]) for row in rows))
    with sheet(10, 4.6, len(kinds), columns=3) as (figure, every):
        for axes, kind in zip(every, kinds, strict=True):
            sample = Sample([row for row in rows if row["kind"] == kind], error="missed")
            for policy in sample.policies:
                line = PolicyLine.of(sample, policy, ITERATIONS)
                look = LOOKS[policy]
                x = line.budgets
                axes.fill_between(x, line.low, line.high, color=look.colour, alpha=0.12, lw=0)
                draw(axes, look, x, line.mean)
            axes.set(xlabel="budget (pulls of all arms together)", title=kind)
            log(axes, "x")
        every[0].set(ylabel="share of trials that miss the best arm", ylim=(-0.03, 1.03))
        bands = "; the bands are 95 % intervals" * bool(np.isfinite(line.low).any())
        figure.suptitle(f"The reductions of §2, {trials} trial{'s' * (trials > 1)}{bands}")
    return figure


def cells(rows: Rows, policies: Sequence[str] = ("exp3", "lucb", "lil-ucb")) -> Figure:
    """The grid of choices: how far policies are from uniform allocation, a line for each cell."""
    of: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        of[row["samples"], row["scale"], row["leftovers"], row["first"]].append(row)
    kinds = dict.fromkeys((samples, scale) for samples, scale, *_ in of)
    looks = dict(zip(kinds, LOOKS.values(), strict=False))
    with sheet(10, 5.2, len(policies), columns=2) as (figure, every):
        for axes, policy in zip(every, policies, strict=True):
            for (samples, scale, *_), its in of.items():
                sample, look = Sample(its), looks[samples, scale]
                own, uniform = (PolicyLine.of(sample, p, ITERATIONS) for p in (policy, "uniform"))
                (line,) = axes.plot(own.budgets, own.mean / uniform.mean[: len(own.mean)] - 1)
                line.set(color=look.colour, lw=1.2, label=f"{samples} samples, range {scale}")
            axes.axhline(0, color=GREY.colour, lw=1)
            axes.set(xlabel="budget (pulls)", title=LOOKS[policy].label)
            log(axes, "x")
        every[0].set_ylabel("mean error on TEST, above that of uniform")
        figure.suptitle(f"The grid of choices: a line for each of {len(of)} cells")
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

    `chosen` has the θ that each policy chose there, `everyone` is the mean error if all θ are
    fully trained.
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


def publish(
    part: Part, figure: Figure, rows: Rows, settings: Settings, *, ran: bool = True
) -> Part:
    """Write a part: its figure, its table and what the page says about it.

    If it `ran` now, the JSON says with what; otherwise it keeps what it says of the run.
    """
    save(figure, settings.out, part.key)
    part = replace(part, figures=[part.key])
    if ran:
        part = replace(part, run=provenance(seed=settings.seed, workers=settings.workers))
    write(part, rows, settings.out)
    return part


def save(figure: Figure, out: Path, name: str) -> None:
    """Write a figure as PNG and as SVG, with neither dates nor versions in them."""
    out.mkdir(parents=True, exist_ok=True)
    with house():
        figure.savefig(out / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.set_layout_engine("none")  # all is in its place now
        figure.savefig(out / f"{name}.svg", metadata={"Date": None, "Creator": None})
