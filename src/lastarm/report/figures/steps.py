"""A search step by step: who went on from each level, who stayed, and what it took."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from lastarm.ledger import Rung
from lastarm.report.seen import Seen


class Step(NamedTuple):
    """What became of the arms that were brought to some levels, and what that took."""

    name: str
    went_on: int
    recommended: int
    left_behind: int
    failed: int
    cost: Rung


def reached_by(seen: Seen) -> dict[int, int]:
    """The pulls that each arm had."""
    return {arm: curve[-1][0] for arm, curve in seen.curves.items()} | {
        arm: failure.pull.upto for arm, failure in seen.failures.items()
    }


def steps_of(seen: Seen, most: int) -> list[Step]:
    """The levels from the lowest; if they are more than `most`, in powers of 2.

    An arm that was brought past a level without a stop there, as in a search that was extended,
    went on from it too.
    """
    together = len(seen.rungs) > most
    groups: dict[int, list[int]] = defaultdict(list)
    for level in sorted(seen.rungs):
        groups[level.bit_length() if together else level].append(level)
    of = {level: group for group, levels in groups.items() for level in levels}
    came: dict[int, set[int]] = defaultdict(set)
    for arm, curve in seen.curves.items():
        for level, _ in curve:
            came[of[level]].add(arm)
    for arm, failure in seen.failures.items():
        came[of[failure.pull.upto]].add(arm)
    reached = reached_by(seen)
    first = {arm: min(level for level, _ in curve) for arm, curve in seen.curves.items()}
    steps = []
    for group, levels in groups.items():
        came[group] |= {arm for arm, level in first.items() if level < levels[0] < reached[arm]}
        stayed = {arm for arm in came[group] if reached[arm] <= levels[-1]}
        failed = len(stayed & seen.failures.keys())
        recommended = int(seen.arm in stayed)
        fates = len(came[group]) - len(stayed), recommended, len(stayed) - failed - recommended
        name = f"{levels[0]:,}" + (f" to {levels[-1]:,}" if len(levels) > 1 else "")
        rungs = [seen.rungs[level] for level in levels]
        cost = Rung(
            pulls=sum(rung.pulls for rung in rungs),
            train_seconds=sum(rung.train_seconds for rung in rungs),
            loss_seconds=sum(rung.loss_seconds for rung in rungs),
        )
        steps.append(Step(name, *fates, failed, cost))
    return steps
