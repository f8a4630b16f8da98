"""`lastarm plan`: what a search will cost, before it costs anything."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
from rich import box
from rich.table import Table

from lastarm.cli import display
from lastarm.cli.options import make_policy, policy_options, whole
from lastarm.plan import Plan
from lastarm.policies import Hyperband, SuccessiveHalving
from lastarm.policies.budgeted import Budgeted
from lastarm.policies.hyperband import brackets
from lastarm.policy import describe
from lastarm.theory import tolerated_settling


@click.command()
@click.option("--arms", type=whole, metavar="N", help="How many settings to choose from.")
@policy_options
def plan(
    arms: Any,
    policy: str,
    budget: Any,
    eta: Any,
    max_pulls: Any,
    as_json: bool,
    **others: Any,
) -> None:
    """Show what a search will spend before it does.

    For successive-halving it also shows, for each rank, how soon losses have to settle for the
    best arm to be sure to win with this budget (Theorem 1 of the paper, turned round). A policy
    that decides by the losses it sees has no plan, only bounds. For hyperband, arms and budget
    are those of all its brackets unless they are given.

    Example: lastarm plan --arms 10 --budget 1000
    """
    if policy == Hyperband.name and max_pulls is not None:
        # Enough for every bracket to open with arms of its own.
        probe = Hyperband(1, 1, max_pulls, **({} if eta is None else {"eta": eta}))
        published = brackets(probe.max_pulls, probe.eta)
        arms = sum(bracket.arms for bracket in published) if arms is None else arms
        budget = sum(bracket.pulls for bracket in published) if budget is None else budget
    chosen = make_policy(policy, arms=arms, budget=budget, eta=eta, max_pulls=max_pulls, **others)
    planned = chosen.plan()
    literal = isinstance(chosen, SuccessiveHalving) and chosen.eta == 2
    settling = tolerated_settling(chosen.arms, chosen.budget) if literal else {}
    if as_json:
        display.print_json(_as_json(chosen, planned, settling))
        return
    if planned.rungs:
        display.console.print(_rungs(planned, f"{chosen}"))
    most = "" if planned.exact else "At most "
    display.say(
        f"{most}{planned.pulls:,} pulls of a budget of {chosen.budget:,}, "
        f"{planned.observations:,} looks at a loss."
    )
    if not planned.exact:
        display.say(
            f"{chosen} decides by what it sees, so this is all that can be said beforehand."
        )
    if settling:
        display.say(
            "\nThe best arm is sure to win if for each rank, before so many pulls, all losses are "
            "within half of the gap between\nthe limit of that rank and the best limit "
            "(Theorem 1 of the paper; sufficient, not necessary):"
        )
        display.console.print(_settling(settling))


def _as_json(chosen: Budgeted, planned: Plan, settling: dict[int, float]) -> dict[str, Any]:
    described = describe(chosen)
    answer = {
        "policy": described.pop("name"),
        **described,
        "rungs": [dataclasses.asdict(rung) for rung in planned.rungs],
        "pulls": planned.pulls,
        "observations": planned.observations,
        "exact": planned.exact,
        "settling": [{"rank": rank, "before": pulls} for rank, pulls in settling.items()],
    }
    if isinstance(chosen, Hyperband):
        answer["brackets"] = [
            {"arms": bracket.arms, "levels": bracket.levels, "pulls": bracket.pulls}
            for bracket in chosen.brackets()
        ]
    return answer


def _rungs(planned: Plan, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("rung", "arms", "pulls each", "brought to", "pulls in rung", "pulls in all"):
        table.add_column(heading, justify="right")
    total = 0
    for number, rung in enumerate(planned.rungs, start=1):
        total += rung.arms * rung.pulls
        cells = (number, rung.arms, rung.pulls, rung.upto, rung.arms * rung.pulls, total)
        table.add_row(*(f"{cell:,}" for cell in cells))
    return table


def _settling(settling: dict[int, float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("settled before", justify="right")
    ranks = list(settling)
    shown = {2, 3, ranks[-1]} | {rank for rank in ranks if rank & (rank - 1) == 0}
    for rank in sorted(shown & set(ranks)):
        before = settling[rank]
        table.add_row(f"{rank:,}", f"{before:,.1f}" if before > 1 else "not covered")
    return table
