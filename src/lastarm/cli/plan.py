"""`lastarm plan`: what a search will cost, before it costs anything."""

from __future__ import annotations

import json

import click
from rich import box
from rich.table import Table

from lastarm.cli import show
from lastarm.cli.options import Whole, make_policy, policy_options
from lastarm.plan import Plan
from lastarm.policies import SuccessiveHalving
from lastarm.theory import tolerated_settling


@click.command()
@click.option("--arms", type=Whole(), required=True, help="How many settings to choose from.")
@policy_options
def plan(arms: int, policy: str, budget: int, eta: int | None, as_json: bool) -> None:
    r"""Show what a search will spend, rung by rung, before anything is spent.

    For successive-halving it also shows, for each rank, how soon losses have to settle for the
    best arm to be sure to win with this budget (Theorem 1 of the paper, turned round).

    \b
    Example: lastarm plan --arms 10 --budget 1000
    """
    chosen = make_policy(policy, arms, budget, eta)
    planned = chosen.plan()
    literal = isinstance(chosen, SuccessiveHalving) and chosen.eta == 2
    settling = tolerated_settling(arms, budget) if literal else {}
    if as_json:
        answer = {
            "policy": policy,
            "arms": arms,
            "budget": budget,
            "rungs": [
                {"arms": rung.arms, "pulls": rung.pulls, "upto": rung.upto}
                for rung in planned.rungs
            ],
            "pulls": planned.pulls,
            "observations": planned.observations,
            "settling": [{"rank": rank, "before": pulls} for rank, pulls in settling.items()],
        }
        print(json.dumps(answer))
        return
    show.console.print(_rungs(planned, f"{chosen}"))
    show.say(
        f"{planned.pulls:,} pulls of a budget of {budget:,}, {planned.observations:,} looks at a "
        "loss."
    )
    if settling:
        show.say(
            "\nThe best arm is sure to win if for each rank, before so many pulls, all losses are "
            "within half of the gap between\nthe limit of that rank and the best limit "
            "(Theorem 1 of the paper; sufficient, not necessary):"
        )
        show.console.print(_settling(settling))


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
