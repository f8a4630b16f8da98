"""A search in Weights & Biases: a run for the search and one for each arm, in one group."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from lastarm.report.loggers.logger import Logger, flat, module_of


class WeightsAndBiases(Logger):
    """Writes a search to Weights & Biases: see `Logger`.

    :param project: the name of the project.
    :param group: the name of the group that the runs of this search are in.
    :param mode: "online", or "offline" to write to a folder that `wandb sync` sends later. Left
        out, it is wandb's own setting.
    :param folder: where wandb puts its files. Left out, it is wandb's own setting.

    The runs of arms have the job type "arm", their hyperparameters as config, and their loss and
    metrics by `pulls`. The run of the search has the job type "search", and its summary names the
    recommended arm.
    """

    def __init__(
        self,
        project: str = "lastarm",
        group: str = "search",
        *,
        mode: Literal["online", "offline"] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        self._wandb = module_of("Weights & Biases", "wandb", "wandb")
        self._project, self._group, self._mode = project, group, mode
        self._folder = None if folder is None else os.fspath(folder)
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
        self._arms: dict[int, Any] = {}

    def begin(self, about: Mapping[str, Any]) -> None:
        """Start the run of the search."""
        self._search = self._started("search", "search", about)

    def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
        """Start the run of an arm."""
        self._arms[arm] = self._started(f"arm {arm}", "arm", config)

    def observe(self, arm: int, level: int, values: Mapping[str, float]) -> None:
        """Log them by the pulls of the arm."""
        self._arms[arm].log({"pulls": level, **values})

    def improve(self, pulls: int, values: Mapping[str, float]) -> None:
        """Log them by the pulls of all arms."""
        self._search.log({"pulls": pulls, **values})

    def extend(self, budget: int) -> None:
        """Note it in the summary."""
        self._search.summary["extended to"] = budget

    def end_arm(self, arm: int, error: str | None) -> None:
        """Finish the run; one with an error has failed."""
        if error is not None:
            self._arms[arm].summary["error"] = error
        self._arms[arm].finish(exit_code=0 if error is None else 1)

    def end(self, answer: Mapping[str, Any] | None) -> None:
        """Write the answer into the summary, and finish the run."""
        for name, value in flat(answer or {}).items():
            self._search.summary[name] = value
        self._search.finish(exit_code=1 if answer is None else 0)

    def _started(self, name: str, job: str, config: Mapping[str, Any]) -> Any:
        run = self._wandb.init(
            project=self._project,
            group=self._group,
            name=name,
            job_type=job,
            config=dict(config),
            mode=self._mode,
            dir=self._folder,
            reinit="create_new",
            settings=self._wandb.Settings(silent=True, console="off"),
        )
        run.define_metric("pulls")
        run.define_metric("*", step_metric="pulls")
        return run
