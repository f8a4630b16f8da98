"""`lastarm tune`: search with a trainer from a module, or with any program."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import click

from lastarm import samplers
from lastarm.checkpoints import Checkpoints
from lastarm.cli import display
from lastarm.cli.options import (
    POLICY_ARGUMENTS,
    by_options,
    number,
)
from lastarm.cli.output import require_free, write_winner
from lastarm.cli.words.tune import FORMS
from lastarm.errors import InvalidArgument
from lastarm.journal import read
from lastarm.journal.header import header_of
from lastarm.journal.seals import Seals
from lastarm.journal.secret import own_secret
from lastarm.searching import search
from lastarm.searching.performing import choose_as_begun, usual_sampler
from lastarm.space import Choice, Integer, LogUniform, Normal, Space, Uniform
from lastarm.texts import counted
from lastarm.trainers import AnyTrainer, Program

INTERVALS: dict[str, Callable[..., Any]] = {
    "uniform": Uniform,
    "log": LogUniform,
    "int": Integer,
    "logint": partial(Integer, log=True),
    "normal": Normal,
}
STEPPED = ("uniform", "int")


def tune(
    trainer: str | None,
    space_path: str | None,
    parameters: tuple[str, ...],
    policy: str | None,
    sampler: str | None,
    as_json: bool,
    checkpoints: str | None,
    trust_states: bool,
    output: str | None,
    **options: Any,
) -> int:
    """Tune a trainer, or any program."""
    program = click.get_current_context().meta.get("program")
    if output is not None:
        require_free(output)
    space, include = space_of(space_path, parameters)
    numbers = {name: options.pop(name) for name in POLICY_ARGUMENTS}
    trust = trust_states or _trusts_states(options["journal"])
    with _only_the_answer() if as_json else nullcontext():
        tuned = _trainer(trainer, program, space, restarts=bool(numbers["restarts"]))
        _, chosen = by_options(
            policy,
            numbers,
            by=choose_as_begun,
            space=space,
            journal=None if options["fresh"] else options["journal"],
            seed=options["seed"],
            seconds=options["seconds"],
            workers=options["workers"],
            restarts=bool(getattr(tuned, "restarts", False)),
        )
        asked_for = getattr(samplers, samplers.SAMPLERS[sampler])() if sampler else None
        result = search(
            tuned,
            space,
            policy=chosen.policy,
            sampler=asked_for or usual_sampler(chosen),
            include=include,
            checkpoints=Checkpoints(checkpoints, trust=trust),
            **options | {"seconds": chosen.seconds},
        )
    varying = dict.fromkeys(name for one in _branches(space) for name in one)
    unused = [f"{{{name}}}" for name in varying if f"{{{name}" not in " ".join(program or [])]
    if program and unused:
        display.note(f"lastarm: the command does not use {', '.join(unused)}.")
    if as_json:
        named = {"policy": chosen.policy.name, "budget": result.budget}
        display.print_json(result.as_dict() | named)
        display.note_about_this_call(result)
    else:
        display.console.print(display.rungs(result))
        display.answer(result)
        if (used := result.utilisation) and used.workers > 1:
            display.say(f"{used}.")
        display.settings(result.config or {})
        if not result.complete:
            display.stopped(options["journal"])
    code = 0 if output is None else write_winner(result, output)
    return display.exit_code(result.stopped_by) or code


def _trusts_states(journal: str | None) -> bool:
    """Ask a person at a terminal, if the journal came with states from elsewhere."""
    if journal is None or not os.path.exists(journal) or not display.can_ask():
        return False
    events = read(journal)
    foreign = Seals(header_of(events), own_secret(make=False)).of_states(events).foreign
    return foreign > 0 and display.asked(
        f"{counted(foreign, 'state')} of {journal} came from elsewhere: they have no seal of this "
        "user. Loading them may run code in them. If they are not loaded, their arms are trained "
        "again, to the same answer. Load them?"
    )


@contextmanager
def _only_the_answer() -> Iterator[None]:
    """Send everything else that is printed, also by programs, to standard error."""
    sys.stdout.flush()
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(answers, 1)
        os.close(answers)


# What is tuned ----------------------------------------------------------------------------------


def _trainer(
    named: str | None, program: list[str] | None, space: Any, *, restarts: bool
) -> AnyTrainer:
    if (named is None) == (program is None):
        given = "both are given" if named else "neither is given"
        raise InvalidArgument(
            f"what to tune is MODULE:TRAINER, or a program after --; {given}. Give one of them."
        )
    if program is not None:
        varying = sorted({name for one in _branches(space) for name in one})
        tuned = Program(program, names=varying, restarts=restarts)
        for one in _branches(space):
            tuned.check(one)
        return tuned
    assert named is not None
    module, colon, path = named.partition(":")
    if not colon or not path:
        way_out = "Use MODULE:TRAINER, or put -- before a program"
        raise InvalidArgument.of("trainer", named, "it does not name a trainer", way_out)
    sys.path.insert(0, "")  # a module in this folder, as `python -m` would find it
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:  # a foreign module may raise anything when it is imported
        rule = f"it cannot be imported: {type(error).__name__}: {error}"
        way_out = "Name a module that can be imported from here, and a trainer in it"
        raise InvalidArgument.of("trainer", named, rule, way_out) from error
    trainer: AnyTrainer = found
    return trainer


def _branches(space: Any) -> list[Any]:
    return space if isinstance(space, list) else [space]


# What may vary, as people write it on the command line and in files -----------------------------


def parameter(text: str) -> tuple[str, Any]:
    """The name and the domain in `name=domain`.

    >>> parameter("lr=log:1e-5:1")
    ('lr', LogUniform(low=1e-05, high=1.0))
    >>> parameter("lr=log:1e-5:1@1e-3")
    ('lr', LogUniform(low=1e-05, high=1.0, likely=0.001))
    >>> parameter("width=int:16:64:16")
    ('width', Integer(low=16, high=64, log=False, step=16))
    >>> parameter("act=choice:relu,tanh"), parameter("epochs=10")
    (('act', Choice('relu', 'tanh')), ('epochs', 10))
    """
    name, equals, spelled = text.partition("=")
    if not equals:
        rule = f"it names a parameter and its domain: {FORMS}"
        raise InvalidArgument.of("--param", text, rule, "Write NAME=DOMAIN")
    return name, domain(name, spelled)


def domain(name: str, spelled: str) -> Any:
    """The domain, or the constant, that a text stands for."""
    kind, colon, rest = spelled.partition(":")
    try:
        if colon and kind in ("choice", "ordered"):
            options = [number(option) for option in rest.split(",") if rest]
            return Choice(*options, ordered=kind == "ordered")
        if not colon or kind not in INTERVALS:
            if re.fullmatch(r"[A-Za-z]+:[-+.\deE]+:[-+.\deE]+", spelled):
                raise InvalidArgument(f"{spelled!r} is not a known domain: write {FORMS}.")
            return number(spelled)
        rest, at, likely = rest.partition("@")
        bounds = [number(bound) for bound in rest.split(":")]
        belief = {"likely": number(likely)} if at else {}
        if at and kind == "normal":
            raise InvalidArgument(f"{spelled!r} has a likely value already: the mean.")
        if len(bounds) == 3 and kind in STEPPED:
            return INTERVALS[kind](*bounds[:2], step=bounds[2], **belief)
        if len(bounds) != 2:
            raise InvalidArgument(f"{spelled!r} has {len(bounds)} bounds: write {kind}:LOW:HIGH.")
        return INTERVALS[kind](*bounds, **belief)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}", argument=name, given=spelled) from None


def space_file(path: str) -> tuple[Space, list[dict[str, Any]]]:
    """The space in a TOML file, and the configs to try first.

        lr = "log:1e-5:1"             # as on the command line
        act = ["relu", "tanh"]        # a list is a choice
        momentum = 0.9                # anything else is a constant

    With a table `[space]`, the parameters are those in it. Of several tables `[[space]]`, each arm
    draws one. Each table `[[include]]` is a config to try first.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # also for a number of too many digits
        raise InvalidArgument(
            f"the space {path!r} cannot be read: {getattr(error, 'strerror', None) or error}. "
            f"Use a TOML file with a line NAME = DOMAIN for each parameter, where a domain is a "
            f"list of choices, or a text: {FORMS}.",
            argument="--space",
            given=path,
        ) from error
    if "space" not in content or not isinstance(content["space"], dict | list):
        return _mapping(content), []
    unknown = content.keys() - {"space", "include"}
    if unknown:
        rule = f"{', '.join(sorted(unknown))} must not be outside of [space]"
        raise InvalidArgument.of("--space", path, rule, "Put all parameters into [space]")
    spaces, include = content["space"], list(content.get("include", []))
    if isinstance(spaces, list):
        return [_mapping(one) for one in spaces], include
    return _mapping(spaces), include


def space_of(file: str | None, parameters: Iterable[str]) -> tuple[Space, list[dict[str, Any]]]:
    """The space in a file, with the parameters of the command line added to it."""
    space: Any
    space, include = space_file(file) if file else ({}, [])
    added: dict[str, Any] = {}
    for name, value in map(parameter, parameters):
        if name in added:
            raise InvalidArgument.of("--param", name, "it is given twice", "Give it once")
        added[name] = value
    if not file and not added:
        raise InvalidArgument(
            "there is nothing to vary. Add --param NAME=DOMAIN for each parameter, with "
            f"{FORMS}; or --space FILE.",
            argument="--param",
        )
    if isinstance(space, list):
        return [{**one, **added} for one in space], include
    return {**space, **added}, include


def _mapping(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: domain(name, value) if isinstance(value, str) else value
        for name, value in table.items()
    }
