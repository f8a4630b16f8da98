"""`lastarm resume`: go on with a search that was killed or stopped."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import click
from rich.markup import escape

from lastarm.cli import display
from lastarm.cli.replay import replay
from lastarm.cli.tune import tune
from lastarm.errors import InvalidArgument
from lastarm.events import Opened
from lastarm.journal import read

COMMANDS: dict[str, click.Command] = {"tune": tune, "replay": replay}


@click.command()
@click.argument("journal", type=click.Path())
@click.option("--trust", is_flag=True, help="Run the command even if the journal is not yours.")
def resume(journal: str, trust: bool) -> int:
    """Run the command of a journal again, which goes on where it was.

    The command is shown first. It is run in the folder where it was given, and only if the journal
    is yours and nobody else may write to it: what is written there is executed. (A file that you
    were sent or have downloaded is yours, too: look at such a one with lastarm show first.) For a
    search that was begun in Python, how to go on is said instead.
    """
    path = Path(journal).resolve()
    opened = read(path)[0]
    assert isinstance(opened, Opened)
    program, *words = opened.command or ("",)
    shown = shlex.join([Path(program).name, *words])
    if Path(program).name != "lastarm" or not words or words[0] not in COMMANDS:
        where = f"{shown or 'a session'} in {opened.folder}"
        display.say(
            f"This search was begun in Python, by {escape(display.plain(where))}. Run the same "
            "there again, with the same journal, to resume it."
        )
        return 0
    display.note(f"In {display.plain(opened.folder)}: {display.plain(shown)}")
    if not trust and not _is_ours(path):
        raise InvalidArgument(
            f"the journal {journal} may have been written by somebody else, and its command would "
            "be executed. Look at it, and add --trust if that is what you want."
        )
    command = COMMANDS[words[0]]
    try:
        os.chdir(opened.folder)
    except OSError as error:
        raise InvalidArgument(
            f"the folder {opened.folder} cannot be entered: {error.strerror}. Run the command "
            "above where its files are now, with this journal."
        ) from error
    with command.make_context(f"lastarm {words[0]}", words[1:]) as context:
        context.params["journal"] = str(path)  # it may have been moved
        if Path(context.params.get("output") or path.parent / "none").exists():
            context.params["output"] = None  # it was delivered before
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
