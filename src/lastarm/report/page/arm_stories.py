"""What became of each arm, and why, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from lastarm.ledger.survivors import RungOutcome, Survivors
from lastarm.policies.named import facts_of
from lastarm.policies.parts.budgeted import Facts
from lastarm.result import Result
from lastarm.texts import apart, clean, counted
from lastarm.theory.audit import Audit, Elimination
from lastarm.trainers.metric import Metric

MOST_OF_AN_ERROR = 300  # characters; the page has all of it elsewhere


@dataclass(frozen=True)
class ArmStories:
    """What there is to say of each arm of a search that is "complete", "running" or "stopped"."""

    result: Result
    survivors: Survivors
    state: str
    audit: Audit | None

    @property
    def metric(self) -> Metric:
        """What is read in place of a loss."""
        return self.result.metric

    @cached_property
    def policy(self) -> str:
        """The name of the policy, as it can be shown."""
        return clean(str(self.result.policy.get("name", "")), 40)

    @cached_property
    def facts(self) -> type[Facts]:
        """What is known of its policy."""
        return facts_of(self.policy)

    def fate(self, arm: int) -> str:
        """In a word or two."""
        if arm == self.result.arm:
            return "recommended" if self.state == "complete" else "leads"
        if arm in self.result.failures:
            return "failed"
        if not isfinite(self.last_loss(arm)):
            return "diverged" if arm in self.result.curves else "not seen yet"
        if self._is_open(arm):
            return "not decided"
        at_the_end = not self.facts.has_rungs or self._last_seen(arm).last_to_go_on is None
        return "not chosen" if at_the_end else "dropped"

    def sentences(self, arm: int, runner_up: int | None) -> list[str]:
        """The whole story."""
        match self.fate(arm):
            case "recommended" | "leads":
                return self._won(arm, runner_up)
            case "failed":
                failure = self.result.failures[arm]
                error = clean(failure.error, MOST_OF_AN_ERROR).rstrip(".")
                return [
                    f"It failed on the way to {counted(failure.pull.upto, 'pull')}: {error}.",
                    *(
                        f"Before that its {self.metric.label} was {self.metric.figure(loss)} "
                        f"after {counted(level, 'pull')}."
                        for level, loss in self.result.curves.get(arm, [])[-1:]
                    ),
                    "An arm that fails is out of the race.",
                ]
            case "diverged":
                level, loss = self.result.curves[arm][-1]
                return [
                    f"Its {self.metric.label} was {self.metric.value(loss)} after "
                    f"{counted(level, 'pull')}.",
                    f"An arm whose {self.metric.label} is not finite is out of the race.",
                ]
            case "not seen yet":
                return [self._under_way(arm)]
            case "not decided":
                when = "so far" if self.state == "running" else "when the search was stopped"
                said = f"Whether it goes on was not decided {when}."
                if arm in self.survivors.under_way:
                    said = self._under_way(arm)
                return [self._place(arm, "It came to"), *self._rose(arm), said]
            case fate:
                what = "It was dropped at" if fate == "dropped" else "It came to"
                found = self._eliminations.get(arm)
                close = [closeness(found, self.metric)] if found else []
                return [self._place(arm, what), *self._rose(arm), *self._why(arm), *close]

    def last_loss(self, arm: int) -> float:
        """The latest that was seen of it; nan if nothing was."""
        return self.result.curves[arm][-1][1] if arm in self.result.curves else float("nan")

    def where(self, rung: RungOutcome) -> str:
        """What a rung is called."""
        if not self.facts.has_rungs:
            return f"{counted(rung.level, 'pull')}"
        name = f"rung {rung.number}"
        if self.brackets > 1:
            name += f" of bracket {rung.bracket}"
        return name + (f" of stretch {rung.stretch}" if self.stretches > 1 else "")

    @cached_property
    def brackets(self) -> int:
        """How many there are in a stretch."""
        return max((rung.bracket for rung in self.survivors.rungs), default=0)

    @cached_property
    def stretches(self) -> int:
        """How many of them have rungs."""
        return max((rung.stretch for rung in self.survivors.rungs), default=0)

    def _won(self, arm: int, runner_up: int | None) -> list[str]:
        assert self.result.loss is not None
        loss, at = self.result.loss, self.result.level or 0
        rungs = [rung for rung in self.survivors.rungs_of[arm] if arm in rung.places]
        said = f"Its {self.metric.label} was {self.metric.figure(loss)} after "
        said += f"{counted(at, 'pull')}."
        story = ["It is recommended. " + said if self.state == "complete" else "It leads. " + said]
        level, latest = self.result.curves[arm][-1]
        story += (
            self._rose(arm)
            if level == at
            else [
                f"Trained further, it had {self.metric.figure(latest)} after "
                f"{counted(level, 'pull')}."
            ]
        )
        if rungs and self.facts.has_rungs:
            worst = max(rungs, key=lambda rung: rung.places[arm])
            first = sum(rung.places[arm] == 1 for rung in rungs)
            story.append(
                f"It was at {counted(len(rungs), 'rung')} and the best of {first}"
                + (
                    "."
                    if first == len(rungs)
                    else f"; its lowest place was {worst.places[arm]} of {len(worst.losses)}, at "
                    f"{self.where(worst)}."
                )
            )
        if runner_up is not None:
            level, other = self.result.curves[runner_up][-1]
            _, theirs = self.metric.apart(loss, other)
            story.append(
                f"The next best, arm {runner_up}, had {theirs} after {counted(level, 'pull')}."
            )
        return story

    def _place(self, arm: int, what: str) -> str:
        rung = self._last_seen(arm)
        said, loss = f"{what} {self.where(rung)}", self.metric.in_words(rung.losses[arm])
        if not self.facts.has_rungs:
            return f"{said}, with {loss}."
        place = f"place {rung.places[arm]:,} of {len(rung.losses):,}"
        had = ", which it had already" if arm in rung.already else ""
        return f"{said}, after {counted(rung.arms[arm], 'pull')}{had}, with {loss}: {place}."

    def _rose(self, arm: int) -> list[str]:
        """That more training made it worse, if it did."""
        *earlier, (_, now) = self.result.curves[arm]
        before, level = min(((loss, level) for level, loss in earlier), default=(now, 0))
        if not before < now:
            return []
        metric = self.metric
        figure, _ = metric.apart(before, now)
        return [
            f"Its {metric.label} had been {metric.better}, {figure} after "
            f"{counted(level, 'pull')}, and {metric.worsened} with more training."
        ]

    def _why(self, arm: int) -> list[str]:
        """Which arms went on in its place, or which won."""
        winner = self.result.arm
        assert winner is not None
        rung = self._last_seen(arm)
        mine = rung.losses[arm]
        if not self.facts.has_rungs:
            level, now = self.result.curves[winner][-1]
            return [
                f"{self.policy} then gave its pulls to arms that seemed better or less certain. "
                f"Arm {winner}, which it recommends, had {self.metric.figure(now)} after "
                f"{counted(level, 'pull')}."
            ]
        last = rung.last_to_go_on
        if last is None:
            there = rung.losses.get(winner)
            level, now = self.result.curves[winner][-1]
            if there is not None and level == rung.arms[winner]:
                return [f"It lost to arm {winner}, which {self._compared(mine, there)}"]
            return [
                f"No arm was trained further from there. Arm {winner}, which is recommended, had "
                f"{self.metric.figure(now)} after {counted(level, 'pull')}."
            ]
        who = "the last of them" if len(rung.went_on) > 1 else "that one"
        went = f"{counted(len(rung.went_on), 'arm')} went on"
        if rung.losses[last] > mine:
            said = f"{self.policy or 'the policy'} does not go by this loss alone."
            why = self.facts.why_higher or said
            _, theirs = self.metric.apart(mine, rung.losses[last])
            other = f"a {self.metric.worse} {self.metric.label} of {theirs}"
            return [f"{went}, arm {last} with {other}: {why}"]
        return [f"{went}; {who}, arm {last}, {self._compared(mine, rung.losses[last])}"]

    def _compared(self, mine: float, theirs: float) -> str:
        if mine == theirs:
            return f"had the same {self.metric.label}, and ties go to the lower arm number."
        return f"had {self.metric.apart(mine, theirs)[1]}."

    def _under_way(self, arm: int) -> str:
        to = counted(self.survivors.under_way.get(arm, 0), "pull")
        if self.state == "running":
            return f"It is being brought to {to}."
        return f"It was being brought to {to} when the search was stopped."

    def _is_open(self, arm: int) -> bool:
        """Whether it may still go on: the search has not ended, and no arm has passed it yet."""
        if self.state == "complete":
            return False
        if arm in self.survivors.under_way or not self.facts.drops:
            return True
        newest = self.survivors.rungs[-1]
        rung = self.survivors.rungs_of[arm][-1]
        if not self.facts.draws_anew and (
            self.survivors.waiting
            or (newest.number == 1 and newest is not self.survivors.rungs[0])
        ):
            return True  # all have another chance
        same = (rung.stretch, rung.bracket) == (newest.stretch, newest.bracket)
        if same and newest.asked and rung is not newest:
            return arm in newest.asked
        return same and rung.number >= newest.number - 1

    def _last_seen(self, arm: int) -> RungOutcome:
        return next(rung for rung in reversed(self.survivors.rungs_of[arm]) if arm in rung.places)

    @cached_property
    def _eliminations(self) -> Mapping[int, Elimination]:
        return {e.arm: e for e in self.audit.eliminations} if self.audit else {}


def closeness(found: Elimination, metric: Metric) -> str:
    """How close an elimination was, by the audit's estimate."""
    if found.margin <= 0:
        return (
            f"The recommended arm did not come {metric.better}: with more training, this one "
            "might have won."
        )
    if found.moved is None:
        return (
            f"To win it would have had to {metric.improve} by {found.margin:.6g}. No arm was "
            "trained further, so it is not known how it would have continued."
        )
    margin, moved = apart(found.margin, found.moved)
    if found.close:
        return (
            f"It was a close call: to win it would have had to {metric.improve} by {margin}, and "
            f"an arm that went on from there still moved by {moved}."
        )
    return (
        f"It was not a close call: to win it would have had to {metric.improve} by {margin}, and "
        f"no arm that went on from there moved by more than {moved}."
    )
