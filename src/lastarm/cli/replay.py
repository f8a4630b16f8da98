"""`lastarm replay`: play a policy on recorded learning curves."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import click
import numpy as np

from lastarm.cli import show
from lastarm.cli.options import Whole, make_policy, policy_options
from lastarm.errors import InvalidArgument, whole_number
from lastarm.runners import Serial
from lastarm.search import search
from lastarm.trainers import RecordedCurves

GROUP = 256  # a recorded pull takes no time, so many share one wait for the disk


@click.command()
@click.argument("file")
@policy_options
@click.option("--arms", type=Whole(), help="Draw so many rows by --seed. [default: all of them]")
@click.option("--seed", type=Whole(), default=0, show_default=True, help="Decides the draw.")
@click.option("--journal", type=click.Path(), help="Write it down, to resume it after a crash.")
@click.option(
    "--seconds-per-pull",
    type=click.FloatRange(min=0, max=3600),
    default=0.0,
    help="Let a pull take time, to watch a search, stop it and resume it.",
)
def replay(
    file: str,
    policy: str,
    budget: Any,
    eta: Any,
    as_json: bool,
    arms: Any,
    seed: Any,
    journal: str | None,
    seconds_per_pull: float,
) -> int:
    r"""Play a policy on recorded learning curves, as if it had trained them.

    FILE is a table of losses: an .npz file with `losses[arm, step]`, or a .csv file with one row
    for each arm (a header is allowed). A step is a pull; past the last step a loss stays as it
    is. The arm in the answer is the row of the file, counted from 0.

    With --journal, run the same command again to resume a search that was killed or stopped.

    \b
    Example: lastarm replay curves.npz --budget 2000 --journal search.jsonl
    """
    curves = RecordedCurves.load(file, seconds_per_pull=seconds_per_pull)
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    rows = _draw(len(curves.losses), arms, seed)
    chosen = make_policy(policy, len(rows), budget, eta)
    with show.progress(policy, budget) as on_event:
        result = search(
            curves,
            [{"row": row} for row in rows],
            policy=chosen,
            runner=partial(Serial, group=1 if seconds_per_pull else GROUP),
            journal=journal,
            seed=seed,
            on_event=on_event,
        )
    if as_json:
        arm = None if result.arm is None else rows[result.arm]
        fields = {**result.to_json(), "arm": arm, "policy": policy, "budget": budget}
        print(json.dumps(fields))
    else:
        show.console.print(show.rungs(result, rows.__getitem__))
        show.answer(result, budget, rows.__getitem__, longest=curves.losses.shape[1])
        if not result.complete:
            how = "resume" if journal else "start over; with --journal it would resume"
            show.say(f"Stopped before the end. Run the same command again to {how}.")
    return 128 + result.stopped_by if result.stopped_by and not result.complete else 0


def _draw(rows: int, arms: Any, seed: int) -> list[int]:
    """The rows that are arms: all, or so many of them drawn by the seed; in the file's order."""
    if arms is None:
        return list(range(rows))
    arms = whole_number("arms", arms, 1, "how many rows to draw")
    if arms > rows:
        raise InvalidArgument(
            f"arms={arms} will not do: the table has {rows} rows. Draw at most {rows}."
        )
    drawn = np.random.default_rng(seed).choice(rows, arms, replace=False)
    return sorted(drawn.tolist())
