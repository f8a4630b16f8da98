"""The only loop: where policy, runner and journal meet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lastarm.errors import Stuck
from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.journal import Journal, Unwritten
from lastarm.journal import replay as replayed
from lastarm.policy import Policy, ahead, go_on
from lastarm.runners import ATTEMPTS_OF_LOST, Runner, Waiting
from lastarm.signals import Stop
from lastarm.trainers import Config

PATIENCE = 0.2  # seconds between two looks at whether to stop


def run(
    policy: Policy,
    runner: Runner,
    journal: Journal | Unwritten,
    configs: Sequence[Config],
    *,
    retries: int = 0,
    stop: Stop | None = None,
) -> Iterator[Event]:
    """Perform what the policy asks for until it has ended, and yield every event as it counts.

    Resuming is replaying: a fresh policy is walked through the journal's events, which are yielded
    too, and pulls that were in flight are started again. An empty journal is not a special case.
    A policy that has finished goes on with the larger budgets that the journal holds.

    A loss counts, that is, it is told to the policy and yielded, only when it is safely in the
    journal. A failed attempt is repeated up to `retries` times before its failure counts; those
    whose worker was lost are counted apart, and repeated at least twice. A result that comes back
    a second time, or from an attempt that was given up, is ignored. Once `stop` says so, nothing
    more is started, what is in flight is brought home while there is time, and the loop ends.

    A runner that knows where states are is `waiting` for a whole round, and says whose turn it is.
    """
    stop = stop or Stop()
    waiting, most, budgets = _resumed(policy, runner, journal.events)
    lost = Counter(
        event.pull for event in journal.events if isinstance(event, Failure) and event.lost
    )
    begun = {event.arm for event in journal.events if isinstance(event, Pull)}
    yield from journal.events

    started: dict[Pull, int] = {}  # pull → the attempt under way
    while True:
        go_on(policy, budgets)
        while runner.free and not stop():
            if not waiting:
                waiting.add(policy.ask(most))
            # Where a policy could ask for something else meanwhile, no worker waits for another.
            turn = waiting.next(patient=most > 1 and bool(started))
            if turn is None:
                break
            pull, attempt = turn
            started[pull] = attempt
            told = pull
            if pull.arm not in begun:
                begun.add(pull.arm)
                told = replace(pull, config=configs[pull.arm])
            journal.append(told)
            runner.start(pull, attempt)
            yield told
        if stop() and (stop.at_once or not started):
            return
        if not started and not waiting:
            if policy.finished:
                return
            if runner.free:
                raise Stuck(f"{policy} asks for nothing, awaits nothing and has not finished.")
            # else all workers are busy with attempts that were given up

        journal.flush()
        known: list[Told] = []
        for came in runner.wait(PATIENCE):
            attempt = came.work.attempt
            if started.get(came.pull) != attempt:
                continue
            del started[came.pull]
            waiting.noted(came)
            result = _judged(came, lost, retries) if isinstance(came, Failure) else came
            known.append(result)
            journal.append(result)
        if known:
            journal.sync()
        for result in known:
            if isinstance(result, Failure) and result.retried:
                waiting.add([result.pull], result.work.attempt + 1)
            else:
                policy.tell(result)
            yield result


def _judged(failure: Failure, lost: Counter[Pull], retries: int) -> Failure:
    """The failure of an attempt, which says now whether the pull is tried again."""
    lost[failure.pull] += failure.lost
    often = lost[failure.pull]
    if failure.lost:
        return failure._replace(retried=often <= max(retries, ATTEMPTS_OF_LOST - 1))
    return failure._replace(retried=failure.work.attempt - often <= retries)


def _resumed(
    policy: Policy, runner: Runner, events: Sequence[Event]
) -> tuple[Waiting, int, deque[int]]:
    """Walk the policy through what happened; the pulls that it awaits are to be started again.

    Then come how many may be asked for at once, and the larger budgets that are to come.
    """
    waiting = getattr(runner, "waiting", Waiting())
    most = ahead(policy) if hasattr(runner, "waiting") else 1
    in_flight, budgets, asked = replayed(events, policy)
    for event in events:
        if isinstance(event, Loss):
            waiting.noted(event)
    for pull, failed in in_flight.items():
        waiting.add([pull], failed + 1)
    waiting.add(asked)
    return waiting, most, budgets
