"""The options that commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lastarm.policies import POLICIES
from lastarm.policies.named import make_policy, name_of
from lastarm.policies.parts.budgeted import Budgeted

POLICY_ARGUMENTS = ("arms", "budget", "eta", "max_pulls", "look_cost", "delta", "of", "constants")

Command = TypeVar("Command", bound=Callable[..., Any])


def whole(text: str) -> Any:
    """A whole number, or else the text as it was given, for whoever takes it to refuse."""
    try:
        return int(text)
    except ValueError:
        return text


def real(text: str) -> Any:
    """A real number, or else the text as it was given."""
    try:
        return float(text)
    except ValueError:
        return text


def policy_options(command: Command) -> Command:
    """--policy, --budget, what some policies take besides, and --json."""
    options = (
        click.option(
            "--policy",
            type=click.Choice(list(POLICIES)),
            metavar="NAME",
            help=f"The algorithm that decides: {', '.join(POLICIES)}. [default: "
            f"{name_of(None, 1)} with --max-pulls, else {name_of(None, None)}]",
        ),
        click.option("--budget", type=whole, metavar="N", help="Total pulls over all arms."),
        click.option(
            "--eta",
            type=whole,
            metavar="N",
            help="Keep the best 1/eta; horizon-halving and its kin take 3/2 too, or chosen. "
            "[default: 2; hyperband and asha: 3; priced- and timed-halving: chosen]",
        ),
        click.option(
            "--max-pulls",
            type=whole,
            metavar="N",
            help="The most that one arm is worth training for. [default in replay: its curve]",
        ),
        click.option(
            "--look-cost",
            type=whole,
            metavar="N",
            help="What a look costs, in pulls, for priced-halving. [default: 0]",
        ),
        click.option(
            "--delta",
            type=real,
            metavar="P",
            help="The chance of error that confidence policies may take. [default: 0.05]",
        ),
        click.option("--of", metavar="NAME", help="The policy that doubling runs."),
        click.option("--constants", metavar="NAME", help="lil-ucb's: heuristic or proven."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def policy_of(name: str, **options: Any) -> Budgeted:
    """The policy of that name."""
    return make_policy(name, options, spelled=lambda option: f"--{option.replace('_', '-')}")
