"""The parts of a search's story: its rungs, what it spent, its failures and its audit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby, pairwise
from math import ceil, isfinite
from typing import Any

from lastarm.ledger import Ledger, Spent, Timeline, Utilisation
from lastarm.ledger.survivors import Course, Rung
from lastarm.report.axes import axis
from lastarm.report.page.arm_stories import Stories, closeness
from lastarm.report.phrases import clean, counted, duration
from lastarm.theory import Audit

MOST_RUNGS = 200
MOST_STINTS = 4_000  # more of them are drawn as one where nothing parts them
MOST_WORKERS = 40
MOST_FAILURES = 50
MOST_SIGNS = 6_000  # of a traceback: its end, where the error is
MOST_ELIMINATIONS = 10
MOST_DOTS = 2_000


def narrowing(course: Course, stories: Stories) -> dict[str, Any]:
    """What happened at each rung; where there are very many, some next to each other are one."""
    words = "A rung is a level that arms are brought to and compared at. "
    words += stories.facts.who_goes_on
    if not course.rungs:
        words = "No arm has been pulled yet."
    elif not stories.facts.has_rungs:
        words = (
            f"{stories.policy} has no rungs: it pulls an arm or two at a time. This is how many "
            "arms it took to each number of pulls."
        )
    else:
        words += _anew(course, stories)
    size = ceil(len(course.rungs) / MOST_RUNGS) or 1
    told = []
    for _, bracket in groupby(course.rungs, key=lambda rung: (rung.stretch, rung.bracket)):
        inside = sorted(bracket, key=lambda rung: rung.level)
        for start in range(0, len(inside), size):
            told.append(_rung(inside[start : start + size], stories))
    return {
        "words": words,
        "compared": stories.facts.has_rungs,
        "rungs": told,
        "came": _came(course),
    }


def _came(course: Course) -> list[list[int]]:
    """How many arms came to each level or past it, where that became fewer."""
    reached = sorted(rungs[-1].arms[arm] for arm, rungs in course.rungs_of.items())
    levels = sorted({rung.level for rung in course.rungs})
    came = [[level, len(reached) - bisect_left(reached, level)] for level in levels]
    return [one for before, one in pairwise([[0, 0], *came]) if one[1] != before[1]]


def _anew(course: Course, stories: Stories) -> str:
    """How rungs are numbered where a search begins anew, and who is counted there."""
    words = ""
    if stories.stretches > 1:
        words += " The search was extended, and begins anew, with its arms where they are."
        if stories.brackets > 1:
            words += " 2.1.1 is the first rung of the first bracket of the second stretch."
        else:
            words += " 2.1 is the first rung of the second stretch."
    elif stories.brackets > 1:
        words += " Brackets begin anew: 2.1 is the first rung of the second bracket."
    if any(rung.already for rung in course.rungs):
        words += (
            " An arm that is past a rung already is compared there by its latest loss, at no cost."
        )
    return words


def _rung(together: Sequence[Rung], stories: Stories) -> dict[str, Any]:
    first, last = together[0], together[-1]
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
        "best": last.losses[seen[0]] if seen else None,
        "best_arm": seen[0] if seen else None,
        "cut": None if cut is None else last.losses[cut],
    }


def spending(
    spent: Spent,
    budget: int | None,
    course: Course,
    timeline: Timeline,
    utilisation: Utilisation | None,
) -> dict[str, Any]:
    """What was spent, by kind and by worker."""
    worked = spent.train_seconds + spent.loss_seconds
    pulls = f"of a budget of {budget:,}" if budget else "booked"
    if spent.repeated:
        pulls += f"; at most {spent.repeated:,} more were trained again"
    facts = [
        ["pulls", f"{spent.pulls:,}", pulls],
        [
            "looks at a loss",
            f"{spent.observations:,}",
            f"of {counted(len(course.rungs_of), 'arm')}",
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
    if course.retried:
        facts.append(["attempts made again", f"{course.retried:,}", "after a failure"])
    return {"facts": facts, "words": _busy(timeline, utilisation), "timeline": _drawn(timeline)}


def _busy(timeline: Timeline, utilisation: Utilisation | None) -> list[str]:
    words = (
        [f"As measured in the latest session: {utilisation}."]
        if utilisation and utilisation.seconds
        else []
    )
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
        "events and the seconds that each pull took; pauses between sessions are left out."
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


def failures(ledger: Ledger) -> list[dict[str, Any]]:
    """What went wrong, the most frequent first, with the arms that it happened to.

    Errors that differ in numbers only are one.
    """
    causes = ledger.causes()
    alike: dict[str, list[int]] = {}
    for arm, cause in causes.items():
        alike.setdefault(re.sub(r"\d+", "0", cause), []).append(arm)
    told = []
    for arms in sorted(alike.values(), key=lambda arms: -len(arms))[:MOST_FAILURES]:
        failure = ledger.failures.get(arms[0])
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


def audited(found: Audit | None) -> dict[str, Any] | None:
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
            f"{counted(unknown, 'arm')} came as far as any arm did, so nobody knows what more "
            "training would have done there."
        )
    if found.diverged:
        words.append(f"{counted(found.diverged, 'more arm')} failed or diverged.")
    words.append(
        f"By the same estimate, a budget of {found.budget:,.0f} pulls would make Theorem 1 of the "
        "paper vouch for the answer."
        if isfinite(found.budget) and found.budget
        else "By the same estimate, no budget would make Theorem 1 of the paper vouch for the "
        "answer: too little was seen to settle."
    )
    known = [e for e in dropped if e.moved is not None][:MOST_DOTS]  # the closest come first
    return {
        "words": words,
        "closest": [{"arm": e.arm, "words": closeness(e)} for e in dropped[:MOST_ELIMINATIONS]],
        "points": [[e.arm, e.level, e.margin, e.close] for e in known],
        "moved": sorted({(e.level, e.moved) for e in known}),
        "margin": axis([e.margin for e in known] + [e.moved or 0.0 for e in known]),
    }
