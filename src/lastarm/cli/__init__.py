"""The `lastarm` command: a file for each subcommand, and what several of them share.

Shared are `options` (options and how their values are read) and `display` (how a search looks on a
terminal). Nothing is decided or computed here that the library could do.

Exit codes: 0 done, 1 all arms failed, 2 bad input, 3 the journal cannot be used, 130 and 143
stopped by Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from lastarm.errors import (
    AllArmsFailed,
    InvalidArgument,
    JournalError,
    Stuck,
    TemporaryNotWritten,
)
from lastarm.other_tools import explained
from lastarm.plain import printable

COMMANDS = ("demo", "export", "plan", "replay", "report", "reproduce", "resume", "show", "tune")


class Commands(click.Group):
    """Subcommands that are imported when they are called: each is in a file of its own name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"lastarm.cli.{cmd_name}"), cmd_name)
        return found


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 99},
)
@click.version_option(package_name="lastarm")
def lastarm() -> None:
    """Find the best of many hyperparameter settings without training them all."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code; an error is one line, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an old terminal may not know every character
    # Whatever started it, a journal remembers this as its command.
    sys.argv = ["lastarm", *(sys.argv[1:] if arguments is None else arguments)]
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: _say(message)
        sys.exit(_exit_code(arguments))


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        code = lastarm.main(arguments, prog_name="lastarm", standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
        return code or 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.NoSuchOption as error:
        message, code = _no_such_option(error), 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "lastarm"
        message, code = f"{error.format_message()} See {path} --help.", 2
    except (InvalidArgument, TemporaryNotWritten) as error:
        message, code = str(error), 2
    except (AllArmsFailed, Stuck) as error:
        message, code = str(error), 1
    except JournalError as error:
        message, code = str(error), 3
    except (click.Abort, KeyboardInterrupt):
        message, code = "stopped at once.", 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        message, code = f"the system refused: {error.strerror or error}.", 2
    _say(message)
    return code


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
    print(f"lastarm: {printable(' '.join(str(message).split()))}", file=sys.stderr)
