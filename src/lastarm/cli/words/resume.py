"""The words of `lastarm resume`."""

from __future__ import annotations

import click

from lastarm.cli.options import json_option, trust_states_option, whole_option
from lastarm.cli.words import deed


@click.command()
@click.argument("journal", type=click.Path())
@whole_option(
    "--budget",
    metavar="TOTAL",
    help="Extend the search, also if it has ended, to TOTAL pulls in all.",
)
@click.option("--output", type=click.Path(), help="Write the winner there, and to no other place.")
@json_option
@click.option(
    "--trust", is_flag=True, help="Run the command even if others may have written the journal."
)
@trust_states_option
@deed
def resume() -> None:
    """Resume or extend a search.

    The command in the journal is run again, and continues where it stopped. With a larger --budget
    the search is extended: every arm is trained further from where it is, and nothing is trained
    twice.

    The command is shown first, and run in the folder where it was given. Because it is executed,
    the journal must have the seal of your own searches, be your file, and be closed to others.
    Otherwise you are asked, or it is refused where no terminal is. For a search that was begun in
    Python, it says how to resume it instead. The exit code is then 2, because nothing was resumed,
    unless there was nothing left to do. A command with a password or the like, which the journal
    does not hold, is shown and not run; the exit code is 2.
    """
