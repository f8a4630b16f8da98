"""A search while it goes on: a line on the terminal that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


class _Watch:
    """Folds the events into what is drawn, no more often than an eye can follow."""

    def __init__(
        self,
        policy: Policy,
        configs: Sequence[Config],
        sheet: Timesheet,
        update: Callable[..., Any],
    ) -> None:
        self._sheet = sheet
        self._name = policy.name
        self._budget = policy.budget
        self._configs = configs
        self._update = update
        self._ledger = Ledger()
        self._rungs: dict[int, set[int]] = {}  # level → arms that were started for it
        self._rung = 0
        self._best = (inf, 0)
        self._drawn = 0.0
        self._since: tuple[float, int] | None = None  # when training began, and the pulls by then

    def __call__(self, event: Event) -> None:
        self._ledger.add(event)
        if isinstance(event, Pull):
            self._rungs.setdefault(event.upto, set()).add(event.arm)
            self._rung = event.upto
        elif isinstance(event, Loss) and isfinite(event.value):
            self._best = min(self._best, (event.value, event.pull.arm))
        elif isinstance(event, Extended):
            self._budget = event.budget
        now = monotonic()
        if now < self._drawn + EVERY:
            return
        self._drawn = now
        pulls = self._ledger.spent.pulls
        if self._sheet.began:
            self._since = self._since or (now, pulls)
        rung = sorted(self._rungs).index(self._rung) + 1 if self._rungs else 0
        self._update(
            completed=pulls,
            total=self._budget,
            description=f"{self._name}: rung {rung}, "
            f"{len(self._rungs.get(self._rung, ())):,} arms to {self._rung:,}",
            left=self._time_left(now, pulls),
            busy=self._busy(),
            best=self._best_so_far(),
        )

    def _time_left(self, now: float, pulls: int) -> str:
        since, before = self._since or (now, pulls)
        seconds, done = now - since, pulls - before
        if done <= 0:
            return ""
        left = round(seconds * (self._budget - pulls) / done)
        return f", {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"

    def _busy(self) -> str:
        used = self._sheet.utilisation
        return f", workers busy {100 * used.share:.0f} %" if used and used.workers > 1 else ""

    def _best_so_far(self) -> str:
        loss, arm = self._best
        if loss == inf:
            return ""
        settings = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self._configs[arm].items()
        )
        return f", lowest loss {loss:.4g} ({escape(printable(settings)[:80])})"
