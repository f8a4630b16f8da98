"""The paper's figures, drawn from the tables that the parts write.

Nothing here touches matplotlib's global state, and the user's settings of it change nothing: the
same numbers give the same bytes, with the same version of matplotlib.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullFormatter
except ImportError as error:
    raise ImportError(
        "matplotlib is needed to draw the paper's figures. Install it with "
        "pip install 'lastarm[plot]'."
    ) from error

Array = NDArray[np.float64]
Points = tuple[Sequence[float], Sequence[float]]
Curve = Sequence[tuple[int, float]]
Rows = Sequence[Mapping[str, Any]]


class Look(NamedTuple):
    """How a policy is drawn, the same in every figure."""

    label: str
    colour: str  # of Okabe & Ito: told apart by the colour-blind too
    dashes: Any = "-"
    marker: str = ""
    width: float = 1.8  # the wider is drawn beneath, so that no line hides another


LOOKS = {
    "successive-halving": Look("Successive Halving", "#D55E00", "-", "s", 2.0),
    "successive-rejects": Look("Successive Rejects", "#0072B2", (0, (6, 2)), "D"),
    "uniform": Look("uniform", "#000000", "-", "^", 3.0),
    "successive-elimination": Look("Successive Elimination", "#E69F00", (0, (3, 3)), "X"),
    "exp3": Look("EXP3", "#56B4E9", (3, (3, 3)), "v", 2.4),
    "lucb": Look("LUCB", "#009E73", "-", "p", 2.6),
    "lil-ucb": Look("lil'UCB", "#CC79A7", (0, (5, 1.5, 1, 1.5)), ">"),
}
GREY = Look("", "#777777")  # for whatever else there is
COLOURS = {policy: look.colour for policy, look in LOOKS.items()}
LABELS = {policy: look.label for policy, look in LOOKS.items()}

ENDS_HERE = "looks at every pull, so it ends here"
HOUSE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.constrained_layout.use": True,
    "grid.color": "#e4e4e4",
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.handlelength": 3.4,
    "lines.markersize": 5,
    "svg.fonttype": "path",
    "svg.hashsalt": "lastarm",
}


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


def comparison(
    rows: Rows, *, title: str, unit: str, ylabel: str, ended: Mapping[str, int] | None
) -> Figure:
    """Test error against iterations and against seconds: the mean over trials, and quartiles.

    `unit` says what an iteration is. `ended` maps policies that were not run with all budgets to
    their last one; if it is `None`, they are those whose rows end before others'.
    """
    of: dict[str, list[Mapping[str, Any]]] = {policy: [] for policy in LOOKS}
    for row in rows:
        of.setdefault(row["policy"], []).append(row)
    lines = {policy: Line.of(its) for policy, its in of.items() if its}
    if ended is None:
        last = {policy: int(line.budgets[-1]) for policy, line in lines.items()}
        ended = {policy: end for policy, end in last.items() if end < max(last.values())}
    trials = len({row["trial"] for row in rows})
    with style.context(["default", HOUSE]):
        figure = Figure(figsize=(10, 5.2))
        left, right = figure.subplots(1, 2, sharey=True)
        for policy, line in lines.items():
            look = LOOKS.get(policy, GREY._replace(label=policy))
            for axes, x in ((left, line.budgets), (right, line.seconds)):
                axes.fill_between(x, line.low, line.high, color=look.colour, alpha=0.12, lw=0)
                _draw(axes, look, x, line.mean)
                if policy in ended:
                    end = line.budgets.searchsorted(ended[policy], "right") - 1
                    _mark_end(axes, look, x[end], line.mean[end])
        left.set(xlabel=f"iterations ({unit}), all arms together", ylabel=ylabel)
        right.set(xlabel="wall-clock seconds of training and looking")
        drawn = [np.r_[line.low, line.mean, line.high] for line in lines.values()]
        _log(left, "xy" if _wide(np.concatenate(drawn)) else "x")
        _log(right, "x")
        figure.suptitle(
            f"{title}\nmean of {trials} trial{'s' * (trials > 1)}; the bands hold the middle half"
        )
        _legend(figure, left, columns=4)
    return figure


def traces(
    curves: Mapping[int, Curve], *, title: str, ylabel: str, highlight: Sequence[int]
) -> Figure:
    """The paper's first figure: the error of every arm against its iterations, some in colour."""
    with style.context(["default", HOUSE]):
        figure = Figure(figsize=(8, 5))
        axes = figure.subplots()
        points = {arm: np.array(curve, dtype=float).T for arm, curve in curves.items()}
        for arm in sorted(points.keys() - set(highlight)):
            axes.plot(*points[arm], color="#555555", alpha=0.25, lw=0.7)
        for arm, look in zip(highlight, cycle(LOOKS.values()), strict=False):
            label = f"arm {arm}, which ends at {points[arm][1, -1]:.3g}"
            axes.plot(*points[arm], color=look.colour, ls=look.dashes, lw=2, label=label, zorder=3)
        axes.set(xlabel="iterations of the arm", ylabel=ylabel, title=title)
        _log(axes, "xy" if _wide(np.concatenate([y for _, y in points.values()])) else "x")
        _legend(figure, axes, columns=2)
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
    with style.context(["default", HOUSE]):
        figure = Figure(figsize=(8, 5))
        axes = figure.subplots()
        free = (look for policy, look in LOOKS.items() if policy not in lines)
        for name, (x, y) in lines.items():
            _draw(axes, LOOKS.get(name) or next(free, GREY)._replace(label=name), x, y)
        grey = cycle([(0, (5, 3)), (0, (1, 2)), (0, (5, 2, 1, 2))])
        for name, (x, y) in references.items():
            axes.plot(x, y, color="#777777", ls=next(grey), lw=1.3, label=name, zorder=1.5)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        _log(axes, "xy")
        _legend(figure, axes, columns=3)
    return figure


