"""The only loop: where policy, runner and journal meet."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from time import perf_counter, time
from typing import Any

from lastarm.columns import reserve
from lastarm.errors import Stuck
from lastarm.events import Changed, Event, Failure, Loss, Pull, Started, Told
from lastarm.journal import Journal, Unwritten
from lastarm.journal import replay as replayed
from lastarm.masking import masked_data, masked_text
from lastarm.policy import Policy, ahead, go_on
from lastarm.runners import ATTEMPTS_OF_LOST, Runner, Turns
from lastarm.signals import Stop
from lastarm.trainers import Config

PATIENCE = 0.2  # seconds between two looks at whether to stop
GROUP = 0.1  # seconds of work whose losses share a sync, where they decide nothing before
GROUP_BYTES = 2**24  # of their states; the states before them can be deleted only when they count


def run(
    policy: Policy,
    runner: Runner,
    journal: Journal | Unwritten,
    configs: Sequence[Config],
    *,
    retries: int = 0,
    stop: Stop | None = None,
    changed: Changed | None = None,
    group_seconds: float = 0.0,
) -> Iterator[Event]:
    """Perform what the policy asks for until it has ended, and yield every event as it counts.

    - `policy`: a fresh one, which decides what to pull
    - `runner`: performs the pulls
    - `journal`: what happened before, and where everything that happens is written
    - `configs`: the settings of each arm, by its number
    - `retries`: how often a failed attempt is repeated before its failure counts. Attempts whose
      worker was lost are counted apart, and repeated at least twice
    - `stop`: says when to stop. Then nothing more is started, the loop waits a while for what is
      in flight, and ends
    - `changed`: what to write before the first pull that is started now
    - `group_seconds`: for how long losses may wait for others, to share a sync with them, while
      there are pulls that do not depend on them. The clock decides nothing else

    Resuming is replaying: the policy is walked through the journal's events, which are yielded
    too, and pulls that were in flight are started again. An empty journal is not a special case.
    A policy that has finished continues with the larger budgets that the journal holds.

    A loss counts, that is, it is told to the policy and yielded, only when it is safely in the
    journal. A result that comes back a second time, or from an attempt that was given up, is
    ignored. Where a runner has `turns`, these say which pull of a round is next.
    """
    stop = stop or Stop()
    turns, most, budgets = _resumed(policy, runner, journal.events)
    lost = Counter(
        event.pull for event in journal.events if isinstance(event, Failure) and event.lost
    )
    begun = array("b")  # by arm: whether it is
    for event in journal.events:
        if isinstance(event, Pull):
            reserve(begun, event.arm, False)
            begun[event.arm] = True
    yield from journal.events

    started: dict[Pull, int] = {}  # pull → the attempt under way
    group = _Group(journal, group_seconds)
    while True:
        go_on(policy, budgets)
        while group.may_grow and runner.free and not stop():
            if not turns:
                turns.add(policy.ask(most))
            # Where a policy could ask for something else meanwhile, no worker waits for another.
            turn = turns.next(patient=most > 1 and bool(started))
            if turn is None:
                break
            pull, attempt = turn
            started[pull] = attempt
            reserve(begun, pull.arm, False)
            told = _started(runner, pull, attempt, None if begun[pull.arm] else configs[pull.arm])
            begun[pull.arm] = True
            if changed:
                journal.append(changed)
                yield changed
                changed = None
            journal.append(told)
            journal.flush()  # before a worker has it: what is trained is booked, whatever comes
            runner.start(pull, attempt)
            yield from group.after_those_that_wait(told)
        if group.waits and (not group.may_grow or not started or stop()):
            for event in group.synced():
                if isinstance(event, Failure) and event.retried:
                    turns.add([event.pull], event.work.attempt + 1)
                elif isinstance(event, Told):
                    policy.tell(event)
                yield event
            continue
        group.raise_what_broke()
        if stop() and (stop.at_once or not started):
            return
        if not started and not turns:
            if policy.finished:
                return
            if runner.free:
                raise Stuck(f"{policy} asks for nothing, awaits nothing and has not finished.")
            # else all workers are busy with attempts that were given up

        for back in group.wait(runner):
            if started.get(back.pull) == back.work.attempt:
                del started[back.pull]
                turns.learn(back)
                group.add(journal.sealed(_judged(_without_secrets(back), lost, retries)))


def _started(runner: Runner, pull: Pull, attempt: int, config: Config | None) -> Started:
    """The pull, with its worker and the time of day: both for people only.

    A runner that has a clock of its own has no time of day.
    """
    at = None if hasattr(runner, "now") else round(time(), 3)
    worker = runner.worker_of(pull, attempt) if hasattr(runner, "worker_of") else ""
    return Started(pull.arm, pull.upto, config, worker, at)


class _Group:
    """Results that came back, and wait for others to share a sync. None of them counts before.

    The clock decides for how long they wait, and nothing else: not at all if their states are
    large, or if the last results were so long in coming that the next may be late, too. For a
    runner that trains in this process cannot be asked anything while it does. All events are
    yielded in the order in which they are written, so a pull that is begun meanwhile waits.
    """

    def __init__(self, journal: Journal | Unwritten, seconds: float) -> None:
        self._journal, self._seconds = journal, seconds
        self._waiting: list[Event] = []  # the first of them is a result
        self._bytes = 0  # of the states that were saved with them
        self._synced = perf_counter()  # when
        self._took = 0.0  # seconds, until the last results came
        self._broken: BaseException | None = None

    @property
    def waits(self) -> bool:
        """Whether there are any."""
        return bool(self._waiting)

    @property
    def may_grow(self) -> bool:
        """Whether more may be started before these count."""
        return not self._broken and (not self._waiting or self._left > self._took)

    @property
    def _left(self) -> float:
        """For how many seconds they may wait."""
        large = self._bytes > GROUP_BYTES
        return 0.0 if large else self._synced + self._seconds - perf_counter()

    def wait(self, runner: Runner) -> list[Told]:
        """What comes back next. An error is raised when all that came back before it counts."""
        began = perf_counter()
        try:
            came = runner.wait(max(0.0, min(self._left, PATIENCE)) if self._waiting else PATIENCE)
        except BaseException as error:
            if not self._waiting:
                raise
            self._broken = error
            return []
        self._took = perf_counter() - began
        return came

    def raise_what_broke(self) -> None:
        """Raise the error that had to wait."""
        if self._broken:
            raise self._broken

    def add(self, told: Told) -> None:
        """Write a result down, to count as soon as the journal is synced."""
        self._journal.append(told)
        self._waiting.append(told)
        if isinstance(told, Loss) and told.saved:
            self._bytes += told.saved.size

    def after_those_that_wait(self, pull: Pull) -> list[Pull]:
        """The pull, if it can be yielded now."""
        if not self._waiting:
            return [pull]
        self._waiting.append(pull)
        return []

    def synced(self) -> list[Event]:
        """All that counts from now on."""
        self._journal.sync()
        self._synced, self._bytes = perf_counter(), 0
        events, self._waiting = self._waiting, []
        return events


def _without_secrets(told: Told) -> Told:
    """What may be written down, and shown: an error or a metric may quote a password."""
    if isinstance(told, Failure):
        error, traceback = masked_text(told.error), masked_text(told.traceback)
        return told._replace(error=error, traceback=traceback)
    return told._replace(metrics=masked_data(told.metrics)) if told.metrics else told


def _judged(told: Told, lost: Counter[Pull], retries: int) -> Told:
    """What came back. If it is a failure, it says now whether the pull is tried again."""
    if not isinstance(told, Failure):
        return told
    lost[told.pull] += told.lost
    often = lost[told.pull]
    if told.lost:
        return told._replace(retried=often <= max(retries, ATTEMPTS_OF_LOST - 1))
    return told._replace(retried=told.work.attempt - often <= retries)


def _resumed(
    policy: Policy, runner: Runner, events: Sequence[Event]
) -> tuple[Turns[Any], int, deque[int]]:
    """Walk the policy through what happened; the pulls that it awaits are to be started again.

    Then come how many may be asked for at once, and the larger budgets that are to come.
    """
    turns: Turns[Any] = getattr(runner, "turns", Turns())
    most = ahead(policy) if hasattr(runner, "turns") else 1
    in_flight, budgets, asked = replayed(events, policy)
    for event in events:
        if isinstance(event, Loss):
            turns.learn(event)
    for pull, failed in in_flight.items():
        turns.add([pull], failed + 1)
    turns.add(asked)
    return turns, most, budgets
