"""The audit of a search: how close each elimination was.

It is an estimate, never a certificate: without knowing how fast losses settle, no arm can be
rejected for certain (paper, §2). What a search has seen is how far the arms that went on from a
level still moved; that estimates the envelope γ̄ there, and is held against what a dropped arm
would have needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from lastarm.theory.envelopes import Array, Envelopes, envelope
from lastarm.theory.theorems import halving_budget

Curve = Sequence[tuple[int, float]]  # (level, loss), as observed


@dataclass(frozen=True)
class Elimination:
    """An arm that was left behind at `level`, with this loss.

    To win it would still have had to fall by `margin`; no arm that went on from there is seen to
    have moved by more than `moved`. It was a close call if that could have been enough. Where no
    arm went on, `moved` is None, and nothing is known.
    """

    arm: int
    level: int
    loss: float
    margin: float
    moved: float | None

    @property
    def close(self) -> bool:
        """Whether another arm moved as far as this one would have had to."""
        return self.moved is not None and self.margin <= self.moved


@dataclass(frozen=True)
class Audit:
    """All eliminations, the closest first, and the budget that Theorem 1 asks for by estimate.

    The budget is inf where nothing was seen to settle enough, or where a dropped arm's latest loss
    is below the winner's.
    """

    eliminations: tuple[Elimination, ...]
    diverged: int
    budget: float

    @property
    def close_calls(self) -> tuple[Elimination, ...]:
        """Those that could have gone the other way."""
        return tuple(elimination for elimination in self.eliminations if elimination.close)


def audit(curves: Mapping[int, Curve], recommended: int, out: Collection[int] = ()) -> Audit:
    """How close each elimination of a search was.

    :param curves: what the search saw of each arm: arm → (level, loss).
    :param recommended: the arm that it recommends.
    :param out: arms that failed.

    >>> seen = {0: [(1, 0.9), (4, 0.2)], 1: [(1, 0.8), (4, 0.3)], 2: [(1, 1.0)], 3: [(1, 5.0)]}
    >>> report = audit(seen, recommended=0)
    >>> [(e.arm, e.level, round(e.margin, 6), e.moved, e.close) for e in report.eliminations]
    [(1, 4, 0.1, None, False), (2, 1, 0.8, 0.7, False), (3, 1, 4.8, 0.7, False)]

    The budget is that of Theorem 1, with the latest losses taken for limits and γ̄ as estimated.
    """
    healthy = {
        arm: curve for arm, curve in curves.items() if isfinite(curve[-1][1]) and arm not in out
    }
    winning = healthy[recommended][-1][1]
    moved = _moved(healthy)
    others = {arm: curve[-1] for arm, curve in healthy.items() if arm != recommended}
    furthest = max(level for curve in healthy.values() for level, _ in curve)
    eliminations = [
        Elimination(arm, level, loss, loss - winning, moved[level] if level < furthest else None)
        for arm, (level, loss) in others.items()
    ]
    eliminations.sort(key=lambda e: (e.margin - (e.moved or 0.0), e.arm))
    known = sorted(moved) if len(moved) > 1 else []  # at a single level no arm was seen to move
    settling = [
        next((level for level in known if 2 * moved[level] < loss - winning), inf)
        for _, loss in sorted(others.values(), key=lambda last: last[1])
    ]
    budget = halving_budget(settling) if settling else 0
    return Audit(tuple(eliminations), len(curves) - len(healthy), budget)


def _moved(curves: Mapping[int, Curve]) -> dict[int, float]:
    """γ̄ as it was seen: level → how far any arm that was seen there and later still moved."""
    seen: dict[int, float] = {}
    for curve in curves.values():
        gamma = envelope([loss for _, loss in curve])
        for (level, _), distance in zip(curve, gamma.tolist(), strict=True):
            seen[level] = max(distance, seen.get(level, 0.0))
    moved, most = {}, 0.0
    for level in sorted(seen, reverse=True):  # never more later than before
        moved[level] = most = max(most, seen[level])
    return moved


def ends_lower(losses: Array, arm: int) -> list[int]:
    """The arms whose curves end lower than that of `arm`, the best first.

    One that does not end in a finite loss ends higher than all others, even in −inf.
    """
    ends = np.where(np.isfinite(losses[:, -1]), losses[:, -1], inf)
    order = np.argsort(ends, kind="stable")
    return [int(other) for other in order if ends[other] < ends[arm]]


@dataclass(frozen=True)
class Truth:
    """What the whole curves say of a recommendation: the arms that end lower, the best first."""

    better: tuple[int, ...]
    budget: float

    @classmethod
    def of(cls, losses: Array, recommended: int) -> Truth:
        """From a table of whole curves."""
        better = tuple(ends_lower(losses, recommended))
        whole = losses[np.isfinite(losses).all(axis=1)]
        budget = halving_budget(Envelopes(whole).gaps_settle) if len(whole) > 1 else 0
        return cls(better, budget)
