"""A search while it goes on: a line on the terminal that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf, isfinite
from time import monotonic
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from lastarm.events import Event, Extended, Loss, Pull
from lastarm.ledger import Ledger
from lastarm.ledger.utilisation import Timesheet
from lastarm.policy import Policy
from lastarm.report.notebook import below_the_cell, in_notebook
from lastarm.texts import counted, printable
from lastarm.trainers import Config
from lastarm.trainers.metric import LOSS, Metric

EVERY = 0.1  # seconds between two drawings
WIDE, BAR = 100, 20  # characters of a wide terminal, and of the bar in it
LONGEST_COUNT = "{0}/{0} pulls, 0:00:00 left  "
LONGEST_TIME = "0000000 pulls, 0:00:00 of 0:00:00 left  "
LEAST, MOST_SIGNS = 8, 80  # characters of settings that are worth showing, and at most
NOTEBOOK = 100  # characters, beside the bar and the count


class Told(NamedTuple):
    """What is told of a search while it goes on."""

    policy: str
    rung: str
    arms: str
    level: str
    pulls: int
    budget: int | None  # None: seconds are all that bounds it
    left: str = ""
    loss: str = ""
    busy: str = ""
    settings: str = ""
    metric: Metric = LOSS
    used: float = 0.0  # the share of the budget, or of the seconds

    @property
    def counted(self) -> str:
        """The pulls of the budget, and the time left."""
        if self.budget is None:
            return f"{self.pulls} pulls, {self.left} left"
        figures = f"{self.pulls:>{len(f'{self.budget}')}}/{self.budget} pulls"
        return figures + (f", {self.left} left" if self.left else "")

    def fitted(self, width: int) -> tuple[str, str]:
        """What stands before and after the bar and the count, which leave `width` characters.

        The settings are cut off first. Then the other parts are left out, until all of them fit.

        >>> told = Told("asha", "rung 2", "9 arms", "27", 5, 99, "0:01:00", "0.25", "", "lr=0.1")
        >>> told.fitted(90)
        ('asha: rung 2, 9 arms to 27', ', lowest loss 0.25 (lr=0.1)')
        >>> told.fitted(36)
        ('rung 2, 9 arms', ', loss 0.25 (lr=0.1)')
        >>> told.fitted(5)
        ('', '')
        """
        loss = self.loss and f", {self.metric.label} {self.loss}"
        busy = self.busy and f", workers busy {self.busy}"
        long = (self.loss and f", {self.metric.best} {self.loss}") + busy
        least = min(LEAST, cell_len(self.settings))
        for before, after in (
            (f"{self.policy}: {self.rung}, {self.arms} to {self.level}", long),
            (f"{self.rung}, {self.arms}", long),
            (f"{self.rung}, {self.arms}", loss + busy),
            (f"{self.rung}, {self.arms}", loss),
            (self.rung, loss),
        ):
            room = width - cell_len(before) - cell_len(after) - 4  # a space before, and brackets
            if room >= least:
                settings = self.settings and f" ({_cut(self.settings, room)})"
                return before, after + settings
        fitting = [after for after in (long, loss) if cell_len(after) <= width]
        return "", fitting[0] if fitting else ""


def _cut(text: str, width: int) -> str:
    """The text, or as much of it as there is room for."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


class _Terminal(Console):
    """Standard error. If it is closed meanwhile, nothing more is drawn, and the search goes on."""

    def on_broken_pipe(self) -> None:
        """Do without."""
        self.quiet = True


@contextmanager
def shown(
    policy: Policy, configs: Sequence[Config], sheet: Timesheet, metric: Metric = LOSS
) -> Iterator[Callable[[Event], None]]:
    """Draw the rung, the arms left in it, pulls of the budget, the best so far and the time left.

    For several workers it also says how busy they are, from `sheet`. It is drawn on standard
    error, or below the cell of a notebook, and wiped away at the end.
    """
    if in_notebook():
        with below_the_cell() as line:
            yield _Watch(policy, configs, sheet, lambda told: line(*_for_notebook(told)), metric)
        return
    console = _Terminal(stderr=True, highlight=False)
    most = BAR if console.width >= WIDE else BAR // 2
    longest = LONGEST_TIME if _only_seconds(policy) else LONGEST_COUNT.format(policy.budget)
    bar_width = max(4, min(most, console.width - cell_len(longest)))
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=bar_width),
        TextColumn("{task.fields[count]}", markup=False),
    )

    def draw(told: Told) -> None:
        before, after = told.fitted(console.width - bar_width - cell_len(told.counted) - 2)
        bar.update(
            task,
            completed=told.used,
            description=before,
            count=told.counted + after,
        )

    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(policy.name, total=1, count="")
        yield _Watch(policy, configs, sheet, draw, metric)


