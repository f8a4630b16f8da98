"""A search in MLflow: a run for the search, and under it a run for each arm."""

from __future__ import annotations

import time
from collections.abc import Mapping
from posixpath import normpath
from typing import Any

from lastarm.report.loggers.logger import Logger, flat, module_of

LONGEST = 6000  # characters of a parameter; MLflow refuses longer ones
AT_ONCE = 100  # parameters that MLflow takes in one request


class MLflow(Logger):
    """Writes a search to MLflow: see `Logger`.

    :param experiment: the name of the experiment. It is created if it does not exist.
    :param run_name: the name of the run of the search.
    :param tracking_uri: where MLflow writes, such as "sqlite:///mlflow.db" or the address of a
        server. Left out, it is MLflow's own setting.

    The run of the search has the policy and the space as parameters, and the lowest loss by the
    pulls of all arms. The run of an arm has its hyperparameters, and its loss and metrics by its
    pulls. The recommended arm has the tag `lastarm.recommended`.
    """

    def __init__(
        self,
        experiment: str = "lastarm",
        run_name: str = "search",
        *,
        tracking_uri: str | None = None,
    ) -> None:
        super().__init__()
        self._mlflow = module_of("MLflow", "mlflow", "mlflow")
        self._entities = module_of("MLflow", "mlflow.entities", "mlflow")
        self._client = self._mlflow.MlflowClient(tracking_uri)
        found = self._client.get_experiment_by_name(experiment)
        self._experiment = (
            found.experiment_id if found else self._client.create_experiment(experiment)
        )
        self._run_name = run_name
        self._search = ""
        self._arms: dict[int, str] = {}

    def begin(self, about: Mapping[str, Any]) -> None:
        """Create the run of the search."""
        self._search = self._created(self._run_name, {}, flat(about))

    def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
        """Create a run under that of the search."""
        tags = {"mlflow.parentRunId": self._search, "lastarm.arm": str(arm)}
        self._arms[arm] = self._created(f"arm {arm}", tags, flat(config))

    def observe(self, arm: int, level: int, values: Mapping[str, float]) -> None:
        """Log them, with the pulls as step."""
        self._log(self._arms[arm], level, values)

    def improve(self, pulls: int, values: Mapping[str, float]) -> None:
        """Log them, with the pulls as step."""
        self._log(self._search, pulls, values)

    def extend(self, budget: int) -> None:
        """Note it as a tag, because parameters cannot be changed."""
        self._client.set_tag(self._search, "lastarm.extended_to", str(budget))

    def end_arm(self, arm: int, error: str | None) -> None:
        """End its run; one with an error has failed."""
        if error is not None:
            self._client.set_tag(self._arms[arm], "lastarm.error", error[:LONGEST])
        self._client.set_terminated(self._arms[arm], "FINISHED" if error is None else "FAILED")

    def end(self, answer: Mapping[str, Any] | None) -> None:
        """Name the recommended arm, and end the run of the search."""
        if answer is None:
            self._client.set_terminated(self._search, "KILLED")
            return
        self._client.set_tag(self._search, "lastarm.arm", str(answer["arm"]))
        for name, value in flat({"config": answer["config"]}).items():
            self._client.set_tag(self._search, _key(f"lastarm.{name}"), str(value)[:LONGEST])
        figures = {
            name.replace("test_", "test ", 1): value
            for name, value in answer.items()
            if name not in ("arm", "config", "level")
        }
        known = {name: value for name, value in figures.items() if value is not None}
        self._log(self._search, answer["level"], known)
        if answer["arm"] in self._arms:
            self._client.set_tag(self._arms[answer["arm"]], "lastarm.recommended", "true")
        self._client.set_terminated(self._search, "FINISHED")

    def _created(self, name: str, tags: dict[str, str], params: Mapping[str, Any]) -> str:
        run: str = self._client.create_run(self._experiment, tags=tags, run_name=name).info.run_id
        param = self._entities.Param
        every = [param(_key(name), str(value)[:LONGEST]) for name, value in params.items()]
        for first in range(0, len(every), AT_ONCE):
            self._client.log_batch(run, params=every[first : first + AT_ONCE])
        return run

    def _log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        now, metric = time.time_ns() // 10**6, self._entities.Metric
        metrics = [metric(_key(name), value, now, step) for name, value in values.items()]
        self._client.log_batch(run, metrics=metrics)


def _key(name: str) -> str:
    """A name that MLflow takes: other signs than these become underscores.

    >>> _key("top-5 accuracy (val)"), _key("val/loss"), _key("/loss"), _key("a/../b")
    ('top-5 accuracy _val_', 'val/loss', '_loss', 'a____b')
    """
    key = "".join(sign if sign.isalnum() or sign in "_-. /" else "_" for sign in name)[:250]
    if key.startswith(("/", "..")) or normpath(key) != key or key == ".":  # not one of a file
        return key.replace("/", "_").replace(".", "_")
    return key
