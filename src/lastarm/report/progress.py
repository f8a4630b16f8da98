"""A search while it goes on: a line on the terminal that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf, isfinite
from time import monotonic
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from lastarm.events import Event, Extended, Loss, Pull
from lastarm.ledger import Ledger
from lastarm.ledger.utilisation import Timesheet
from lastarm.plain import printable
from lastarm.policy import Policy
from lastarm.trainers import Config

EVERY = 0.1  # seconds between two drawings


@contextmanager
def shown(
    policy: Policy, configs: Sequence[Config], sheet: Timesheet
) -> Iterator[Callable[[Event], None]]:
    """Draw the rung, the arms left in it, pulls of the budget, the best so far and the time left.

    For several workers it also says how busy they are, from `sheet`. It is drawn on standard
    error, and wiped away at the end.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("pulls{task.fields[left]}{task.fields[busy]}{task.fields[best]}"),
    )
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(policy.name, total=policy.budget, left="", busy="", best="")
        yield _Watch(policy, configs, sheet, lambda **fields: bar.update(task, **fields))


@dataclass
class _Watch:
    """Folds the events into what is drawn, no more often than an eye can follow."""

    policy: Policy
    configs: Sequence[Config]
    sheet: Timesheet
    update: Callable[..., Any]
    budget: int = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    rungs: dict[int, set[int]] = field(default_factory=dict)  # level → arms started for it
    rung: int = 0
    best: tuple[float, int] = (inf, 0)
    drawn: float = 0.0
    since: tuple[float, int] | None = None  # when training began, and the pulls by then

    def __post_init__(self) -> None:
        self.budget = self.policy.budget

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
        used = self.sheet.utilisation
        self.update(
            completed=pulls,
            total=self.budget,
            description=f"{self.policy.name}: rung {number}, {arms:,} arms to {self.rung:,}",
            left=self._time_left(now, pulls),
            busy=f", workers busy {100 * used.share:.0f} %" if used and used.workers > 1 else "",
            best=self._best_so_far(),
        )

    def _time_left(self, now: float, pulls: int) -> str:
        since, before = self.since or (now, pulls)
        if pulls <= before:
            return ""
        left = timedelta(seconds=round((now - since) * (self.budget - pulls) / (pulls - before)))
        return f", {left} left"

    def _best_so_far(self) -> str:
        loss, arm = self.best
        if loss == inf:
            return ""
        settings = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.configs[arm].items()
        )
        return f", lowest loss {loss:.4g} ({escape(printable(settings)[:80])})"
