"""Result: what a search gives back, made from its ledger in one place.

Printing a result, comparing it and reading it need nothing but this file. Figures, pages, tables
and exports are made by `lastarm.report`, a layer above, which is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from lastarm.errors import InvalidArgument, listed
from lastarm.events import Event, Failure, Opened, Pull
from lastarm.journal.header import metric_of
from lastarm.journal.sanity import require_sane
from lastarm.ledger import CodeChange, Ledger, LevelCost, Spent, Stretch, Utilisation
from lastarm.ledger.ledger import Curves, causes
from lastarm.policies.named import facts_of
from lastarm.policy import lowest
from lastarm.texts import clean, counted, printable, short
from lastarm.trainers import Config, Maximized, arm_seed
from lastarm.trainers.metric import LOSS, Metric
from lastarm.trainers.protocol import known_resource

if TYPE_CHECKING:
    from lastarm.report.figures.plots import Plots

MOST_SHOWN = 10
MOST_SETTINGS, MOST_SIGNS = 40, 200  # that a table has room for
MOST_LOOKED_AT = 1000  # arms, for the names of their settings


def _report(part: str) -> Any:
    """A part of the report. This is the only place that imports a layer above its own."""
    return importlib.import_module(f"lastarm.report.{part}")


class Standing(NamedTuple):
    """Where an arm stands: its pulls, its latest loss (inf if not finite), its error if any."""

    arm: int
    pulls: int
    loss: float
    error: str


class Winner(NamedTuple):
    """What trained the recommended arm: its trainer and its seed.

    If the trainer has its own `save`, there is also the `state` that this takes, if it is known.
    """

    trainer: Any
    seed: int
    state: Any

    @classmethod
    def of(cls, trainer: Any, state: Any, seed: int, found: Pull) -> Self:
        """That of the arm that was found in a search with this seed."""
        own = state if hasattr(trainer, "save") else None
        return cls(trainer, arm_seed(seed, found.arm), own)


def unwrapped(trainer: Any, state: Any) -> Any:
    """The user's part of a state; None stays None."""
    unwraps = state is not None and hasattr(trainer, "unwrap")
    return trainer.unwrap(state) if unwraps else state


