"""Ray Tune's ASHA on the arms of a task of `sooner`, one trial at a time."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler

from sooner_arms import Attempt, Task

MODEL = "model.pickle"


class Trial(tune.Trainable):  # type: ignore[misc]
    """An arm as Ray Tune wants it."""

    def setup(self, config: Any, task: Any = None) -> None:
        """Begin."""
        self._task = task
        self._model = task.begun(config["arm"])

    def reset_config(self, new_config: Any) -> bool:
        """Begin anew in the same process."""
        self._model = self._task.begun(new_config["arm"])
        return True

    def step(self) -> dict[str, float]:
        """An epoch."""
        return {"loss": self._task.epoch(self._model)}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Keep the model, to be handed over."""
        Path(checkpoint_dir, MODEL).write_bytes(pickle.dumps(self._model))

    def load_checkpoint(self, checkpoint: Any) -> None:
        """No trial is begun from another."""


def asha(task: Task, setting: str, numbers: dict[str, int]) -> Attempt:
    """The trial whose last loss is least."""
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        results = tune.Tuner(
            tune.with_parameters(Trial, task=task),
            param_space={"arm": tune.grid_search(list(range(len(task.arms))))},
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                scheduler=ASHAScheduler(grace_period=1, **numbers),
                max_concurrent_trials=1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                storage_path=folder,
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
            ),
        ).fit()
        best = results.get_best_result()
        with best.checkpoint.as_directory() as kept:
            model = pickle.loads(Path(kept, MODEL).read_bytes())
        seconds = perf_counter() - began
    epochs = sum(result.metrics["training_iteration"] for result in results)
    return Attempt(setting, task.test(model), epochs, seconds)
