"""A generator function as a trainer: a training loop that yields once a pull."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from lastarm.errors import LastarmError
from lastarm.trainers.functions import full_name, wanted
from lastarm.trainers.protocol import Config


class BadYield(LastarmError, TypeError):
    """A generator did not yield what is needed to go on. That arm has failed."""


class Run:
    """An arm's generator, and what it yielded last: a loss or its function, and a state."""

    def __init__(self, config: Config, seed: int, resumable: bool) -> None:
        self.config, self.seed, self.resumable = config, seed, resumable
        self.yields = 0
        self.ended = False
        self.generator: Iterator[Any] | None = None
        self.observed: Any = None
        self.state: Any = None

    def look(self) -> Any:
        """The loss; a function that computes it is called by the first look at each level."""
        if callable(self.observed):
            self.observed = self.observed()
        return self.observed

    def __getstate__(self) -> dict[str, Any]:
        if not self.resumable:
            raise TypeError(
                "a running generator cannot be pickled; let its function have a parameter "
                "`resume`, and yield pairs of a loss and the state to resume from"
            )
        # The function that computes the loss belongs to the generator, so its value goes along.
        return self.__dict__ | {"observed": self.look(), "generator": None}


class Generated:
    """Arms trained by a loop that yields a loss once a pull.

    >>> def descent(config):
    ...     x = 1.0
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         yield x * x
    >>> trainer = Generated(descent)
    >>> trainer.loss(trainer.train(trainer.start({"rate": 0.25}, seed=0), pulls=3))
    0.015625

    Where looking is dear, it yields a function instead, `yield lambda: validate(model)`, which is
    called only when the policy looks. With the loss it may yield the state that it belongs to,
    `yield loss, model`: that is what `test(state)` and `unwrap` are given. A parameter named
    `seed` is given the arm's seed. A generator that ends keeps its last loss from then on (a
    function that it yielded last may be called after that).

    A generator lives in its process: after a crash it runs again from zero, unless it has a
    parameter named `resume`. Then it always yields pairs, and is given the state that it yielded
    last, or None at the beginning:

    >>> def descent(config, resume):
    ...     x = 1.0 if resume is None else resume
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         yield x * x, x

    A state may be changed in place once the generator goes on: it is saved before that.
    """

    def __init__(
        self, function: Callable[..., Iterable[Any]], test: Callable[[Any], Any] | None = None
    ) -> None:
        self._function = function
        self._wanted = wanted(function, ("config",), ("seed", "resume"))
        self._given_test = test
        if test is not None:
            wanted(test, ("state",))
            self.test = self._test  # without a function for it, there is no such method

    def start(self, config: Config, seed: int) -> Run:
        """An arm whose generator has not been called."""
        return Run(config, seed, "resume" in self._wanted)

    def train(self, state: Run, pulls: int) -> Run:
        """Let the generator go on to its next yield, `pulls` times."""
        if state.generator is None and not state.ended:
            given = {"seed": state.seed, "resume": state.state}
            named = {name: given[name] for name in self._wanted}
            state.generator = iter(self._function(dict(state.config), **named))
        awaited = state.yields + pulls
        for yielded in islice(() if state.generator is None else state.generator, pulls):
            self._take(state, yielded)
        if state.yields < awaited:
            if not state.yields:
                raise BadYield(
                    f"{full_name(self._function)} ended before it yielded anything, so there is "
                    "no loss: yield one for every pull"
                )
            state.ended = True
        return state

    def _take(self, run: Run, yielded: Any) -> None:
        run.yields += 1
        pair = isinstance(yielded, tuple) and len(yielded) == 2
        run.observed, run.state = yielded if pair else (yielded, None)
        if run.resumable and run.state is None:
            raise BadYield(
                f"{full_name(self._function)} has a parameter `resume`, but yielded no state: "
                "yield pairs of a loss (or a function that computes it) and the state to resume "
                "from, which is not None"
            )

    def loss(self, state: Run) -> Any:
        """The loss yielded last."""
        return state.look()

    def _test(self, state: Run) -> Any:
        assert self._given_test is not None
        if state.state is None:
            raise BadYield(
                f"{full_name(self._function)} yielded no state to be tested: yield pairs of a "
                "loss and a state"
            )
        return self._given_test(state.state)

    def unwrap(self, state: Run) -> Any:
        """The state yielded last; None if only losses were."""
        return state.state

    def fingerprint(self) -> dict[str, Any]:
        """The names of the functions."""
        names = {"function": full_name(self._function)}
        return names | ({"test": full_name(self._given_test)} if self._given_test else {})
