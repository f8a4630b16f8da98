"""A search in TensorBoard: a folder for the search, and in it one for each arm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from lastarm.report.loggers.logger import Logger, flat, module_of

MOST_OPEN = 32  # files: TensorBoard's writer has a thread for each. One that is closed can go on.
SECONDS = 2  # after which what was written can be seen


class TensorBoard(Logger):
    """Writes a search for TensorBoard: see `Logger`.

    :param folder: where to write. `tensorboard --logdir FOLDER` shows it. If a search was written
        there before, as when one is resumed, it is the folder `2` in it, or `3`, and so on.

    In the folder of an arm are its loss and metrics by its pulls, and its hyperparameters, for the
    HPARAMS tab. In the folder `search` are the lowest loss by the pulls of all arms, and the
    policy, the space and the answer as texts.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = Path(folder)
        name = "tensorboard"
        self._files = module_of("TensorBoard", f"{name}.summary.writer.event_file_writer", name)
        self._events = module_of("TensorBoard", f"{name}.compat.proto.event_pb2", name)
        self._scalars = module_of("TensorBoard", f"{name}.plugins.scalar.summary_v2", name)
        self._texts = module_of("TensorBoard", f"{name}.plugins.text.summary_v2", name)
        self._hparams = module_of("TensorBoard", f"{name}.plugins.hparams.summary_v2", name)
        self._open: dict[str, Any] = {}  # folder → its file; the one that was used last is last

    def begin(self, about: Mapping[str, Any]) -> None:
        """Write what the search is, to a folder in which no other one is."""
        given, number = self._folder, 1
        while (self._folder / "search").exists():  # two curves in one folder would be drawn as one
            number += 1
            self._folder = given / str(number)
        (self._folder / "search").mkdir(parents=True)
        for name, value in flat(about).items():
            self._write("search", 0, self._texts.text_pb(name, str(value)))

    def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
        """Write its hyperparameters."""
        values = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flat(config).items()
        }
        self._write(_name(arm), 0, self._hparams.hparams_pb(values, trial_id=f"arm {arm}"))

    def observe(self, arm: int, level: int, values: Mapping[str, float]) -> None:
        """Write them, with the pulls as step."""
        for name, value in values.items():
            self._write(_name(arm), level, self._scalars.scalar_pb(name, value))

    def improve(self, pulls: int, values: Mapping[str, float]) -> None:
        """Write them, with the pulls as step."""
        for name, value in values.items():
            self._write("search", pulls, self._scalars.scalar_pb(name, value))

    def extend(self, budget: int) -> None:
        """Write it as a text."""
        self._write("search", 0, self._texts.text_pb("extended to", str(budget)))

    def end_arm(self, arm: int, error: str | None) -> None:
        """Write why it failed, if it did."""
        if error is not None:
            self._write(_name(arm), 0, self._texts.text_pb("error", error))

    def end(self, answer: Mapping[str, Any] | None) -> None:
        """Write the answer, and close all files."""
        for name, value in flat(answer or {"answer": "stopped before its end"}).items():
            self._write("search", 0, self._texts.text_pb(name, str(value)))
        for file in self._open.values():
            file.close()

    def _write(self, folder: str, step: int, summary: Any) -> None:
        file = self._open.pop(folder, None)
        if file is None:
            file = self._files.EventFileWriter(str(self._folder / folder), flush_secs=SECONDS)
        self._open[folder] = file
        if len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        file.add_event(self._events.Event(wall_time=time(), step=step, summary=summary))


def _name(arm: int) -> str:
    return f"arm-{arm:04}"
