"""The paper's figures, drawn from the tables that the parts write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.report.figures.drawing import Figure, draw, house, log, mark_end, sheet, wide
from lastarm.report.figures.palette import COLOURS, GREY, LABELS, LOOKS

__all__ = ["COLOURS", "LABELS", "LOOKS", "Line", "comparison", "save", "scaling", "traces"]

Array = NDArray[np.float64]
Points = tuple[Sequence[float], Sequence[float]]
Curve = Sequence[tuple[int, float]]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Line:
    """A policy over all trials, a point a budget."""

    budgets: Array
    seconds: Array  # the mean over trials
    mean: Array  # of the test error, as are the quartiles
    low: Array
    high: Array

    @classmethod
    def of(cls, rows: Rows) -> Line:
        """Gather the rows of one policy by budget; where a trial diverged, the line has a gap.

        >>> row = {"budget": "8", "train_seconds": "1.5", "loss_seconds": "0.5"}
        >>> line = Line.of([row | {"test_loss": "0.25"}, row | {"test_loss": "0.75"}])
        >>> line.mean, line.low, line.seconds
        (array([0.5]), array([0.375]), array([2.]))
        """
        at: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for row in rows:
            seconds = float(row["train_seconds"]) + float(row["loss_seconds"])
            at[int(row["budget"])].append((seconds, float(row["test_loss"])))
        points = []
        for budget, trials in sorted(at.items()):
            times, errors = np.array(trials).T
            whole = np.isfinite(errors).all()
            quartiles = np.percentile(errors, [25, 75]) if whole else (nan, nan)
            points.append((budget, times.mean(), errors.mean() if whole else nan, *quartiles))
        return cls(*np.array(points, dtype=float).T)


def comparison(rows: Rows, *, title: str, unit: str, ylabel: str) -> Figure:
    """Test error against iterations and against seconds: the mean over trials, and quartiles.

    `unit` says what an iteration is. Where the rows of a policy end before others', it is marked.
    """
    of: dict[str, list[Mapping[str, Any]]] = {policy: [] for policy in LOOKS}
    for row in rows:
        of.setdefault(row["policy"], []).append(row)
    lines = {policy: Line.of(its) for policy, its in of.items() if its}
    most = max(line.budgets[-1] for line in lines.values())
    trials = len({row["trial"] for row in rows})
    with sheet(10, 5.2, panels=2, columns=4) as (figure, (left, right)):
        for policy, line in lines.items():
            look = LOOKS.get(policy, GREY._replace(label=policy))
            for axes, x in ((left, line.budgets), (right, line.seconds)):
                axes.fill_between(x, line.low, line.high, color=look.colour, alpha=0.12, lw=0)
                draw(axes, look, x, line.mean)
                if line.budgets[-1] < most:
                    mark_end(axes, look, x[-1], line.mean[-1])
        left.set(xlabel=f"iterations ({unit}), all arms together", ylabel=ylabel)
        right.set(xlabel="wall-clock seconds of training and looking")
        drawn = [np.r_[line.low, line.mean, line.high] for line in lines.values()]
        log(left, "xy" if wide(np.concatenate(drawn)) else "x")
        log(right, "x")
        figure.suptitle(
            f"{title}\nmean of {trials} trial{'s' * (trials > 1)}; the bands hold the middle half"
        )
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
    """Lines on two logarithmic axes, and dashed grey ones to hold them against.

    A line named as a policy is drawn as that policy is elsewhere.
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


def save(figure: Figure, out: Path, name: str) -> None:
    """Write a figure as PNG and as SVG, with neither dates nor versions in them."""
    out.mkdir(parents=True, exist_ok=True)
    with house():
        figure.savefig(out / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(out / f"{name}.svg", metadata={"Date": None, "Creator": None})
