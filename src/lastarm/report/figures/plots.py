"""The figures of a search, for papers and notebooks: drawn by matplotlib into any axes."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from math import nan

from lastarm.errors import InvalidArgument
from lastarm.plain import short
from lastarm.report.figures.drawing import HUGE, Axes, MaxNLocator, framed_legend, house, log, wide
from lastarm.report.figures.learning_curves import draw_curves
from lastarm.report.figures.palette import ACCENT, DIM, GREY, LOOKS, PALE, PLAIN, Look
from lastarm.report.figures.steps import reached_by, steps_of
from lastarm.report.importance import importance
from lastarm.report.seen import Seen

MOST_BARS, FEW_BARS = 12, 4  # fewer than that leave room below


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

    Each is drawn into the axes that it is given, in the caller's style, or else into a figure of
    its own by pyplot, in the house's; and gives the axes back, to be changed and saved. Nothing is
    shown. An axis is logarithmic where the numbers on it are far apart.
    """

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def curves(self, ax: Axes | None = None) -> Axes:
        """The losses of every arm against its pulls, up to where it was dropped.

        Above the axes is how many arms came to each level, or past it.
        """
        with _drawing(ax) as axes:
            draw_curves(axes, self._seen)
        return axes

    def rungs(self, ax: Axes | None = None) -> Axes:
        """How the arms became fewer: a bar a level, with the pulls and the time that it took.

        Where there are many levels, those from one power of 2 to the next share a bar. An arm that
        was brought past a level without a stop there, as in a search that was extended, counts
        there too, as one that went on.
        """
        steps = steps_of(self._seen, most=MOST_BARS)
        with _drawing(ax) as axes:
            left = [0] * len(steps)
            for label, colour, part in (
                ("went on", PLAIN, [step.went_on for step in steps]),
                ("recommended", ACCENT, [step.recommended for step in steps]),
                ("left behind", PALE, [step.left_behind for step in steps]),
                ("failed", DIM, [step.failed for step in steps]),
            ):
                if any(part):
                    axes.barh(range(len(steps)), part, left=left, color=colour, label=label)
                left = [begun + more for begun, more in zip(left, part, strict=True)]
            most = max([1, *left])
            for place, (step, arms) in enumerate(zip(steps, left, strict=True)):
                seconds = step.cost.train_seconds + step.cost.loss_seconds
                took = f"{step.cost.pulls:,} pulls" + (f", {_time(seconds)}" if seconds else "")
                axes.text(arms + 0.02 * most, place, took, va="center", fontsize="small")
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
        """
        seen = self._seen
        reached = reached_by(seen)
        arms_with = Counter(reached.values())
        pulls = sorted(arms_with, reverse=True)
        places = list(accumulate((arms_with[level] for level in pulls), initial=0))
        arms, furthest = len(reached), max(pulls, default=0)
        with _drawing(ax) as axes:
            label = f"{seen.spent.pulls:,} pulls spent"
            axes.stairs(pulls, places, fill=True, color=PLAIN, label=label)
            if seen.arm is not None:
                own, label = reached[seen.arm], f"arm {seen.arm}, recommended"
                place = places[pulls.index(own)]
                axes.stairs([own], [place, place + 1], fill=True, color=ACCENT, label=label)
            label = f"{arms * furthest:,} for all to go as far"
            axes.stairs([furthest], [0, arms], ls="--", lw=1.2, color=DIM, label=label)
            axes.set(xlabel="arms, by their pulls", ylabel="pulls of the arm", axisbelow=True)
            axes.set_xlim(0, max(1, arms) * 1.02)
            axes.set_ylim(0, max(1, furthest) * 1.04)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            looking = f"{seen.spent.observations:,} looks at a loss\n"
            looking += f"{_time(seen.spent.train_seconds)} training, "
            looking += f"{_time(seen.spent.loss_seconds)} looking"
            framed_legend(axes, loc="center", title=looking)
        return axes

    def importance(self, ax: Axes | None = None) -> Axes:
        """How much of the arms' places each hyperparameter explains alone, by estimate."""
        shares = importance(self._seen.configs, self._seen.curves)
        shown = list(shares.items())[:MOST_BARS]
        with _drawing(ax) as axes:
            axes.barh(range(len(shown)), [share for _, share in shown], color=PLAIN)
            for place, (_, share) in enumerate(shown):
                axes.text(share + 0.01, place, f"{share:.2f}", va="center", fontsize="small")
            names = [short(name) for name, _ in shown]
            axes.set_yticks(range(len(shown)), names, parse_math=False)  # names are anybody's
            axes.set_ylim(max(len(shown), FEW_BARS) - 0.5, -0.5)
            axes.set_xlim(0, 1.1)
            axes.grid(visible=False, axis="y")
            axes.set(xlabel="variance explained alone (estimate)", axisbelow=True)
        return axes

    def policies(
        self, others: Mapping[str, Seen], *, name: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """The lowest loss so far against the pulls spent, of this search and of others.

        They are named by the keys of `others`, and this one by `name` or else by its policy. The
        mark at the end is the loss of what is recommended. It is above the line where a loss rose
        with more training: recommended is an arm as it is now, unless recommend="best" was asked.
        """
        policy = str(self._seen.policy.get("name", "this search"))
        own = name or (LOOKS[policy].label if policy in LOOKS else policy)
        if not isinstance(others, Mapping) or own in others:
            raise InvalidArgument(
                f"others={short(others)} will not do: give a dict of names and results, none of "
                f"them named {own!r} as this one is, or give this one another `name`."
            )
        results = {own: self._seen, **others}
        with _drawing(ax) as axes:
            for (label, seen), look in zip(results.items(), _looks(results.values()), strict=True):
                pulls = [at for at, _ in seen.best_so_far] + [seen.spent.pulls]
                losses = [_bounded(loss) for _, loss in seen.best_so_far]
                losses += losses[-1:] or [nan]
                (line,) = axes.step(pulls, losses, where="post", label=f"\u200a{short(label)}")
                line.set(color=look.colour, ls=look.dashes, lw=look.width)
                end = losses[-1] if seen.loss is None else _bounded(seen.loss)
                axes.vlines(pulls[-1], losses[-1], end, color=look.colour, ls=":", lw=look.width)
                axes.plot(pulls[-1], end, look.marker or "o", color=look.colour, ms=6)
            axes.set(xlabel="pulls spent, all arms together", ylabel="lowest loss so far")
            points = [point for seen in results.values() for point in seen.best_so_far]
            ends = [seen.loss for seen in results.values() if seen.loss is not None]
            tall = wide([*(loss for _, loss in points), *ends])
            log(axes, "x" * wide([at for at, _ in points]) + "y" * tall)
            framed_legend(axes)
        return axes


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


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


def _looks(results: Collection[Seen]) -> Iterator[Look]:
    """How each is drawn: as its policy is elsewhere, if no other before it was."""
    policies = [str(seen.policy.get("name")) for seen in results]
    free = iter([look for policy, look in LOOKS.items() if policy not in policies])
    known = dict(LOOKS)
    for policy in policies:
        yield known.pop(policy) if policy in known else next(free, GREY)
