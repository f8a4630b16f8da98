"""What is to be said of a search that was extended, or could be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Protocol

from lastarm.events import Failure
from lastarm.ledger import Spent, Stretch
from lastarm.policies.hyperband import brackets
from lastarm.policy import ranking
from lastarm.report.phrases import apart

SURE = ("successive-elimination", "lucb", "lil-ucb")  # they may end before their budget does
MOST_PULLS = 10**9  # of an arm; a header that says more is no search's


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
    >>> policy = {"name": "asha", "arms": 3, "max_pulls": 3, "eta": 3}
    >>> first = [Loss(Pull(arm, upto=1), arm / 4) for arm in range(3)]
    >>> nothing_left(policy, Ledger(first))
    >>> nothing_left(policy, Ledger([*first, Loss(Pull(0, upto=3), 0.5)]))
    'no arm is left to begin or to promote'
    """
    if (reason := _has_ended(policy, known)) or len(known.stretches) < 2:
        return reason
    before, last = known.stretches[-2:]
    if last.before.pulls == known.spent.pulls and last.budget >= 2 * before.budget:
        return f"to go from {before.budget:,} to {last.budget:,} did nothing either"
    return None


def _has_ended(policy: Mapping[str, Any], known: Known) -> str | None:
    """The reason that is known of the policy."""
    curves, failures, pulls = known.curves, known.failures, known.spent.pulls
    name = policy.get("name")
    arms, most, eta = (policy.get(word) for word in ("arms", "max_pulls", "eta"))
    budget = known.stretches[-1].budget if known.stretches else 0
    if not isinstance(arms, int) or arms < 1:
        return None
    if name in SURE and budget - pulls >= arms:
        return "it ended by itself, before its budget did"
    if not isinstance(most, int) or not 0 < most <= MOST_PULLS:
        return None
    if len(curves.keys() | failures.keys()) == arms and all(
        curve[-1][0] >= most or not isfinite(curve[-1][1])
        for arm, curve in curves.items()
        if arm not in failures
    ):
        return f"every arm has had its {most:,} pulls"
    if not isinstance(eta, int) or eta < 2:
        return None
    if name == "hyperband":
        every = [bracket._replace(arms=min(bracket.arms, arms)) for bracket in brackets(most, eta)]
        return "all brackets have been run" if sum(b.pulls for b in every) <= budget else None
    if name == "asha" and arms > 1 and _all_promoted(arms, most, eta, known):
        return "no arm is left to begin or to promote"
    return None


def _all_promoted(arms: int, most: int, eta: int, known: Known) -> bool:
    """Whether all arms have begun, and the best of each level have gone on from it."""
    reached = {arm: curve[-1][0] for arm, curve in known.curves.items()}
    reached |= {arm: failure.pull.upto for arm, failure in known.failures.items()}
    losses: dict[int, dict[int, float]] = {}
    for arm, curve in known.curves.items():
        for level, loss in curve:
            losses.setdefault(level, {})[arm] = loss
    failed = Counter(failure.pull.upto for failure in known.failures.values())
    for level, there in losses.items():
        finite = {arm: loss for arm, loss in there.items() if isfinite(loss)}
        best = ranking(finite)[: (len(there) + failed[level]) // eta]
        if level < most and any(reached[arm] <= level for arm in best):
            return False
    return len(reached) == arms
