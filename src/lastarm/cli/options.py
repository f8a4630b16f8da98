"""The options that commands share, and how their values are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import click

from lastarm.policies import POLICIES
from lastarm.policies.named import Picked, choose, name_of, takes
from lastarm.policies.parts.budgeted import Budgeted

Command = TypeVar("Command", bound=Callable[..., Any])


def number(text: str, *kinds: Callable[[str], Any]) -> Any:
    """A number of the first kind that it reads as, or else the text, to be refused as an argument.

    A whole number with more digits than Python reads is not taken for inf.

    >>> number("3"), number("1e3"), number("1e3", int)
    (3, 1000.0, '1e3')
    """
    spelled = str(text)  # a default is a number already
    if len(spelled) > 4300 and spelled.lstrip("+-").isdecimal():
        return int(Decimal(spelled))
    for kind in kinds or (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


whole_option = partial(click.option, type=lambda text: number(text, int), metavar="N")
seconds_option = partial(click.option, type=lambda text: number(text, float), metavar="S")
seed_option = whole_option("--seed", default=0, show_default=True, help="Decides every draw.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
trust_states_option = click.option(
    "--trust-states",
    is_flag=True,
    help="Load states that came with the journal from elsewhere. This may run code in them.",
)
fresh_option = click.option(
    "--fresh",
    is_flag=True,
    help="Start again with a new journal. One that is there is kept as JOURNAL.old-1.",
)


def _defaults(argument: str) -> str:
    """What the policies take if an argument is left out, the most frequent first.

    >>> _defaults("eta")
    ' [default: 2; hyperband, brackets, asha: 3; priced-halving, timed-halving: chosen]'
    """
    having: dict[Any, list[str]] = {}
    for name, kind in POLICIES.items():
        for field in dataclasses.fields(kind):
            if field.name == argument and field.default is not dataclasses.MISSING:
                having.setdefault(field.default, []).append(name)
    ordered = sorted(having, key=lambda default: -len(having[default]))
    said = [f"{', '.join(having[one])}: {one}" for one in ordered]
    return f" [default: {'; '.join([f'{ordered[0]}', *said[1:]])}]" if said else ""


def _particular() -> dict[str, str]:
    """The arguments that policies explain themselves, each with its help."""
    told: dict[str, str] = {}
    for kind in POLICIES.values():
        for field in dataclasses.fields(kind):
            if "help" in field.metadata and field.name not in told:
                having = ", ".join(name for name in POLICIES if takes(name, field.name))
                told[field.name] = f"{field.metadata['help']} For {having}.{_defaults(field.name)}"
    return told


PARTICULAR = _particular()
POLICY_ARGUMENTS = ("arms", "budget", "eta", "max_pulls", *PARTICULAR, "restarts")


def policy_options(command: Command) -> Command:
    """--policy, --budget, what some policies take besides, and --json."""
    options = (
        click.option(
            "--policy",
            metavar="NAME",
            shell_complete=lambda context, option, begun: [
                name for name in POLICIES if name.startswith(begun)
            ],
            help=f"The algorithm that decides: {', '.join(POLICIES)}. [default: "
            f"{name_of(None, 1)} with --max-pulls, else {name_of(None, None)}]",
        ),
        whole_option("--budget", help="Total pulls over all arms."),
        click.option(
            "--eta",
            type=number,
            metavar="N",
            help="Keep the best 1/eta. Some policies take a fraction such as 3/2, or chosen."
            f"{_defaults('eta')}",
        ),
        whole_option(
            "--max-pulls",
            help="The most that one arm is worth training for. [default in replay: its curve]",
        ),
        *(
            click.option(_spelled(argument), type=number, metavar="VALUE", help=meaning)
            for argument, meaning in PARTICULAR.items()
        ),
        click.option(
            "--restarts",
            is_flag=True,
            default=None,
            help="Every level is trained from zero, so that bringing an arm to N pulls costs N. "
            f"For {', '.join(name for name in POLICIES if takes(name, 'restarts'))}.",
        ),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def by_options(
    policy: str | None,
    numbers: Mapping[str, Any],
    by: Callable[..., Picked] = choose,
    **known: Any,
) -> tuple[Budgeted, Picked]:
    """The policy that options stand for, and all that was chosen; `by` takes what is `known`."""
    chosen = by(policy, numbers, spelled=_spelled, **known)
    assert isinstance(chosen.policy, Budgeted), "so are all that have names"
    return chosen.policy, chosen


def _spelled(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"
