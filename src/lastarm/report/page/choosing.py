"""How arms were chosen: what the model expected of them, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from statistics import median
from typing import Any, Self

from lastarm.events import Event, Opened, Origin, Pull
from lastarm.report.axes import axis
from lastarm.result import Result
from lastarm.texts import counted
from lastarm.trainers.metric import Metric

WAYS = {
    "chosen": "The model chose its config",
    "random": "Its config was drawn at random",
    "included": "Its config was given by the user",
}
SURE = 2  # deviations, within which most losses should come


@dataclass(frozen=True)
class Choosing:
    """The origins of the arms of a search with a sampler, in the order in which they began."""

    result: Result
    origins: Mapping[int, Origin]
    level: int

    @classmethod
    def of(cls, result: Result, events: Iterable[Event]) -> Self:
        """As a journal has them, which may be anybody's."""
        origins: dict[int, Origin] = {}
        level = 0
        for event in events:
            if isinstance(event, Opened):
                most = event.policy.get("max_pulls")
                level = most if type(most) is int else 0
            elif isinstance(event, Pull) and event.origin and event.origin.how in WAYS:
                known = all(isinstance(n, float) and isfinite(n) for n in event.origin[1:])
                origins[event.arm] = event.origin if known else Origin(event.origin.how)
        deepest = max((curve[-1][0] for curve in result.curves.values()), default=0)
        return cls(result, origins, min(level, deepest) or deepest)

    @property
    def metric(self) -> Metric:
        """What is read in place of a loss."""
        return self.result.metric

    @cached_property
    def came(self) -> dict[int, float]:
        """Arm → its loss at the level at which arms are compared, of those that came there."""
        return {
            arm: loss
            for arm in self.origins
            for level, loss in self.result.curves.get(arm, [])
            if level == self.level and isfinite(loss)
        }

    def origin(self, arm: int) -> dict[str, Any] | None:
        """Where the config of an arm is from, for the table of arms."""
        if arm not in self.origins:
            return None
        how, mean, _ = self.origins[arm]
        return {
            "how": how,
            "expected": None if mean is None else self.metric.value(mean),
            "said": "" if mean is None else self._expected(arm),
        }

    def sentences(self, arm: int) -> list[str]:
        """Where the config of an arm is from, for its story."""
        if arm not in self.origins:
            return []
        how, mean, _ = self.origins[arm]
        if mean is None:
            return [f"{WAYS[how]}."]
        label, at = self.metric.label, counted(self.level, "pull")
        said = f"{WAYS[how]}: the expected {label} after {at} was {self._expected(arm)}."
        if arm in self.came:
            said += f" It came to {self.metric.figure(self.came[arm])}."
        return [said]

    def _expected(self, arm: int) -> str:
        _, mean, deviation = self.origins[arm]
        return f"{self.metric.value(mean or 0.0):.4g} ± {deviation:.2g}"

    def told(self) -> dict[str, Any] | None:
        """All of it as plain data; None if no sampler chose any arm."""
        if not any(origin.how == "chosen" for origin in self.origins.values()):
            return None
        value = self.metric.value
        points: list[dict[str, Any]] = []
        for order, (arm, (how, mean, deviation)) in enumerate(self.origins.items(), start=1):
            point: dict[str, Any] = {"arm": arm, "order": order, "how": how}
            if mean is not None and deviation is not None:
                ends = sorted((value(mean - deviation), value(mean + deviation)))
                point |= {"mean": value(mean), "low": ends[0], "high": ends[1]}
            if arm in self.came:
                point |= {"loss": value(self.came[arm])}
            elif curve := [at for at in self.result.curves.get(arm, []) if isfinite(at[1])]:
                point |= {"at": curve[-1][0], "last": value(curve[-1][1])}
            points.append(point)
        seen = [point[name] for point in points for name in ("loss", "mean") if name in point]
        return {
            "words": self._words(),
            "level": self.level,
            "axis": axis(seen, wide=None, all_in=len(seen) < 10),
            "points": points,
        }

    def _words(self) -> list[str]:
        arms = {
            how: [arm for arm, origin in self.origins.items() if origin.how == how] for how in WAYS
        }
        ways = [
            f"{_were(len(arms['chosen']))} chosen by the sampler, from what was known when their "
            "batch began",
            f"{_were(len(arms['random']))} drawn at random",
        ]
        if arms["included"]:
            ways.append(f"{_were(len(arms['included']))} given by the user")
        every = counted(len(self.origins), "arm")
        said = [f"Of {every}, {', '.join(ways[:-1])}, and {ways[-1]}."]
        both = [
            [self.came[a] for a in arms[how] if a in self.came] for how in ("chosen", "random")
        ]
        if all(both):
            chosen, random = (self.metric.figure(median(losses)) for losses in both)
            said.append(
                f"After {counted(self.level, 'pull')}, the median {self.metric.label} of "
                f"{counted(len(both[0]), 'chosen arm')} is {chosen}, and of "
                f"{counted(len(both[1]), 'random arm')} {random}."
            )
        expected = [a for a in self.came if self.origins[a].mean is not None]
        if expected:
            near = sum(self._came_near(arm) for arm in expected)
            said.append(
                f"Of {counted(len(expected), 'arm')} with an expected {self.metric.label} that "
                f"came there, {near:,} came within {SURE} deviations of it. (Only the best arms "
                "of a batch come there, so that most are a little better than expected.)"
            )
        return said

    def _came_near(self, arm: int) -> bool:
        _, mean, deviation = self.origins[arm]
        return abs(self.came[arm] - (mean or 0.0)) <= SURE * (deviation or 0.0)


def _were(arms: int) -> str:
    return f"{arms:,} {'was' if arms == 1 else 'were'}"
