"""How a search is prepared, performed and finished. It is wiring only.

What its arguments mean is told in `front_door.py`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, cast

from lastarm.arguments import as_float, whole_number
from lastarm.arguments.other_tools import refuse_unknown
from lastarm.batched import BatchedTrainer, Single, is_batched
from lastarm.checkpoints import Checkpoints
from lastarm.checkpoints.index import Index
from lastarm.errors import (
    AllArmsFailed,
    InvalidArgument,
    JournalError,
    NoTestLoss,
    ReplayDiverged,
    StateNotSaved,
    TrainerChanged,
)
from lastarm.events import Changed, Closed, Event, Loss, Opened, Pull
from lastarm.journal import (
    Journal,
    Unwritten,
    changed_code,
    described_policy,
    header,
    read,
    set_aside,
)
from lastarm.journal.header import budgets_of, header_of
from lastarm.ledger import Ledger
from lastarm.ledger.utilisation import Timesheet
from lastarm.loop import GROUP, run
from lastarm.masking import masked_text
from lastarm.plain import any_repr
from lastarm.policies.named import Picked, choose
from lastarm.policies.parts.as_many import grows
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policy import Extendable, Policy, ahead
from lastarm.policy import fresh as unasked
from lastarm.report.notebook import in_notebook
from lastarm.result import Result, Winner, unwrapped
from lastarm.runners import AnyRunner, Arms, MakeRunner, Runner, chosen_runner
from lastarm.runners.asides import Asides
from lastarm.runners.performer import said
from lastarm.samplers import GaussianProcess, SampledPolicy, Sampler
from lastarm.searching.front_door import search
from lastarm.signals import Stop, stop_on_signals
from lastarm.space import Space, domains, drawn, examples, is_listed, size
from lastarm.space.drawn import Drawn, Replaceable
from lastarm.space.spaces import SHUFFLED
from lastarm.system.offspring import ThisProcess
from lastarm.system.temporary import sweep
from lastarm.trainers import (
    AnyTrainer,
    Config,
    Maximized,
    Trainer,
    arm_seed,
    as_trainer,
    loss_in,
)
from lastarm.trainers.metric import LOSS, UNNAMED, Metric
from lastarm.trainers.protocol import known_resource
from lastarm.trainers.source_code import users_line

AT_FIRST = 64  # arms, whose configs identify a search in which their number grows with the budget


def perform(
    trainer: AnyTrainer | BatchedTrainer[Any, Any],
    space: Space,
    *,
    policy: Policy | str | None,
    arms: int | None,
    budget: int | None,
    max_pulls: int | None,
    runner: AnyRunner,
    workers: int | None,
    journal: str | Path | None,
    fresh: bool,
    checkpoints: Checkpoints | str | Path | bool,
    seed: int,
    sampler: Sampler | None,
    seconds: float | None,
    pull_seconds: float | None,
    retries: int,
    switch_seconds: float | None,
    include: Sequence[Config] | None,
    maximize: bool,
    metric: str | None,
    recommend: Literal["latest", "best"],
    on_event: Callable[[Event], None] | None,
    progress: bool | None,
    watch: bool | Literal["open"],
    others: Mapping[str, Any],
) -> Result:
    """What `search` does: each of its arguments is given."""
    # Prepare: check every argument, choose policy and runner, draw the configs.
    refuse_unknown("search", [*inspect.signature(search).parameters][:-1], others)
    _require_fit(sampler, journal, fresh, maximize, recommend, switch_seconds, on_event)
    _require_watchable(watch, journal)
    batched = is_batched(trainer)
    how = as_trainer(Single(cast(Any, trainer)) if batched else cast(AnyTrainer, trainer))
    own = getattr(how, "shown_as", LOSS)
    shown_as = _shown_as(metric, maximize, own)
    how = Maximized(how) if maximize and not own.maximize else how
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    include = () if include is None else include
    if hasattr(trainer, "expect"):
        trainer.expect(examples(space, include))
    numbers = {"arms": arms, "budget": budget, "max_pulls": max_pulls}
    chosen = choose_as_begun(
        policy,
        numbers,
        journal=None if fresh else journal,
        space=space,
        seed=seed,
        seconds=seconds,
        workers=workers,
        restarts=bool(getattr(how, "restarts", False)),
        horizon=getattr(how, "max_pulls", None),
    )
    sampler = usual_sampler(chosen) if sampler is None else sampler
    policy = _within(chosen.policy, space)
    runner_for = partial(
        chosen_runner,
        runner,
        workers,
        pull_seconds,
        starts_processes=getattr(how, "starts_processes", False),
    )
    make_runner = runner_for(batched=batched)
    configs = _configs_of(policy, space, seed, include)
    if hasattr(how, "choose_way"):
        together = getattr(runner_for(batched=True), "trains_together", False)
        opened = None if fresh else _header_there(journal)
        how.choose_way(configs[:AT_FIRST] if together else [], opened and opened.trainer)
        make_runner = runner_for(batched=getattr(how, "batched", None) is not None)
    prepared = _Prepared(
        trainer=how,
        space=space,
        include=include,
        configs=Replaceable(configs) if sampler else configs,
        seed=seed,
        policy=unasked(policy),
        sampler=sampler,
        recommend=recommend,
        metric=shown_as,
        make_runner=make_runner,
        retries=whole_number("retries", retries, 0, "how often a failed pull is tried again"),
        switch_seconds=switch_seconds,
        seconds=chosen.seconds,
        journal=journal,
        fresh=fresh,
        checkpoints=Checkpoints.of(checkpoints),
    )
    sweep()
    with ExitStack() as stack:
        begun = _begin(prepared, stack, on_event, progress, watch)
        with begun.here:
            _perform(prepared, begun)
            return _finish(prepared, begun)


@dataclass(frozen=True)
class _Prepared:
    """What the arguments of a search stand for, checked. Nothing is opened or trained yet."""

    trainer: Trainer[Any]
    space: Space
    include: Sequence[Config]
    configs: Drawn | Replaceable
    seed: int
    policy: Policy
    sampler: Sampler | None
    recommend: str
    metric: Metric
    make_runner: MakeRunner
    retries: int
    switch_seconds: float | None
    seconds: float
    journal: str | Path | None
    fresh: bool
    checkpoints: Checkpoints | None


@dataclass(frozen=True)
class _Begun:
    """A search under way: what it opened, and what is known of it so far."""

    policy: Policy
    asked: Policy  # the same, or what chooses its configs
    index: Index | None  # of the states that are kept
    runner: Runner
    journal: Journal | Unwritten
    sheet: Timesheet
    stop: Stop
    watchers: Sequence[Callable[[Event], object]]
    ledger: Ledger
    changed: Changed | None = None  # the code, since the journal was written
    old_journal: Path | None = None
    here: ThisProcess = field(default_factory=ThisProcess)

    def count(self, event: Event) -> None:
        """Account for an event, and show it to all who watch."""
        self.ledger.add(event)
        # Simulated workers have a clock of their own.
        self.sheet.add(event, getattr(self.runner, "now", perf_counter()))
        with self.here:
            for watch in self.watchers:
                watch(event)


def _begin(
    prepared: _Prepared,
    stack: ExitStack,
    on_event: Callable[[Event], None] | None,
    progress: bool | None,
    watch: bool | Literal["open"],
) -> _Begun:
    """Open the journal, the checkpoints and the runner; the stack closes them in the end."""
    journal: Journal | Unwritten = Unwritten()
    changed = old_journal = None
    kept = prepared.checkpoints
    page = stack.enter_context(ExitStack())  # it sees how the journal is closed
    if prepared.journal is not None:
        begins_with = _header(prepared)
        if prepared.fresh:
            old_journal = set_aside(Path(prepared.journal), kept.states_of if kept else None)
        journal = stack.enter_context(closing(Journal(prepared.journal, begins_with)))
        if code := changed_code(journal.events, begins_with):
            changed = Changed(code)
            _warn_of_changes(journal, code)
    policy = prepared.policy
    if isinstance(journal, Journal):
        policy = _as_it_began(policy, journal)
        _draw_more(prepared, journal)
    trainer: Any = prepared.trainer
    if hasattr(trainer, "keep_alive"):
        trainer.keep_alive(kept.alive if kept else None)
    if hasattr(trainer, "let_go"):
        stack.callback(trainer.let_go)
    states = Arms(
        trainer,
        prepared.configs,
        prepared.seed,
        switch_seconds=prepared.switch_seconds,
    )
    if kept:
        best = prepared.recommend == "best"
        index = stack.enter_context(
            kept.opened(prepared.trainer, prepared.journal, best=best, seals=journal.seals)
        )
        always = prepared.journal is not None or best
        states = replace(states, index=index, memory=kept.memory, always=always)
    runner = stack.enter_context(closing(prepared.make_runner(states)))
    sheet = Timesheet(runner.free, known=len(journal.events))
    stop = stack.enter_context(stop_on_signals(prepared.seconds))
    watchers: list[Callable[[Event], object]] = []
    if prepared.metric != LOSS:
        watchers.append(partial(_require_one_meaning, prepared.metric))
    asked = _with_sampler(prepared, policy, journal)
    if on_event:
        _tell_logger(on_event, shown_as=prepared.metric, restarts=states.restarts)
        watchers.append(on_event)
        stack.callback(getattr(on_event, "close", lambda: None))
    if states.index:
        watchers.append(states.index.add)
    shown = _Shown(prepared, policy, journal, sheet)
    if watch:
        watchers += shown.on_a_page(page, browse=watch == "open")
    seen = (sys.stderr and sys.stderr.isatty()) or in_notebook()
    if seen if progress is None else progress:
        watchers.append(shown.in_a_line(stack))
    opened = (states.index, runner, journal, sheet, stop, watchers)
    ledger = Ledger(restarts=states.restarts)
    return _Begun(policy, asked, *opened, ledger, changed, old_journal)


def _with_sampler(prepared: _Prepared, policy: Policy, journal: Journal | Unwritten) -> Policy:
    """The policy, which begins arms that the sampler chooses, if there is one."""
    if not prepared.sampler:
        return policy
    return SampledPolicy(
        policy,
        prepared.sampler,
        prepared.space,
        cast(Replaceable, prepared.configs),
        prepared.seed,
        prepared.include,
        {
            event.arm: event.config
            for event in journal.events
            if isinstance(event, Pull) and event.config is not None
        },
    )


def _tell_logger(on_event: Callable[[Event], None], **known: Any) -> None:
    """Tell a logger, which may have no journal to read it in, what it has an attribute for."""
    for name, value in known.items():
        if hasattr(on_event, name):
            setattr(on_event, name, value)


class _Shown(NamedTuple):
    """How a search is shown while it runs. What that takes is loaded when it is asked for."""

    prepared: _Prepared
    policy: Policy
    journal: Journal | Unwritten
    sheet: Timesheet

    def in_a_line(self, stack: ExitStack) -> Callable[[Event], None]:
        """The progress bar, until the stack closes it."""
        bar = importlib.import_module("lastarm.report.progress")  # rich takes time to import
        prepared, policy, sheet = self.prepared, self.policy, self.sheet
        draw: Callable[[Event], None] = stack.enter_context(
            bar.shown(policy, prepared.configs, sheet, prepared.metric)
        )
        return draw

    def on_a_page(self, stack: ExitStack, *, browse: bool) -> list[Callable[[Event], None]]:
        """A page until the stack closes it, and who has to be told of events for that."""
        live = importlib.import_module("lastarm.report.live.at_hand")
        path = self.journal.path if isinstance(self.journal, Journal) else None
        if in_notebook():
            return [stack.enter_context(live.cell_of(_header(self.prepared), path))]
        stack.enter_context(live.page_of(path, browse=browse))
        return []


def _header(prepared: _Prepared) -> Opened:
    return header(
        seed=prepared.seed,
        policy=prepared.policy,
        space=prepared.space,
        # With a larger budget, there may be more arms.
        configs=prepared.configs[:AT_FIRST] if grows(prepared.policy) else prepared.configs,
        trainer=prepared.trainer,
        recommend=prepared.recommend,
        sampler=prepared.sampler,
        metric=prepared.metric,
    )


def _perform(prepared: _Prepared, begun: _Begun) -> None:
    """Run the loop until the policy has come to its end, or the search is stopped."""
    # In a round, no loss decides what is pulled next. What a sampler chooses, each loss decides.
    in_rounds = ahead(prepared.policy) > 1 and not prepared.sampler
    own_groups = getattr(begun.runner, "has_own_groups", False)
    may_wait = in_rounds and prepared.journal is not None and not own_groups
    for event in run(
        begun.asked,
        begun.runner,
        begun.journal,
        getattr(begun.asked, "beginnings", prepared.configs),
        retries=prepared.retries,
        stop=begun.stop,
        changed=begun.changed,
        group_seconds=GROUP if may_wait else 0.0,
    ):
        begun.count(event)


def _finish(prepared: _Prepared, begun: _Begun) -> Result:
    """Test what is recommended, close the journal with it, and say what was found."""
    policy, ledger, trainer = begun.policy, begun.ledger, prepared.trainer
    path = str(begun.journal.path) if isinstance(begun.journal, Journal) else None
    all_was_there = policy.finished and ledger.events == len(begun.journal.events) > 0
    found = _recommended(policy, ledger, prepared.recommend)
    state = begun.runner.state(found) if found else None
    if not found and policy.finished:
        raised = next((one for one in ledger.failures.values() if one.traceback), None)
        asides = getattr(begun.runner, "asides", Asides())
        raise AllArmsFailed(
            ledger.causes(),
            where=users_line(raised.traceback) if raised else "",
            journal=path if all_was_there else None,
            changed=[
                *(name for change in ledger.code_changes for name in change.names),
                *(begun.changed.code if begun.changed and all_was_there else ()),
            ],
        ) from (asides.cause(raised) if raised else None)
    if found and policy.finished and not ledger.closed:
        lost = state is None and begun.index is not None and begun.index.has(found)
        config = prepared.configs[found.arm]
        closed, state = _close(trainer, config, found, state, prepared.seed, lost=lost)
        # With other code than that of the journal, it was tested by other code than it says.
        changed: list[Event] = [begun.changed] if begun.changed and all_was_there else []
        if begun.index:  # a search that is closed has its winner, whatever happens then
            begun.index.settle(found, state if closed.trained else None)
        for event in [*changed, closed]:
            begun.journal.append(event)
            begun.journal.sync()
            begun.count(event)
    elif ledger.closed and found != Pull(ledger.closed.arm, ledger.closed.upto):
        raise ReplayDiverged(len(begun.journal.events), ledger.closed, f"recommends {found}")
    return Result.from_ledger(
        ledger,
        found,
        complete=policy.finished,
        configs=_tried(prepared, ledger),
        policy=described_policy(policy, prepared.recommend, prepared.sampler),
        space=domains(prepared.space),
        metric=prepared.metric,
        resource=known_resource(getattr(trainer, "resource", None)),
        state=_unwrapped(trainer, state, found),
        winner=Winner.of(trainer, state, prepared.seed, found) if found else None,
        stopped_by=_stopped_by(policy, begun.stop),
        journal=path,
        nothing_trained=all_was_there,
        old_journal=None if begun.old_journal is None else str(begun.old_journal),
        utilisation=begun.sheet.utilisation,
        budget=None if getattr(policy, "has_no_budget", False) else policy.budget,
    )


def _warn_of_changes(journal: Journal, code: Mapping[str, str]) -> None:
    """Say what differs, before anything is trained."""
    known = {
        name
        for event in journal.events
        if isinstance(event, Opened | Changed)
        for name in event.code
    }
    new = [name for name in code if name not in known]
    unused = [name for name, hashed in code.items() if not hashed]
    warnings.warn(TrainerChanged(journal.path, code, new, unused), stacklevel=5)


def _require_watchable(watch: Any, journal: Any) -> None:
    """Refuse to watch what leaves no trace."""
    if not isinstance(watch, bool) and not (isinstance(watch, str) and watch == "open"):
        rule = "it says whether to show the search on a page"
        raise InvalidArgument.of("watch", watch, rule, 'Use True, False or "open"')
    if watch and journal is None and not in_notebook():
        way_out = 'Name one, such as journal="search.jsonl"'
        rule = "a page follows the journal of a search"
        raise InvalidArgument.of("watch", watch, rule, way_out)


def _require_fit(
    sampler: Any,
    journal: Any,
    fresh: Any,
    maximize: Any,
    recommend: Any,
    switch: Any,
    on_event: Any,
) -> None:
    """Refuse what no other part of the search looks at before it begins."""
    if not isinstance(fresh, bool):
        rule = "it says whether to start again with a new journal"
        raise InvalidArgument.of("fresh", fresh, rule, "Use True or False")
    if not isinstance(sampler, Sampler | None):
        rule = "it is not a sampler"
        raise InvalidArgument.of("sampler", sampler, rule, "Use one, such as GaussianProcess()")
    if on_event is not None and (isinstance(on_event, type) or not callable(on_event)):
        rule = "it is a function that is called with each event, or a logger"
        way_out = "Use one of them, such as TensorBoard(folder); others can replay the journal"
        raise InvalidArgument.of("on_event", on_event, rule, way_out)
    if not isinstance(maximize, bool):
        rule = "it says whether higher is better"
        raise InvalidArgument.of("maximize", maximize, rule, "Use True or False")
    if not isinstance(journal, str | Path | None):
        raise InvalidArgument.of("journal", journal, "it is a file", "Use the path of a file")
    if not isinstance(recommend, str) or recommend not in ("latest", "best"):
        rule = "it says which state is recommended"
        raise InvalidArgument.of("recommend", recommend, rule, 'Use "latest" or "best"')
    if switch is not None and not 0 <= as_float(switch) < inf:
        rule = "it is how long it takes to move a state to another worker"
        way_out = "Use finite seconds of at least 0, or leave it out to have it measured"
        raise InvalidArgument.of("switch_seconds", switch, rule, way_out)


def _shown_as(name: Any, maximize: bool, own: Metric) -> Metric:
    """What people read in place of the loss; `own` is what the trainer itself says of that."""
    if name is not None and (not isinstance(name, str) or not name):
        rule = "it is what the figure that the trainer gives is called"
        raise InvalidArgument.of("metric", name, rule, 'Use a name, such as "accuracy"')
    unnamed = UNNAMED if maximize and own == LOSS else own.name
    return Metric(unnamed if name is None else name, maximize or own.maximize)


def _require_one_meaning(metric: Metric, event: Event) -> None:
    """Refuse a name that the trainer gives to another figure, which it tells beside its loss."""
    if not isinstance(event, Loss) or not event.metrics or metric.name not in event.metrics:
        return
    if metric.name in metric.without_itself(event.metrics, event.value):
        rule = (
            f"arm {event.pull.arm} has {metric.figure(event.value)} as its 'loss', and beside it "
            f"{any_repr(event.metrics[metric.name])} under this name"
        )
        way_out = "Return the figure that arms are compared by as 'loss', or use another name"
        raise InvalidArgument.of("metric", metric.name, rule, way_out)


def choose_as_begun(
    policy: Policy | str | None,
    numbers: Mapping[str, Any],
    *,
    journal: str | Path | None,
    space: Space,
    **known: Any,
) -> Picked:
    """What `choose` chooses for a space; where arms are left to it, as when the search began.

    A larger budget extends a search, and does not make it one by another policy.
    """
    if policy is not None or numbers.get("arms") is not None or is_listed(space):
        return choose(policy, numbers, **known)
    there_are = inf if (counted := size(space)) is None else counted
    budget = numbers.get("budget")
    first = _first_budget(journal) if journal and os.path.exists(journal) else None
    if first is None or not isinstance(budget, int) or budget < first:
        return choose(policy, numbers, there_are=there_are, **known)
    chosen = choose(policy, {**numbers, "budget": first}, there_are=there_are, **known)
    return chosen._replace(policy=unasked(chosen.policy, budget=budget))


def usual_sampler(chosen: Picked) -> Sampler | None:
    """The sampler of a search for which none was named."""
    return GaussianProcess() if chosen.chooses_arms else None


def _header_there(journal: str | Path | None) -> Opened | None:
    """The header of a journal, if there is one that can be read."""
    if journal is not None and os.path.exists(journal):
        with suppress(JournalError):
            return header_of(read(journal))
    return None


def _first_budget(journal: str | Path) -> int | None:
    """The budget that the search of a journal began with, if it can be read."""
    with suppress(JournalError):
        return next(iter(budgets_of(read(journal))), None)
    return None  # it is said why when it is opened


def _within(policy: Policy, space: Space) -> Policy:
    """A policy that has as many arms as it can has no more than the space has configs."""
    there = size(space) if getattr(policy, "open_ended", False) else None
    if there is None:
        return policy
    if there <= SHUFFLED:  # the parts of a space may share configs
        there = len(drawn(space, there, 0, fewer=True, when_asked=True))
    return unasked(policy, arms=min(there, cast(Budgeted, policy).arguments()["arms"]))


def _configs_of(policy: Policy, space: Space, seed: int, include: Sequence[Config]) -> Drawn:
    """The configs of all arms that there may be; where there may be many, drawn as they begin."""
    if not grows(policy):
        return drawn(space, policy.arms, seed, include)
    most = max(policy.arms, AT_FIRST)
    configs = drawn(space, most, seed, include, fewer=True, when_asked=True)
    return configs if len(configs) >= policy.arms else drawn(space, policy.arms, seed, include)


def _draw_more(prepared: _Prepared, journal: Journal) -> None:
    """Have the configs of the arms that larger budgets of a journal have."""
    if grows(policy := prepared.policy):
        prepared.configs.grow(policy.most_arms([*journal.budgets, policy.budget]))


def _tried(prepared: _Prepared, ledger: Ledger) -> Sequence[Config]:
    """The configs of arms that were asked for; where their number follows, of those that began."""
    if not grows(prepared.policy):
        return prepared.configs
    return prepared.configs[: 1 + max([*ledger.curves, *ledger.failures], default=-1)]


def _as_it_began(policy: Policy, journal: Journal) -> Policy:
    """The policy with the budget that the search began with. A larger one than ever extends it."""
    opened = journal.events[0]
    # What it planned for, if these are its workers.
    if getattr(policy, "measures", False) and hasattr(policy, "at_once"):
        assert isinstance(opened, Opened), "so begins a journal"
        policy = unasked(policy, at_once=opened.policy.get("at_once", 1))
    first, *others = journal.budgets or [policy.budget]
    if policy.budget == first:
        return policy
    if policy.budget not in others:  # so it is larger than all of them
        if not isinstance(policy, Extendable):
            rule = (
                f"the search in {journal.path} has a budget of {journal.budgets[-1]}, and its "
                f"policy {policy.name} cannot be extended, because it has no extend(budget)"
            )
            way_out = "Use the same budget, or name another journal"
            raise InvalidArgument.of("budget", policy.budget, rule, way_out)
        journal.extend(policy.budget)
    return unasked(policy, budget=first)


def _unwrapped(trainer: Any, state: Any, found: Pull | None) -> Any:
    """The user's part of a state. An error in making it must not cost the search its answer."""
    try:
        return unwrapped(trainer, state)
    except Exception as error:
        arm = found.arm if found else 0
        warnings.warn(StateNotSaved(arm, masked_text(said(error))), stacklevel=5)
        return None


