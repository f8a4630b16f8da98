"""The words of `lastarm plan`."""

from __future__ import annotations

import click

from lastarm.cli.options import policy_options, seconds_option, whole_option
from lastarm.cli.words import deed


@click.command()
@whole_option("--arms", help="How many settings to choose from.")
@whole_option("--workers", help="Say how long N workers would take.")
@seconds_option("--seconds-per-pull", help="How long a pull takes. [default: 1]")
@seconds_option("--seconds-per-look", help="How long looking at a loss takes. [default: 0]")
@policy_options
@deed
def plan() -> None:
    """Show what a search will spend before it begins.

    For successive-halving it also shows, for each rank, how soon losses have to settle so that the
    best arm is sure to win with this budget (Theorem 1 of the paper, solved for the losses), and
    the same rung by rung, where less is enough. A
    policy that decides by the losses it sees has no plan, only bounds. For hyperband,
    the budget may be left out: then it is that of all its brackets. For brackets and hyperband,
    arms may be left out: then there are as many as the budget allows for.

    With --workers or --seconds-per-pull, the policy is played on simulated workers, and the plan
    says how long that takes and how much of the time they work.

    \b
    lastarm plan --arms 10 --budget 1000
    lastarm plan --budget 1000 --max-pulls 81
    lastarm plan --arms 64 --budget 4096 --workers 16 --seconds-per-pull 3
    """  # noqa: D301 (click takes the mark for a paragraph that stays as it is)
