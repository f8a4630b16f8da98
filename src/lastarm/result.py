"""Result: what a search gives back."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lastarm.errors import InvalidArgument
from lastarm.events import Closed, Event, Failure, Opened, Pull
from lastarm.journal import read
from lastarm.journal.sanity import require_sane
from lastarm.ledger import Ledger, LevelCost, Spent, Stretch, Utilisation
from lastarm.plain import short
from lastarm.policy import lowest
from lastarm.report.exports.tables import pulled, renamed
from lastarm.report.extending import remarks
from lastarm.report.phrases import clean, counted
from lastarm.trainers import Config, Maximized

if TYPE_CHECKING:
    from lastarm.report.figures.plots import Plots

MOST_SHOWN = 10
MOST_SETTINGS, MOST_SIGNS = 40, 200  # that a table has room for


@dataclass(frozen=True)
class Result:
    """The recommended arm and what finding it took; printed, a table of the best arms.

    `complete` says that the policy came to its end; if it was stopped before, the recommendation
    is the arm with the lowest latest loss, and running the same line again goes on. Without any
    finite loss so far, `arm`, `config` and `loss` are None. `state` is the arm's trained state, or
    None where it is not at hand. `level` is how many pulls it had when it had that loss.
    `rungs` is what it took to bring arms to each level. `best_so_far` is (pulls by then, lowest
    loss so far), each time that it fell. `policy` and `space` are described as in a journal. If
    `maximized`, losses are the negatives of what the trainer gave.
    `utilisation` is how busy the workers were, of what was performed here and not before; None, if
    nothing was. `budget` is the latest that the search was given, and of a search with a journal
    `stretches` are what it came to with each.
    """

    arm: int | None
    config: Config | None
    level: int | None
    loss: float | None
    test_loss: float | None
    complete: bool
    spent: Spent
    digest: str
    curves: dict[int, list[tuple[int, float]]] = field(repr=False)
    failures: dict[int, Failure] = field(repr=False)
    metrics: dict[int, dict[int, Mapping[str, Any]]] = field(repr=False, default_factory=dict)
    configs: Sequence[Config] = field(repr=False, default=())
    rungs: Mapping[int, LevelCost] = field(repr=False, default_factory=dict)
    best_so_far: Sequence[tuple[int, float]] = field(repr=False, default=())
    policy: Mapping[str, Any] = field(repr=False, default_factory=dict)
    space: Mapping[str, Any] = field(repr=False, default_factory=dict)
    maximized: bool = field(repr=False, default=False)
    state: Any = field(repr=False, default=None)
    stopped_by: int | None = None  # the number of the signal that stopped it
    journal: str | None = None
    utilisation: Utilisation | None = None
    budget: int | None = None
    stretches: Sequence[Stretch] = field(repr=False, default=())

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """What the events of a journal tell: nothing in them is executed, and no state is loaded.

        While the search has not ended, the recommendation is the arm with the lowest latest loss.

        >>> from lastarm.events import Loss, Pull
        >>> pulls = [Pull(arm, upto=4, config={"x": arm}) for arm in (0, 1)]
        >>> result = Result.of([*pulls, Loss(pulls[0], 0.5), Loss(pulls[1], 0.25)])
        >>> result.arm, result.config, result.complete
        (1, {'x': 1}, False)
        """
        events = list(events)
        require_sane(events)
        begun = (event for event in events if isinstance(event, Opened))
        opened = next(begun, Opened(seed=0, policy={}, space={}, trainer={}))
        ledger = Ledger(events)
        out, closed, found = ledger.causes(), ledger.closed, None
        latest = {arm: curve[-1] for arm, curve in ledger.curves.items() if arm not in out}
        if closed and closed.upto not in dict(ledger.curves.get(closed.arm, [])):
            closed = None  # lastarm did not write this journal
        if closed:
            found = Pull(closed.arm, closed.upto)
        elif (arm := lowest({arm: loss for arm, (_, loss) in latest.items()})) is not None:
            found = Pull(arm, latest[arm][0])
        last = max(ledger.configs | ledger.curves | ledger.failures, default=-1)
        return cls.from_ledger(
            ledger,
            found,
            complete=closed is not None,
            configs=[ledger.configs.get(arm, {}) for arm in range(last + 1)],
            policy=opened.policy,
            space=opened.space,
            maximized=opened.trainer.get("kind") == Maximized.__name__,
        )

    @classmethod
    def from_ledger(
        cls,
        ledger: Ledger,
        found: Pull | None,
        *,
        complete: bool,
        configs: Sequence[Config],
        budget: int | None = None,
        **known: Any,
    ) -> Self:
        """What a ledger adds up to, with the arm that was `found` and its level.

        Every result is made here. `known` are the fields that a ledger does not hold. The `budget`
        is that of a search without a journal; a journal names its own.
        """
        arm, level = (found.arm, found.upto) if found else (None, None)
        stretches = ledger.stretches
        return cls(
            arm=arm,
            config=None if arm is None else configs[arm],
            level=level,
            loss=dict(ledger.curves[found.arm])[found.upto] if found else None,
            test_loss=ledger.closed.test_loss if complete and ledger.closed else None,
            complete=complete,
            spent=ledger.spent,
            digest=ledger.digest(arm),
            curves=ledger.curves,
            failures=ledger.failures,
            metrics=ledger.metrics,
            configs=configs,
            rungs=dict(sorted(ledger.rungs.items())),
            best_so_far=ledger.best_so_far,
            stretches=stretches,
            budget=stretches[-1].budget if stretches else budget,
            **known,
        )

    def as_dict(self) -> dict[str, Any]:
        """The answer as one flat object, as the command prints it."""
        spent = {name: getattr(self.spent, name) for name in Spent.__slots__}
        answer = ("arm", "config", "level", "loss", "test_loss", "complete", "digest")
        busy = self.utilisation.as_dict() if self.utilisation else {}
        return {name: getattr(self, name) for name in answer} | spent | busy

    @property
    def plot(self) -> Plots:
        """Its figures, by matplotlib: curves, rungs, spending, importance, policies compared."""
        figures = importlib.import_module(
            "lastarm.report.figures.plots"
        )  # matplotlib takes its time
        plots: Plots = figures.Plots(self)
        return plots

    def to_dataframe(self, *, curves: bool = False) -> Any:
        """A pandas DataFrame with a row for each arm that was pulled; or for each observation.

        Its columns are the arm, its settings by their names, the pulls it had, its latest loss and
        its error, if it failed; or, with `curves`, the arm, the level, the loss observed there and
        the metrics beside it. A setting with the name of another column becomes `param_` and its
        name, and a metric `metric_` and its name.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise InvalidArgument(
                "a DataFrame needs pandas, which is not installed: pip install pandas, or read "
                "`curves` and `configs` as they are."
            ) from None
        own = ("arm", "pulls", "loss", "error")
        if curves:
            return pandas.DataFrame(
                [
                    {"arm": arm, "pulls": upto, "loss": loss}
                    | renamed("metric", self.metrics.get(arm, {}).get(upto, {}), own)
                    for arm, curve in sorted(self.curves.items())
                    for upto, loss in curve
                ]
            )
        return pandas.DataFrame(
            [
                {"arm": arm}
                | renamed("param", self.configs[arm], own)
                | {"pulls": pulls, "loss": loss, "error": error}
                for arm, pulls, loss, error in pulled(self)
            ]
        )

    def to_optuna(
        self, storage: Any = None, name: str | None = None, *, level: int | None = None
    ) -> Any:
        """An Optuna study with a trial an arm, in memory or in a `storage` of Optuna's.

        The arms that came the furthest, and the recommended one, are COMPLETE; those that were
        left behind are PRUNED; those that failed or diverged FAIL. Optuna's importances, slices
        and parallel coordinates look at complete trials only: give a `level`, and every arm that
        came there is COMPLETE with its loss there, so that they have all of these to compare. One
        that went past it without a look, as arms of an extended search may, has the next loss that
        was seen, and its `compared_at` says after how many pulls that was.
        """
        optuna_study = importlib.import_module("lastarm.report.exports.optuna")
        return optuna_study.study_of(self, storage, name, level)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the search as one page of HTML, and give back its path.

        It is what `lastarm report` writes. Without a journal, who worked when is not on it.
        """
        page = importlib.import_module("lastarm.report.page.html")  # most searches need none
        story = importlib.import_module("lastarm.report.page.story")
        closed = None
        if self.complete and self.arm is not None and self.level is not None:
            closed = Closed(self.arm, self.level, self.test_loss)
        if self.journal is not None:
            events = read(self.journal)
        else:
            events = story.remembered(self.curves, self.failures, self.configs, closed)
            if self.policy:
                policy = {**self.policy, "budget": self.budget}
                kind = {"kind": Maximized.__name__} if self.maximized else {}
                events.insert(0, Opened(seed=0, policy=policy, space=self.space, trainer=kind))
        written: Path = page.write_report(
            path,
            events,
            journal=self.journal,
            spent=self.spent,
            utilisation=self.utilisation,
        )
        return written

    def __str__(self) -> str:
        answer, *costs = self._sentences()
        config = self.config or {}
        names = list(config)[:MOST_SETTINGS]
        settings = [f"  {clean(name, MOST_SIGNS)} = {short(config[name])}" for name in names]
        rows, more = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        table = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([answer, *settings, *costs, *table, *more])

    def _repr_html_(self) -> str:
        """What a notebook shows: the answer, the best arms and the picture of all curves."""
        notebook = importlib.import_module("lastarm.report.page.notebook")
        shown: str = notebook.as_html(self, self._sentences(), *self._rows())
        return shown

    @property
    def how_to_resume(self) -> str:
        """What to do to go on with a search that was stopped."""
        if self.journal is None:
            return "It has no journal, so running it again starts over."
        return f"Run the same again, with the journal {self.journal}, to resume."

    def _sentences(self) -> list[str]:
        """The answer, then what it took."""
        if self.arm is None:
            answer = "No arm has a finite loss so far."
        else:
            tested = "" if self.test_loss is None else f", test loss {self.test_loss:.6g}"
            answer = f"Arm {self.arm} is recommended: loss {self.loss:.6g}{tested}, "
            answer += f"after {counted(self.level or 0, 'pull')}"
        spent = self.spent
        return [
            answer,
            f"{counted(spent.pulls, 'pull')}, {counted(spent.observations, 'look')}, "
            f"{spent.train_seconds:.3g} s training, {spent.loss_seconds:.3g} s looking"
            + (f", {spent.repeated:,} pulls repeated" if spent.repeated else ""),
            *([spent.moving] if spent.moving else []),
            *([f"{used}"] if (used := self.utilisation) and used.workers > 1 else []),
        ]

    def _rows(self) -> tuple[list[list[str]], list[str]]:
        """The best arms as cells, after a heading; and what is to be said of the rest."""
        ranked = sorted(
            pulled(self),
            key=lambda row: (row[0] != self.arm, -row[1] if row[2] < inf else 0, row[2], row[0]),
        )
        names = list(self.configs[ranked[0][0]]) if ranked and self.configs else []
        names, unnamed = names[:MOST_SETTINGS], len(names[MOST_SETTINGS:])
        rows = [["arm", "pulls", "loss", *(clean(name, MOST_SIGNS) for name in names)]] + [
            [
                f"{arm}",
                f"{upto:,}",
                clean(error.partition(":")[0], MOST_SIGNS) if error else f"{loss:.6g}",
                *(short(self.configs[arm].get(name, "")) for name in names),
            ]
            for arm, upto, loss, error in ranked[:MOST_SHOWN]
        ]
        unseen = len(ranked) - MOST_SHOWN
        more = [f"… and {unseen:,} more arms"] if unseen > 0 else []
        more += [f"… and {unnamed:,} more settings, in `configs`"] if unnamed else []
        more += remarks(self)
        if not self.complete:
            more.append(f"Stopped before the end. {self.how_to_resume}")
        return rows, more
