"""The words of `lastarm replay`."""

from __future__ import annotations

import click

from lastarm.cli.options import fresh_option, policy_options, seed_option, whole_option
from lastarm.cli.words import deed


@click.command()
@click.argument("file")
@policy_options
@whole_option("--arms", help="Draw N rows by --seed. [default: all of them]")
@seed_option
@click.option("--compare", "all_policies", is_flag=True, help="Play all policies; one table.")
@click.option("--audit", "with_audit", is_flag=True, help="Say how close each elimination was.")
@click.option("--journal", type=click.Path(), help="Keep a journal, to resume after a crash.")
@fresh_option
@click.option(
    "--seconds-per-pull",
    type=float,
    default=0.0,
    help="Let a pull take time, to watch a search, stop it and resume it.",
)
@deed
def replay() -> None:
    """Play a policy on recorded learning curves.

    FILE is a table of losses: an .npz file with `losses[arm, step]`, or a .csv file with one row
    for each arm (a header is allowed). A step is a pull; past the last step a loss stays as it
    is. The arm in the answer is the row of the file, counted from 0. (asha and brackets begin rows
    in an order drawn by --seed, and hyperband draws them, so that the file's order does not
    matter.) timed-halving is told that a pull takes one second and a look no time; with --compare,
    a look takes as long as --look-cost pulls.

    With --journal, run the same command again to resume a search that was killed or stopped.

    Example: lastarm replay curves.npz --budget 2000 --journal search.jsonl
    """
