"""The words of `lastarm tune`."""

from __future__ import annotations

import click

from lastarm.cli.options import (
    fresh_option,
    policy_options,
    seconds_option,
    seed_option,
    trust_states_option,
    whole_option,
)
from lastarm.cli.words import deed
from lastarm.samplers import SAMPLERS

FORMS = (
    "uniform:LOW:HIGH, log:LOW:HIGH, int:LOW:HIGH, logint:LOW:HIGH, normal:MEAN:SD, choice:A,B,C, "
    "ordered:A,B,C, or a value; uniform and int may end in :STEP, and numbers in @LIKELY"
)


class TwoForms(click.Command):
    """A command whose words after `--` belong to another program, and are left as they are."""

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
@whole_option(
    "--arms",
    help="How many settings to draw. Left out, settings are chosen as the search goes, by what is "
    "known of those before, if --budget is at least ten times --max-pulls; with only --seconds, "
    "as many are drawn as there is time for.",
)
@policy_options
@seed_option
@click.option(
    "--sampler",
    type=click.Choice(list(SAMPLERS)),
    metavar="NAME",
    help=f"Choose later arms by what is known of earlier ones: {', '.join(SAMPLERS)}. "
    "[default: gaussian-process where --arms and --policy are left out and --budget is at least "
    "ten times --max-pulls; else all are drawn at random]",
)
@whole_option("--workers", help="Worker processes. [default: none]")
@click.option("--journal", type=click.Path(), help="A file to resume from after a crash.")
@fresh_option
@click.option(
    "--checkpoints",
    type=click.Path(),
    help="The folder for trained states. [default: beside the journal]",
)
@trust_states_option
@click.option(
    "--output",
    type=click.Path(),
    help="Write the winner there: a program's {state} as a folder, else the trained state as a "
    "file. It must not exist yet.",
)
@seconds_option(
    "--seconds", help="Stop after S seconds. Without --budget, plan for S seconds of work."
)
@seconds_option("--pull-seconds", help="A pull that takes longer fails.")
@seconds_option(
    "--switch-seconds",
    help="How long moving a state to another worker takes. [default: measured]",
)
@whole_option("--retries", default=0, help="Try a failed pull again N times.")
@click.option("--maximize", is_flag=True, help="Higher is better; the loss is the negative.")
@click.option("--metric", metavar="NAME", help="What the figure is called, such as accuracy.")
@click.option(
    "--recommend",
    type=click.Choice(["latest", "best"]),
    default="latest",
    show_default=True,
    help="Recommend the policy's arm as it is now, or the best state that was seen.",
)
@deed
def tune() -> None:
    """Tune a trainer, or any program.

    MODULE:TRAINER is a trainer in a Python module: an object or a class with start, train and
    loss, a generator function, or a pair of functions.

    A PROGRAM is run once for each pull. {name} is replaced by a setting, {upto} by the number of
    pulls that the arm has when it is done, {pulls} by how many of these are new, {seed} by the
    arm's seed, and {state} by a folder that belongs to the arm and is kept between pulls. (Its
    path differs from pull to pull.) The last line that the program prints is the loss: a number,
    or JSON with "loss" and other metrics. If its exit code is not 0, the arm has failed, and the
    folder is left as it was.
    """
