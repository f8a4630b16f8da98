"""The figures of a search, for papers and notebooks: drawn by matplotlib into any axes.

First the figures, then what two of them need: the bars of the levels, and the lines of the curves.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import accumulate
from math import inf, log10, nan
from typing import NamedTuple

from lastarm.errors import InvalidArgument
from lastarm.plain import duration, short
from lastarm.policy import has_restarts
from lastarm.report.axes import HUGE
from lastarm.report.figures.drawing import (
    Axes,
    Figure,
    LineCollection,
    MaxNLocator,
    drawable,
    framed_legend,
    house,
    log,
    wide,
)
from lastarm.report.figures.palette import ACCENT, DIM, GREY, LOOKS, PALE, PLAIN, Look
from lastarm.report.importance import importance
from lastarm.result import Result

MOST_BARS, FEW_BARS = 12, 4  # fewer than that leave room below
MANY = 1000  # arms, beyond which a vector file holds their lines as a picture
FATES = (("went on", PLAIN), ("recommended", ACCENT), ("left behind", PALE), ("failed", DIM))
MOST_NAMED = 16  # levels; of more, none is named


class Plots:
    """The figures of one search.

    >>> from lastarm import LogUniform, SuccessiveHalving, search
    >>> def root_of_two(config):
    ...     x = 1.0
    ...     while True:
    ...         x -= config["step"] * (x * x - 2)
    ...         yield abs(x * x - 2)
    >>> space = {"step": LogUniform(0.001, 1.0)}
    >>> result = search(root_of_two, space, policy=SuccessiveHalving(arms=16, budget=256))
    >>> axes = result.plot.curves()
    >>> axes.get_xlabel(), axes.get_xscale()
    ('pulls of an arm', 'log')
    >>> axes.figure.savefig("curves.pdf")  # doctest: +SKIP

    Each figure is drawn into the axes that it is given, in the caller's style. Without axes, it is
    drawn into a new figure of pyplot, in the style of lastarm. It returns the axes, to be changed
    and saved. Nothing is shown. An axis is logarithmic where the numbers on it are far apart.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def curves(self, ax: Axes | None = None) -> Axes:
        """The losses of every arm, or the figures that stand for them, against its pulls.

        A curve ends where its arm was dropped.

        The numbers above the axes say how many arms came to each level, or past it.

        :param ax: the axes to draw into.
        """
        with _drawing(ax) as axes:
            _draw_curves(axes, self._result)
        return axes

    def rungs(self, ax: Axes | None = None) -> Axes:
        """How the arms became fewer: a bar for each level, with the pulls and time that it took.

        Where there are many levels, those from one power of 2 to the next share a bar. An arm that
        was brought past a level without a stop there, as in a search that was extended, counts
        there too, as one that went on.

        :param ax: the axes to draw into.
        """
        steps = _steps_of(self._result, most=MOST_BARS)
        with _drawing(ax) as axes:
            left = [0] * len(steps)
            for place, (label, colour) in enumerate(FATES):
                part = [step.arms[place] for step in steps]
                if any(part):
                    axes.barh(range(len(steps)), part, left=left, color=colour, label=label)
                left = [begun + more for begun, more in zip(left, part, strict=True)]
            most = max([1, *left])
            for place, (step, arms) in enumerate(zip(steps, left, strict=True)):
                axes.text(arms + 0.02 * most, place, step.took, va="center", fontsize="small")
            axes.set_yticks(range(len(steps)), [step.name for step in steps])
            axes.set_ylim(max(len(steps), FEW_BARS) - 0.5, -0.5)
            axes.set_xlim(0, 1.5 * most)
            axes.grid(visible=False, axis="y")
            axes.set(xlabel="arms", ylabel="brought to (pulls)", axisbelow=True)
            ticks = MaxNLocator(nbins="auto", integer=True).tick_values(0, most)
            axes.set_xticks([tick for tick in ticks if tick <= most])  # beyond is room for words
            if any(left):
                framed_legend(axes, loc="lower right")
        return axes

    def spending(self, ax: Axes | None = None) -> Axes:
        """The pulls of every arm, the most first: the area is what was spent.

        The dashed frame is what training all arms as far as the furthest would have taken.

        :param ax: the axes to draw into.
        """
        result = self._result
        took = {at.arm: at.pulls for at in result.standings()}
        arms, furthest = len(took), max(took.values(), default=0)
        if has_restarts(result.policy):  # each level was trained from zero
            for arm, curve in result.curves.items():
                took[arm] = sum(level for level, _ in curve)
            for arm, failure in result.failures.items():
                before = sum(level for level, _ in result.curves.get(arm, ()))
                took[arm] = before + failure.pull.upto
        arms_with = Counter(took.values())
        pulls = sorted(arms_with, reverse=True)
        places = list(accumulate((arms_with[spent] for spent in pulls), initial=0))
        with _drawing(ax) as axes:
            label = f"{result.spent.pulls:,} pulls spent"
            axes.stairs(pulls, places, fill=True, color=PLAIN, label=label)
            if result.arm is not None:
                own, label = took[result.arm], f"arm {result.arm}, recommended"
                place = places[pulls.index(own)]
                axes.stairs([own], [place, place + 1], fill=True, color=ACCENT, label=label)
            label = f"{arms * furthest:,} for all to go as far"
            axes.stairs([furthest], [0, arms], ls="--", lw=1.2, color=DIM, label=label)
            axes.set(xlabel="arms, by their pulls", ylabel="pulls of the arm", axisbelow=True)
            axes.set_xlim(0, max(1, arms) * 1.02)
            axes.set_ylim(0, max(1, furthest, *pulls) * 1.04)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            looking = f"{result.spent.observations:,} looks at a loss\n"
            looking += f"{duration(result.spent.train_seconds)} training, "
            looking += f"{duration(result.spent.loss_seconds)} looking"
            framed_legend(axes, loc="center", title=looking)
        return axes

    def importance(self, ax: Axes | None = None) -> Axes:
        """How much of the arms' places each hyperparameter explains alone, by estimate.

        :param ax: the axes to draw into.
        """
        shares = importance(self._result.configs, self._result.curves)
        shown = list(shares.items())[:MOST_BARS]
        with _drawing(ax) as axes:
            axes.barh(range(len(shown)), [share for _, share in shown], color=PLAIN)
            for place, (_, share) in enumerate(shown):
                axes.text(share + 0.01, place, f"{share:.2f}", va="center", fontsize="small")
            names = [short(name) for name, _ in shown]
            axes.set_yticks(range(len(shown)), names, parse_math=False)  # names come from users
            axes.set_ylim(max(len(shown), FEW_BARS) - 0.5, -0.5)
            axes.set_xlim(0, 1.1)
            axes.grid(visible=False, axis="y")
            axes.set(xlabel="variance explained alone (estimate)", axisbelow=True)
        return axes

    def policies(
        self, others: Mapping[str, Result], *, name: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """The best loss so far against the pulls spent, of this search and of others.

        The mark at the end is the loss of the recommended arm. It is off the line where the loss
        got worse with more training: an arm is recommended as it is now, unless the search had
        recommend="best".

        :param others: other results, by their names.
        :param name: the name of this one; left out, that of its policy.
        :param ax: the axes to draw into.
        """
        policy = str(self._result.policy.get("name", "this search"))
        own = name or (LOOKS[policy].label if policy in LOOKS else policy)
        if not isinstance(others, Mapping) or own in others:
            rule = f"it is a dict of names and results, none of them named {own!r} as this one is"
            raise InvalidArgument.of("others", others, rule, "Use other names, or give a `name`")
        results = {own: self._result, **others}
        with _drawing(ax) as axes:
            looks = _looks(results.values())
            for (label, result), look in zip(results.items(), looks, strict=True):
                pulls = [at for at, _ in result.best_so_far] + [result.spent.pulls]
                value = result.metric.value
                figures = [value(_bounded(loss)) for _, loss in result.best_so_far]
                figures += figures[-1:] or [nan]
                (line,) = axes.step(pulls, figures, where="post", label=f"\u200a{short(label)}")
                line.set(color=look.colour, ls=look.dashes, lw=look.width)
                end = figures[-1] if result.loss is None else value(_bounded(result.loss))
                axes.vlines(pulls[-1], figures[-1], end, color=look.colour, ls=":", lw=look.width)
                axes.plot(pulls[-1], end, look.marker or "o", color=look.colour, ms=6)
            best = f"{self._result.metric.best} so far"
            axes.set(xlabel="pulls spent, all arms together", ylabel=best)
            axes.yaxis.label.set_parse_math(False)  # its name comes from users
            points = [point for result in results.values() for point in result.best_so_far]
            ends = [result.loss for result in results.values() if result.loss is not None]
            tall = wide([*(loss for _, loss in points), *ends])
            tall = tall and not any(result.maximized for result in results.values())
            log(axes, "x" * wide([at for at, _ in points]) + "y" * tall)
            framed_legend(axes)
        return axes


def curves_as_svg(result: Result) -> str:
    """The curves for a notebook; drawn without pyplot, which would show them a second time."""
    if not result.curves:
        return ""
    written = StringIO()
    with house():
        figure = Figure(figsize=(6, 3.6))
        _draw_curves(figure.subplots(), result)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    return svg[svg.index("<svg") :]  # what comes before is for files


@contextmanager
def _drawing(ax: Axes | None) -> Iterator[Axes]:
    if ax is not None:
        yield ax
        return
    with house():
        # Half as wide again as a column of a paper, where its text is still legible.
        yield importlib.import_module("matplotlib.pyplot").subplots(figsize=(5, 3.4))[1]


def _bounded(loss: float) -> float:
    return max(min(loss, HUGE), -HUGE)


def _looks(results: Collection[Result]) -> Iterator[Look]:
    """How each is drawn: as its policy is elsewhere, if no other before it was."""
    policies = [str(result.policy.get("name")) for result in results]
    free = iter([look for policy, look in LOOKS.items() if policy not in policies])
    known = dict(LOOKS)
    for policy in policies:
        yield known.pop(policy) if policy in known else next(free, GREY)


class _Step(NamedTuple):
    """What became of the arms that were brought to some levels (`FATES`), and what that took."""

    name: str
    arms: tuple[int, ...]
    took: str


def _steps_of(result: Result, most: int) -> list[_Step]:
    """The levels from the lowest; if they are more than `most`, in powers of 2."""
    together = len(result.rungs) > most
    groups: dict[int, list[int]] = defaultdict(list)
    for level in sorted(result.rungs):
        groups[level.bit_length() if together else level].append(level)
    reached = {at.arm: at.pulls for at in result.standings()}
    first = reached | {arm: curve[0][0] for arm, curve in result.curves.items()}
    steps = []
    for levels in groups.values():
        low, high = levels[0], levels[-1]
        came = {arm for arm in reached if first[arm] <= high and low <= reached[arm]}
        stayed = {arm for arm in came if reached[arm] <= high}
        failed, won = len(stayed & result.failures.keys()), int(result.arm in stayed)
        costs = [result.rungs[level] for level in levels]
        seconds = sum(cost.train_seconds + cost.loss_seconds for cost in costs)
        took = f"{sum(cost.pulls for cost in costs):,} pulls"
        steps.append(
            _Step(
                f"{low:,}" + (f" to {high:,}" if low < high else ""),
                (len(came) - len(stayed), won, len(stayed) - failed - won, failed),
                took + (f", {duration(seconds)}" if seconds else ""),
            )
        )
    return steps


class _End(NamedTuple):
    """How the curves of some arms end: what to call it, and how it is marked."""

    label: str
    marker: str
    colour: str
    size: float


DROPPED = _End("left behind", "o", PLAIN, 3.0)
ABOVE = _End("left behind, above the scale", "^", PLAIN, 4.0)
BELOW = _End("left behind, below the scale", "v", PLAIN, 4.0)
OUT = _End("failed or diverged", "x", DIM, 4.5)


def _draw_curves(axes: Axes, result: Result) -> None:
    """Every loss that was looked at; what is far worse than most is drawn at the edge."""
    metric = result.metric
    losses = [loss for curve in result.curves.values() for _, loss in curve if drawable(loss)]
    scale = "log" if wide(losses) and not metric.maximize else "linear"
    top = _top(result, losses, scale == "log")
    lines: dict[int, list[tuple[float, float]]] = {
        arm: [
            (level, metric.value(min(loss, top) if drawable(loss) else top))
            for level, loss in curve
        ]
        for arm, curve in result.curves.items()
    }
    last = {arm: line[-1] for arm, line in lines.items()}
    worst = metric.value(top)
    last = {arm: (failure.pull.upto, worst) for arm, failure in result.failures.items()} | last
    many = len(last) > MANY
    paths = [line for arm, line in lines.items() if arm != result.arm]
    if many:  # a path takes matplotlib as long as its points; with nan between, lines share one
        paths = [
            [point for line in paths[begin::MANY] for point in (*line, (nan, nan))]
            for begin in range(MANY)
        ]
    others = LineCollection(paths, colors=PLAIN, linewidths=0.8, alpha=0.5, rasterized=many)
    axes.add_collection(others, autolim=False)
    beyond = BELOW if metric.maximize else ABOVE
    ends: dict[_End, list[tuple[float, float]]] = {}
    for arm in last:
        if arm == result.arm:
            continue
        final = result.curves[arm][-1][1] if arm in result.curves else top
        out = arm in result.failures or not drawable(final)
        ends.setdefault(OUT if out else beyond if final > top else DROPPED, []).append(last[arm])
    if result.arm is not None:
        label = f"arm {result.arm}, recommended"
        (own,) = axes.plot(*zip(*lines[result.arm], strict=True), "o-", label=label)
        own.set(color=ACCENT, lw=2.2, ms=6, markevery=[-1], zorder=4, clip_on=False)
    for end in (DROPPED, beyond, OUT):
        if end in ends:
            (marks,) = axes.plot(*zip(*ends[end], strict=True), end.marker, label=end.label)
            marks.set(color=end.colour, ms=end.size, zorder=3, clip_on=False, rasterized=many)
    low = min([top, *losses])
    if scale == "log":
        margin = 10 ** (0.05 * (log10(top) - log10(low)))  # their ratio may overflow
        axes.set_ylim(low / margin, top * margin)
        log(axes, "y")
    else:
        margin = 0.05 * (top - low) or 0.05 * abs(top) or 1.0
        axes.set_ylim(*sorted(map(metric.value, (low - margin, top + margin))))
    levels = [[level for level, _ in curve] for curve in result.curves.values()]
    _name_levels(axes, levels, {failure.pull.upto for failure in result.failures.values()})
    axes.set(xlabel="pulls of an arm", ylabel=metric.label)
    axes.yaxis.label.set_parse_math(False)  # its name comes from users
    if ends:
        corner = "lower right" if metric.maximize else "upper right"  # few curves end there
        framed_legend(axes, loc=corner, fontsize="small")


def _top(result: Result, losses: Sequence[float], logarithmic: bool) -> float:
    """Where the scale ends: a third above where the better three quarters of all arms were.

    Arms that do very badly would otherwise press all others into one line.
    """
    if not losses:
        return 1.0
    highest = {
        arm: max((loss for _, loss in curve if drawable(loss)), default=inf)
        for arm, curve in result.curves.items()
    }
    most = sorted(highest.values())[3 * (len(highest) - 1) // 4]
    low = min(losses)
    top = most + (most - low) / 3
    if logarithmic and most < inf:
        power = 4 * log10(most) - log10(low)
        top = 10 ** (min(power, 900) / 3)
    own = low if result.arm is None else highest[result.arm]
    return min(max(losses), max(top, own))


def _name_levels(axes: Axes, seen: Sequence[Sequence[int]], failed: Collection[int]) -> None:
    """Levels as ticks, and above each how many arms came there, where there is room.

    The first and the last level are named first, then those at which the most arms ended.
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
