"""The story of a search: all that its page shows, folded from events to plain data.

Words are made here, pictures by the page. What comes out is JSON: finite numbers, texts that are
safe to show, and no more of either than a page can hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf, isfinite, log
from typing import Any

from lastarm.events import Closed, Event, Failure, Loss, Opened, Pull
from lastarm.journal.sanity import require_sane
from lastarm.ledger import Ledger, Spent, Timeline, Utilisation
from lastarm.ledger.survivors import Course
from lastarm.policy import lowest
from lastarm.report.advice import advice
from lastarm.report.axes import TINY, axis, thinned
from lastarm.report.extending import nothing_left, remarks
from lastarm.report.hyperparameters import Parameter, flat, parameters
from lastarm.report.importance import importance
from lastarm.report.page import head, sections
from lastarm.report.page.arm_stories import Stories
from lastarm.report.phrases import MOST_SIGNS, clean
from lastarm.theory import audit

MOST_ARMS = 2_000  # that are shown one by one
MOST_POINTS = 60_000  # of their curves, all together
MOST_PARAMETERS = 40


def remembered(
    curves: Mapping[int, Sequence[tuple[int, float]]],
    failures: Mapping[int, Failure],
    configs: Sequence[Mapping[str, Any]],
    closed: Closed | None,
) -> list[Event]:
    """Events that tell what a search saw, level by level: of one that wrote none down.

    >>> seen = {0: [(1, 0.5), (2, 0.4)], 1: [(1, 0.6)]}
    >>> events = remembered(seen, {}, [{"lr": 0.1}, {"lr": 0.2}], Closed(arm=0, upto=2))
    >>> [event.pull for event in events if isinstance(event, Loss)]
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=0, upto=2)]
    """
    told: list[Loss | Failure] = list(failures.values())
    told += [Loss(Pull(arm, upto), loss) for arm in curves for upto, loss in curves[arm]]
    events: list[Event] = []
    for event in sorted(told, key=lambda event: (event.pull.upto, event.pull.arm)):
        arm, upto = event.pull.arm, event.pull.upto
        config = configs[arm] if arm < len(configs) else None
        events += [Pull(arm, upto, config), event]
    return events + ([closed] if closed else [])


def story(
    events: Sequence[Event],
    *,
    journal: str | None = None,
    running: bool = False,
    spent: Spent | None = None,
    utilisation: Utilisation | None = None,
) -> dict[str, Any]:
    """All that there is to tell of a search.

    `journal` is its file, if it has one; if it is `running`, more may come. What was `spent` and
    the `utilisation` of workers may be known better than events tell.

    >>> events = remembered({0: [(1, 0.5), (2, 0.4)], 1: [(1, 0.6)]}, {}, [], Closed(0, 2))
    >>> told = story(events)
    >>> told["headline"]
    'Arm 0 is recommended'
    >>> told["arms"][1]["story"]
    ['It was dropped at rung 1, after 1 pull, with a loss of 0.6: place 2 of 2.',
     '1 arm went on; that one, arm 0, had 0.5.',
     'It was no close call: to win it would have had to fall by 0.2, and no arm that went on from
      there moved by more than 0.1.']
    """
    require_sane(events)
    first = events[0] if events else None
    opened = first if isinstance(first, Opened) else None
    ledger, course, timeline = Ledger(events), Course(events), Timeline(events)
    out = ledger.causes()
    answer = _answer(ledger, out)
    state = "complete" if ledger.closed else "running" if running else "stopped"
    policy = str(opened.policy.get("name", "")) if opened else ""
    checked = audit(ledger.curves, answer.arm, out=out) if answer else None
    stories = Stories(course, ledger, answer, state, clean(policy, 40), checked)
    spent = spent or ledger.spent
    budget = ledger.stretches[-1].budget if ledger.stretches else None
    ended = nothing_left(opened.policy, ledger) if opened else None
    ranked = sorted(course.rungs_of, key=lambda arm: _standing(arm, stories, out))
    healthy = [arm for arm in ranked if arm in ledger.curves and arm not in out]
    runner_up = healthy[1] if len(healthy) > 1 else None
    shown = ranked[:MOST_ARMS]
    configs = {
        arm: {clean(name, 128): flat(value) for name, value in ledger.configs[arm].items()}
        for arm in course.rungs_of
        if arm in ledger.configs
    }
    varying, constant = _parameters(configs, ledger, opened)
    notes = head.notes(opened, journal, len(ranked), len(shown))
    notes += remarks(ledger)
    if len(varying) > MOST_PARAMETERS:
        notes.append(
            f"Of {len(varying):,} settings the {MOST_PARAMETERS} that explain most are shown."
        )
        varying = varying[:MOST_PARAMETERS]
    everything = [loss for arm in shown for _, loss in ledger.curves.get(arm, [])]
    told = {
        "headline": head.headline(answer, state, bool(course.rungs)),
        "state": state,
        "search": head.search(opened, ledger, journal),
        "journal": clean(journal or ""),
        "notes": notes,
        "answer": {
            "arm": answer.arm if answer else None,
            "loss": dict(ledger.curves[answer.arm])[answer.upto] if answer else None,
            "level": answer.upto if answer else None,
            "test_loss": ledger.closed.test_loss if ledger.closed else None,
            "runner_up": runner_up,
            "cost": head.cost(answer, len(ranked), spent) + head.stretches(ledger),
        },
        "looked": "looked at once, at the end"
        if len(ledger.stretches) < 2
        else "looked at once a stretch, at its end",
        "axes": {
            "level": axis([rung.level for rung in course.rungs], wide=8, all_in=True),
            "loss": axis(everything),
        },
        "arms": _arms(shown, stories, timeline, varying, runner_up),
        "parameters": [
            {"name": p.name, "kind": p.kind, "options": list(p.options), "importance": share}
            for p, share in varying
        ],
        "constant": constant[:MOST_PARAMETERS],
        "narrowing": sections.narrowing(course, stories),
        "spending": sections.spending(spent, budget, course, timeline, utilisation),
        "failures": sections.failures(ledger),
        "audit": sections.audited(checked),
        "next": advice(opened, journal, state, budget, ended),
    }
    plain: dict[str, Any] = _plain(told)
    return plain


def _answer(ledger: Ledger, out: Mapping[int, str]) -> Pull | None:
    """The search's own recommendation, or the lowest latest loss so far."""
    closed = ledger.closed
    if closed and closed.arm not in out and closed.upto in dict(ledger.curves.get(closed.arm, [])):
        return Pull(closed.arm, closed.upto)
    arm = lowest({a: curve[-1][1] for a, curve in ledger.curves.items() if a not in out})
    return None if arm is None else Pull(arm, ledger.curves[arm][-1][0])


def _standing(arm: int, stories: Stories, out: Mapping[int, str]) -> tuple[Any, ...]:
    """The winner, then who came furthest with the lowest loss, then those that are out."""
    curve = stories.ledger.curves.get(arm)
    level, loss = curve[-1] if curve else (0, inf)
    won = stories.answer is not None and arm == stories.answer.arm
    return not won, arm in stories.ledger.failures, arm in out, -level, loss, arm


def _parameters(
    configs: Mapping[int, Mapping[str, float | str]], ledger: Ledger, opened: Opened | None
) -> tuple[list[tuple[Parameter, float]], list[list[Any]]]:
    """Those that vary, the most important first, and the name and value of those that do not."""
    share = importance(configs, ledger.curves)
    found = parameters(configs, opened.space if opened else {})
    same = [p for p in found if len(p.values) == len(configs) and len(set(p.values.values())) == 1]
    constant = [[p.name, next(iter(p.values.values()))] for p in same]
    varying = [(p, share.get(p.name, 0.0)) for p in found if p not in same]
    varying.sort(key=lambda item: -item[1])
    return varying, constant


def _arms(
    shown: Sequence[int],
    stories: Stories,
    timeline: Timeline,
    varying: Sequence[tuple[Parameter, float]],
    runner_up: int | None,
) -> list[dict[str, Any]]:
    seconds: dict[int, float] = defaultdict(float)
    for stint in timeline.stints:
        seconds[stint.arm] += stint.until - stint.since
    curves = stories.ledger.curves
    most = max(8, MOST_POINTS // max(1, len(shown)))
    deepest = max((rung.level for rung in stories.course.rungs), default=1)
    told = []
    for arm in shown:
        curve = thinned(curves.get(arm, []), most)
        level = stories.course.rungs_of[arm][-1].level
        loss = stories.last_loss(arm)
        told.append(
            {
                "arm": arm,
                "fate": stories.fate(arm),
                "story": [
                    clean(line, 2 * MOST_SIGNS) for line in stories.sentences(arm, runner_up)
                ],
                "pulls": curve[-1][0] if curve else 0,
                "loss": loss,
                "said": f"{loss:.6g}" if curve else "",
                "far": log(level + 1) / log(deepest + 1),
                "seconds": seconds[arm],
                "levels": [upto for upto, _ in curve],
                "losses": [loss for _, loss in curve],
                "values": [parameter.values.get(arm) for parameter, _ in varying],
            }
        )
    return told


def _plain(value: Any) -> Any:
    """What JSON has, and a page can draw: no nan, no inf, nothing tiny, and not all digits."""
    match value:
        case float():
            shown = value if abs(value) > TINY else 0.0
            return float(f"{shown:.9g}") if isfinite(value) else None
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
