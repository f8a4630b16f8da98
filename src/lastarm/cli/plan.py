"""`lastarm plan`: what a search will cost, before it costs anything."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import Any

from lastarm.cli import display
from lastarm.cli.options import by_options
from lastarm.errors import InvalidArgument
from lastarm.ledger import Utilisation
from lastarm.policies.hyperband import Bracket
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policies.plan import Plan
from lastarm.policy import describe
from lastarm.texts import counted
from lastarm.theory import SafeRung, halving_budget, safe_rungs, tolerated_settling
from lastarm.theory.forecast import forecast


def plan(
    workers: Any,
    seconds_per_pull: Any,
    seconds_per_look: Any,
    policy: str | None,
    as_json: bool,
    **numbers: Any,
) -> None:
    """Show what a search will spend before it begins."""
    chosen, _ = by_options(policy, numbers, there_are=inf)
    planned = chosen.plan()
    settling = tolerated_settling(chosen.arms, chosen.budget) if chosen.theorem_1_holds else {}
    restarts = getattr(chosen, "restarts", False)
    safe = safe_rungs(chosen.arms, chosen.budget, restarts=restarts) if settling else []
    given = (workers, seconds_per_pull, seconds_per_look)
    foreseen = _forecast(chosen, *given) if any(value is not None for value in given) else None
    if as_json:
        answer = _as_json(chosen, planned, settling, safe)
        if foreseen:
            answer |= foreseen.as_dict()
        display.print_json(answer)
        return
    brackets = chosen.plan_details().get("brackets", []) if planned.exact else []
    if brackets:
        display.console.print(_brackets(chosen, brackets))
        if left := planned.pulls - sum(one["pulls"] for one in brackets):
            display.say(
                f"{counted(left, 'pull')} left for the best of the arms that were dropped."
            )
    elif planned.rungs:
        headings = ("rung", "arms", "pulls each", "brought to", "pulls in rung", "pulls in all")
        rungs, total = display.table(*headings, title=f"{chosen}"), 0
        for number, rung in enumerate(planned.rungs, start=1):
            total += rung.arms * rung.pulls
            cells = (number, rung.arms, rung.pulls, rung.upto, rung.arms * rung.pulls, total)
            rungs.add_row(*(f"{cell:,}" for cell in cells))
        display.console.print(rungs)
    most = "" if planned.exact else "At most "
    display.say(
        f"{most}{planned.pulls:,} pulls of a budget of {chosen.budget:,}, "
        f"{planned.observations:,} looks at a loss."
    )
    for remark in chosen.plan_remarks(planned):
        display.say(remark)
    if not planned.exact:
        display.say(
            f"{chosen} decides by what it sees, so only these bounds are known beforehand."
        )
    if foreseen:
        spelled = str(timedelta(seconds=round(foreseen.seconds)))
        by = "one worker" if foreseen.workers == 1 else f"{foreseen.workers:,} workers"
        example = "" if planned.exact else ", if losses come out as in our example"
        display.say(
            f"With {by}: {spelled} (h:mm:ss){example}; they work {foreseen.share:.0%} of "
            f"that time, and wait for {round(foreseen.idle_seconds):,} s in all."
        )
    if settling:
        _guarantees(chosen.arms, settling, safe)


def _guarantees(arms: int, settling: dict[int, float], safe: list[SafeRung]) -> None:
    """How soon losses have to settle for the best arm to be sure to win: by both theorems."""
    display.say(
        "\nThe best arm is sure to win if, for each rank and before this number of pulls, all "
        "losses are within half of the\ngap between the limit of that rank and the best limit "
        "(Theorem 1 of the paper; sufficient, not necessary):"
    )
    table = display.table("rank", "settled before")
    for rank, before in settling.items():
        if rank in (2, 3, arms) or rank.bit_count() == 1:
            table.add_row(f"{rank:,}", f"{before:,.1f}" if before > 1 else "not covered")
    display.console.print(table)
    if min(settling.values()) <= 1:
        display.say(
            "A rank is not covered if its losses would have to settle before their first "
            "pull: Theorem 1 then guarantees\nnothing. It needs a budget of more than "
            f"{halving_budget([1] * (arms - 1)):,}."
        )
    display.say(
        "\nLess is enough, rung by rung: for one rank in each rung, and by the level of that rung "
        "(docs/theory.md, “Sharper”):"
    )
    table = display.table("rung", "arms", "rank", "settled by")
    for number, rung in enumerate(safe, start=1):
        table.add_row(*(f"{cell:,}" for cell in (number, *rung)))
    display.console.print(table)


def _brackets(chosen: Budgeted, brackets: list[dict[str, Any]]) -> Any:
    """A row for each bracket, or for several that are alike."""
    headings = ("bracket", "arms", "brought to", "pulls in bracket", "pulls in all")
    table, number, total = display.table(*headings, title=f"{chosen}"), 0, 0
    for one, alike in groupby(brackets):
        count = len(list(alike))
        numbers = f"{number + 1}" if count == 1 else f"{number + 1} to {number + count}"
        bracket = Bracket(one["arms"], one["levels"], getattr(chosen, "eta", 1))
        number, total = number + count, total + count * one["pulls"]
        sizes, levels = (
            " → ".join(f"{n:,}" for n in several) for several in (bracket.sizes, bracket.levels)
        )
        table.add_row(numbers, sizes, levels, f"{one['pulls']:,}", f"{total:,}")
    return table


def _forecast(chosen: Budgeted, workers: Any, per_pull: Any, per_look: Any) -> Utilisation:
    for name, value in (("seconds-per-pull", per_pull), ("seconds-per-look", per_look)):
        if value is not None and not (isinstance(value, float) and 0 <= value < inf):
            way_out = "Use a number of seconds, 0 or more"
            raise InvalidArgument.of(name, value, "it is how long one takes", way_out)
    return forecast(
        chosen,
        workers=1 if workers is None else workers,
        seconds_per_pull=1.0 if per_pull is None else per_pull,
        seconds_per_look=per_look or 0.0,
    )


def _as_json(
    chosen: Budgeted, planned: Plan, settling: dict[int, float], safe: list[SafeRung]
) -> dict[str, Any]:
    described = describe(chosen)
    return {
        "policy": described.pop("name"),
        **described,
        "rungs": [dataclasses.asdict(rung) for rung in planned.rungs],
        "pulls": planned.pulls,
        "observations": planned.observations,
        "exact": planned.exact,
        "settling": [{"rank": rank, "before": pulls} for rank, pulls in settling.items()],
        "safe": [rung._asdict() for rung in safe],
        **chosen.plan_details(),
    }
