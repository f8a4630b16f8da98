"""The only loop: where policy, runner and journal meet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lastarm.errors import Stuck
from lastarm.events import Event, Failure, Pull, Told
from lastarm.journal import Journal, Unwritten
from lastarm.journal import replay as replayed
from lastarm.policy import Policy, go_on
from lastarm.runners import ATTEMPTS_OF_LOST, Runner
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
    """
    stop = stop or Stop()
    in_flight, budgets = replayed(journal.events, policy)
    to_start = deque((pull, failed + 1) for pull, failed in in_flight.items())
    lost = Counter(
        event.pull for event in journal.events if isinstance(event, Failure) and event.lost
    )
    begun = {event.arm for event in journal.events if isinstance(event, Pull)}
    yield from journal.events

    started: dict[Pull, int] = {}  # pull → the attempt under way
    while True:
        go_on(policy, budgets)
        while runner.free and not stop():
            if not to_start:
                to_start.extend((pull, 1) for pull in policy.ask(1))
            if not to_start:
                break
            pull, attempt = to_start.popleft()
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
        if not started and not to_start:
            if policy.finished:
                return
            if runner.free:
                raise Stuck(f"{policy} asks for nothing, awaits nothing and has not finished.")
            # else all workers are busy with attempts that were given up

        journal.flush()
        known: list[Told] = []
        for result in runner.wait(PATIENCE):
            attempt = result.work.attempt
            if started.get(result.pull) != attempt:
                continue
            del started[result.pull]
            if isinstance(result, Failure):
                lost[result.pull] += result.lost
                failed = lost[result.pull] if result.lost else attempt - lost[result.pull]
                allowed = max(retries, ATTEMPTS_OF_LOST - 1) if result.lost else retries
                known.append(result._replace(retried=failed <= allowed))
            else:
                known.append(result)
            journal.append(known[-1])
        if known:
            journal.sync()
        for result in known:
            if isinstance(result, Failure) and result.retried:
                to_start.append((result.pull, result.work.attempt + 1))
            else:
                policy.tell(result)
            yield result
