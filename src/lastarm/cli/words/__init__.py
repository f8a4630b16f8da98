"""The words of the command: a file for each subcommand, with its arguments, options and help.

They are loaded to read a command and to print a help, so they need nothing but click, the policies
and the standard library. What a subcommand does is in `lastarm.cli`, in the file of its name, and
is loaded when it is called (`deed`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click


def deed(words: Callable[[], None]) -> Callable[..., Any]:
    """Call the function of the same name in the file of that name in `lastarm.cli`.

    A signal that comes while the file is loaded ends the command at once; a later one raises.
    """
    name = words.__name__

    @functools.wraps(words)
    def perform(**values: Any) -> Any:
        done = getattr(import_module(f"lastarm.cli.{name}"), name)
        if signals := click.get_current_context().find_root().obj:
            signals.interrupt()
        return done(**values)

    return perform
