"""Which runner a search uses, by what its caller said."""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import TYPE_CHECKING, Literal, Union, cast

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument
from lastarm.runners.batched import Batched
from lastarm.runners.processes import Processes
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
    """What makes the runner: serial unless workers, or a limit of time, are asked for.

    What a trainer has started can be ended for sure only with a worker that started it, so one
    that `starts_processes` gets a worker. The arms of a `batched` trainer are trained together.
    """
    if workers is not None:
        workers = whole_number("workers", workers, 1, "how many pulls can be under way")
    if runner is None:
        apart = (workers or 1) > 1 or pull_seconds is not None or starts_processes
        alone: AnyRunner = "batched" if batched else "serial"
        runner, workers = ("processes", workers or 1) if apart else (alone, None)
    if runner == "processes":
        workers = workers or os.cpu_count() or 1
        return partial(Processes, workers=workers, pull_seconds=pull_seconds)
    if runner == "ray":
        made = importlib.import_module("lastarm.runners.ray").Ray  # an engine takes time to import
        return cast(MakeRunner, partial(made, workers=workers, pull_seconds=pull_seconds))
    if type(runner).__module__.partition(".")[0] == "distributed":
        if workers is not None:
            raise InvalidArgument(
                f"workers={workers} will not do with a Dask client, which has its own: leave it "
                "out."
            )
        made = importlib.import_module("lastarm.runners.dask").Dask
        return cast(MakeRunner, partial(made, client=runner, pull_seconds=pull_seconds))
    if pull_seconds is not None or (workers or 1) > 1:
        given = "workers" if pull_seconds is None else "pull_seconds"
        raise InvalidArgument(
            f"{given} will not do with runner={runner!r}: it is for worker processes, which can "
            'be many and be stopped. Use runner="processes", or leave it out.'
        )
    if runner == "serial":
        return Serial
    if runner == "batched":
        return Batched
    if callable(runner):
        return runner
    raise InvalidArgument(
        f'runner={runner!r} will not do: give "serial", "processes", "batched", "ray", a Dask '
        "client, or what makes a runner."
    )