def _only_seconds(policy: Policy) -> Any | None:
    """The policy, if seconds are its only budget."""
    return policy if getattr(policy, "has_no_budget", False) else None


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _for_notebook(told: Told) -> tuple[float, str, str]:
    """The share that is done, and what stands before and after the bar: a cell is wide."""
    before, after = told.fitted(NOTEBOOK)
    return told.used, before, f"{told.counted}{after}"


@dataclass
class _Watch:
    """Folds the events into what is drawn, no more often than an eye can follow."""

    policy: Policy
    configs: Sequence[Config]
    sheet: Timesheet
    draw: Callable[[Told], object]
    metric: Metric = LOSS
    budget: int = field(init=False)
    began: float = field(default_factory=monotonic)
    ledger: Ledger = field(init=False)
    rungs: dict[int, set[int]] = field(default_factory=dict)  # level → arms started for it
    rung: int = 0
    best: tuple[float, int] = (inf, 0)
    drawn: float = 0.0
    since: tuple[float, int] | None = None  # when training began, and the pulls by then

    def __post_init__(self) -> None:
        self.budget = self.policy.budget
        self.ledger = Ledger(restarts=getattr(self.policy, "restarts", False))

    def __call__(self, event: Event) -> None:
        self.ledger.add(event)
        if isinstance(event, Pull):
            self.rungs.setdefault(event.upto, set()).add(event.arm)
            self.rung = event.upto
        elif isinstance(event, Loss) and isfinite(event.value):
            self.best = min(self.best, (event.value, event.pull.arm))
        elif isinstance(event, Extended):
            self.budget = event.budget
        now = monotonic()
        if now < self.drawn + EVERY:
            return
        self.drawn = now
        pulls = self.ledger.spent.pulls
        if self.sheet.began:
            self.since = self.since or (now, pulls)
        number = sorted(self.rungs).index(self.rung) + 1 if self.rungs else 0
        arms = len(self.rungs.get(self.rung, ()))
        workers = self.sheet.utilisation
        used, left = self._used_and_left(now, pulls)
        self.draw(
            Told(
                policy=self.policy.name,
                rung=f"rung {number}",
                arms=counted(arms, "arm"),
                level=f"{self.rung:,}",
                pulls=pulls,
                budget=None if _only_seconds(self.policy) else self.budget,
                left=left,
                loss="" if self.best[0] == inf else f"{self.metric.value(self.best[0]):.4g}",
                busy=f"{100 * workers.share:.0f} %" if workers and workers.workers > 1 else "",
                settings="" if self.best[0] == inf else self._settings(self.best[1]),
                metric=self.metric,
                used=used,
            )
        )

    def _used_and_left(self, now: float, pulls: int) -> tuple[float, str]:
        """The share of the budget that is used, and the time that is left."""
        if timed := _only_seconds(self.policy):
            spent = self.ledger.spent  # of earlier runs, too
            worked = (spent.train_seconds + spent.loss_seconds) / timed.at_once
            seconds = timed.seconds or inf
            gone = min(seconds, max(worked, now - self.began))
            return gone / seconds, f"{_clock(seconds - gone)} of {_clock(seconds)}"
        since, before = self.since or (now, pulls)
        if pulls <= before:
            return pulls / self.budget, ""
        left = (now - since) * (self.budget - pulls) / (pulls - before)
        return pulls / self.budget, _clock(left)

    def _settings(self, arm: int) -> str:
        settings = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.configs[arm].items()
        )
        return printable(settings)[:MOST_SIGNS]
