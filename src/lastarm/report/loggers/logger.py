"""What a logger writes of a search, whichever tool it writes to."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Event, Extended, Loss, Opened, Pull
from lastarm.journal import read
from lastarm.journal.header import metric_of
from lastarm.ledger import Ledger
from lastarm.plain import readable, readable_metrics
from lastarm.trainers.metric import LOSS

LOWEST = "lowest loss"  # of all arms, by the pulls of all arms together


class Logger(ABC):
    """Writes a search elsewhere: while it runs, as `on_event`, or later, by `replay`.

    There is a run for the search, and a run for each arm, with its hyperparameters and its curves.
    What is written depends on the events alone. So a journal that is replayed gives what was
    written while it was made, apart from the names of runs and the time of day.

    >>> from lastarm.events import Closed
    >>> class Printed(Logger):
    ...     def begin(self, about):
    ...         print("search", about)
    ...     def begin_arm(self, arm, config):
    ...         print("arm", arm, config)
    ...     def observe(self, arm, level, values):
    ...         print("arm", arm, "after", level, values)
    ...     def improve(self, pulls, values):
    ...         print("after", pulls, "pulls in all:", values)
    ...     def extend(self, budget):
    ...         print("extended to", budget)
    ...     def end_arm(self, arm, error):
    ...         print("arm", arm, "ends", error)
    ...     def end(self, answer):
    ...         print("search ends", answer)
    >>> logger, pull = Printed(), Pull(arm=0, upto=2, config={"rate": 0.5})
    >>> for event in (pull, Loss(pull, 0.25, metrics={"accuracy": 0.9}), Closed(arm=0, upto=2)):
    ...     logger(event)
    search {}
    arm 0 {'rate': 0.5}
    arm 0 after 2 {'loss': 0.25, 'accuracy': 0.9}
    after 2 pulls in all: {'lowest loss': 0.25}
    >>> logger.close()
    arm 0 ends None
    search ends {'arm': 0, 'config': {'rate': 0.5}, 'level': 2, 'loss': 0.25, 'test_loss': None}

    A loss that has a name of its own, such as `roc_auc`, is written under that name, too. A
    subclass says how each of these is written. `search` closes a logger that it was given when
    it ends. A logger writes one search; a search that is resumed needs a new one, which writes all
    of it again.
    """

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._begun = self._closed = False
        self._configs: dict[int, Mapping[str, Any]] = {}
        # Known from a journal, or else from the search:
        self.shown_as, self.restarts = LOSS, False

    def __call__(self, event: Event) -> None:
        """Write what has happened."""
        if self._closed:
            raise InvalidArgument(
                f"this {type(self).__name__} has written a search, and is closed. Make a new one "
                "for each search."
            )
        if isinstance(event, Opened):
            self.shown_as = metric_of(event)
        if not self._begun:
            self._ledger = Ledger(restarts=self.restarts)
            self.begin(_about(event) if isinstance(event, Opened) else {})
            self._begun = True  # only now, so that an error is not hidden by one of `close`
        improvements = len(self._ledger.best_so_far)
        self._ledger.add(event)
        match event:
            case Pull(arm, _, config) if config is not None and arm not in self._configs:
                plain = _plain(config)
                self.begin_arm(arm, plain)
                self._configs[arm] = plain
            case Loss(pull, loss, _, metrics):
                told = readable_metrics(metrics or {})
                numbers = {
                    name: float(value)
                    for name, value in told.items()
                    if isinstance(value, int | float)
                }
                values: dict[str, Any] = {"loss": loss}
                values |= self.shown_as.beside({"loss": loss}, values)
                self.observe(pull.arm, pull.upto, values | numbers)
            case Extended(budget):
                self.extend(budget)
        for pulls, loss in self._ledger.best_so_far[improvements:]:
            best = {LOWEST: loss, self.shown_as.best: self.shown_as.value(loss)}
            self.improve(pulls, best)

    def replay(self, journal: str | Path) -> None:
        """Write the search in a journal, all of it, and close the logger.

        :param journal: the file. It is only read, and its search may be running meanwhile.
        """
        try:
            for event in read(journal):
                self(event)
        finally:
            self.close()

    def close(self) -> None:
        """End the runs of all arms and of the search. Nothing more can be written."""
        if self._closed:
            return
        self._closed = True
        if not self._begun:
            return
        failures, closed = self._ledger.failures, self._ledger.closed
        for arm in self._configs:
            self.end_arm(arm, failures[arm].error if arm in failures else None)
        if closed is None:
            self.end(None)
            return
        losses = {
            "loss": dict(self._ledger.curves.get(closed.arm, [])).get(closed.upto),
            "test_loss": closed.test_loss,
        }
        found = {
            "arm": closed.arm,
            "config": self._configs.get(closed.arm, {}),
            "level": closed.upto,
            **losses,
        }
        self.end(found | self.shown_as.beside(losses, found))

    @abstractmethod
    def begin(self, about: Mapping[str, Any]) -> None:
        """The search begins. `about` is what its journal says of it; empty without a journal."""

    @abstractmethod
    def begin_arm(self, arm: int, config: Mapping[str, Any]) -> None:
        """An arm begins, with these hyperparameters, as plain data."""

    @abstractmethod
    def observe(self, arm: int, level: int, values: Mapping[str, float]) -> None:
        """After `level` pulls an arm has this loss, and these metrics that are numbers."""

    @abstractmethod
    def improve(self, pulls: int, values: Mapping[str, float]) -> None:
        """After that many pulls of all arms together, the lowest loss is this one."""

    @abstractmethod
    def extend(self, budget: int) -> None:
        """The search has a larger budget from here on."""

    @abstractmethod
    def end_arm(self, arm: int, error: str | None) -> None:
        """Nothing more is known of an arm; if it failed, why."""

    @abstractmethod
    def end(self, answer: Mapping[str, Any] | None) -> None:
        """The search ends with this recommendation; None if it was stopped before its end."""


def module_of(tool: str, module: str, extra: str) -> Any:
    """The package of a tool, or an error that names the extra to install.

    - `tool`: its name, for people
    - `module`: what to import
    - `extra`: of lastarm, which installs it
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InvalidArgument(
            f"the logger for {tool} needs {module.partition('.')[0]}, which cannot be imported: "
            f"{error}. Install it with pip install 'lastarm[{extra}]'."
        ) from error


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dicts as one, with dots in the names.

    >>> flat({"policy": {"name": "asha", "arms": 9}, "seed": 0})
    {'policy.name': 'asha', 'policy.arms': 9, 'seed': 0}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _about(opened: Opened) -> dict[str, Any]:
    return _plain({"policy": opened.policy, "seed": opened.seed, "space": opened.space})


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As a journal gives it back, so that live and replayed are the same."""
    found: dict[str, Any] = readable(values)
    return found
