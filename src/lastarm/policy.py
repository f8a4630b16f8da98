"""Policies: which arm to pull next, and which to drop.

Nothing here trains, sleeps, reads a clock, opens a file or touches global randomness. A policy is
asked for pulls and told losses, that is all. Who pulls, and where, is decided by the runner.

There is one interface, `Policy`. Most published algorithms go round by round. They are written as
generators that read like their papers, and `Rounds` makes a policy of a generator.
"""

from __future__ import annotations

import dataclasses
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from math import inf, isfinite, nan
from typing import Any, ClassVar, Protocol, runtime_checkable

from lastarm.arguments import MOST
from lastarm.columns import reserve
from lastarm.errors import InvalidArgument, NotAsked
from lastarm.events import Loss, Pull, Told

LEFT_OUT = "left out of headers"  # in a field's metadata: the value that a header does not show


class Policy(Protocol):
    """What decides. A dataclass of numbers and names, so that a journal's header can hold it.

    Its class may have a `version`, which is 1 if it has none. It goes up when the policy does
    something else than before with the same arguments: a journal of another version is never
    replayed by the new rule.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    name: ClassVar[str]
    arms: int
    budget: int

    def ask(self, n: int = 1) -> list[Pull]:
        """At most `n` pulls that may start now; none if it waits for losses or has finished.

        Asking for n at once is the same as asking for one n times. An ask that gives nothing
        changes nothing.
        """

    def tell(self, event: Told) -> None:
        """Take the loss, or the failure, of a pull that was asked for, in any order."""

    @property
    def recommendation(self) -> int | None:
        """While running, J_t: the arm with the lowest latest loss. At the end, the output."""

    @property
    def finished(self) -> bool:
        """Whether the algorithm has come to its end: it asks for nothing more."""


@runtime_checkable
class Extendable(Protocol):
    """A policy whose search can be given more budget."""

    def extend(self, budget: int) -> None:
        """Continue with a larger budget. What was booked before counts as part of it.

        It is called when the policy has finished. Arms continue from where they are.
        """


def go_on(policy: Policy, budgets: deque[int]) -> None:
    """Extend a policy that has finished by the next of the `budgets`, until it asks for more."""
    while budgets and policy.finished:
        assert isinstance(policy, Extendable), "a search by any other is not extended"
        policy.extend(budgets.popleft())


def ahead(policy: Policy) -> int:
    """How many pulls may be asked for before they can be started, without any disadvantage.

    All pulls of a round are known when it begins. Other policies may decide better a little later.
    """
    return policy.arms if isinstance(policy, Rounds) else 1


def fresh(policy: Policy, **changed: Any) -> Policy:
    """The same policy, not yet begun, or one with some of its arguments changed."""
    return type(policy)(**_arguments(policy) | changed)


def _arguments(policy: Policy) -> dict[str, Any]:
    """What a policy was made with. It may know better than its fields, which may follow from it."""
    if hasattr(policy, "arguments"):
        given: dict[str, Any] = policy.arguments()
        return given
    fields = [one for one in dataclasses.fields(policy) if one.init]
    return {one.name: getattr(policy, one.name) for one in fields}


def describe(policy: Policy) -> dict[str, Any]:
    """The policy's name and arguments, as the journal's header keeps them.

    >>> from lastarm import SuccessiveHalving
    >>> describe(SuccessiveHalving(arms=10, budget=1000))
    {'name': 'successive-halving', 'arms': 10, 'budget': 1000, 'eta': 2}

    Its `version` is there if it is not 1. An argument that was `added_later` is there if it has
    been given, so that headers from before it was added are still those of the same search.
    """
    version, arguments = getattr(policy, "version", 1), {}
    given = _arguments(policy)
    for field in dataclasses.fields(policy):
        value = given[field.name]
        if LEFT_OUT not in field.metadata or value != field.metadata[LEFT_OUT]:
            arguments[field.name] = value
    return {"name": policy.name} | ({} if version == 1 else {"version": version}) | arguments


def added_later(default: Any, *, kw_only: bool = False) -> Any:
    """The field of an argument that a policy got after journals had been written without it.

    With `kw_only` it is given by its name, so that arguments of subclasses keep their places.

    >>> @dataclasses.dataclass
    ... class Patient:
    ...     name: ClassVar[str] = "patient"
    ...     arms: int
    ...     budget: int
    ...     patience: int = added_later(3)
    >>> describe(Patient(2, 8)), describe(Patient(2, 8, patience=5))
    ({'name': 'patient', 'arms': 2, 'budget': 8},
     {'name': 'patient', 'arms': 2, 'budget': 8, 'patience': 5})
    """
    return dataclasses.field(default=default, metadata={LEFT_OUT: default}, kw_only=kw_only)


def has_restarts(described: Mapping[str, Any]) -> bool:
    """Whether a policy, as a journal describes it, is for a trainer that restarts."""
    return described.get("restarts") is True


def price(level: int, upto: int, *, restarts: bool) -> int:
    """How many pulls it takes to bring an arm from a level to a higher one.

    A trainer that restarts trains every level in one go from zero, whatever the arm had before.

    >>> price(4, 12, restarts=False), price(4, 12, restarts=True)
    (8, 12)
    """
    return upto if restarts else upto - level


def is_healthy(event: Told) -> bool:
    """Whether it is a finite loss. A loss that is not a number is refused."""
    try:
        return isinstance(event, Loss) and isfinite(event.value)
    except (TypeError, OverflowError):
        value = event.value if isinstance(event, Loss) else None
        rule = f"it is the loss of arm {event.pull.arm}, a number"
        raise InvalidArgument.of("value", value, rule, "Use a float") from None


def ranking(losses: Mapping[int, float]) -> list[int]:
    """Arms from the lowest loss to the highest; ties go to the lower arm number.

    >>> ranking({2: 0.5, 1: 0.25, 0: 0.5})
    [1, 0, 2]
    """
    return sorted(sorted(losses), key=losses.__getitem__)  # the sort is stable


def lowest(losses: Mapping[int, float]) -> int | None:
    """The arm with the lowest loss, if there is any; ties go to the lower arm number."""
    least = min(losses.values(), default=None)
    return min((arm for arm, loss in losses.items() if loss == least), default=None)


class NoHealthyArm(Exception):
    """Raised inside an algorithm, at its `yield`, when no arm of that round has a finite loss.

    If it is not caught, it ends the algorithm. One that has other arms may catch it.
    """


Algorithm = Generator[list[Pull], dict[int, float], int]
"""Yields rounds of pulls (each arm at most once), is sent their losses, returns the best arm."""


class Rounds:
    """A policy from an algorithm that goes round by round.

    The algorithm is sent the losses of a round when all of them are known, so the order in which
    they come in changes nothing. It is sent only losses of healthy arms: an arm that failed or
    diverged is out, and is never pulled again. An arm that is already at or past the level asked
    for is neither pulled nor looked at: its latest loss is used again, at no cost.

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

    Theory of operation. It is in one of three states, and moves between them by resuming the
    algorithm::

        not begun ────ask────▶ resume ────pulls to make────▶ round open
                               │ ▲  ▲                             │
                       its end │ │  └────the last loss is told────┘
                               ▼ │ go_on_with
                             finished

    - Not begun. Nothing of the algorithm has run. The first `ask` resumes it.
    - Round open. `ask` gives out what is left of the round's pulls, `tell` takes their losses.
      The last of them resumes the algorithm. A round in which no arm has to be pulled is never
      open: its losses are known, so the algorithm is resumed at once.
    - Finished. The algorithm has returned its output; or no arm of its round was healthy, and it
      let `NoHealthyArm` pass; or its round did not fit into the `total`. Without an output, the
      lowest latest loss is recommended. `go_on_with` begins another algorithm.

    What it knows of arms (their levels, and the latest losses of healthy ones) is kept as long as
    the policy lives. What belongs to one algorithm (its round, its output, its `Allowance`) is
    replaced when another algorithm begins.

    - `algorithm`: a generator that has not begun.
    - `total`: how many pulls it may book. Leave it out if the algorithm keeps to a budget itself.
    - `look_cost`: what a look costs, in pulls, as a part of the total.
    - `restarts`: whether every level is trained from zero, and costs as many pulls as it has.

    If `watch` is set, it is called as each round begins, with all pulls of the round and with
    those that are to be made.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        total: float = inf,
        look_cost: Fraction | int = 0,
        *,
        restarts: bool = False,
    ) -> None:
        self.watch: Callable[[list[Pull], list[Pull]], None] | None = None
        # Of the arms:
        self._asked = array("q")  # by arm: the level of the pull given out and not yet told, or 0
        self._level = array("q")  # by arm: pulls it has had
        self._losses = array("d")  # by arm: the latest loss, nan if it has none or is out
        self._pulls = self._looks = 0  # that were booked and told
        self._look_cost, self._restarts = look_cost, restarts
        # Of the algorithm:
        self._before: int | None = None  # what the one before recommended
        self._begin(algorithm, Allowance(total, look_cost, restarts=restarts))

    def _begin(self, algorithm: Algorithm, allowance: Allowance) -> None:
        self._algorithm, self._allowance = algorithm, allowance
        self._begun = False
        self._ended = False  # it is not resumed any more, though its last round may be open
        self._output: int | None = None
        self._round: list[int] = []  # the arms of this round
        self._to_ask: Iterator[Pull] = iter(())  # its pulls not yet given out
        self._to_tell = 0  # how many of its losses are not yet known

    def go_on_with(self, algorithm: Algorithm, left: Fraction | int) -> None:
        """Begin another algorithm with the arms as they are, now that the one before has ended.

        It may book the worth of `left` pulls. If a round would exceed that, all its arms are
        brought as far as possible; then the algorithm ends, and the lowest latest loss is
        recommended. If it ends by itself, its output is recommended, or what was recommended
        before if that has a lower latest loss: more budget never loses a better arm (`better`).
        """
        assert self.finished, "one algorithm at a time"
        self._before = self.recommendation
        allowance = Allowance(left, self._look_cost, restarts=self._restarts, cuts=True)
        self._begin(algorithm, allowance)
        self._next_round()

    def ask(self, n: int = 1) -> list[Pull]:
        """At most `n` pulls of this round that were not given out yet."""
        if not self._begun:
            self._next_round()
        pulls = list(islice(self._to_ask, max(0, min(n, MOST))))
        for pull in pulls:
            assert not self._asked[pull.arm], "a round asks for each arm once"
            self._asked[pull.arm] = pull.upto
        return pulls

    def tell(self, event: Told) -> None:
        """Take the loss or failure of a pull. The last one of a round resumes the algorithm."""
        arm, upto, healthy = event.pull.arm, event.pull.upto, is_healthy(event)
        if arm >= len(self._asked) or self._asked[arm] != upto:
            raise NotAsked(event.pull)
        self._asked[arm] = 0
        self._looks += 1
        self._pulls += price(self._level[arm], upto, restarts=self._restarts)
        self._level[arm] = upto
        self._losses[arm] = event.value if isinstance(event, Loss) and healthy else nan
        self._to_tell -= 1
        if not self._to_tell:
            self._next_round()

    @property
    def finished(self) -> bool:
        """Whether the algorithm has ended, and its last round too."""
        return self._ended and not self._to_tell

    @property
    def recommendation(self) -> int | None:
        """The algorithm's output once it has one; until then the lowest latest loss."""
        return lowest(self._healthy()) if self._output is None else self._output

    @property
    def booked(self) -> Fraction | int:
        """What all pulls and looks so far are worth, in pulls."""
        return self._pulls + self._look_cost * self._looks

    def _next_round(self) -> None:
        """Resume the algorithm until there is a pull to make or it has ended."""
        while not self._to_tell and not self._ended:
            pulls = self._resumed()
            if pulls is None:
                self._ended = True
                return
            self._round = [pull.arm for pull in pulls]
            level, losses = self._level, self._losses
            last = max(self._round, default=-1)
            reserve(self._asked, last, 0)
            reserve(level, last, 0)
            reserve(losses, last, nan)
            news = [  # pulls to make: they bring an arm further that is new or still healthy
                pull
                for pull in pulls
                if pull.upto > (at := level[pull.arm]) and (not at or isfinite(losses[pull.arm]))
            ]
            news, fits = self._allowance.admitted(news, level)
            self._ended = not fits
            self._to_ask, self._to_tell = iter(news), len(news)
            if self.watch and (news or fits):
                self.watch(pulls, news)

    def better(self, now: int, before: int) -> int | None:
        """Of two recommendations, that of an algorithm that ended and that of the one before."""
        every = self._healthy()
        return lowest({arm: every[arm] for arm in {now, before} & every.keys()})

    def _healthy(self) -> dict[int, float]:
        """Arm → its latest loss, of all arms that have one."""
        return {arm: loss for arm, loss in enumerate(self._losses) if isfinite(loss)}

    def _resumed(self) -> list[Pull] | None:
        """Send the algorithm the losses it waits for: its next round, or None at its end."""
        losses = self._losses
        healthy = {arm: loss for arm in self._round if isfinite(loss := losses[arm])}
        try:
            if not self._begun:
                self._begun = True
                return next(self._algorithm)
            if self._round and not healthy:
                return self._algorithm.throw(NoHealthyArm())
            return self._algorithm.send(healthy)
        except StopIteration as end:
            self._output = end.value
            if self._before is not None:
                self._output = self.better(end.value, self._before)
        except NoHealthyArm:
            pass
        return None