def _recommended(policy: Policy, ledger: Ledger, recommend: str) -> Pull | None:
    """The recommended arm and the level at which it is meant."""
    if policy.recommendation is None:
        return None
    if recommend == "latest":
        return Pull(policy.recommendation, upto=ledger.curves[policy.recommendation][-1][0])
    return ledger.best()


def _stopped_by(policy: Policy, stop: Stop) -> int | Literal["seconds"] | None:
    """What ended the search before the policy had nothing left to do."""
    if policy.finished:
        return "seconds" if getattr(policy, "out_of_time", False) else None
    return stop.signal or ("seconds" if stop() else None)


def _close(
    trainer: Any, config: Config, last: Pull, state: Any, seed: int, *, lost: bool
) -> tuple[Closed, Any]:
    """Test the recommended arm, once. An error here must not cost the search its answer.

    If its state was `lost`, it is trained again, also where nothing is tested.
    """
    tests = hasattr(trainer, "test")
    trained, test_loss = 0, None
    try:
        with ThisProcess():
            if state is None and (tests or lost):  # lost in a crash, or with a worker
                trained = last.upto
                state = trainer.train(trainer.start(config, arm_seed(seed, last.arm)), trained)
            tested = trainer.test(state) if tests else None
            test_loss = None if tested is None else loss_in(tested)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        warnings.warn(NoTestLoss(masked_text(said(error))), stacklevel=5)
    return Closed(last.arm, last.upto, test_loss, trained), state
