"""Resuming is replaying: a fresh policy is walked through what happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from lastarm.errors import ReplayDiverged
from lastarm.events import Changed, Closed, Event, Extended, Failure, Opened, Pull
from lastarm.policy import Policy, ahead, go_on


def replay(
    events: Iterable[Event], policy: Policy
) -> tuple[dict[Pull, int], deque[int], list[Pull]]:
    """Walk a fresh policy through what happened.

    :param events: those of the journal, in order.
    :param policy: one that was not asked yet, with the budget that the search began with.

    Returns the pulls in flight at the end, the oldest first, each with the number of its attempts
    that have failed; the larger budgets that wait until the policy has finished with its own; and
    the pulls that it asked for and that were not started.

    The policy must ask for exactly what was written, although the order within a round may differ.
    If it does not, then its code, its arguments or its seed are not those that wrote the journal:
    `ReplayDiverged`.
    """
    in_flight: dict[Pull, int] = {}
    asked: dict[Pull, None] = {}
    budgets: deque[int] = deque()
    for record, event in enumerate(events, start=1):
        match event:
            case Opened() | Changed():
                continue
            case Pull() if event in in_flight:
                continue  # started again, after a crash or a failed attempt
            case Extended(budget):
                budgets.append(budget)
            case Pull():
                go_on(policy, budgets)
                if not asked:
                    asked = dict.fromkeys(policy.ask(ahead(policy)))
                if event not in asked:
                    now = next(iter(asked), "nothing")
                    raise ReplayDiverged(record, event, f"asks for {now}")
                del asked[event]
                in_flight[event] = 0
            case Closed():
                go_on(policy, budgets)
                if not policy.finished:
                    raise ReplayDiverged(record, event, "does not end here")
            case Failure(retried=True) if event.pull in in_flight:
                in_flight[event.pull] = event.work.attempt  # the policy was not told
            case _:
                if event.pull not in in_flight:
                    raise ReplayDiverged(record, event, "does not wait for that pull")
                del in_flight[event.pull]
                policy.tell(event)
    return in_flight, budgets, list(asked)
