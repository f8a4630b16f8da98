"""F24: bugs planted for the campaigns of workers, schedules and inputs; each must be caught."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import isfinite
from typing import Any
from unittest.mock import patch

from faults import arguments, stateful
from faults.arguments import ARGUMENTS
from faults.clocks import CLOCK
from faults.losses import LOSSES
from faults.planted import Planted, mutated
from faults.runners_agree import RUNNERS_AGREE
from faults.schedules import SCHEDULES
from faults.stateful import STATEFUL
from faults.workers import WORKER_FAULTS
from lastarm import loop
from lastarm.loop import _Group
from lastarm.policies import successive_halving
from lastarm.policy import Rounds
from lastarm.runners import batched, performer
from lastarm.trainers import observation

# What is caught need not be made simple.
STATEFUL_UNSHRUNK = STATEFUL._replace(run=partial(stateful.run, shrink=False))
ARGUMENTS_UNSHRUNK = ARGUMENTS._replace(run=partial(arguments.run, shrink=False))

IS_LATE = "if started.get(back.pull) == back.work.attempt:"
in_the_loop = partial(partial, mutated, loop, "run")
in_a_pull = partial(partial, mutated, performer.Performer, "perform")


def replaced(module: str, name: str, by: Any) -> Callable[[], AbstractContextManager[None]]:
    """Within, a module has something else by that name."""

    @contextmanager
    def plant() -> Iterator[None]:
        with patch.object(importlib.import_module(module), name, by):
            yield

    return plant


@contextmanager
def ties_by_arrival() -> Iterator[None]:
    """The arm that was told first is ranked first."""

    def ranking(losses: Mapping[int, float]) -> list[int]:
        return sorted(losses, key=losses.__getitem__)

    told = "vars(self).setdefault('_came', {})[arm] = self._asked[arm] = 0"
    came = "for arm in vars(self).get('_came', ()) if arm in self._round and"
    with (
        mutated(Rounds, "tell", "self._asked[arm] = 0", told),
        mutated(Rounds, "_resumed", "for arm in self._round if", came),
        patch.object(successive_halving, "ranking", ranking),
    ):
        yield


def nan_is_nought(value: object, arm: int) -> tuple[float, dict[str, Any] | None]:
    """Diverged, and best of all."""
    loss, metrics = observation(value, arm)
    return loss if isfinite(loss) else 0.0, metrics


def on_the_wall() -> float:
    """The time of day."""
    return time.time()


def anything_is_healthy(loss: float) -> bool:
    """Even nan."""
    return True


PLANTED_WORKERS: tuple[Planted, ...] = (
    Planted(
        "late results are believed",
        in_the_loop(IS_LATE, "if back.pull in started:"),
        SCHEDULES,
        range(30),
    ),
    Planted(
        "results that come twice are told twice",
        in_the_loop(
            f"{IS_LATE}\n                del started[back.pull]",
            "if started.pop(back.pull, None) or True:",
        ),
        SCHEDULES,
        range(30),
    ),
    Planted(
        "a pull whose attempt failed is never tried again",
        in_the_loop("turns.add([event.pull], event.work.attempt + 1)", "pass"),
        SCHEDULES,
        range(30),
    ),
    Planted(
        "results are told in another order than they are written in",
        in_the_loop("for event in group.synced():", "for event in reversed(group.synced()):"),
        SCHEDULES,
        range(30),
    ),
    Planted(
        "the seed depends on the attempt",
        in_a_pull("arm_seed(task.seed, ", "arm_seed(task.seed + task.attempt, "),
        SCHEDULES,
        range(30),
    ),
    Planted(
        "a state that a failure left half changed is used again",
        in_a_pull(
            'if level == pull.upto or (level and getattr(trainer, "restores", False)):',
            "if level:",
        ),
        SCHEDULES,
        range(30),
    ),
    Planted("ties are decided by who comes first", ties_by_arrival, SCHEDULES, range(60)),
    Planted(
        "results count before they are safe",
        partial(mutated, _Group, "synced", "self._journal.sync()", "self._journal.flush()"),
        STATEFUL_UNSHRUNK,
        range(60),
    ),
    Planted(
        "pulls are begun after Ctrl-C",
        in_the_loop(" and runner.free and not stop():", " and runner.free:"),
        STATEFUL_UNSHRUNK,
        range(60),
    ),
    Planted(
        "nan counts as 0",
        replaced("lastarm.runners.performer", "observation", nan_is_nought),
        LOSSES,
        range(1),
    ),
    Planted(
        "what is no Exception ends the search",
        in_a_pull("except BaseException as error:", "except Exception as error:"),
        LOSSES,
        range(1),
    ),
    Planted(
        "nan is a rank like any other",
        replaced("lastarm.policy", "isfinite", anything_is_healthy),
        LOSSES,
        range(1),
    ),
    Planted(
        "a time limit goes by the clock on the wall",
        replaced("lastarm.signals", "monotonic", on_the_wall),
        CLOCK,
        range(2),
    ),
    Planted(
        "the arms of a batch have one seed",
        partial(
            mutated,
            batched._Performance,
            "_gathered",
            "arm_seed(task.seed, task.pull.arm)",
            "arm_seed(task.seed, 0)",
        ),
        RUNNERS_AGREE,
        range(1),
    ),
    Planted(
        "an arm whose worker died is blamed at once",
        replaced("lastarm.loop", "ATTEMPTS_OF_LOST", 1),
        WORKER_FAULTS,
        range(6),
    ),
    Planted(
        "the ends of an Integer are taken as they are",
        replaced("lastarm.space.domains", "whole_number", lambda name, value, *_: value),
        ARGUMENTS_UNSHRUNK,
        range(13, 413),
    ),
)
