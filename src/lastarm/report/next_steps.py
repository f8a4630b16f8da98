"""What to do next: how a search is resumed, and whether more budget would change anything."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Any

from lastarm.events import Opened
from lastarm.masking import is_masked, without_hashes
from lastarm.policies import POLICIES
from lastarm.policies.named import from_header
from lastarm.policy import Extendable, has_restarts
from lastarm.result import Result
from lastarm.texts import clean
from lastarm.theory.gain import MEASURED, likely_gain

RESUMABLE = ("tune", "replay")  # the commands that `lastarm resume` runs again


def next_steps(result: Result, opened: Opened | None, state: str) -> list[dict[str, Any]]:
    """Sentences, each with the command that it is about, if there is one.

    `state` is "complete", "running" or "stopped". More budget is not advised where it is known
    that nothing would be done with it.

    >>> header = Opened(0, {"budget": 640}, {}, {}, command=("lastarm", "tune", "train.py"))
    >>> result = Result.of([header], journal="my search.jsonl")
    >>> for step in next_steps(result, header, "complete"):
    ...     print(step["words"], step["command"])
    To train further, with twice the budget: lastarm resume 'my search.jsonl' --budget 1280
    """
    if not opened or not result.journal:
        words = "It has no journal, so it cannot be resumed. To have one the next time:"
        return [{"words": words, "command": 'search(…, journal="search.jsonl")'}]
    path = shlex.quote(result.journal)
    ended = nothing_left(result) if state == "complete" else None
    policy, kind = from_header(opened.policy), POLICIES.get(str(opened.policy.get("name")))
    extendable = not ended and (not policy or isinstance(policy, Extendable))
    factor, times = _worth_giving(result)
    more = factor * result.budget if result.budget and extendable else None
    given = [str(word) for word in opened.command]
    ours = begun_by_command(opened)
    if kind and opened.policy.get("version", 1) != kind.version:
        other = f"It was begun with another version of {kind.name}, so it cannot be resumed here."
        steps = [(other, "")]
    elif state == "running":
        steps = [("It is running. To watch it:", f"lastarm watch {path}")]
    elif ours and not is_masked(given):
        steps = [("To resume it:", f"lastarm resume {path}")] if state == "stopped" else []
        if more and state == "complete":
            further = f"To train further, with {times} the budget:"
            steps.append((further, f"lastarm resume {path} --budget {more}"))
    else:
        begun = f"by {shlex.join(without_hashes(given)) or 'a session'}"
        again = "run the same code again with this journal"
        if ours:
            again = "run the same command again, with your own values in place of ***"
        begun = begun if ours else f"in Python, {begun}"
        steps = [(f"It was begun {begun} in {opened.folder or 'some folder'}.", "")]
        if state == "stopped":
            steps.append((f"To resume it, {again}.", ""))
        if more and state == "complete":
            steps.append((f"To train further, {again} and a budget such as {more:,}.", ""))
    if state == "complete" and result.arm is not None and opened.command[1:2] != ("replay",):
        steps.insert(0, ("The winner, in Python:", f"lastarm.load({result.journal!r})"))
    if more and state == "complete" and (worth := _likely(result)):
        steps.append((worth, ""))
    if ended:
        steps.append((f"More budget would change nothing: {ended}.", ""))
    return [{"words": clean(said), "command": clean(command)} for said, command in steps]


def _likely(result: Result) -> str:
    """What twice the budget is likely to buy, in a sentence; empty where that was not measured."""
    measured = str(result.policy.get("name")) in MEASURED and not has_restarts(result.policy)
    if not measured or result.arm is None or result.loss is None:
        return ""
    gain = likely_gain(result.curves, result.arm, result.causes())
    if gain is None:
        return ""
    metric = result.metric
    best, worst, now = metric.apart(result.loss - gain.high, result.loss - gain.low, result.loss)
    return (
        f"With twice the budget, {metric.label} would be from {worst} to {best} in 9 of 10 cases, "
        f"by how the curves fell last; it is {now} now."
    )


def begun_by_command(opened: Opened) -> bool:
    """Whether `lastarm resume` runs its command; else it was begun in Python."""
    program, *given = opened.command or ("",)
    return PurePath(str(program)).name == "lastarm" and bool(given) and given[0] in RESUMABLE


def nothing_left(result: Result) -> str | None:
    """Why a search that has ended would do nothing with more budget, if that is known.

    >>> from lastarm.events import Loss, Pull
    >>> policy = {"name": "asha", "arms": 3, "budget": 5, "max_pulls": 3, "eta": 3}
    >>> losses = [Loss(Pull(arm, upto=1), arm / 4) for arm in range(3)]
    >>> nothing_left(Result.of([Opened(0, policy, {}, {}), *losses]))
    >>> losses.append(Loss(Pull(0, upto=3), 0.5))
    >>> nothing_left(Result.of([Opened(0, policy, {}, {}), *losses]))
    'no arm is left to begin or to promote'
    """
    policy = from_header({**result.policy, "budget": result.budget})
    pulls, stretches = result.spent.pulls, result.stretches
    if policy and (reason := policy.nothing_left(result.curves, result.failures, pulls)):
        return reason
    if len(stretches) < 2:
        return None
    before, last = stretches[-2:]
    if last.before.pulls == pulls and last.budget >= _worth_giving(result)[0] * before.budget:
        return f"going from {before.budget:,} to {last.budget:,} did nothing either"
    return None


def _worth_giving(result: Result) -> tuple[int, str]:
    """By how much a budget should be multiplied, so that arms get further; and in words.

    If every level is trained from zero, twice the budget may bring an arm no further than before.
    """
    return (4, "four times") if has_restarts(result.policy) else (2, "twice")