@dataclass(frozen=True)
class Result:
    """The recommended arm and what finding it took; printed, a table of the best arms.

    While no arm has a finite loss, `arm`, `config`, `level` and `loss` are None. If the search was
    stopped before its end, the recommendation is the arm with the lowest latest loss, and running
    the same line again resumes it.
    """

    arm: int | None
    """The number of the recommended arm."""
    config: Config | None
    """Its hyperparameters."""
    level: int | None
    """How many pulls it had when it had `loss`."""
    loss: float | None
    """Its loss at that level."""
    test_loss: float | None
    """Its loss on test data, if the trainer has a `test`."""
    complete: bool
    """Whether the policy came to its end."""
    spent: Spent
    """What the search took: pulls, observations, seconds."""
    digest: str
    """The answer in one string: the same for any order of finishing, workers and times."""
    curves: Curves = field(repr=False)
    """Arm → its observations in order, each (level, loss). A view, which makes a curve when it is
    asked for; `dict(result.curves)` is all of them."""
    failures: dict[int, Failure] = field(repr=False)
    """Arm → why it failed."""
    metrics: dict[int, dict[int, Mapping[str, Any]]] = field(repr=False, default_factory=dict)
    """Arm → level → the metrics that the trainer gave beside the loss."""
    configs: Sequence[Config] = field(repr=False, default=())
    """The hyperparameters of every arm, by its number."""
    rungs: Mapping[int, LevelCost] = field(repr=False, default_factory=dict)
    """Level → what it took to bring arms there."""
    best_so_far: Sequence[tuple[int, float]] = field(repr=False, default=())
    """(pulls by then, lowest loss so far), each time that the lowest loss fell."""
    policy: Mapping[str, Any] = field(repr=False, default_factory=dict)
    """The policy's name and arguments, as a journal holds them."""
    space: Mapping[str, Any] = field(repr=False, default_factory=dict)
    """What the configs were drawn from, as a journal describes it."""
    metric: Metric = field(repr=False, default=LOSS)
    """What people read in place of a loss: its name, and whether higher is better."""
    resource: str = field(repr=False, default="")
    """What pulls are parts of, if they are no steps: of "rows", a pull is 1 %."""
    state: Any = field(repr=False, default=None)
    """The trained state of the recommended arm, or None where it is not at hand."""
    winner: Winner | None = field(repr=False, compare=False, default=None)
    """What trained the recommended arm, or None where it is not at hand. It is not pickled with a
    result, because a trainer may hold all data."""
    stopped_by: int | Literal["seconds"] | None = None
    """What stopped the search: the number of a signal, or "seconds" if its time was over."""
    journal: str | None = None
    """The path of the journal."""
    utilisation: Utilisation | None = None
    """How busy the workers of this session were; None if nothing was performed in it."""
    budget: int | None = None
    """The largest budget that the search was given; None if it had only seconds."""
    stretches: Sequence[Stretch] = field(repr=False, default=())
    """With a journal: what the search came to with each of its budgets."""
    code_changes: Sequence[CodeChange] = field(repr=False, default=())
    """With a journal: from which events on the user's code was another than before. One answer, as
    of an undisturbed search, is promised only if there are none."""
    nothing_trained: bool = field(repr=False, default=False)
    """Whether everything was in the journal already, so that this call trained nothing."""
    old_journal: str | None = field(repr=False, default=None)
    """With `fresh=True`: the path of the journal that was there before, if there was one."""

    @classmethod
    def of(cls, events: Iterable[Event], *, journal: str | None = None) -> Self:
        """The result that the events of a journal tell. Nothing in them is executed or loaded.

        While the search has not ended, the recommendation is the arm with the lowest latest loss;
        with recommend="best", the best state that was seen.

        :param events: all events in their order, as `lastarm.journal.read` gives them.
        :param journal: the path of the journal that they are from.

        >>> from lastarm.events import Loss
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
        latest = {arm: at for arm, at in ledger.curves.latest().items() if arm not in out}
        if closed and closed.arm in latest and closed.upto in dict(ledger.curves[closed.arm]):
            found = Pull(closed.arm, closed.upto)
        else:
            closed = None  # the search has not ended, or lastarm did not write this journal
            arm = lowest({arm: loss for arm, (_, loss) in latest.items()})
            found = None if arm is None else Pull(arm, latest[arm][0])
            if opened.policy.get("recommend") == "best":
                found = ledger.best()
        configs: dict[int, Config] = {
            event.arm: event.config
            for event in events
            if isinstance(event, Pull) and event.config is not None
        }
        last = max([*configs, *ledger.curves, *ledger.failures], default=-1)
        return cls.from_ledger(
            ledger,
            found,
            complete=closed is not None,
            configs=[configs.get(arm, {}) for arm in range(last + 1)],
            policy=opened.policy,
            space=opened.space,
            metric=metric_of(opened),
            resource=known_resource(opened.trainer.get("resource")),
            journal=journal,
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

        Every result is made here.

        :param ledger: the events of the search.
        :param found: the recommended arm and the level at which it is meant.
        :param complete: whether the policy came to its end.
        :param configs: the hyperparameters of every arm, by its number.
        :param budget: that of a search without a journal; a journal names its own.
        :param known: other fields that a ledger does not hold.
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
            code_changes=ledger.code_changes,
            budget=stretches[-1].budget if stretches else budget,
            **known,
        )

    @property
    def maximized(self) -> bool:
        """Whether losses are the negatives of the figure that is compared."""
        return self.metric.maximize

    @property
    def never_tried(self) -> int:
        """How many of the arms that were asked for have not been looked at, nor failed.

        If `arms` was left out, there are none of these.
        """
        arms = self.policy.get("arms")
        counted = facts_of(str(self.policy.get("name"))).counts_arms
        if not isinstance(arms, int) or not counted or self.policy.get("open_ended"):
            return 0
        return max(0, arms - len(self.curves.keys() | self.failures.keys()))

    def refit(self) -> Any:
        """A model with the recommended config that has learnt from all rows, also VAL and TEST.

        It has as many pulls as the recommended arm had at its `level`, and is the same every time.
        With folds, this is the one model to use: the `state` has a model for each fold. The
        trainer must be an `Estimator`, or have an `on_all_rows` of its own.

        :returns: the fitted estimator.
        :raises InvalidArgument: if there is no such trainer, or no arm is recommended.
        """
        if self.arm is None:
            raise InvalidArgument("no arm is recommended yet, so there is none to train.")
        if self.winner is None:
            raise InvalidArgument(
                "this result is without its trainer, which has the rows to learn from. Use "
                f"lastarm.load({self.journal or 'JOURNAL'!r}, trainer=…), with the trainer of the "
                "search."
            )
        trainer, seed, _ = self.winner
        if not hasattr(trainer, "on_all_rows"):
            own = trainer.trainer if isinstance(trainer, Maximized) else trainer
            raise InvalidArgument(
                f"{type(own).__qualname__} cannot train a model on all rows, because it has no "
                "on_all_rows(config, seed, pulls). Use an Estimator, give the trainer such a "
                "method, or train a model with `result.config` yourself."
            )
        return trainer.on_all_rows(self.config, seed, self.level)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "winner": None}

    def as_dict(self) -> dict[str, Any]:
        """The answer as one flat object, as the command prints it.

        If the loss has a name of its own, the figure is there under that name, too.
        """
        spent = {name: getattr(self.spent, name) for name in Spent.__slots__}
        answer = ("arm", "config", "level", "loss", "test_loss", "complete", "digest")
        busy = self.utilisation.as_dict() if self.utilisation else {}
        changes = {"code_changes": [asdict(change) for change in self.code_changes]}
        found = {name: getattr(self, name) for name in answer} | changes | spent | busy
        losses = {"loss": self.loss, "test_loss": self.test_loss}
        return found | self.metric.beside(losses, found)

    @property
    def plot(self) -> Plots:
        """Its figures, by matplotlib: curves, rungs, spending, importance, policies compared."""
        plots: Plots = _report("figures.plots").Plots(self)
        return plots

    def to_dataframe(self, *, curves: bool = False) -> Any:
        """A pandas DataFrame with a row for each arm that was pulled, or for each observation.

        The columns are those of `arms.csv`: the arm, whether it is recommended, the pulls it had,
        its latest loss, its error if it failed, all its losses with their levels, and its settings
        by their names, and what the trainer told beside its latest loss. If the loss has a name of
        its own, such as `roc_auc`, there is a column with the figure, too. A setting with the name
        of another column becomes `param_` and its name, and a metric `metric_` and its name.

        :param curves: whether to give a row for each observation instead, with the arm, the level,
            the loss and the metrics.
        """
        return _report("exports.tables").dataframe(self, curves=curves)

    def to_optuna(
        self, storage: Any = None, name: str | None = None, *, level: int | None = None
    ) -> Any:
        """An Optuna study with a trial for each arm.

        The arms that came the furthest, and the recommended one, are COMPLETE. Those that were
        left behind are PRUNED. Those that failed or diverged are FAIL.

        :param storage: a storage of Optuna, or its URL; left out, the study is in memory.
        :param name: the name of the study.
        :param level: make every arm that came to this level COMPLETE, with its loss there.
            Optuna's importances, slices and parallel coordinates look at complete trials only. An
            arm that went past the level without a look, as in an extended search, has the next
            loss that was seen, and its `compared_at` says after how many pulls that was.
        """
        return _report("exports.optuna").study_of(self, storage, name, level)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the search as one page of HTML, as `lastarm report` does, and return its path.

        Without a journal, the page does not say who worked when.

        :param path: the file to write. An earlier report there is replaced, another file is not.
        """
        written: Path = _report("page.html").report_of(self, path)
        return written

    def _repr_html_(self) -> str:
        """What a notebook shows: the answer, the best arms and the picture of all curves.

        Names and values are shown as text. Without matplotlib there is no picture.
        """
        answer, *costs = map(_as_html, self._sentences())
        (head, *body), more = self._rows()
        try:
            curves = _report("figures.plots").curves_as_svg(self)
        except ImportError:
            curves = ""
        return "".join(
            [
                f"<div>{'<br>'.join([f'<b>{answer}</b>', *costs])}",
                f"<table><thead>{_as_row(head, 'th')}</thead><tbody>",
                *(_as_row(cells, "td") for cells in body),
                f"</tbody></table>{'<br>'.join(map(_as_html, more))}<div>{curves}</div></div>",
            ]
        )

    def causes(self) -> dict[int, str]:
        """Why each arm that is out of the race is out: its error, or that its loss diverged."""
        return causes(self.curves, self.failures)

    def standings(self) -> list[Standing]:
        """Where each arm that was pulled stands, by the number of the arm."""
        found = {
            arm: Standing(arm, level, loss if isfinite(loss) else inf, "")
            for arm, (level, loss) in self.curves.latest().items()
        }
        for arm, failure in self.failures.items():
            found[arm] = Standing(arm, failure.pull.upto, inf, failure.error)
        return [found[arm] for arm in sorted(found)]

    def told_beside(self, arm: int, level: int, loss: float) -> dict[str, Any]:
        """What the trainer told of an arm beside a loss, by name.

        The figure that arms are compared by is not among it, also if the trainer tells it twice.

        :param arm: the number of the arm.
        :param level: how many pulls it had.
        :param loss: its loss then.
        """
        told = self.metrics.get(arm, {}).get(level)
        return self.metric.without_itself(told, loss) if told else {}

    def remarks(self) -> list[str]:
        """What to know: pulls that are no steps, code that changed, budget that was of no use."""
        said = ["A pull is 1 % of the rows."] if self.resource == "rows" else []
        said += [
            f"From event {change.event:,} of the journal on, after "
            f"{counted(change.pulls, 'pull')}, the code was different: "
            f"{clean(listed(list(change.names)))}. The losses before that are of the earlier code."
            for change in self.code_changes
        ]
        said += self.about_this_call()
        for before, now in pairwise(self.by_stretch()):
            if now["complete"] and not now["pulls"]:
                said.append(
                    f"The budget of {now['budget']:,} changed nothing: with {before['budget']:,} "
                    "there was nothing left to do, or the next step needs still more."
                )
            losses = before["loss"], now["loss"]
            if None not in losses and losses[0] < losses[1]:
                better, worse = self.metric.apart(*losses)
                said.append(
                    f"The budget of {now['budget']:,} led to a {self.metric.worse} "
                    f"{self.metric.label} than that of {before['budget']:,}: {worse} instead of "
                    f"{better}. Its arms get worse with "
                    'more training. Begin such a search with recommend="best" (--recommend best), '
                    "which returns the best state that was seen."
                )
        return said

    def about_this_call(self) -> list[str]:
        """Whether everything was in the journal, and what became of an older one."""
        said = []
        if self.nothing_trained:
            said.append(f"Everything was in the journal {self.journal}: nothing was trained.")
        if self.old_journal:
            said.append(f"The journal that was there before is now {self.old_journal}.")
        return said

    def by_stretch(self) -> list[dict[str, Any]]:
        """What the search spent with each of its budgets, and its answer then, if it had one."""
        sums = [*(stretch.before for stretch in self.stretches), self.spent]
        rows: list[dict[str, Any]] = [
            {
                "budget": stretch.budget,
                "pulls": after.pulls - before.pulls,
                "observations": after.observations - before.observations,
                "repeated": after.repeated - before.repeated,
                "complete": closed is not None,
                "arm": closed and closed.arm,
                "level": closed and closed.upto,
                "loss": closed and dict(self.curves.get(closed.arm, [])).get(closed.upto),
                "test_loss": closed and closed.test_loss,
            }
            for stretch, (before, after) in zip(self.stretches, pairwise(sums), strict=True)
            for closed in [stretch.closed]
        ]
        losses = ("loss", "test_loss")
        return [
            row | self.metric.beside({name: row[name] for name in losses}, row) for row in rows
        ]

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

    def _sentences(self) -> list[str]:
        """The answer, then what it took."""
        if self.arm is None:
            answer = "No arm has a finite loss so far."
        else:
            assert self.loss is not None
            tested = "" if self.test_loss is None else f", test {self.metric.said(self.test_loss)}"
            answer = f"Arm {self.arm} is recommended: {self.metric.said(self.loss)}{tested}, "
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
            self.standings(),
            key=lambda at: (at.arm != self.arm, -at.pulls * (at.loss < inf), at.loss, at.arm),
        )
        # Arms of a conditional space have other settings than the best one.
        some = ranked[:MOST_LOOKED_AT] if self.configs else []
        names = list(dict.fromkeys(name for at in some for name in self.configs[at.arm]))
        names, unnamed = names[:MOST_SETTINGS], len(names[MOST_SETTINGS:])
        head = ["arm", "pulls", self.metric.label]
        rows = [[*head, *(clean(name, MOST_SIGNS) for name in names)]] + [
            [
                f"{arm}",
                f"{upto:,}",
                clean(error.partition(":")[0], MOST_SIGNS) if error else self.metric.figure(loss),
                *(short(self.configs[arm].get(name, "")) for name in names),
            ]
            for arm, upto, loss, error in ranked[:MOST_SHOWN]
        ]
        unseen = len(ranked) - MOST_SHOWN
        more = [f"… and {unseen:,} more arms"] if unseen > 0 else []
        more += [f"… and {unnamed:,} more settings, in `configs`"] if unnamed else []
        more += self.remarks()
        if not self.complete:
            if self.never_tried:
                more.append(
                    f"Of {self.policy['arms']:,} arms, {self.never_tried:,} were never tried."
                )
            how = "It has no journal, so running it again starts over."
            if self.journal is not None:
                how = f"Run the same again, with the journal {self.journal}, to resume it."
            more.append(f"Stopped before the end. {how}")
        return rows, more


def _as_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_as_html(cell)}</{tag}>' for cell in cells)}</tr>"


def _as_html(text: str) -> str:
    return escape(printable(text))
