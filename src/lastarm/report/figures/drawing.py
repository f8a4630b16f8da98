"""What all figures share: the house style, lines, logarithmic axes and legends.

Nothing here touches matplotlib's global state, and the user's settings of it change nothing: the
same numbers give the same bytes, with the same version of matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lastarm.report.axes import HUGE
from lastarm.report.figures.palette import Look

try:
    from matplotlib import style
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
except ImportError as error:
    raise ImportError(
        "matplotlib is needed to draw figures. Install it with pip install 'lastarm[plot]'."
    ) from error

# Of matplotlib, which others import from here, so that its absence is explained in one place.
__all__ = ["Axes", "Figure", "LineCollection", "MaxNLocator"]

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


def house() -> AbstractContextManager[None]:
    """Within this, matplotlib draws as is done here."""
    return style.context(["default", HOUSE])


@contextmanager
def sheet(
    width: float, height: float, panels: int = 1, *, columns: int, sharey: bool = True
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of panels side by side; in the end, their legend goes below, in `columns`."""
    with house():
        figure = Figure(figsize=(width, height))
        axes = list(figure.subplots(1, panels, sharey=sharey, squeeze=False)[0])
        yield figure, axes
        legend(figure, axes, columns)


def draw(axes: Axes, look: Look, x: ArrayLike, y: ArrayLike) -> None:
    """The line of a policy."""
    (line,) = axes.plot(x, y, color=look.colour, ls=look.dashes, lw=look.width, label=look.label)
    line.set(marker=look.marker, mec="white", mew=0.5, zorder=3 - look.width / 10)


def mark_end(axes: Axes, look: Look, x: float, y: float) -> None:
    """Where the line of a policy ends before those of others."""
    size, depth = 3 + 2.4 * look.width, 4 - look.width / 10
    axes.plot([x], [y], "o", ms=size, mec="black", color=look.colour, gid=ENDS_HERE, zorder=depth)


def drawable(value: float) -> bool:
    """Whether it is finite, and not so large that matplotlib's sums are not."""
    return abs(value) <= HUGE


def wide(values: ArrayLike) -> bool:
    """Whether they are more than a factor of 5 apart, so that a logarithmic axis shows more.

    Near the largest and the least floats, it has no room for its margins and ticks.
    """
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    return bool(len(finite)) and bool(1e-200 < finite.min() < finite.max() / 5 < 1e200)


def log(axes: Axes, which: str) -> None:
    """Logarithmic axes; over less than two decades, numbers between the powers of 10 as well."""
    for letter in which:
        axes.set(**{f"{letter}scale": "log"})
        axis: Axis = getattr(axes, f"{letter}axis")
        low, high = getattr(axes, f"get_{letter}lim")()
        if high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:,.10g}")
        axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, panels: list[Axes], columns: int) -> None:
    """Below the panels, where it covers no line; what is in many of them is named once."""
    named: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if any(line.get_gid() == ENDS_HERE for axes in panels for line in axes.lines):
        named[ENDS_HERE] = Line2D([], [], color="#bbbbbb", ls="", marker="o", ms=8, mec="black")
    if named:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)


def framed_legend(axes: Axes, **where: Any) -> None:
    """Within the axes, legible on whatever it covers; names come from users, and are not TeX."""
    named = axes.legend(
        frameon=True, framealpha=0.85, facecolor="white", edgecolor="none", **where
    )
    for text in named.get_texts():
        text.set_parse_math(False)
