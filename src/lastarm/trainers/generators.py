"""A generator function as a trainer: a training loop that yields a loss for every pull."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from lastarm.arguments import real
from lastarm.errors import LastarmError
from lastarm.trainers.functions import full_name, wanted
from lastarm.trainers.protocol import Config


class BadYield(LastarmError, TypeError):
    """A generator did not yield what is needed. That arm has failed.

    `function` is the name of the generator function.
    """

    def __init__(self, function: str, problem: str) -> None:
        self.function = function
        super().__init__(f"{function} {problem}")


class Run:
    """An arm's generator, and what it yielded last: a loss or a function for it, and a state."""

    def __init__(self, config: Config, seed: int, resumable: bool) -> None:
        self.config, self.seed, self.resumable = config, seed, resumable
        self.yields = 0
        self.ended = False
        self.generator: Iterator[Any] | None = None
        self.observed: Any = None
        self.state: Any = None

    def look(self) -> Any:
        """The loss. A function that computes it is called by the first look at each level."""
        if callable(self.observed):
            self.observed = self.observed()
        return self.observed

    def __getstate__(self) -> dict[str, Any]:
        if not self.resumable:
            raise TypeError(
                "a running generator cannot be pickled. Add a parameter `resume` to its function, "
                "and yield pairs of a loss and the state to resume from"
            )
        # The function that computes the loss belongs to the generator, so its value goes along.
        return self.__dict__ | {"observed": self.look(), "generator": None}


class Generated:
    """Arms that are trained by a loop that yields a loss for every pull.

    - `function`: the generator function. It is called as function(config). If it has a parameter
      named `seed`, it gets the arm's seed.
    - `test`: is called as test(state), once, for the recommended arm. It may be left out.

    >>> def descent(config):
    ...     x = 1.0
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         yield x * x
    >>> trainer = Generated(descent)
    >>> trainer.loss(trainer.train(trainer.start({"rate": 0.25}, seed=0), pulls=3))
    0.015625

    If the loss is expensive, yield a function for it, `yield lambda: validate(model)`. It is
    called only when the policy looks. With the loss a generator may yield a state,
    `yield loss, model`: `test` gets it, and the result of a search has it. A number is not a state
    there: yield other metrics as a mapping, `yield {"loss": loss, "accuracy": 0.9}`. A generator
    that ends keeps its last loss (a function that it yielded last may be called after the end),
    and an `EndedEarly` warning names the first arm of a search that does so.

    A generator lives in its process. After a crash it starts again from zero, unless it has a
    parameter named `resume`. Then it must always yield pairs, and it is called with the state that
    it yielded last; at the beginning without it, or with None if it has no default:

    >>> def descent(config, resume):
    ...     x = 1.0 if resume is None else resume
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         yield x * x, x

    A state may be changed in place when the generator continues: it is saved before that.
    """

    def __init__(
        self, function: Callable[..., Iterable[Any]], test: Callable[[Any], Any] | None = None
    ) -> None:
        self._function = function
        self._wanted = wanted("function", function, ("config",), ("seed", "resume"))
        self._at_first = self._wanted
        if "resume" in self._wanted:
            resume = inspect.signature(function).parameters["resume"]
            if resume.default is not resume.empty:
                self._at_first = tuple(name for name in self._wanted if name != "resume")
        self._given_test = test
        self.version = getattr(function, "version", 1)
        if test is not None:
            wanted("test", test, ("state",))
            self.test = self._test  # without a function for it, there is no such method

    def start(self, config: Config, seed: int) -> Run:
        """An arm whose generator has not been called."""
        return Run(config, seed, "resume" in self._wanted)

    def train(self, state: Run, pulls: int) -> Run:
        """Let the generator run to its next yield, `pulls` times."""
        if state.generator is None and not state.ended:
            given = {"seed": state.seed, "resume": state.state}
            names = self._wanted if state.state is not None else self._at_first
            named = {name: given[name] for name in names}
            state.generator = iter(self._function(dict(state.config), **named))
        awaited = state.yields + pulls
        for yielded in islice(() if state.generator is None else state.generator, pulls):
            self._take(state, yielded)
        if state.yields < awaited:
            if not state.yields:
                problem = "ended before it yielded a loss: yield one for every pull"
                raise BadYield(full_name(self._function), problem)
            state.ended = True
        return state

    def _take(self, run: Run, yielded: Any) -> None:
        run.yields += 1
        pair = isinstance(yielded, tuple) and len(yielded) == 2
        run.observed, run.state = yielded if pair else (yielded, None)
        if not run.resumable and real(run.state) is not None:
            raise BadYield(
                full_name(self._function),
                f"yielded a loss and {run.state!r}, a number. If this is another metric, yield a "
                'mapping, {"loss": …, "accuracy": …}: it is then among the `metrics` of the '
                "result. If it is the state to continue from, add a parameter `resume`",
            )
        if run.resumable and run.state is None:
            raise BadYield(
                full_name(self._function),
                "has a parameter `resume`, but did not yield a state: yield pairs of a loss (or a "
                "function that computes it) and the state to resume from, which is not None",
            )

    def ended(self, state: Run) -> int | None:
        """At which pull the generator ended; None if it did not."""
        return state.yields if state.ended else None

    def loss(self, state: Run) -> Any:
        """The loss that was yielded last."""
        return state.look()

    def _test(self, state: Run) -> Any:
        assert self._given_test is not None
        if state.state is None:
            problem = "did not yield a state to test: yield pairs of a loss and a state"
            raise BadYield(full_name(self._function), problem)
        return self._given_test(state.state)

    @staticmethod
    def unwrap(state: Run) -> Any:
        """The state that was yielded last; None if there were only losses."""
        return state.state

    def fingerprint(self) -> dict[str, Any]:
        """The names of the functions."""
        names = {"function": full_name(self._function)}
        return names | ({"test": full_name(self._given_test)} if self._given_test else {})
