"""The options that commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lastarm.errors import InvalidArgument
from lastarm.policies import POLICIES, SuccessiveHalving
from lastarm.policies.fixed_budget import FixedBudget

Command = TypeVar("Command", bound=Callable[..., Any])


class Whole(click.ParamType[Any]):
    """A whole number, or else the text as it was given, for whoever takes it to refuse."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, if it is one."""
        try:
            return int(value)
        except ValueError:
            return value


def policy_options(command: Command) -> Command:
    """--policy, --budget, --eta, --seed and --json."""
    for option in reversed(
        (
            click.option(
                "--policy",
                type=click.Choice(list(POLICIES)),
                default=SuccessiveHalving.name,
                show_default=True,
                help="The algorithm that decides.",
            ),
            click.option(
                "--budget", type=Whole(), required=True, help="Total pulls over all arms."
            ),
            click.option(
                "--eta", type=Whole(), help="Keep the best 1/eta of a rung. [default: 2]"
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        )
    ):
        command = option(command)
    return command


def make_policy(name: str, arms: int, budget: int, eta: int | None) -> FixedBudget:
    """The policy of that name; an argument that it does not have is refused."""
    arguments = {"arms": arms, "budget": budget}
    if eta is not None:
        if "eta" not in POLICIES[name].__dataclass_fields__:
            raise InvalidArgument(
                f"eta={eta} will not do with {name}, which has no eta. Leave it out, or use "
                f"--policy {SuccessiveHalving.name}."
            )
        arguments["eta"] = eta
    return POLICIES[name](**arguments)
