"""The words of `lastarm watch`."""

from __future__ import annotations

import click

from lastarm.cli.words import deed


@click.command()
@click.argument("journals", type=click.Path(), nargs=-1, required=True, metavar="JOURNAL…")
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="By default, a free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="The address to listen on. One that other machines can reach needs a certificate.",
)
@click.option(
    "--certificate", type=click.Path(), metavar="FILE", help="The certificate for TLS, in PEM."
)
@click.option("--key", type=click.Path(), metavar="FILE", help="Its key, if that is another file.")
@click.option(
    "--unencrypted",
    is_flag=True,
    help="Let other machines reach it without TLS: who is on the way can read all of it.",
)
@click.option("--until-closed", is_flag=True, hidden=True, help="End when standard input does.")
@deed
def watch() -> None:
    """Follow searches on a page while they run.

    The page shows the best so far, all curves, how full rungs are, who works on what, failures,
    the budget and the time left. Several journals are compared in one picture. A journal may be
    written by another machine, and need not exist yet.

    The address has a secret, and only this machine can reach it. Journals are only read.

    Example: lastarm watch search.jsonl
    """
