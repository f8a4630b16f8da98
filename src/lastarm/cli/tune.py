"""`lastarm tune`: search with a trainer from a module, or with any program."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import click

from lastarm.cli import display
from lastarm.cli.options import (
    POLICY_ARGUMENTS,
    by_options,
    policy_options,
    real,
    whole,
)
from lastarm.cli.space_file import FORMS, space_of
from lastarm.errors import InvalidArgument
from lastarm.samplers import SAMPLERS
from lastarm.searching import search
from lastarm.trainers import AnyTrainer, Program


class TwoForms(click.Command):
    """A command whose words after `--` are another program's, and left as they are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the program's words aside."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["program"], args = args[at + 1 :], args[:at]
        return super().parse_args(ctx, args)


EXAMPLES = """\b
lastarm tune train:model --space space.toml --arms 64 --budget 4096 --journal tune.jsonl
lastarm tune --arms 16 --budget 800 --param lr=log:1e-5:1 --param layers=int:1:6 \\
    -- ./train --lr {lr} --layers {layers} --epochs {upto} --state {state}
"""


@click.command(cls=TwoForms, epilog=f"A domain is one of: {FORMS}.\n\n{EXAMPLES}")
@click.argument("trainer", required=False, metavar="[MODULE:TRAINER | -- PROGRAM ARG...]")
@click.option("--space", "space_path", metavar="FILE", help="What may vary, as TOML.")
@click.option(
    "--param", "parameters", multiple=True, metavar="NAME=DOMAIN", help="One thing that may vary."
)
@click.option("--arms", type=whole, metavar="N", help="How many settings to draw.")
@policy_options
@click.option(
    "--seed", type=whole, default=0, metavar="N", show_default=True, help="Decides every draw."
)
@click.option(
    "--sampler",
    type=click.Choice(list(SAMPLERS)),
    metavar="NAME",
    help=f"Choose later arms by what is known of earlier ones: {', '.join(SAMPLERS)}. "
    "[default: draw all at random]",
)
@click.option("--workers", type=whole, metavar="N", help="Worker processes. [default: none]")
@click.option("--journal", type=click.Path(), help="Write it down, to resume it after a crash.")
@click.option(
    "--checkpoints", type=click.Path(), help="Where states go. [default: beside the journal]"
)
@click.option(
    "--output", type=click.Path(), help="Put the winner's {state} there, a folder not there yet."
)
@click.option(
    "--seconds",
    type=real,
    metavar="S",
    help="Stop after so long; timed-halving plans for so much work.",
)
@click.option("--pull-seconds", type=real, metavar="S", help="Give a pull up after so long.")
@click.option(
    "--switch-seconds",
    type=real,
    metavar="S",
    help="What moving a state to another worker takes. [default: measured]",
)
@click.option(
    "--retries", type=whole, default=0, metavar="N", help="Try a failed pull again so often."
)
@click.option("--maximize", is_flag=True, help="Higher is better; the loss is the negative.")
@click.option(
    "--recommend",
    type=click.Choice(["latest", "best"]),
    default="latest",
    show_default=True,
    help="The policy's arm as it is, or the best that was seen.",
)
def tune(
    trainer: str | None,
    space_path: str | None,
    parameters: tuple[str, ...],
    policy: str | None,
    sampler: str | None,
    as_json: bool,
    checkpoints: str | None,
    output: str | None,
    **options: Any,
) -> int:
    """Tune a trainer, or any program.

    MODULE:TRAINER is a trainer in a Python module: an object or a class with start, train and
    loss, a generator function, or a pair of functions.

    A PROGRAM is run once for each pull, with {name} replaced by a setting, {upto} by the number of
    pulls that the arm is to have had in all, {pulls} by how many more that is, {seed} by the arm's
    seed, and {state} by a folder of the arm's own that is kept between pulls. The last line that
    it prints is the loss: a number, or JSON with "loss" and other metrics. If it ends with
    another exit code than 0, its arm has failed, and the folder is left as it was. (The folder has
    another path in every pull.)
    """
    program = click.get_current_context().meta.get("program")
    if output is not None and (program is None or Path(output).exists()):
        raise InvalidArgument(
            f"--output {output} will not do: it is for the winner's folder of a program, and must "
            "not be there yet. Name another place, or leave it out."
        )
    space, include = space_of(space_path, parameters)
    numbers = {name: options.pop(name) for name in POLICY_ARGUMENTS}
    chosen, options["seconds"] = by_options(
        policy, numbers, seed=options["seed"], seconds=options["seconds"]
    )
    with _only_the_answer() if as_json else nullcontext():
        result = search(
            _trainer(trainer, program, space),
            space,
            policy=chosen,
            sampler=None if sampler is None else SAMPLERS[sampler](),
            include=include,
            checkpoints=True if checkpoints is None else checkpoints,
            **options,
        )
    if output is not None and result.state is not None:
        shutil.copytree(result.state, output, symlinks=True)
    elif output is not None:
        display.note(f"lastarm: the winner's folder is lost, so that there is no {output}.")
    if as_json:
        named = {"policy": chosen.name, "budget": result.budget}
        display.print_json(result.as_dict() | named)
    else:
        display.console.print(display.rungs(result))
        display.answer(result)
        if (used := result.utilisation) and used.workers > 1:
            display.say(f"{used}.")
        display.settings(result.config or {})
        if not result.complete:
            again = (
                f"lastarm resume {shlex.quote(options['journal'])}" if options["journal"] else None
            )
            display.stopped(again)
    if result.stopped_by:
        return 128 + result.stopped_by
    return 1 if output is not None and result.state is None else 0


@contextmanager
def _only_the_answer() -> Iterator[None]:
    """Whatever else would be printed, by us or by what a trainer starts, is an aside."""
    sys.stdout.flush()
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(answers, 1)
        os.close(answers)


def _trainer(named: str | None, program: list[str] | None, space: Any) -> AnyTrainer:
    if (named is None) == (program is None):
        raise InvalidArgument(
            "give what to tune: MODULE:TRAINER, or a program after --"
            + (", and not both." if named else ".")
        )
    if program is not None:
        mappings = space if isinstance(space, list) else [space]
        return Program(program, names=sorted({name for one in mappings for name in one}))
    assert named is not None
    module, colon, path = named.partition(":")
    if not colon or not path:
        raise InvalidArgument(
            f"{named!r} does not say which trainer: write MODULE:TRAINER, or put -- before a "
            "program."
        )
    sys.path.insert(0, "")  # a module in this folder, as `python -m` would find it
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:  # whatever a foreign module does when it is imported
        raise InvalidArgument(
            f"{named!r} cannot be had: {type(error).__name__}: {error}. Name a module that can be "
            "imported from here, and what is in it."
        ) from error
    trainer: AnyTrainer = found
    return trainer
