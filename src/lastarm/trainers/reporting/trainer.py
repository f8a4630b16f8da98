"""A function that reports as a trainer: a training loop that is given `report`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from lastarm.errors import InvalidArgument, LoopsLeft
from lastarm.trainers.functions import full_name, wanted
from lastarm.trainers.protocol import Config
from lastarm.trainers.reporting.arms import MOST_ALIVE, WaitingArm, drop_all
from lastarm.trainers.reporting.global_random import belonging_to, turn
from lastarm.trainers.reporting.loops import BadReport, Reporter


class Reporting:
    """Arms that are trained by a loop that reports a loss for every pull.

    - `function`: is called once for each arm, as function(config, report), in a thread of its own.
      If it has a parameter named `seed`, it gets the arm's seed.
    - `test`: is called as test(state), once, for the recommended arm. It may be left out.

    >>> def descent(config, report):
    ...     x = 1.0
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         report(x * x)
    >>> trainer = Reporting(descent)
    >>> trainer.loss(trainer.train(trainer.start({"rate": 0.25}, seed=0), pulls=3))
    0.015625

    `report`, a `lastarm.trainers.reporting.Reporter`, returns when the arm is pulled again, so
    a loop that belongs to a framework can report from a callback. Meanwhile the loop waits, with
    all that it has in memory. If the search ends, or others need the memory, `lastarm.Dropped` is
    raised there. To continue after that, and after a crash or in another process, give
    `report(loss, state=…)` all that it takes, and begin with `report.restore()`:

    >>> def descent(config, report):
    ...     x = report.restore() or 1.0
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         report(x * x, state=x)

    A state may be changed in place when the loop continues: it is saved before that. The global
    generators of `random`, NumPy and, once it is loaded, PyTorch are the arm's own: they begin
    with its seed, and are saved beside its state. A function that returns keeps its last loss, and
    an `EndedEarly` warning names the first arm of a search that does so.
    """

    def __init__(
        self, function: Callable[..., Any], test: Callable[[Any], Any] | None = None
    ) -> None:
        self._function = function
        self._wanted = wanted("function", function, ("config",), ("report", "seed"))
        if "report" not in self._wanted:
            rule = "it is called as function(config, report=…), and has no parameter `report`"
            way_out = "Name its second parameter so, and call it once for every pull"
            raise InvalidArgument.of("function", function, rule, way_out)
        self._given_test = test
        self._alive = MOST_ALIVE
        self.version = getattr(function, "version", 1)
        if test is not None:
            wanted("test", test, ("state",))
            self.test = self._test  # without a function for it, there is no such method

    def start(self, config: Config, seed: int) -> WaitingArm:
        """An arm whose function has not been called."""
        return WaitingArm(config, seed)

    def train(self, state: WaitingArm, pulls: int) -> WaitingArm:
        """Let the loop run until it has reported `pulls` times more."""
        if not state.ended:
            given = {"config": dict(state.config), "seed": state.seed}  # and not the arm itself
            with turn():
                state.owner = id(self)
                name = full_name(self._function)
                state.advance(pulls, functools.partial(self._call, given), name, self._alive)
        return state

    def _call(self, given: dict[str, Any], report: Reporter) -> None:
        names = {name: {**given, "report": report}[name] for name in self._wanted}
        self._function(given["config"], **names)

    def loss(self, state: WaitingArm) -> Any:
        """The loss that was reported last."""
        return state.look()

    def _test(self, state: WaitingArm) -> Any:
        assert self._given_test is not None
        tested = state.unpacked()
        if tested is None:
            problem = "gave `report` no state to test: give one with every report"
            raise BadReport(full_name(self._function), problem)
        with belonging_to(dict(state.generators), state.seed):
            return self._given_test(tested)

    def ended(self, state: WaitingArm) -> int | None:
        """At which pull the function returned; None if it did not."""
        return state.reports if state.ended else None

    @staticmethod
    def unwrap(state: WaitingArm) -> Any:
        """The state that was given last; None if there were only losses."""
        return state.unpacked()

    def keep_alive(self, most: int | None) -> None:
        """How many arms may wait in a process, with all that they have; None: the default."""
        self._alive = MOST_ALIVE if most is None else most

    def let_go(self) -> None:
        """End the loops that wait in this process."""
        if left := drop_all(id(self)):
            warnings.warn(LoopsLeft(full_name(self._function), left), stacklevel=2)

    def fingerprint(self) -> dict[str, Any]:
        """The names of the functions."""
        names = {"loop": full_name(self._function)}
        return names | ({"test": full_name(self._given_test)} if self._given_test else {})
