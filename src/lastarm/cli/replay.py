"""`lastarm replay`: play a policy, or all of them, on recorded learning curves."""

from __future__ import annotations

import shlex
from typing import Any

import click

from lastarm.cli import display
from lastarm.cli.audit import audited, print_audit
from lastarm.cli.compare import compare, print_comparison
from lastarm.cli.options import policy_options, whole
from lastarm.cli.table import Played, Table
from lastarm.errors import InvalidArgument


@click.command()
@click.argument("file")
@policy_options
@click.option(
    "--arms", type=whole, metavar="N", help="Draw so many rows by --seed. [default: all of them]"
)
@click.option(
    "--seed", type=whole, default=0, metavar="N", show_default=True, help="Decides every draw."
)
@click.option("--compare", "all_policies", is_flag=True, help="Play all policies; one table.")
@click.option("--audit", "with_audit", is_flag=True, help="Say how close each elimination was.")
@click.option("--journal", type=click.Path(), help="Write it down, to resume it after a crash.")
@click.option(
    "--seconds-per-pull",
    type=float,
    default=0.0,
    help="Let a pull take time, to watch a search, stop it and resume it.",
)
def replay(
    file: str,
    policy: str | None,
    as_json: bool,
    arms: Any,
    seed: Any,
    all_policies: bool,
    with_audit: bool,
    journal: str | None,
    seconds_per_pull: float,
    **options: Any,
) -> int:
    """Play a policy on recorded learning curves.

    FILE is a table of losses: an .npz file with `losses[arm, step]`, or a .csv file with one row
    for each arm (a header is allowed). A step is a pull; past the last step a loss stays as it
    is. The arm in the answer is the row of the file, counted from 0. (asha begins rows in an order
    drawn by --seed, and hyperband draws them, so that the file's order does not matter.)

    With --journal, run the same command again to resume a search that was killed or stopped.

    Example: lastarm replay curves.npz --budget 2000 --journal search.jsonl
    """
    table = Table(file, arms, seed, seconds_per_pull)
    if all_policies:
        if journal or with_audit:
            option = "--journal" if journal else "--audit"
            raise InvalidArgument(
                f"{option} will not do with --compare: it is of one search. Leave one of them out."
            )
        found, stopped_by = compare(table, options)
        if as_json:
            display.print_json({"budget": options["budget"], "policies": found})
        else:
            print_comparison(found, table, options["budget"])
        return 128 + stopped_by if stopped_by else 0
    chosen = table.policy(policy, **options)
    played = table.play(chosen, journal)
    result = played.result
    if as_json:
        answer = {**result.as_dict(), "arm": played.row}
        answer |= {"policy": chosen.name, "budget": result.budget}
        display.print_json(answer | ({"audit": audited(played, table)} if with_audit else {}))
    else:
        _print(played, table, journal)
        if with_audit:
            print_audit(audited(played, table))
    return 128 + result.stopped_by if result.stopped_by and not result.complete else 0


def _print(played: Played, table: Table, journal: str | None) -> None:
    result, rows = played
    display.console.print(display.rungs(result, rows.__getitem__))
    display.answer(result, rows.__getitem__, longest=table.columns)
    if not result.complete:
        display.stopped(f"lastarm resume {shlex.quote(journal)}" if journal else None)
