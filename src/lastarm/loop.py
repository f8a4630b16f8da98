"""The only loop: where policy, runner and journal meet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from lastarm.errors import Stuck
from lastarm.events import Event, Failure, Pull
from lastarm.journal import Journal, Unwritten, replay
from lastarm.policy import Policy
from lastarm.runners import Runner


def run(
    policy: Policy,
    runner: Runner,
    journal: Journal | Unwritten,
    *,
    retries: int = 0,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Perform what the policy asks for until it has ended, and yield every event as it counts.

    Resuming is replaying: a fresh policy is walked through the journal's events, which are yielded
    too, and pulls that were in flight are started again. An empty journal is not a special case.

    A loss counts, that is, it is told to the policy and yielded, only when it is safely in the
    journal. A failed attempt is repeated up to `retries` times before its failure counts. A result
    that comes back a second time, or from an attempt that was given up, is ignored. Once
    `stopping` says so, nothing more is started, what is in flight is brought home, and the loop
    ends.
    """
    to_start = deque((pull, 1) for pull in replay(journal.events, policy))
    yield from journal.events

    started: dict[Pull, int] = {}  # pull → the attempt under way
    while True:
        while runner.free and not stopping():
            if not to_start:
                to_start.extend((pull, 1) for pull in policy.ask(1))
            if not to_start:
                break
            pull, attempt = to_start.popleft()
            started[pull] = attempt
            journal.append(pull)
            runner.start(pull, attempt)
            yield pull
        if not started:
            if policy.finished or stopping():
                return
            if runner.free:
                raise Stuck(f"{policy} asks for nothing, awaits nothing and has not finished.")
            # else all workers are busy with attempts that were given up

        journal.flush()
        results = runner.wait()
        if not results:
            raise Stuck(f"{runner} came back from waiting with no result.")
        known = []
        for result in results:
            attempt = result.work.attempt
            if started.get(result.pull) != attempt:
                continue
            del started[result.pull]
            if isinstance(result, Failure) and attempt <= retries:
                to_start.append((result.pull, attempt + 1))
            else:
                journal.append(result)
                known.append(result)
        if known:
            journal.sync()
        for result in known:
            policy.tell(result)
            yield result
