"""LUCB: Kalyanakrishnan, Tewari, Auer & Stone (2012)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import log, sqrt
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.confidence import Confidence
from lastarm.policies.parts.scaled import Scaled
from lastarm.policy import Algorithm


def lucb(arms: Iterable[int], budget: int, delta: float, seen: Scaled) -> Algorithm:
    """Their algorithm LUCB1, for the one best arm."""
    arms = list(arms)
    n, left, t = len(arms), budget - len(arms), 1
    yield from seen.look(Pull(arm, upto=1) for arm in arms)
    # Among arms with the same number of pulls, the lowest loss has the lowest bound. So not all
    # arms have to be compared in every round, only the best one of each number of pulls.
    peers: dict[int, list[tuple[float, int]]] = {1: []}  # pulls → heap of (loss, arm)
    for arm in seen.losses:
        heappush(peers[1], (seen.losses[arm], arm))

    def radius(arm: int) -> float:  # β(u, t)
        return sqrt(log(5 / 4 * n * t**4 / delta) / (2 * seen.pulls[arm]))

    while len(seen.pulls) > 1 and left >= 2:
        _, h = min(heap[0] for heap in peers.values())  # the best by its mean
        _take(peers, seen.pulls[h])
        firsts = (heap[0][1] for heap in peers.values())
        rival = min(firsts, key=lambda arm: (seen.mean(arm) - radius(arm), arm))  # their l
        if seen.mean(h) + radius(h) < seen.mean(rival) - radius(rival):
            return h
        _take(peers, seen.pulls[rival])
        yield from seen.look(Pull(arm, upto=seen.pulls[arm] + 1) for arm in (h, rival))
        for arm in (h, rival):
            if arm in seen.pulls:
                heappush(peers.setdefault(seen.pulls[arm], []), (seen.losses[arm], arm))
        left, t = left - 2, t + 1
    return seen.best()


def _take(peers: dict[int, list[tuple[float, int]]], pulls: int) -> None:
    """Take out the best of the arms that have had this number of pulls."""
    heappop(peers[pulls])
    if not peers[pulls]:
        del peers[pulls]


@dataclass(eq=False)
class LUCB(Confidence):
    """Pull the best arm so far and its strongest rival, until it is sure which one is better.

    In round t an arm with u pulls has the confidence radius β(u, t) = √(ln(k₁·n·t⁴/δ) / 2u), with
    their k₁ = 5/4. The rival is the arm whose loss could be lowest. It ends when the best arm's
    upper bound is below the rival's lower bound. Every pull is looked at: at most B observations.

    >>> policy = LUCB(arms=3, budget=100)
    >>> policy.ask(3)
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=2, upto=1)]

    - `arms`, `budget`: how many arms there are, and the most pulls over all of them.
    - `delta`: the chance of error that is allowed.
    - `low`, `high`: the range of the draws whose mean an arm's loss is, if it is known.

    Source: Kalyanakrishnan, Tewari, Auer & Stone, "PAC Subset Selection in Stochastic Multi-armed
    Bandits" (ICML 2012), algorithm LUCB1 with m = 1 and ε = 0.
    """

    name: ClassVar[str] = "lucb"
    has_rungs: ClassVar[bool] = False
    drops: ClassVar[bool] = False
    ends_when_sure: ClassVar[bool] = True

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        return lucb(range(self.arms), self.budget, self.delta, self.scaled())
