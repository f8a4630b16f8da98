"""The words of `lastarm export`."""

from __future__ import annotations

import click

from lastarm.cli.options import whole_option
from lastarm.cli.words import deed

EXAMPLES = """\b
lastarm export tune.jsonl -o arms.csv
lastarm export tune.jsonl -o events.csv
lastarm export tune.jsonl --optuna sqlite:///study.db --name tune
"""


@click.command(epilog=EXAMPLES)
@click.argument("journal", type=click.Path())
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write CSV there.")
@click.option(
    "--format",
    "rows",
    type=click.Choice(["arms", "events"]),
    help="A row for each arm, or for each event. [default: events for a FILE that ends in "
    "events.csv, arms for any other .csv]",
)
@click.option("--optuna", metavar="URL", help="Write an Optuna study there: sqlite:///study.db.")
@click.option("--name", help="The name of the study. [default: the journal's name]")
@whole_option(
    "--level",
    help="Make trials COMPLETE with their loss after N pulls, so that Optuna compares them all.",
)
@deed
def export() -> None:
    """Export a search as CSV, or as an Optuna study.

    The journal is only read: nothing in it is executed, and its search may be running meanwhile.
    """
