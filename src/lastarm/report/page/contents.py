"""The contents of the page: all that is told of a search, as plain data.

Words are made here, pictures by the page. What comes out is JSON: finite numbers, texts that are
safe to show, and no more of either than a page can hold.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, inf, isfinite, log
from typing import Any, Self

from lastarm.events import Event, Opened
from lastarm.ledger.survivors import RungOutcome, Survivors
from lastarm.ledger.utilisation import Timeline
from lastarm.plain import finite
from lastarm.report.axes import TINY, axis, thinned
from lastarm.report.hyperparameters import Parameter, flat, parameters
from lastarm.report.importance import importance
from lastarm.report.next_steps import next_steps
from lastarm.report.page.arm_stories import ArmStories, closeness
from lastarm.report.page.choosing import Choosing
from lastarm.result import Result
from lastarm.texts import LONGEST, clean, counted, duration
from lastarm.theory import Audit, audit
from lastarm.trainers.metric import Metric, for_people

MOST_ARMS = 2_000  # that are shown one by one
MOST_POINTS = 60_000  # of their curves, all together
MOST_PARAMETERS = 40
MOST_MEASURES = 8  # that trainers tell beside the loss
MOST_RUNGS = 200
MOST_STINTS = 4_000  # more of them are drawn as one where nothing parts them
MOST_WORKERS = 40
MOST_FAILURES = 50
MOST_SIGNS = 6_000  # of a traceback: its end, where the error is
MOST_ELIMINATIONS = 10
MOST_DROPPED = 4
MOST_DOTS = 2_000


def contents(result: Result, events: Sequence[Event], *, running: bool = False) -> dict[str, Any]:
    """All that there is to tell of a search.

    :param result: what is known of the search.
    :param events: its events, from which `result` was made.
    :param running: whether more may come.

    >>> from lastarm.events import Closed, Loss, Pull
    >>> losses = [(0, 1, 0.5), (1, 1, 0.6), (0, 2, 0.4)]
    >>> events = [*(Loss(Pull(arm, upto), loss) for arm, upto, loss in losses), Closed(0, 2)]
    >>> told = contents(Result.of(events), events)
    >>> told["headline"]
    'Arm 0 is recommended'
    >>> told["arms"][1]["story"]
    ['It was dropped at rung 1, after 1 pull, with a loss of 0.6: place 2 of 2.',
     '1 arm went on; that one, arm 0, had 0.5.',
     'It was not a close call: to win it would have had to fall by 0.2, and no arm that went on
      from there moved by more than 0.1.']
    """
    first = events[0] if events else None
    opened = first if isinstance(first, Opened) else None
    survivors, timeline, out = Survivors(events), Timeline(events), result.causes()
    state = "complete" if result.complete else "running" if running else "stopped"
    checked = None if result.arm is None else audit(result.curves, result.arm, out=out)
    stories = ArmStories(result, survivors, state, checked)
    choosing = Choosing.of(result, events)
    ranked = sorted(survivors.rungs_of, key=lambda arm: _standing(arm, result, out))
    healthy = [arm for arm in ranked if arm in result.curves and arm not in out]
    runner_up = healthy[1] if len(healthy) > 1 else None
    shown = ranked[:MOST_ARMS]
    settings = dict(enumerate(result.configs))
    configs = {
        arm: {clean(name, 128): flat(value) for name, value in settings.get(arm, {}).items()}
        for arm in survivors.rungs_of
    }
    varying, constant = _parameters(configs, result)
    notes = _notes(result, len(ranked), len(shown))
    if len(varying) > MOST_PARAMETERS:
        notes.append(
            f"Of {len(varying):,} settings the {MOST_PARAMETERS} that explain most are shown."
        )
        varying = varying[:MOST_PARAMETERS]
    everything = [loss for arm in shown for _, loss in result.curves.get(arm, [])]
    metric, beside = result.metric, Beside.of(result, shown)
    told = {
        "headline": _headline(result, bool(survivors.rungs)),
        "state": state,
        "search": _search(result, opened),
        "journal": clean(result.journal or ""),
        "notes": notes,
        "metric": {"name": metric.label, "best": metric.best, "improve": metric.improve},
        "answer": {
            "arm": result.arm,
            "loss": None if result.loss is None else metric.value(result.loss),
            "said": None if result.loss is None else metric.figure(result.loss),
            "level": result.level,
            "test_loss": None if result.test_loss is None else metric.value(result.test_loss),
            "runner_up": runner_up,
            "cost": _cost(result, len(ranked)) + _stretches(result),
        },
        "looked": "looked at once, at the end"
        if len(result.stretches) < 2
        else "looked at once a stretch, at its end",
        "axes": {
            "level": axis([rung.level for rung in survivors.rungs], wide=8, all_in=True),
            "loss": _figure_axis(everything, metric),
        },
        "measures": beside.measures,
        "arms": _arms(shown, stories, choosing, timeline, varying, runner_up, beside),
        "choosing": choosing.told(),
        "parameters": [
            {"name": p.name, "kind": p.kind, "options": list(p.options), "importance": share}
            for p, share in varying
        ],
        "constant": constant[:MOST_PARAMETERS],
        "narrowing": _narrowing(stories),
        "dropped": _dropped(stories) if running else [],
        "spending": _spending(result, survivors, timeline),
        "failures": _failures(result),
        "audit": _audited(checked, metric),
        "next": next_steps(result, opened, state),
    }
    # Numbers that a chart has a place for: nothing tiny, and not all digits.
    drawn: dict[str, Any] = finite(told, lambda n: float(f"{n:.9g}") if abs(n) > TINY else 0.0)
    return drawn


# The head of the page ---------------------------------------------------------------------------


def _headline(result: Result, begun: bool) -> str:
    """The answer in a line."""
    if result.arm is not None:
        return f"Arm {result.arm} " + ("is recommended" if result.complete else "leads so far")
    if not begun:
        return "Nothing has been tried yet"
    return (
        "No arm has a finite loss" if result.curves or result.failures else "No loss has come yet"
    )


def _search(result: Result, opened: Opened | None) -> str:
    """What was searched, in a line; the seed is known from a journal only."""
    if not opened:
        return ""
    arguments = {name: value for name, value in opened.policy.items() if name != "name"}
    if len(result.stretches) > 1:
        arguments["budget"] = " → ".join(f"{stretch.budget:,}" for stretch in result.stretches)
    if result.journal:
        arguments["seed"] = opened.seed
    said = [str(opened.policy.get("name", "?"))]
    said += [
        f"{name.replace('_', ' ')} {value:,}" if type(value) is int else f"{name} {value}"
        for name, value in arguments.items()
    ]
    return clean(", ".join(said))


def _notes(result: Result, arms: int, shown: int) -> list[str]:
    """What a reader should know before looking at figures."""
    notes = []
    if not result.journal:
        notes.append(
            "This search has no journal, so it is not known when each pull was done, and by which "
            "worker."
        )
    if arms > shown:
        notes.append(
            f"Of {arms:,} arms the best {shown:,} are shown one by one. All of them count in the "
            "figures of rungs and of what was spent."
        )
    return notes + result.remarks()


def _cost(result: Result, arms: int) -> list[str]:
    """What was spent, and what training everything would have cost."""
    spent = result.spent
    said = [f"Spent: {counted(spent.pulls, 'pull')} and {counted(spent.observations, 'look')}"]
    if spent.train_seconds + spent.loss_seconds:
        said[0] += f", {duration(spent.train_seconds + spent.loss_seconds)} of work"
    whole = arms * (result.level or 0)
    if whole > spent.pulls > 0:
        said.append(
            f"Training all {counted(arms, 'arm')} for {whole // arms:,} pulls each, as far as the "
            f"recommended one, would have cost {whole:,} pulls, {whole / spent.pulls:.1f} times "
            "as many"
        )
        if spent.train_seconds:
            each = spent.train_seconds / (spent.pulls + spent.repeated)
            said[1] += f": about {duration(each * whole)} of training, at {duration(each)} a pull"
    return [f"{sentence}." for sentence in said]


def _stretches(result: Result) -> list[str]:
    """What each stretch of a search that was extended spent, and what it came to."""
    if len(result.stretches) < 2:
        return []
    said = ["It was extended."]
    for now in result.by_stretch():
        came = f"With a budget of {now['budget']:,}: {counted(now['pulls'], 'pull')}"
        came += f" and {counted(now['observations'], 'look')}"
        if now["complete"]:
            came += f", then arm {now['arm']} after {counted(now['level'], 'pull')}"
        if now["loss"] is not None:
            came += f", with {result.metric.in_words(now['loss'])}"
        said.append(f"{came}.")
    return said


# Arms and settings ------------------------------------------------------------------------------


def _standing(arm: int, result: Result, out: Mapping[int, str]) -> tuple[Any, ...]:
    """The winner first, then the arms that came furthest with the lowest loss, then the failed."""
    curve = result.curves.get(arm)
    level, loss = curve[-1] if curve else (0, inf)
    return arm != result.arm, arm in result.failures, arm in out, -level, loss, arm


def _parameters(
    configs: Mapping[int, Mapping[str, float | str]], result: Result
) -> tuple[list[tuple[Parameter, float]], list[list[Any]]]:
    """Those that vary, the most important first, and the name and value of those that do not."""
    share = importance(configs, result.curves)
    found = parameters(configs, result.space)
    same = [p for p in found if len(p.values) == len(configs) and len(set(p.values.values())) == 1]
    constant = [[p.name, next(iter(p.values.values()))] for p in same]
    varying = [(p, share.get(p.name, 0.0)) for p in found if p not in same]
    varying.sort(key=lambda item: -item[1])
    return varying, constant


def _arms(
    shown: Sequence[int],
    stories: ArmStories,
    choosing: Choosing,
    timeline: Timeline,
    varying: Sequence[tuple[Parameter, float]],
    runner_up: int | None,
    beside: Beside,
) -> list[dict[str, Any]]:
    seconds: dict[int, float] = defaultdict(float)
    for stint in timeline.stints:
        seconds[stint.arm] += stint.until - stint.since
    curves, metric = stories.result.curves, stories.metric
    most = max(8, MOST_POINTS // max(1, len(shown) * (1 + len(beside.measures))))
    deepest = max((rung.level for rung in stories.survivors.rungs), default=1)
    told = []
    for arm in shown:
        curve = thinned(curves.get(arm, []), most)
        level = stories.survivors.rungs_of[arm][-1].level
        loss = stories.last_loss(arm)
        story = choosing.sentences(arm) + stories.sentences(arm, runner_up)
        told.append(
            {
                "arm": arm,
                "fate": stories.fate(arm),
                "story": [clean(line, 2 * LONGEST) for line in story],
                "origin": choosing.origin(arm),
                "pulls": curve[-1][0] if curve else 0,
                "loss": metric.value(loss),
                "said": metric.figure(loss) if curve else "",
                "far": log(level + 1) / log(deepest + 1),
                "seconds": seconds[arm],
                "levels": [upto for upto, _ in curve],
                "losses": [metric.value(loss) for _, loss in curve],
                "beside": beside.latest(arm),
                "series": beside.series(arm, curve),
                "values": [parameter.values.get(arm) for parameter, _ in varying],
            }
        )
    return told


@dataclass(frozen=True)
class Beside:
    """What trainers told beside losses, by the names that the page shows."""

    result: Result
    names: Sequence[str]
    measures: Sequence[dict[str, Any]]
    """The name of each, and the axis of its curves; None if it has no numbers."""

    @classmethod
    def of(cls, result: Result, shown: Sequence[int]) -> Self:
        """What was told of the arms that are shown."""
        seen = [(arm, at) for arm in shown for at in result.curves.get(arm, [])]
        told = [result.told_beside(arm, *at) for arm, at in seen]
        names = for_people(told, MOST_MEASURES)
        measures = []
        for name in names:
            numbers = [n for one in told if (n := _number(one.get(name))) is not None]
            scale = axis(numbers, all_in=True) if numbers else None
            measures.append({"name": clean(name, 60), "axis": scale})
        return cls(result, names, measures)

    def latest(self, arm: int) -> list[Any]:
        """What was told last of an arm."""
        curve = self.result.curves.get(arm)
        told = self.result.told_beside(arm, *curve[-1]) if curve else {}
        return [flat(told[name]) if name in told else None for name in self.names]

    def series(self, arm: int, curve: Sequence[tuple[int, float]]) -> list[list[float | None]]:
        """The curves of an arm: of each measure, the numbers at these levels."""
        told = [self.result.told_beside(arm, *at) for at in curve]
        return [[_number(one.get(name)) for one in told] for name in self.names]


def _number(value: Any) -> float | None:
    """A finite number that was told; a text or a truth value has no place on an axis."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def _figure_axis(losses: Sequence[float], metric: Metric) -> dict[str, Any]:
    """The axis of the figures that stand for losses; a few that are much worse lie outside."""
    if not metric.maximize:
        return axis(losses)
    found = axis(losses, wide=None)
    return found | {"domain": [metric.value(end) for end in reversed(found["domain"])]}


# Rungs -----------------------------------------------------------------------------------------


def _narrowing(stories: ArmStories) -> dict[str, Any]:
    """What happened at each rung; where there are very many, some next to each other are one."""
    survivors = stories.survivors
    words = "A rung is a level that arms are brought to and compared at. "
    words += stories.facts.who_goes_on
    if not survivors.rungs:
        words = "No arm has been pulled yet."
    elif not stories.facts.has_rungs:
        words = (
            f"{stories.policy} has no rungs: it pulls an arm or two at a time. This is how many "
            "arms it took to each number of pulls."
        )
    else:
        words += _restarts(stories)
    size = ceil(len(survivors.rungs) / MOST_RUNGS) or 1
    told = []
    for _, bracket in groupby(survivors.rungs, key=lambda rung: (rung.stretch, rung.bracket)):
        inside = sorted(bracket, key=lambda rung: rung.level)
        for start in range(0, len(inside), size):
            told.append(_rung(inside[start : start + size], stories))
    # How many arms came to each level or past it, where that became fewer:
    reached = sorted(rungs[-1].arms[arm] for arm, rungs in survivors.rungs_of.items())
    levels = sorted({rung.level for rung in survivors.rungs})
    came = [[level, len(reached) - bisect_left(reached, level)] for level in levels]
    return {
        "words": words,
        "compared": stories.facts.has_rungs,
        "rungs": told,
        "came": [one for before, one in pairwise([[0, 0], *came]) if one[1] != before[1]],
    }


def _dropped(stories: ArmStories) -> list[dict[str, Any]]:
    """The arms that were dropped last, and why."""
    for rung in reversed(stories.survivors.rungs):
        arms = [
            arm
            for arm in rung.ranking
            if stories.survivors.rungs_of[arm][-1] is rung and stories.fate(arm) == "dropped"
        ]
        if arms:
            told = ((arm, stories.sentences(arm, None)) for arm in arms[:MOST_DROPPED])
            return [{"arm": arm, "words": clean(" ".join(said), LONGEST)} for arm, said in told]
    return []


def _restarts(stories: ArmStories) -> str:
    """How rungs are numbered where a search starts again, and which arms are counted there."""
    words = ""
    if stories.stretches > 1:
        words += " The search was extended, and starts again with its arms as they are."
        if stories.brackets > 1:
            words += " 2.1.1 is the first rung of the first bracket of the second stretch."
        else:
            words += " 2.1 is the first rung of the second stretch."
    elif stories.brackets > 1:
        words += " Each bracket starts again: 2.1 is the first rung of the second bracket."
    if any(rung.already for rung in stories.survivors.rungs):
        words += (
            " An arm that is past a rung already is compared there by its latest loss, at no cost."
        )
    return words


def _rung(together: Sequence[RungOutcome], stories: ArmStories) -> dict[str, Any]:
    first, last, value = together[0], together[-1], stories.metric.value
    seen = last.ranking
    cut = last.last_to_go_on
    return {
        "name": stories.where(first if len(together) == 1 else last),
        "label": ".".join(
            [
                *([f"{last.stretch}"] if stories.stretches > 1 else []),
                *([f"{last.bracket}"] if stories.brackets > 1 else []),
                f"{last.number}",
            ]
        ),
        "stretch": last.stretch,
        "bracket": last.bracket,
        "number": last.number,
        "level": last.level,
        "arms": len(first.arms),
        "already": len(first.already),
        "on": len(last.went_on),
        "pulls": sum(rung.pulls for rung in together),
        "train_seconds": sum(rung.train_seconds for rung in together),
        "loss_seconds": sum(rung.loss_seconds for rung in together),
        "best": value(last.losses[seen[0]]) if seen else None,
        "best_arm": seen[0] if seen else None,
        "cut": None if cut is None else value(last.losses[cut]),
    }


# Spending and workers ---------------------------------------------------------------------------


def _spending(result: Result, survivors: Survivors, timeline: Timeline) -> dict[str, Any]:
    """What was spent, by kind and by worker."""
    spent = result.spent
    worked = spent.train_seconds + spent.loss_seconds
    pulls = f"of a budget of {result.budget:,}" if result.budget else "booked"
    if spent.repeated:
        pulls += f"; at most {spent.repeated:,} more were trained again"
    facts = [
        ["pulls", f"{spent.pulls:,}", pulls],
        [
            "looks at a loss",
            f"{spent.observations:,}",
            f"of {counted(len(survivors.rungs_of), 'arm')}",
        ],
    ]
    if worked:
        looking = f"{100 * spent.loss_seconds / worked:.0f} % of the work"
        facts += [
            ["training", duration(spent.train_seconds), "of all workers together"],
            ["looking", duration(spent.loss_seconds), looking],
        ]
    if spent.moves:
        took = f"in {duration(spent.move_seconds)}" if spent.move_seconds else ""
        facts.append(["states moved", f"{spent.moves:,}", took])
    if survivors.retried:
        facts.append(["attempts made again", f"{survivors.retried:,}", "after a failure"])
    return {"facts": facts, "words": _busy(result, timeline), "timeline": _drawn(timeline)}


def _busy(result: Result, timeline: Timeline) -> list[str]:
    words, measured = [], result.utilisation
    if measured and measured.seconds:
        words.append(f"As measured in the latest session: {measured}.")
    if not timeline.seconds:
        return words or ["How long pulls took is not known."]
    workers, idle = len(timeline.workers), timeline.idle_seconds
    if workers == 1:
        words.append(f"One worker did it all, in {duration(timeline.seconds)}.")
    else:
        share = idle / (workers * timeline.seconds)
        words.append(
            f"{counted(workers, 'worker')} took {duration(timeline.seconds)}, and waited for "
            f"{100 * share:.0f} % of that time, mostly for the last arm of a rung."
        )
    words.append(
        "A journal has no clock. These are the earliest times that agree with the order of its "
        "events and the seconds that each pull took. Pauses between sessions are left out."
    )
    if workers > MOST_WORKERS:
        words.append(f"The first {MOST_WORKERS} workers are drawn.")
    return words


def _drawn(timeline: Timeline) -> dict[str, Any]:
    """Stints as [worker, since, trained, until, arm]; of long searches, spells of work."""
    drawn = timeline.workers[:MOST_WORKERS]
    rows = {worker: row for row, worker in enumerate(drawn)}
    stints = [stint for stint in timeline.stints if stint.worker in rows]
    spells: list[list[Any]] = []
    if len(stints) <= MOST_STINTS:
        spells = [[rows[s.worker], s.since, s.trained, s.until, s.arm] for s in stints]
    else:
        gap = timeline.seconds * len(drawn) / MOST_STINTS
        latest: dict[str, list[Any]] = {}  # worker → its latest spell
        for stint in stints:
            spell = latest.get(stint.worker)
            if spell and stint.since - spell[3] <= gap:
                spell[2] = spell[3] = stint.until
            else:
                row = rows[stint.worker]
                spell = latest[stint.worker] = [row, stint.since, stint.until, stint.until, None]
                spells.append(spell)
    names = [clean(worker, 60) or "this process" for worker in drawn]
    return {"workers": names, "seconds": timeline.seconds, "stints": spells}


# Failures and the audit -------------------------------------------------------------------------


def _failures(result: Result) -> list[dict[str, Any]]:
    """What went wrong, the most frequent first, with the arms that it happened to.

    Errors that differ in numbers only are one.
    """
    causes = result.causes()
    alike: dict[str, list[int]] = {}
    for arm, cause in causes.items():
        alike.setdefault(re.sub(r"\d+", "0", cause), []).append(arm)
    told = []
    for arms in sorted(alike.values(), key=lambda arms: -len(arms))[:MOST_FAILURES]:
        failure = result.failures.get(arms[0])
        traceback = failure.traceback if failure else ""
        told.append(
            {
                "error": clean(causes[arms[0]]),
                "count": len(arms),
                "arms": arms[:MOST_FAILURES],
                "traceback": clean(traceback[-MOST_SIGNS:], MOST_SIGNS, keep="\n\t"),
            }
        )
    return told


def _audited(found: Audit | None, metric: Metric) -> dict[str, Any] | None:
    """How close eliminations were."""
    if not found or not found.eliminations:
        return None
    dropped, close = found.eliminations, found.close_calls
    unknown = sum(e.moved is None for e in dropped)
    words = [
        f"Of {counted(len(dropped), 'arm')} that did not win, "
        + (f"{len(close):,} {'was' if len(close) == 1 else 'were'}" if close else "none was")
        + (" a close call." if len(close) < 2 else " close calls.")
    ]
    if unknown:
        words.append(
            f"{counted(unknown, 'arm')} came as far as any arm did, so it is not known what more "
            "training would have done there."
        )
    if found.diverged:
        words.append(f"{counted(found.diverged, 'more arm')} failed or diverged.")
    words.append(
        f"By the same estimate, Theorem 1 of the paper guarantees the answer with a budget of "
        f"{found.budget:,.0f} pulls."
        if isfinite(found.budget) and found.budget
        else "By the same estimate, Theorem 1 of the paper guarantees the answer with no budget: "
        "too few curves were seen to settle."
    )
    known = [e for e in dropped if e.moved is not None][:MOST_DOTS]  # the closest come first
    return {
        "words": words,
        "closest": [
            {"arm": e.arm, "words": closeness(e, metric)} for e in dropped[:MOST_ELIMINATIONS]
        ],
        "points": [[e.arm, e.level, e.margin, e.close] for e in known],
        "moved": sorted({(e.level, e.moved) for e in known}),
        "margin": axis([e.margin for e in known] + [e.moved or 0.0 for e in known]),
    }
