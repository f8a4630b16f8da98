"""`lastarm resume`: go on with a search that was killed or stopped, or with a larger budget."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from lastarm.cli import display
from lastarm.cli.options import whole
from lastarm.cli.replay import replay
from lastarm.cli.tune import tune
from lastarm.errors import InvalidArgument
from lastarm.events import Opened
from lastarm.journal import read
from lastarm.ledger import Ledger

COMMANDS: dict[str, click.Command] = {"tune": tune, "replay": replay}


@click.command()
@click.argument("journal", type=click.Path())
@click.option(
    "--budget",
    type=whole,
    metavar="TOTAL",
    help="Extend it, also if it has ended: so many pulls in all, with those before.",
)
@click.option(
    "--output", type=click.Path(), help="Put the winner's {state} there, and not where it was put."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--trust", is_flag=True, help="Run the command even if the journal is not yours.")
def resume(journal: str, budget: Any, output: str | None, as_json: bool, trust: bool) -> int:
    """Run the command of a journal again, which goes on where it was.

    With a larger --budget the search is extended: every arm goes on from where it is, and nothing
    is trained twice.

    The command is shown first. It is run in the folder where it was given, and only if the journal
    is yours and nobody else may write to it: what is written there is executed. (A file that you
    were sent or have downloaded is yours, too: look at such a one with lastarm show first.) For a
    search that was begun in Python, how to go on is said instead; unless there was nothing left to
    do, the exit code is then 2, since nothing was resumed.
    """
    path = Path(os.path.realpath(journal))
    events = read(path)
    opened, ledger = events[0], Ledger(events)
    assert isinstance(opened, Opened)
    program, *words = opened.command or ("",)
    shown = shlex.join([Path(program).name, *words])
    if Path(program).name != "lastarm" or not words or words[0] not in COMMANDS:
        where = f"{shown or 'a session'} in {opened.folder}"
        display.say(
            f"This search was begun in Python, by {escape(display.plain(where))}. Run the same "
            "there again, with the same journal, to resume it"
            + ("." if budget is None else f"; with budget={budget} in its policy, to extend it.")
        )
        return 0 if ledger.closed and budget is None else 2  # a script must not take it for done
    display.note(f"In {display.plain(opened.folder)}: {display.plain(shown)}")
    if budget is None and len(ledger.stretches) > 1:
        display.note(f"It was extended since: its budget is {ledger.stretches[-1].budget}.")
    if not trust and not _is_ours(path):
        raise InvalidArgument(
            f"the journal {journal} may have been written by somebody else, and its command would "
            "be executed. Look at it, and add --trust if that is what you want."
        )
    command = COMMANDS[words[0]]
    if output is not None:
        output = os.path.abspath(output)  # where we are, not where the command was given
    try:
        os.chdir(opened.folder)
    except (OSError, ValueError) as error:  # a name with a zero byte in it is no name
        why = getattr(error, "strerror", None) or error
        raise InvalidArgument(
            f"the folder {opened.folder} cannot be entered: {why}. Run the command "
            "above where its files are now, with this journal."
        ) from error
    with command.make_context(f"lastarm {words[0]}", words[1:]) as context:
        context.params["journal"] = str(path)  # it may have been moved
        context.params["as_json"] |= as_json
        if budget is not None:
            context.params["budget"] = budget
        if output is not None:
            if "output" not in context.params:
                raise InvalidArgument(
                    f"--output will not do: lastarm {words[0]} has no folders to put anywhere. "
                    "Leave it out."
                )
            context.params["output"] = output
        elif (given := context.params.get("output")) and Path(given).exists():
            display.note(f"{display.plain(given)} is there already, and stays as it is.")
            context.params["output"] = None
        code: int = command.invoke(context)
        return code


def _is_ours(path: Path) -> bool:
    if os.name != "posix":
        return True
    file, folder = path.stat(), path.parent.stat()
    sticky = folder.st_mode & stat.S_ISVTX  # in which only its owner may replace a file
    return (
        file.st_uid == os.geteuid()
        and not file.st_mode & 0o022
        and bool(sticky or not folder.st_mode & 0o022)
    )
