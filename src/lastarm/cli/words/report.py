"""The words of `lastarm report`."""

from __future__ import annotations

import click

from lastarm.cli.words import deed


@click.command()
@click.argument("journal", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page to write. An earlier report there is replaced, any other file is not.",
)
@deed
def report() -> None:
    """Write a search as one page of HTML.

    The page shows the answer and what it cost, every learning curve, the rungs, the settings
    against the loss, failures, and how safe the eliminations were. Pick an arm to read its story.
    The page is one file for any browser, and needs no network and no server.

    The journal is only read: nothing in it is executed, and its search may be running meanwhile.

    Example: lastarm report search.jsonl -o report.html
    """
