"""Which runner a search uses, by what its caller asked for."""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import TYPE_CHECKING, Literal, Union, cast

from lastarm.arguments import did_you_mean, whole_number
from lastarm.errors import InvalidArgument
from lastarm.runners.protocol import MakeRunner
from lastarm.runners.serial import Serial

if TYPE_CHECKING:
    from distributed import Client

AnyRunner = Union[Literal["serial", "processes", "batched", "ray"], MakeRunner, "Client", None]
"""What performs pulls: a name, a Dask client, a function that makes a runner, or None: serial."""


def chosen_runner(
    runner: AnyRunner,
    workers: int | None = None,
    pull_seconds: float | None = None,
    *,
    starts_processes: bool = False,
    batched: bool = False,
) -> MakeRunner:
    """What makes the runner.

    - `runner`: a name, a Dask client, a function from `Arms` to a runner; None: it is chosen
    - `workers`: how many workers there are. More than one: worker processes are chosen
    - `pull_seconds`: how long a pull may take. If given, worker processes are chosen
    - `starts_processes`: whether the trainer starts processes. Then a worker process is chosen,
      because only with it can all that it has started be ended for sure
    - `batched`: whether the trainer trains many arms in one step. Then the batched runner is
      chosen, if no worker processes are
    """
    if workers is not None:
        workers = whole_number("workers", workers, 1, "how many pulls can be under way")
    if runner is None:
        apart = (workers or 1) > 1 or pull_seconds is not None or starts_processes
        alone: AnyRunner = "batched" if batched else "serial"
        runner, workers = ("processes", workers or 1) if apart else (alone, None)
    named = runner if isinstance(runner, str) else ""  # an array would be compared item by item
    if named == "processes":
        workers = workers or os.cpu_count() or 1
        made = importlib.import_module("lastarm.runners.processes").Processes  # all take time
        return cast(MakeRunner, partial(made, workers=workers, pull_seconds=pull_seconds))
    if named == "ray":
        made = importlib.import_module("lastarm.runners.ray").Ray
        return cast(MakeRunner, partial(made, workers=workers, pull_seconds=pull_seconds))
    if type(runner).__module__.partition(".")[0] == "distributed":
        if workers is not None:
            rule = "the runner is a Dask client, which has workers of its own"
            raise InvalidArgument.of("workers", workers, rule, "Leave it out")
        made = importlib.import_module("lastarm.runners.dask").Dask
        return cast(MakeRunner, partial(made, client=runner, pull_seconds=pull_seconds))
    if pull_seconds is not None or (workers or 1) > 1:
        name, given = ("pull_seconds", pull_seconds) if pull_seconds else ("workers", workers)
        rule = f"runner={runner!r} has no worker processes"
        raise InvalidArgument.of(name, given, rule, 'Use runner="processes", or leave it out')
    if named == "serial":
        return Serial
    if named == "batched":
        return cast(MakeRunner, importlib.import_module("lastarm.runners.batched").Batched)
    if callable(runner):
        return runner
    names = ["serial", "processes", "batched", "ray"]
    way_out = f"Use {', '.join(names)}, a Dask client, or a function that makes a runner"
    way_out = f"{did_you_mean(runner, names)}{way_out}"
    raise InvalidArgument.of("runner", runner, "it says where pulls run", way_out)
