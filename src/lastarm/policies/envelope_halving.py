"""Halving that looks at each arm's own curve: a steep one may still fall, a flat one does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from lastarm.policies.horizon_halving import Choice, HorizonHalving
from lastarm.policy import ranking


class Falls:
    """What the arms' curves have shown, rung by rung: how far each fell from look to look.

    >>> falls = Falls()
    >>> falls.choice({0: 0.9, 1: 0.5, 2: 0.6}, 3)
    [1, 2, 0]
    >>> falls.choice({0: 0.52, 1: 0.4, 2: 0.5}, 2)  # by half of its 0.38, arm 0 comes to 0.33
    [1, 0]
    """

    def __init__(self) -> None:
        self._losses: Mapping[int, float] = {}  # at the last look
        self._falls: dict[int, float] = {}  # before it, of arms that were looked at twice

    def choice(self, losses: Mapping[int, float], n: int) -> list[int]:
        """The arms that are expected lowest at their next look; in the end, those that are."""
        # Halves, since a difference may overflow; a loss that rose counts as one that stayed.
        falls = {
            arm: max(0.0, self._losses.get(arm, loss) / 2 - loss / 2)
            for arm, loss in losses.items()
        }
        again = [
            min(1.0, fall / self._falls[arm])
            for arm, fall in falls.items()
            if self._falls.get(arm, 0.0) > 0
        ]
        share = median(again) if again else 0.5
        self._losses, self._falls = losses, falls
        ranked = ranking(losses)
        if n == 1:
            return ranked[:1]
        leader = losses[ranked[0]]
        expected = {arm: max(leader, losses[arm] - share * 2 * falls[arm]) for arm in ranked}
        return sorted(ranked, key=expected.__getitem__)[:n]  # stable: the leader stays first


@dataclass(eq=False, repr=False)
class EnvelopeHalving(HorizonHalving):
    """Halving up to a horizon that keeps slow starters with steep curves, and drops flat ones.

    An arm whose loss fell between its last two looks is expected to fall again, by a share of
    that. The share comes from the arms themselves, without any assumed form of curve: it is the
    median of next fall / last fall; before any arm was looked at three times, it is one half. No
    arm is expected to come below the lowest loss of the rung, a loss that rose counts as one that
    stayed the same, and in the last rung the lowest loss wins.

    >>> print(EnvelopeHalving(arms=8, budget=64, max_pulls=20).plan())
    rung    arms  pulls each  brought to  pulls in all
       1       8           4           4            32
       2       4           4           8            48
       3       2           8          16            64

    The levels are those of `HorizonHalving`. The arm with the lowest loss always goes on, so the
    arm that is found has the same bound, at most Σ_k 2γ̄(R_k) worse than the best (Theorem 4), for
    any curves. But not only the ranking of losses matters here: their differences do. On smooth
    curves it finds better arms with the same looks, on noisy ones slightly worse ones:
    docs/policies.md has the figures.

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on; a number above 1, or a fraction such as "3/2".
    - `seed`: the draw of arms is derived from it.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: ours; the question is in Jamieson & Talwalkar (2015), under future directions.
    """

    name: ClassVar[str] = "envelope-halving"
    version: ClassVar[int] = 1
    who_goes_on: ClassVar[str] = (
        "Those go on that are expected lowest next, by how their curves fell so far: a steep one "
        "may pass over a flat one with a lower loss."
    )
    why_higher: ClassVar[str] = (
        "envelope-halving goes by what it expects of each curve, and that one had fallen more "
        "since the rung before."
    )

    def choice(self) -> Choice:
        """The arms that are expected to have the lowest losses go on."""
        falls = Falls()
        return lambda losses, n, _: falls.choice(losses, n)
