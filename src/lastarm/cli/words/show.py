"""The words of `lastarm show`."""

from __future__ import annotations

import click

from lastarm.cli.options import json_option
from lastarm.cli.words import deed


@click.command()
@click.argument("journal", type=click.Path())
@click.option("--watch", is_flag=True, help="Follow a running search until it ends.")
@click.option(
    "--top", type=int, default=10, show_default=True, metavar="N", help="Show the best N arms."
)
@json_option
@deed
def show() -> None:
    """Show a search: its arms, its rungs and what it has spent.

    The journal is only read: no state is loaded, nothing in it is executed, and its search may be
    running meanwhile.
    """
