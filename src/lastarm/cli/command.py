"""What the command does with its words, and how its errors are told: in one line."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import shell_complete

from lastarm.arguments.other_tools import explained
from lastarm.cli.ending import (
    NO_THREAD,
    STOPPED,
    Signals,
    complain,
    first_cause,
    signal_of,
    to_nowhere,
)
from lastarm.cli.memory import NOT_ENOUGH
from lastarm.errors import (
    AllArmsFailed,
    ClusterLost,
    EngineNotStarted,
    InvalidArgument,
    JournalError,
    NotAJournal,
    Stuck,
    TemporaryNotWritten,
    WorkersNotStarted,
)
from lastarm.texts import printable

COMMANDS = (
    "demo",
    "export",
    "plan",
    "replay",
    "report",
    "reproduce",
    "resume",
    "show",
    "tune",
    "watch",
)
READER_GONE = 141  # as if SIGPIPE had ended it


class Commands(click.Group):
    """Subcommands whose words are imported when they are needed, each from its own file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"lastarm.cli.words.{cmd_name}"), cmd_name)
        return found


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 99},
)
@click.version_option(package_name="lastarm")
def lastarm() -> None:
    """Find the best of many hyperparameter settings without training them all."""


def run(arguments: Sequence[str] | None, signals: Signals | None = None) -> int:
    """Run the command, and say in one line what went wrong; its exit code.

    From when on `signals` raise is up to the command.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an old terminal may not know every character
    # Whatever started it, a journal remembers this as its command.
    sys.argv = ["lastarm", *(sys.argv[1:] if arguments is None else arguments)]
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: _say(message)
        try:
            code = _performed(sys.argv[1:], signals)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            to_nowhere(sys.stdout)
            return READER_GONE
        except Exception as error:
            if (found := _message(error)) is None:
                raise
            message, code = found
        except KeyboardInterrupt as interrupt:
            message, code = STOPPED, 128 + signal_of(interrupt)
        _say(message)
        return code


def _performed(words: list[str], signals: Signals | None) -> int:
    if asked := os.environ.get("_LASTARM_COMPLETE"):  # by a shell, when the tabulator is pressed
        return shell_complete(lastarm, {}, "lastarm", "_LASTARM_COMPLETE", asked)
    try:
        with lastarm.make_context("lastarm", words, obj=signals) as context:
            return lastarm.invoke(context) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.exceptions.Exit as leaving:  # of --help and --version
        return leaving.exit_code


def _message(error: Exception) -> tuple[str, int] | None:
    """What to say of an error, and the exit code; None, for one of lastarm's own code."""
    match error:
        case click.NoSuchOption():
            return _no_such_option(error), 2
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "lastarm"
            return f"{error.format_message()} See {path} --help.", 2
        case click.Abort():  # at a question
            return STOPPED, 128 + signal_of(error.__cause__ or error.__context__)
        case InvalidArgument() | NotAJournal() | TemporaryNotWritten():
            return str(error), 2
        case EngineNotStarted() | WorkersNotStarted() | ClusterLost():
            return str(error), 2
        case AllArmsFailed() | Stuck():
            return str(error), 1
        case JournalError():
            return str(error), 3
        case UnicodeEncodeError():
            text = ascii(error.object[:100])
            return (
                f"{text} cannot be written in the encoding of this locale, {error.encoding}. Use "
                "a locale with UTF-8, such as LC_ALL=C.UTF-8.",
                2,
            )
        case MemoryError():
            return NOT_ENOUGH, 2
        case RuntimeError() if "start new thread" in str(error):
            return NO_THREAD, 2
        case ImportError():
            return f"a package could not be loaded: {first_cause(error)}.", 2
        case OSError():
            to_nowhere(sys.stdout)
            return f"the system refused: {error.strerror or error}.", 2
    return None


def _no_such_option(error: click.NoSuchOption) -> str:
    """What to write in place of an option, also of one that other tools have."""
    assert error.ctx is not None
    known = {name for option in error.ctx.command.params for name in option.opts}
    word = error.option_name.removeprefix("--").replace("-", "_")
    names = [name.removeprefix("--").replace("-", "_") for name in known if name[:2] == "--"]
    told = explained(word, names, lambda name: f"--{name.replace('_', '-')}")
    said = f"No such option '{error.option_name}'. {told[1]}." if told else error.format_message()
    return f"{said} See {error.ctx.command_path} --help."


def _say(message: object) -> None:
    complain(printable(" ".join(str(message).split())))
