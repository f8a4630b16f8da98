"""Latest losses on a scale from 0 to 1, for policies that are about chance.

Their papers assume rewards in [0, 1]. Losses are scaled by a range that is known beforehand, or
else by the least and the greatest that were told so far. In the second case the estimates of all
arms change when a new extreme is seen, and the range may be too narrow at first. The mean of an
arm's draws, μ̂, is its latest loss: an arm whose draws are random has to average them itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from math import inf, isfinite

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument, shown
from lastarm.events import Pull
from lastarm.policy import NoHealthyArm, lowest


def known_range(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """The range of the draws as floats, checked; None is for an end that is not known."""
    bounds = [as_float(bound) for bound in (low, high) if bound is not None]
    if not all(map(isfinite, bounds)) or (len(bounds) == 2 and bounds[0] >= bounds[1]):
        rule = f"low and high={shown(high)} are the range of the draws"
        way_out = "Use two numbers, with low below high, or leave them out"
        raise InvalidArgument.of("low", low, rule, way_out)
    return None if low is None else float(low), None if high is None else float(high)


class Scaled:
    """The healthy arms that were looked at: how often each was pulled, and its scaled loss."""

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        self.pulls: dict[int, int] = {}  # T_i; an arm that is not here is out
        self.losses: dict[int, float] = {}  # the latest, as told
        self._least = inf if low is None else low
        self._greatest = -inf if high is None else high

    def look(self, pulls: Iterable[Pull]) -> Generator[list[Pull], dict[int, float], None]:
        """Ask for pulls and keep their losses. It is to be used with `yield from`."""
        asked = list(pulls)
        try:
            losses = yield asked
        except NoHealthyArm:
            losses = {}
        for pull in asked:
            if pull.arm in losses:
                self.pulls[pull.arm] = max(pull.upto, self.pulls.get(pull.arm, 0))
                self.losses[pull.arm] = losses[pull.arm]
                self._least = min(self._least, losses[pull.arm])
                self._greatest = max(self._greatest, losses[pull.arm])
            else:
                self.pulls.pop(pull.arm, None)
                self.losses.pop(pull.arm, None)

    def mean(self, arm: int) -> float:
        """The latest loss of an arm, from 0 for the least known to 1 for the greatest."""
        span = self._greatest / 2 - self._least / 2  # halved, since it may overflow
        return (self.losses[arm] / 2 - self._least / 2) / span if span else 0.0

    @property
    def scale(self) -> tuple[float, float]:
        """What all means depend on. It changes only when a new extreme is seen."""
        return self._least, self._greatest

    def best(self, among: Iterable[int] | None = None) -> int:
        """The healthy arm with the lowest latest loss; ties go to the lower number."""
        healthy = self.losses
        if among is not None:
            healthy = {arm: healthy[arm] for arm in among if arm in healthy}
        best = lowest(healthy)
        if best is None:
            raise NoHealthyArm
        return best
