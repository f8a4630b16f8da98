"""Surrogates: a network that was fitted to the curves of LCBench, and answers at any config.

The folder holds `lcbench.onnx`, YAHPO Gym's network, and `tasks.json`, the number that it has for
each of its data sets. Nothing of it is copied into the project.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arena.problems.problem import Config, Curves, Final
from lastarm import Integer, LogUniform, Uniform

EPOCHS = 52
ACCURACY = 3  # the column of the outputs that is the validation balanced accuracy
SPACE = {
    "batch_size": Integer(16, 512, log=True),
    "learning_rate": LogUniform(1e-4, 0.1),
    "momentum": Uniform(0.1, 0.99),
    "weight_decay": Uniform(1e-5, 0.1),
    "num_layers": Integer(1, 5),
    "max_units": Integer(64, 1024, log=True),
    "max_dropout": Uniform(0, 1),
}


class Surrogate(Curves):
    """One data set of LCBench: a funnel-shaped network with seven hyperparameters."""

    space, max_pulls = SPACE, EPOCHS

    def __init__(self, file: Path, task: str, number: int) -> None:
        super().__init__(f"lcbench {task}", "lcbench")
        self._file, self._number = file, number

    @cached_property
    def _session(self) -> Any:
        onnx = importlib.import_module("onnxruntime")
        options = onnx.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnx.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])

    def _losses(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        tasks = np.full((len(rows), 1), self._number, np.int32)
        (found,) = self._session.run(None, {"x_cat": tasks, "x_cont": rows})
        return np.asarray(1 - found[:, ACCURACY].astype(np.float64))

    def curves(self, configs: Sequence[Config]) -> NDArray[np.float64]:
        """The network's predictions for every epoch."""
        points = np.array([[config[name] for name in SPACE] for config in configs], np.float32)
        epochs = np.tile(np.arange(1, EPOCHS + 1, dtype=np.float32), len(points))
        rows = np.column_stack([epochs, np.repeat(points, EPOCHS, axis=0)])
        return self._losses(rows).reshape(len(points), EPOCHS)

    def final(self, configs: Sequence[Config], seed: int) -> list[Final]:
        """Only the last epoch is predicted."""
        points = np.array([[config[name] for name in SPACE] for config in configs], np.float32)
        last = np.full(len(points), EPOCHS, np.float32)
        return [
            Final(float(loss), np.nan) for loss in self._losses(np.column_stack([last, points]))
        ]


def surrogates(folder: Path) -> list[Surrogate]:
    """A problem for each task that the folder lists."""
    tasks = json.loads((folder / "tasks.json").read_text())
    return [Surrogate(folder / "lcbench.onnx", task, number) for task, number in tasks.items()]
