"""`lastarm resume`: continue a search that was killed or stopped, or extend one."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from lastarm.cli import display
from lastarm.cli.words.replay import replay
from lastarm.cli.words.tune import tune
from lastarm.errors import InvalidArgument, JournalLocked
from lastarm.events import Opened
from lastarm.journal.file import find
from lastarm.journal.lock import holder_of
from lastarm.journal.seals import Seals
from lastarm.journal.secret import own_secret
from lastarm.ledger import Ledger
from lastarm.masking import is_masked, without_hashes
from lastarm.report.next_steps import begun_by_command

COMMANDS: dict[str, click.Command] = {"tune": tune, "replay": replay}


def resume(
    journal: str,
    budget: Any,
    output: str | None,
    as_json: bool,
    trust: bool,
    trust_states: bool,
) -> int:
    """Resume or extend a search."""
    path = Path(os.path.realpath(journal))
    events, ours = find(path)
    opened, ledger = events[0], Ledger(events)
    assert isinstance(opened, Opened)
    program, *words = opened.command or ("",)
    shown = shlex.join([Path(program).name, *without_hashes(words)])
    if (holder := holder_of(path)) is not None:
        raise JournalLocked(path, holder)
    done = ledger.closed is not None and budget is None
    if not begun_by_command(opened):
        where = escape(display.plain(f"{shown or 'a session'} in {opened.folder}"))
        to_do = _to_do_in_python(budget, done=done)
        display.say(f"This search was begun in Python, by {where}. {to_do}")
        return 0 if done else 2  # a script must not take it for done
    if is_masked(words):
        again = (
            "to resume the search" if budget is None else f"with --budget {budget} to extend it"
        )
        display.say(
            "The command of this search has words that are not stored, shown as ***, so it is not "
            f"run. Run it yourself {again}, in {escape(display.plain(opened.folder))}, with this "
            f"journal and your own values in place of ***:\n{escape(display.plain(shown))}"
        )
        return 2
    display.note(f"In {display.plain(opened.folder)}: {display.plain(shown)}")
    if budget is None and len(ledger.stretches) > 1:
        display.note(f"It was extended later: its budget is {ledger.stretches[-1].budget}.")
    if not trust:
        _require_trust(journal, opened, ours=ours)
    command = COMMANDS[words[0]]
    if output is not None:
        output = os.path.abspath(output)  # where we are, not where the command was given
    try:
        os.chdir(opened.folder)
    except (OSError, ValueError) as error:  # a name may not hold a zero byte
        why = getattr(error, "strerror", None) or error
        raise InvalidArgument(
            f"the folder {opened.folder} cannot be entered: {why}. Run the command above where "
            "its files are now, with this journal."
        ) from error
    with command.make_context(f"lastarm {words[0]}", words[1:]) as context:
        context.params["journal"] = str(path)  # it may have been moved
        context.params["as_json"] |= as_json
        context.params["fresh"] = False  # that was for the beginning
        if budget is not None:
            context.params["budget"] = budget
        if "trust_states" in context.params:
            context.params["trust_states"] = trust_states  # whatever the journal says
        elif trust_states:
            rule = f"lastarm {words[0]} keeps no states"
            raise InvalidArgument.of("--trust-states", True, rule, "Leave it out")
        if output is not None:
            if "output" not in context.params:
                rule = f"lastarm {words[0]} trains nothing that could be written"
                raise InvalidArgument.of("--output", output, rule, "Leave it out")
            context.params["output"] = output
        elif (given := context.params.get("output")) and Path(given).exists():
            display.note(f"{display.plain(given)} exists already, and stays as it is.")
            context.params["output"] = None
        code: int = command.invoke(context)
        return code


def _to_do_in_python(budget: Any, *, done: bool) -> str:
    again = "run the same code there again with the same journal"
    if done:
        return f"It is complete. To extend it, {again} and a larger budget in its policy."
    if budget is not None:
        return f"To extend it, {again} and budget={budget} in its policy."
    return f"To resume it, {again}."


def _require_trust(journal: str, opened: Opened, *, ours: bool) -> None:
    """Refuse a command that may be somebody else's, unless a person at a terminal says yes."""
    if not ours:
        why = "may have been written by another user"
    elif not Seals(opened, own_secret()).vouch_for_command:
        why = "has no seal of this user, as when it comes from elsewhere"
    else:
        return
    if not display.asked(f"The journal {journal} {why}. Run this command?"):
        raise InvalidArgument(
            f"the journal {journal} {why}, and its command would be executed. Look at the command "
            "above, and add --trust to run it."
        )
