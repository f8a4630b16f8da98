"""The picture of a search: what was seen of every arm, and where it was left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import inf, log10, nan
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from lastarm.report.figures.drawing import drawable, framed_legend, log, wide
from lastarm.report.figures.palette import ACCENT, DIM, PLAIN
from lastarm.report.seen import Seen

MANY = 1000  # arms, beyond which a vector file holds their lines as a picture
MOST_NAMED = 16  # levels; of more, none is


class End(NamedTuple):
    """How the curves of some arms end: what to call it, and how it is marked."""

    label: str
    marker: str
    colour: str
    size: float


DROPPED = End("left behind", "o", PLAIN, 3.0)
ABOVE = End("left behind, above the scale", "^", PLAIN, 4.0)
OUT = End("failed or diverged", "x", DIM, 4.5)


def draw_curves(axes: Axes, seen: Seen) -> None:
    """Every loss that was looked at; what is far above most is drawn at the upper edge."""
    losses = [loss for curve in seen.curves.values() for _, loss in curve if drawable(loss)]
    scale = "log" if wide(losses) else "linear"
    top = _top(seen, losses, scale == "log")
    lines: dict[int, list[tuple[float, float]]] = {
        arm: [(level, min(loss, top) if drawable(loss) else top) for level, loss in curve]
        for arm, curve in seen.curves.items()
    }
    last = {arm: line[-1] for arm, line in lines.items()}
    last = {arm: (failure.pull.upto, top) for arm, failure in seen.failures.items()} | last
    many = len(last) > MANY
    paths = [line for arm, line in lines.items() if arm != seen.arm]
    if many:  # a path takes matplotlib as long as its points; with nan between, lines share one
        paths = [
            [point for line in paths[begin::MANY] for point in (*line, (nan, nan))]
            for begin in range(MANY)
        ]
    others = LineCollection(paths, colors=PLAIN, linewidths=0.8, alpha=0.5, rasterized=many)
    axes.add_collection(others, autolim=False)
    ends: dict[End, list[tuple[float, float]]] = {}
    for arm in last:
        if arm == seen.arm:
            continue
        final = seen.curves[arm][-1][1] if arm in seen.curves else top
        out = arm in seen.failures or not drawable(final)
        ends.setdefault(OUT if out else ABOVE if final > top else DROPPED, []).append(last[arm])
    if seen.arm is not None:
        label = f"arm {seen.arm}, recommended"
        (own,) = axes.plot(*zip(*lines[seen.arm], strict=True), "o-", label=label)
        own.set(color=ACCENT, lw=2.2, ms=6, markevery=[-1], zorder=4, clip_on=False)
    for end in (DROPPED, ABOVE, OUT):
        if end in ends:
            (marks,) = axes.plot(*zip(*ends[end], strict=True), end.marker, label=end.label)
            marks.set(color=end.colour, ms=end.size, zorder=3, clip_on=False, rasterized=many)
    _fit(axes, min([top, *losses]), top, scale)
    levels = [[level for level, _ in curve] for curve in seen.curves.values()]
    _name_levels(axes, levels, {failure.pull.upto for failure in seen.failures.values()})
    axes.set(xlabel="pulls of an arm", ylabel="loss")
    if ends:
        framed_legend(axes, loc="upper right", fontsize="small")


def _top(seen: Seen, losses: Sequence[float], logarithmic: bool) -> float:
    """Where the scale ends: a third above where the better three quarters of all arms were.

    Arms that do very badly would otherwise press all others into one line.
    """
    if not losses:
        return 1.0
    highest = {
        arm: max((loss for _, loss in curve if drawable(loss)), default=inf)
        for arm, curve in seen.curves.items()
    }
    most = sorted(highest.values())[3 * (len(highest) - 1) // 4]
    low = min(losses)
    top = most + (most - low) / 3
    if logarithmic and most < inf:
        power = 4 * log10(most) - log10(low)
        top = 10 ** (min(power, 900) / 3)
    own = low if seen.arm is None else highest[seen.arm]
    return min(max(losses), max(top, own))


def _fit(axes: Axes, low: float, high: float, scale: str) -> None:
    if scale == "log":
        margin = 10 ** (0.05 * (log10(high) - log10(low)))
        axes.set_ylim(low / margin, high * margin)
        log(axes, "y")
    else:
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        axes.set_ylim(low - margin, high + margin)


def _name_levels(axes: Axes, seen: Sequence[Sequence[int]], failed: Collection[int]) -> None:
    """Levels as ticks, and above each how many arms came so far, where there is room.

    The first and the last come first, then those at which the most arms ended.
    """
    levels = sorted({level for curve in seen for level in curve} or failed) or [1]
    low, high = levels[0], levels[-1]
    if low == high:
        axes.set_xlim(0.5 * low, 2.5 * low)  # beside the legend
    elif wide(levels):
        margin = (high / low) ** 0.06
        axes.set_xlim(low / margin, high * margin)
        log(axes, "x")
    else:
        axes.set_xlim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    if len(levels) > MOST_NAMED:
        return
    place = axes.transData.transform([(level, axes.get_ylim()[0]) for level in levels])[:, 0]
    room = 0.08 * (place[-1] - place[0])
    ended = Counter(curve[-1] for curve in seen)
    at = dict(zip(levels, place.tolist(), strict=True))
    named: list[int] = []
    for level in sorted(
        levels, key=lambda level: (level not in (low, high), -ended[level], level)
    ):
        if all(abs(at[level] - at[other]) >= room for other in named):
            named.append(level)
    named.sort()
    axes.set_xticks(named, [f"{level:,}" for level in named])
    axes.xaxis.minorticks_off()
    for level in named:
        came = sum(curve[0] <= level <= curve[-1] for curve in seen)
        count = f"{came:,}" + (" arms" if level == named[0] else "")
        above = axes.get_xaxis_transform()
        axes.text(level, 1.01, count, transform=above, color=PLAIN, ha="center", fontsize="small")