class Allowance:
    """How many pulls an algorithm may still book, if a look costs as much as `look_cost` pulls.

    If the trainer `restarts`, each pull costs as much as its whole level. A round that costs more
    than what is left is not begun. If the allowance `cuts`, the round is cut instead: its arms are
    brought as far as possible.
    """

    def __init__(
        self,
        left: Fraction | float,
        look_cost: Fraction | int,
        *,
        restarts: bool = False,
        cuts: bool = False,
    ) -> None:
        self._left, self._look_cost = left, look_cost
        self._restarts, self._cuts = restarts, cuts

    def admitted(self, pulls: list[Pull], level: Sequence[int]) -> tuple[list[Pull], bool]:
        """The pulls of a round that may be made, which are booked, and whether they are all of it.

        `level` says how many pulls each arm has had.
        """
        if self._left == inf:
            return pulls, True
        prices = [price(level[pull.arm], pull.upto, restarts=self._restarts) for pull in pulls]
        cost = sum(prices) + self._look_cost * len(prices)
        if cost <= self._left:
            self._left -= cost
            return pulls, True
        return self._cut_off(pulls, level) if self._cuts else [], False

    def _cut_off(self, pulls: list[Pull], level: Sequence[int]) -> list[Pull]:
        """The pulls, up to the greatest level that does not cost more than is left."""
        steps = [(pull.arm, level[pull.arm], pull.upto) for pull in pulls]

        def cost(most: int) -> Fraction | int:
            prices = [
                price(level, min(upto, most), restarts=self._restarts)
                for _, level, upto in steps
                if most > level
            ]
            return sum(prices) + self._look_cost * len(prices)

        too_high = max(upto for _, _, upto in steps)
        most = bisect_right(range(too_high), self._left, key=cost) - 1
        return [Pull(arm, min(upto, most)) for arm, level, upto in steps if most > level]
