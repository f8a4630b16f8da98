"""What `sooner` says of what it saw: a table until there, one of all tries, and the goals."""

from __future__ import annotations

from math import inf, isfinite
from statistics import median
from typing import NamedTuple

from record import Record
from sooner_arms import EPOCHS, Attempt

OURS = "lastarm, HalvingSearch"
ALONE = "the best on VAL alone, by scikit-learn"
WORSE = "% worse than best on VAL"
NEAR = 1.01


class Seen(NamedTuple):
    """Of one seed: the losses to set others against, the best arm's training, and all tries."""

    best: float
    least: float
    seconds: float
    tried: dict[str, list[Attempt]]

    def last(self, name: str) -> tuple[Attempt, bool]:
        """The dearest setting that a contender tried, and whether it got there."""
        attempt = self.tried[name][-1]
        return attempt, attempt.loss <= NEAR * self.best


def until_there(record: Record, title: str, seeds: list[Seen]) -> dict[str, float]:
    """The seconds that each contender took, in the median."""
    ends = {name: [seen.last(name) for seen in seeds] for name in seeds[0].tried}
    seconds = {
        name: median(attempt.seconds if there else inf for attempt, there in last)
        for name, last in ends.items()
    }
    rows: dict[str, dict[str, float]] = {}
    for name, last in ends.items():
        rows[name] = {"seeds there": sum(there for _, there in last)}
        if isfinite(seconds[name]):
            rows[name] |= {
                "seconds": seconds[name],
                "epochs": median(attempt.epochs if there else inf for attempt, there in last),
                "÷ lastarm's seconds": seconds[name] / seconds[OURS],
            }
        rows[name] |= _losses([attempt.loss for attempt, _ in last], seeds)
    alone = median(seen.seconds for seen in seeds)
    rows[ALONE] = {
        "seconds": alone,
        "epochs": EPOCHS,
        "÷ lastarm's seconds": alone / seconds[OURS],
        **_losses([seen.best for seen in seeds], seeds),
    }
    rows["the best on TEST, fully trained"] = _losses([seen.least for seen in seeds], seeds)
    record.table(f"{title}: until within 1 % of the best on VAL", rows)
    return {**seconds, ALONE: alone}


def _losses(losses: list[float], seeds: list[Seen]) -> dict[str, float]:
    pairs = list(zip(losses, seeds, strict=True))
    return {
        "test loss": median(losses),
        WORSE: median(100 * (loss / seen.best - 1) for loss, seen in pairs),
        "% worse than best on TEST": median(100 * (loss / seen.least - 1) for loss, seen in pairs),
    }


def all_tries(record: Record, title: str, seeds: list[Seen]) -> None:
    """Every setting that was tried: in how many seeds, with what success, at what cost."""
    rows: dict[str, dict[str, float]] = {}
    tries = [
        (f"{name}, {attempt.setting}", attempt, seen)
        for name in seeds[0].tried
        for seen in seeds
        for attempt in seen.tried[name]
    ]
    for what in dict.fromkeys(what for what, _, _ in tries):
        own = [(attempt, seen) for other, attempt, seen in tries if other == what]
        rows[what] = {
            "seeds": len(own),
            "there": sum(attempt.loss <= NEAR * seen.best for attempt, seen in own),
            "seconds": median(attempt.seconds for attempt, _ in own),
            "epochs": median(attempt.epochs for attempt, _ in own),
            WORSE: median(100 * (attempt.loss / seen.best - 1) for attempt, seen in own),
        }
    record.table(f"{title}: all settings that were tried", rows)


def judge(record: Record, found: dict[str, dict[str, float]]) -> None:
    """Say whether the goals were met."""
    record.section("The goal: 10 times sooner than any peer, and sooner than one full training")
    for title, seconds in found.items():
        peers = [own for name, own in seconds.items() if name not in {OURS, ALONE}]
        if not isfinite(min(peers)):
            record.note(f"{title}: no peer gets there.")
        else:
            ratio = min(peers) / seconds[OURS]
            missed = "" if ratio >= 10 else ", missed"
            what = f"{title}: fastest peer that gets there / lastarm"
            record.row(what, ratio, "times", f"at least 10{missed}")
        ratio = seconds[ALONE] / seconds[OURS]
        missed = "" if ratio > 1 else ", missed"
        what = f"{title}: scikit-learn's one full training / lastarm"
        record.row(what, ratio, "times", f"more than 1{missed}")
