"""Policies: which arm to pull next, and which to drop.

Nothing here trains, sleeps, reads a clock, opens a file or touches global randomness. A policy is
asked for pulls and told losses, that is all; who pulls, and where, is the runner's affair.

There is one interface, `Policy`. Most published algorithms go round by round, and are written as
generators that read like their papers; `Rounds` makes a policy of such a generator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from math import inf, isfinite
from typing import Any, ClassVar, Protocol

from lastarm.errors import InvalidArgument, NotAsked
from lastarm.events import Loss, Pull, Told


class Policy(Protocol):
    """What decides. A dataclass of numbers and names, so that a journal's header can hold it."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    name: ClassVar[str]
    arms: int
    budget: int

    def ask(self, n: int = 1) -> list[Pull]:
        """At most `n` pulls that may start now; none means: tell me losses first, or I am done.

        Asking n at once is asking one n times, and an ask that gives nothing changes nothing.
        """

    def tell(self, event: Told) -> None:
        """Take the loss, or the failure, of a pull that was asked for. Any order will do."""

    @property
    def recommendation(self) -> int | None:
        """While running, J_t: the arm with the lowest latest loss. At the end, the output."""

    @property
    def finished(self) -> bool:
        """Whether the algorithm has come to its end: it will ask for nothing more."""


def fresh(policy: Policy) -> Policy:
    """The same policy, not yet begun."""
    return dataclasses.replace(policy)


def describe(policy: Policy) -> dict[str, Any]:
    """The policy's name and arguments, as the journal's header keeps them.

    >>> from lastarm import SuccessiveHalving
    >>> describe(SuccessiveHalving(arms=10, budget=1000))
    {'name': 'successive-halving', 'arms': 10, 'budget': 1000, 'eta': 2}
    """
    arguments = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy)}
    return {"name": policy.name, **arguments}


def is_healthy(event: Told) -> bool:
    """Whether it is a finite loss; what is no number at all is refused."""
    try:
        return isinstance(event, Loss) and isfinite(event.value)
    except (TypeError, OverflowError):
        raise InvalidArgument(f"{event} tells of no loss. Give a float as its value.") from None


def ranking(losses: Mapping[int, float]) -> list[int]:
    """Arms from the lowest loss to the highest; ties go to the lower arm number.

    >>> ranking({2: 0.5, 1: 0.25, 0: 0.5})
    [1, 0, 2]
    """
    return sorted(sorted(losses), key=losses.__getitem__)  # the sort is stable


def lowest(losses: Mapping[int, float]) -> int | None:
    """The arm with the lowest loss, if there is any; ties go to the lower arm number."""
    return min(losses, key=lambda arm: (losses[arm], arm), default=None)


class NoHealthyArm(Exception):
    """Raised inside an algorithm, at its `yield`, when no arm of that round has a finite loss.

    Left alone, it ends the algorithm; one with other arms to turn to may catch it.
    """


Algorithm = Generator[list[Pull], dict[int, float], int]
"""Yields rounds of pulls (each arm at most once), is sent their losses, returns the best arm."""


class Rounds:
    """A policy from an algorithm that goes round by round.

    The algorithm is sent the losses of a round when all of them are known, so the order in which
    they come in changes nothing. It is sent only losses of healthy arms: one that failed or
    diverged is out, and is never pulled again. An arm already at or past the level asked for is
    neither pulled nor looked at: its latest loss stands, at no cost. With a `total`, a round that
    would exceed it ends the algorithm, and the lowest latest loss is recommended.

    >>> def best_of_two():
    ...     losses = yield [Pull(arm=0, upto=5), Pull(arm=1, upto=5)]
    ...     return min(losses, key=losses.get)
    >>> policy = Rounds(best_of_two())
    >>> policy.ask(3)
    [Pull(arm=0, upto=5), Pull(arm=1, upto=5)]
    >>> policy.tell(Loss(Pull(arm=1, upto=5), 0.25))
    >>> policy.tell(Loss(Pull(arm=0, upto=5), 0.75))
    >>> policy.finished, policy.recommendation
    (True, 1)
    """

    def __init__(self, algorithm: Algorithm, total: float = inf) -> None:
        self._algorithm = algorithm
        self._left = total
        self._begun = False
        self._output: int | None = None
        self._round: list[int] = []  # the arms of this round
        self._to_ask: Iterator[Pull] = iter(())  # its pulls not yet given out
        self._to_tell = 0  # how many of its losses are not yet known
        self._asked: dict[int, int] = {}  # arm → level, of pulls given out and not yet told
        self._level: dict[int, int] = {}  # arm → pulls it has had
        self._losses: dict[int, float] = {}  # arm → latest loss, of healthy arms

    def ask(self, n: int = 1) -> list[Pull]:
        """At most `n` pulls of this round that were not given out yet."""
        if not self._begun:
            self._next_round()
        pulls = list(islice(self._to_ask, max(0, n)))
        for pull in pulls:
            assert pull.arm not in self._asked, "a round asks for each arm once"
            self._asked[pull.arm] = pull.upto
        return pulls

    def tell(self, event: Told) -> None:
        """Take what became of a pull; with the last of a round, the algorithm goes on."""
        arm, upto, healthy = event.pull.arm, event.pull.upto, is_healthy(event)
        if self._asked.get(arm) != upto:
            raise NotAsked(event.pull)
        del self._asked[arm]
        self._level[arm] = upto
        if isinstance(event, Loss) and healthy:
            self._losses[arm] = event.value
        else:
            self._losses.pop(arm, None)
        self._to_tell -= 1
        if not self._to_tell:
            self._next_round()

    @property
    def finished(self) -> bool:
        """Whether the algorithm has returned."""
        return self._begun and not self._to_tell

    @property
    def recommendation(self) -> int | None:
        """The algorithm's output once it has one; until then the lowest latest loss."""
        return lowest(self._losses) if self._output is None else self._output

    def _next_round(self) -> None:
        """Send the algorithm the losses it waits for, until it asks for a pull or returns."""
        while not self._to_tell:
            healthy = {arm: self._losses[arm] for arm in self._round if arm in self._losses}
            try:
                if not self._begun:
                    pulls = next(self._algorithm)
                elif self._round and not healthy:
                    pulls = self._algorithm.throw(NoHealthyArm())
                else:
                    pulls = self._algorithm.send(healthy)
            except StopIteration as end:
                self._output = end.value
                return
            except NoHealthyArm:
                return
            finally:
                self._begun = True
            self._round = [pull.arm for pull in pulls]
            news = [pull for pull in pulls if self._is_news(pull)]
            if self._left < inf:
                self._left -= sum(pull.upto - self._level.get(pull.arm, 0) for pull in news)
                if self._left < 0:
                    return
            self._to_ask, self._to_tell = iter(news), len(news)

    def _is_news(self, pull: Pull) -> bool:
        level = self._level.get(pull.arm, 0)
        return pull.upto > level and (level == 0 or pull.arm in self._losses)
