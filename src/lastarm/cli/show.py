"""`lastarm show`: what a journal tells, while its search runs or afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lastarm.cli import display
from lastarm.errors import InvalidArgument, KeyNotSafe
from lastarm.events import Event, Opened
from lastarm.journal import read
from lastarm.journal.file import no_collection
from lastarm.journal.lock import is_held
from lastarm.journal.seals import SealRule, Seals
from lastarm.journal.secret import own_secret
from lastarm.masking import is_masked, without_hashes
from lastarm.report.next_steps import begun_by_command, next_steps
from lastarm.result import MOST_LOOKED_AT, MOST_SETTINGS, MOST_SIGNS, Result
from lastarm.texts import clean, counted
from lastarm.trainers.metric import for_people

MOST_METRICS = 10  # that have a column
EVERY = 1.0  # seconds between two looks at a running search


def show(journal: str, watch: bool, top: int, as_json: bool) -> None:
    """Show a search: its arms, its rungs and what it has spent."""
    path = Path(journal)
    if as_json:
        if watch:
            rule = "it cannot be used with --watch"
            raise InvalidArgument.of("--json", True, rule, "Leave one of the two out")
        with no_collection():
            display.print_json(_as_json(path, read(path)))
    elif not watch:
        with no_collection():
            display.console.print(_page(path, read(path), top, watched=False))
    elif not display.console.is_terminal:
        for events in _followed(path):
            display.console.print(_page(path, events, top, watched=True))
    else:
        with Live(console=display.console, auto_refresh=False) as live:
            for events in _followed(path):
                live.update(_page(path, events, top, watched=True), refresh=True)


def _followed(path: Path) -> Iterator[list[Event]]:
    """The events of the journal, whenever there are more, until its search has ended."""
    seen: tuple[int, bool] | None = None
    while True:
        running = is_held(path)
        events = read(path)
        if (len(events), running) != seen:
            yield events
        seen = len(events), running
        if not running:
            return
        time.sleep(EVERY)


def _as_json(path: Path, events: list[Event]) -> dict[str, Any]:
    opened, result = events[0], Result.of(events)
    assert isinstance(opened, Opened)
    arms = sorted(result.curves.keys() | result.failures.keys())
    return {
        **result.as_dict(),
        "running": is_held(path),
        **_seals(opened, events),
        "budget": result.budget,
        "stretches": result.by_stretch(),
        "seed": opened.seed,
        "policy": dict(opened.policy),
        "space": dict(opened.space),
        "command": without_hashes(opened.command),
        "folder": opened.folder,
        "arms": [
            {
                "arm": arm,
                "config": result.configs[arm],
                "curve": [list(point) for point in result.curves.get(arm, [])],
                "metrics": result.metrics.get(arm, {}),
                "error": result.failures[arm].error if arm in result.failures else None,
            }
            for arm in arms
        ],
    }


def _page(path: Path, events: list[Event], top: int, *, watched: bool) -> RenderableType:
    opened, result = events[0], Result.of(events, journal=str(path))
    assert isinstance(opened, Opened)
    state = "complete" if result.complete else "running" if is_held(path) else "stopped"
    arguments = {name: value for name, value in opened.policy.items() if name != "name"}
    if len(result.stretches) > 1:
        arguments["budget"] = " → ".join(f"{stretch.budget}" for stretch in result.stretches)
    settings = ", ".join(f"{name}={value}" for name, value in arguments.items())
    name = clean(str(opened.policy.get("name")))
    spent = result.spent
    lost = f" and at most {spent.repeated:,} trained again" if spent.repeated else " none repeated"
    parts: list[RenderableType] = [
        Text(f"{name}, {clean(settings)}, seed={opened.seed}: {state}"),
        *(_by_stretch(result) if len(result.stretches) > 1 else []),
        display.rungs(result),
        *_arms(result, top),
        Text(
            f"{spent.pulls:,} pulls,{lost}; {counted(spent.observations, 'look')}; "
            f"{spent.train_seconds:,.4g} s training, {spent.loss_seconds:,.4g} s looking."
        ),
        *([Text(f"{spent.moving}.")] if spent.moving else []),
    ]
    parts += [
        Text(clean(f"arm {arm} failed at {failure.pull.upto:,}: {failure.error}"))
        for arm, failure in list(result.failures.items())[:top]
    ]
    parts += [Text(remark) for remark in result.remarks()]
    parts += [Text(display.plain(_rule(opened, events)))]
    if not (watched and state == "running"):  # how to watch it is known then
        parts += [
            Text(display.plain(f"{step['words']} {step['command']}".rstrip()))
            for step in next_steps(result, opened, state)
        ]
    return Group(*parts)


WHOSE = {
    SealRule.OWN: "It has this user's seal.",
    SealRule.FOREIGN: "It has no seal of this user, as when it comes from elsewhere.",
    SealRule.OLD: "It has no seal, because version 0.1 wrote it.",
    SealRule.UNSEALED: "Nothing is sealed here, because no secret can be kept",
}
IF_OWN_FILE = "if the file is this user's and closed to others"


def _rule(opened: Opened, events: list[Event]) -> str:
    """By which rule it is decided whether its command is run and its states are loaded."""
    try:
        seals = Seals(opened, own_secret(make=False))
    except KeyNotSafe as error:
        return str(error)
    states, foreign = seals.of_states(events)
    said = [WHOSE[seals.rule] + (f" ({seals.why_none})." if seals.why_none else "")]
    if is_masked(opened.command):
        said.append("Words of its command are not stored (***), so lastarm resume prints it only.")
    elif begun_by_command(opened):
        when = IF_OWN_FILE if seals.vouch_for_command else "only with --trust, or if you say so"
        said.append(f"lastarm resume runs its command {when}.")
    if foreign:
        said.append(
            f"The states of {foreign:,} of {counted(states, 'arm')} have no seal of this user: "
            "these arms are trained again, unless --trust-states or Checkpoints(trust=True) says "
            "that they are loaded."
        )
    elif states and seals.rule in (SealRule.OLD, SealRule.UNSEALED):
        said.append(f"A state is loaded {IF_OWN_FILE}.")
    elif states:
        said.append("Its states have this user's seal, and are loaded.")
    return " ".join(said)


def _seals(opened: Opened, events: list[Event]) -> dict[str, Any]:
    """The same for programs."""
    try:
        seals = Seals(opened, own_secret(make=False))
    except KeyNotSafe:
        return {"seal": None, "states_without_seal": None}
    return {"seal": seals.rule.value, "states_without_seal": seals.of_states(events).foreign}


def _arms(result: Result, top: int) -> list[Table]:
    standing = {
        arm: (arm != result.arm, -level, loss)
        for arm, (level, loss) in result.curves.latest().items()
        if arm not in result.failures
    }
    ranked = sorted(standing, key=standing.__getitem__)
    best, some = ranked[:top], ranked[:MOST_LOOKED_AT]  # others may have other settings
    every = list(dict.fromkeys(name for arm in some for name in result.configs[arm]))
    names = every[:MOST_SETTINGS]
    latest = {arm: result.curves[arm][-1] for arm in best}
    told = {arm: result.told_beside(arm, *seen) for arm, seen in latest.items()}
    beside = for_people(told.values(), MOST_METRICS)
    metrics = {name for one in told.values() for name in one}
    rows = []
    for arm, (upto, loss) in latest.items():
        values = [result.configs[arm].get(name, "") for name in names]
        values += [told[arm].get(name, "") for name in beside]
        shown = [f"{value:.4g}" if isinstance(value, float) else f"{value}" for value in values]
        star = " ★" if arm == result.arm else ""
        rows.append(
            [
                f"{arm}{star}",
                f"{upto:,}",
                result.metric.figure(loss),
                *(clean(one, MOST_SIGNS) for one in shown),
            ]
        )
    headings = [clean(name, MOST_SIGNS) for name in (*names, *beside)]
    tables = display.side_by_side(["arm", "pulls", result.metric.label, *headings], rows)
    more = {"setting": len(every) - len(names), "metric": len(metrics) - len(beside)}
    if any(more.values()):
        unseen = " and ".join(
            counted(count, f"more {what}") for what, count in more.items() if count
        )
        tables[-1].caption = f"and {unseen}: see --json"
    return tables


def _by_stretch(result: Result) -> list[Table]:
    """The stretches of a search that was extended, for people."""
    metric, rows = result.metric, []
    for row in result.by_stretch():
        losses = (row["loss"], row["test_loss"])
        rows.append(
            [
                f"{row['budget']:,}",
                f"{row['pulls']:,}",
                f"{row['observations']:,}",
                f"arm {row['arm']}" if row["complete"] else "not closed",
                f"{row['level']:,}" if row["complete"] else "",
                *("" if loss is None else metric.figure(loss) for loss in losses),
            ]
        )
    headings = ("budget", "pulls", "looks", "recommended", "after")
    return display.side_by_side([*headings, metric.label, f"test {metric.label}"], rows)
