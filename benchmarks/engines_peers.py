"""The peers, performing the pulls of `benchmarks/busy.py`."""

from __future__ import annotations

import tempfile
from time import perf_counter
from typing import Any

import ray
from joblib import Parallel, delayed
from ray import tune

from busy import Busy

BUSY = Busy()


def joblib_seconds(pulls: int, workers: int) -> float:
    """Seconds a pull, each a task that is given its state and gives it back."""
    with Parallel(n_jobs=workers, max_nbytes=None) as parallel:  # a state is changed in place
        states = [BUSY.start(None, seed) for seed in range(2 * workers)]
        parallel(delayed(BUSY.train)(state, 1) for state in states)  # all workers have begun
        began = perf_counter()
        parallel(delayed(BUSY.train)(states[k % len(states)], 1) for k in range(pulls))
        return (perf_counter() - began) / pulls


def ray_tune_seconds(trials: int, pulls: int, workers: int) -> float:
    """Seconds a pull, in `trials` trials that report after each of their `pulls` pulls."""
    ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    ends: list[float] = []

    class Ends(tune.Callback):  # type: ignore[misc]
        def on_trial_result(self, *_: Any, **__: Any) -> None:
            ends.append(perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        tune.Tuner(
            Trial,
            param_space={"seed": tune.grid_search(list(range(trials)))},
            tune_config=tune.TuneConfig(
                max_concurrent_trials=workers, reuse_actors=True, metric="loss", mode="min"
            ),
            run_config=tune.RunConfig(
                storage_path=folder,
                stop={"training_iteration": pulls},
                verbose=0,
                callbacks=[Ends()],
            ),
        ).fit()
    ray.shutdown()
    first = len(ends) // 5  # by then all workers have long begun
    return (ends[-1] - ends[first]) / (len(ends) - 1 - first)


class Trial(tune.Trainable):  # type: ignore[misc]
    """An arm as Ray Tune wants it."""

    def setup(self, config: Any) -> None:
        """Begin."""
        self._state = BUSY.start(config, config["seed"])

    def reset_config(self, new_config: Any) -> bool:
        """Begin anew in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, float]:
        """A pull."""
        self._state = BUSY.train(self._state, 1)
        return {"loss": BUSY.loss(self._state)}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """None is asked for."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """None was saved."""
