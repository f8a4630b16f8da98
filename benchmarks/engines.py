"""How fast pulls are performed: on processes, Dask and Ray, beside one process and the peers.

The pulls compute for 20 ms and carry a state of 1 MB; with a journal every state is on the disk
before its loss counts. All are of one rung, so that no worker waits for others at its end: that is
the policy's price, not the engine's. Contenders take turns. Run by `make bench`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

from distributed import Client, LocalCluster

from busy import SECONDS, Busy
from engines_peers import joblib_seconds, ray_tune_seconds
from lastarm import Uniform, UniformAllocation, search
from lastarm.events import Event, Loss
from record import DASK_ML, Record

PULLS, FIRST = 160, 40


def seconds_a_pull(folder: Path | None = None, **where: Any) -> float:
    """From a result by which all workers have long begun to the last; with a journal there."""
    times: list[float] = []

    def watch(event: Event) -> None:
        if isinstance(event, Loss):
            times.append(perf_counter())

    search(
        Busy(),
        {"x": Uniform(0, 1)},
        policy=UniformAllocation(arms=PULLS, budget=PULLS),
        journal=folder and folder / f"{uuid4().hex}.jsonl",
        on_event=watch,
        **where,
    )
    return (times[-1] - times[FIRST]) / (len(times) - 1 - FIRST)


def in_turns(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each, over rounds in which all have their turn."""
    turns = [{name: measure() for name, measure in contenders.items()} for _ in range(rounds)]
    return {name: median(turn[name] for turn in turns) for name in contenders}


def dask_ml_seconds() -> float:
    """As `benchmarks/engines_dask_ml.py` measures it, with the Dask that it supports."""
    script = Path(__file__).with_name("engines_dask_ml.py")
    said = subprocess.run([DASK_ML, script], check=True, capture_output=True, text=True).stdout
    return float(json.loads(said.splitlines()[-1])["seconds"])


def on_dask(folder: Path | None, workers: int) -> float:
    """On a local cluster of that turn, since an engine that waits takes time from the others."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
        Client(cluster) as client,
    ):
        return seconds_a_pull(folder, runner=client)


def lastarm_rows(record: Record, workers: int, folder: Path) -> None:
    """Measure every runner against serial, in memory and with durable states."""
    durable = "with a journal and durable states"
    for kept, place, rounds in (("in memory", None, 5), (durable, folder, 3)):
        contenders: dict[str, Callable[[], float]] = {
            "serial": partial(seconds_a_pull, place),
            f"{workers} processes": partial(seconds_a_pull, place, workers=workers),
            f"{workers} workers of Dask": partial(on_dask, place, workers),
            f"{workers} workers of Ray": partial(
                seconds_a_pull, place, runner="ray", workers=workers
            ),
        }
        seen = in_turns(contenders, rounds)
        record.section(f"Pulls of {SECONDS * 1000:.0f} ms with states of 1 MB, {kept}")
        record.row("serial, a pull", seen["serial"] * 1000, "ms")
        for name in list(contenders)[1:]:
            most, least = (5, "at least 1.8") if "processes" in name else (20, "")
            overhead = (seen[name] * workers - SECONDS) * 1000
            record.row(f"{name}, a pull", seen[name] * 1000, "ms")
            record.row(f"serial / {name}", seen["serial"] / seen[name], "times", goal=least)
            record.row(
                f"{name}: a worker's time a pull beyond the computing",
                overhead,
                "ms",
                f"at most {most}",
            )


def peer_rows(record: Record, workers: int) -> None:
    """Measure the peers on the same pulls."""
    contenders: dict[str, Callable[[], float]] = {
        f"lastarm, {workers} processes": partial(seconds_a_pull, workers=workers),
        "joblib, the same pulls as tasks": partial(joblib_seconds, PULLS, workers),
        "Ray Tune, 40 trials of one pull": partial(ray_tune_seconds, 40, 1, workers),
        "Ray Tune, 10 trials of 30 pulls": partial(ray_tune_seconds, 10, 30, workers),
    }
    if record.beside_dask_ml():
        contenders["Dask-ML, 10 models of 30 pulls"] = dask_ml_seconds
    seen = in_turns(contenders, 3)
    record.section(f"The peers, pulls of {SECONDS * 1000:.0f} ms, {workers} workers")
    for name, seconds in seen.items():
        record.row(f"{name}: pulls a second", 1 / seconds, "")
        overhead = (seconds * workers - SECONDS) * 1000
        record.row(f"{name}: a worker's time a pull beyond the computing", overhead, "ms")
    record.note(
        "joblib sends every state to a worker and back. Ray Tune and Dask-ML keep states where "
        "they are, and save none here. Dask-ML is measured with the Dask that it supports."
    )


def main() -> None:
    """Measure, print, and write the results down."""
    packages = ["lastarm", "numpy", "cloudpickle", "distributed", "ray", "joblib"]
    record = Record("engines", "make bench", packages)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    workers = min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        lastarm_rows(record, workers, Path(folder))
    peer_rows(record, workers)
    record.write()


if __name__ == "__main__":
    main()
