"""What is to be said of a search that was extended, or could be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from lastarm.events import Failure
from lastarm.ledger import Spent, Stretch
from lastarm.policies.named import from_header
from lastarm.report.phrases import apart


class Known(Protocol):
    """What has to be known of a search. A `Ledger` has it, and so has a `Result`."""

    @property
    def curves(self) -> Mapping[int, Sequence[tuple[int, float]]]:
        """What was seen of each arm: (level, loss)."""

    @property
    def failures(self) -> Mapping[int, Failure]:
        """The arms that failed."""

    @property
    def stretches(self) -> Sequence[Stretch]:
        """What it came to with each budget."""

    @property
    def spent(self) -> Spent:
        """What it took in all."""


def remarks(known: Known) -> list[str]:
    """Where a larger budget led to nothing, or to a worse recommendation than the one before."""
    stretches = known.stretches
    said = []
    until = [*(stretch.before.pulls for stretch in stretches[1:]), known.spent.pulls]
    for (before, stretch), end in zip(pairwise(stretches), until[1:], strict=True):
        if not stretch.closed:
            continue
        if end == stretch.before.pulls:
            said.append(
                f"The budget of {stretch.budget:,} changed nothing: all had been done with "
                f"{before.budget:,} that there was to do, or the next step needs still more."
            )
        was, now = _loss(before, known), _loss(stretch, known)
        if was is not None and now is not None and was < now:
            lower, higher = apart(was, now)
            said.append(
                f"The budget of {stretch.budget:,} came to a higher loss than that of "
                f"{before.budget:,}: {higher}, where it had been {lower}. Its arms get worse with "
                'more training; begin such a search with recommend="best" (--recommend best), '
                "which hands over the best state that was seen."
            )
    return said


def _loss(stretch: Stretch, known: Known) -> float | None:
    """That of its recommendation."""
    closed = stretch.closed
    return dict(known.curves.get(closed.arm, [])).get(closed.upto) if closed else None


def nothing_left(policy: Mapping[str, Any], known: Known) -> str | None:
    """Why a search that has ended would do nothing with more budget, if that is known.

    >>> from lastarm.events import Loss, Pull
    >>> from lastarm.ledger import Ledger
    >>> policy = {"name": "asha", "arms": 3, "budget": 5, "max_pulls": 3, "eta": 3}
    >>> first = [Loss(Pull(arm, upto=1), arm / 4) for arm in range(3)]
    >>> nothing_left(policy, Ledger(first))
    >>> nothing_left(policy, Ledger([*first, Loss(Pull(0, upto=3), 0.5)]))
    'no arm is left to begin or to promote'
    """
    budget = known.stretches[-1].budget if known.stretches else policy.get("budget")
    made = from_header({**policy, "budget": budget})
    if made and (reason := made.nothing_left(known.curves, known.failures, known.spent.pulls)):
        return reason
    if len(known.stretches) < 2:
        return None
    before, last = known.stretches[-2:]
    if last.before.pulls == known.spent.pulls and last.budget >= 2 * before.budget:
        return f"to go from {before.budget:,} to {last.budget:,} did nothing either"
    return None