def save(figure: Figure, out: Path, name: str) -> None:
    """Write a figure as PNG and as SVG, with neither dates nor versions in them."""
    out.mkdir(parents=True, exist_ok=True)
    with style.context(["default", HOUSE]):
        figure.savefig(out / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(out / f"{name}.svg", metadata={"Date": None, "Creator": None})


def _draw(axes: Axes, look: Look, x: ArrayLike, y: ArrayLike) -> None:
    (line,) = axes.plot(x, y, color=look.colour, ls=look.dashes, lw=look.width, label=look.label)
    line.set(marker=look.marker, mec="white", mew=0.5, zorder=3 - look.width / 10)


def _mark_end(axes: Axes, look: Look, x: float, y: float) -> None:
    size, depth = 3 + 2.4 * look.width, 4 - look.width / 10
    axes.plot([x], [y], "o", ms=size, mec="black", color=look.colour, gid=ENDS_HERE, zorder=depth)


def _wide(values: Array) -> bool:
    """Whether they are more than a factor of 5 apart, so that a logarithmic axis shows more."""
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool(0 < 5 * finite.min() < finite.max())


def _log(axes: Axes, which: str) -> None:
    """Logarithmic axes; over less than two decades, numbers between the powers of 10 as well."""
    for letter in which:
        axes.set(**{f"{letter}scale": "log"})
        axis: Axis = getattr(axes, f"{letter}axis")
        low, high = getattr(axes, f"get_{letter}lim")()
        if high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:,.10g}")
        axis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    """Below the axes, where it covers no line."""
    handles, labels = axes.get_legend_handles_labels()
    if any(line.get_gid() == ENDS_HERE for line in axes.lines):
        handles.append(Line2D([], [], color="#bbbbbb", ls="", marker="o", ms=8, mec="black"))
        labels.append(ENDS_HERE)
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
