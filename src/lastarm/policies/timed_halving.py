"""Halving that measures, while it runs, what pulls and looks cost in seconds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

from lastarm.arguments import Number, time_limit, whole_number
from lastarm.errors import InvalidArgument
from lastarm.events import Pull, Told, Work
from lastarm.policies.horizon_halving import HorizonHalving, horizon_halving
from lastarm.policies.parts.budgeted import Facts
from lastarm.policies.parts.expectation import CHOSEN, worth_drawing
from lastarm.policies.parts.rungs import Cost, entering, levels
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, NoHealthyArm, added_later, ranking

UNBOUNDED = 10**12  # pulls: more than any time allows for
MOST_DRAWN = 1000  # arms, where their number is left open
FIRST_LEVEL_SHARE = 3  # the first level of all arms takes at most a third of the time
# A journal's line and a message to a worker take milliseconds that it is not told of. With fewer
# arms than this for each second, they take a small part of the time even if pulls take none.
ARMS_A_SECOND = 20


@dataclass(eq=False, repr=False)
class TimedHalving(HorizonHalving):
    """Halving up to a horizon where the price of a look is measured, and so can the budget be.

    One arm is pulled once, and looked at. The time that this takes decides how many arms are drawn
    and which part of them goes on, as in `PricedHalving`. From then on, every rung is planned with
    the times of all pulls and looks so far. Looks are paid for out of the budget: a look costs as
    many pulls as take the same time.

    >>> from lastarm.events import Loss
    >>> policy = TimedHalving(arms=64, budget=1000, max_pulls=51)
    >>> (pull,) = policy.ask(64)
    >>> policy.tell(Loss(pull, 0.5, Work(trained=1, train_seconds=2.0, loss_seconds=20.0)))
    >>> len(policy.ask(64))
    45

    `seconds`, if given, are the budget: no rung is begun that, at the rate so far, would bring the
    time of all training and looking, summed over all workers, to more. (A pull that takes longer
    than expected is not cut short.) The pulls are still never more than `budget`.

    Without a `budget`, the seconds are all that it plans for. It does not know then how many arms
    are worth drawing, so it draws them in batches, each as large as all before: as long as the
    first pull of all arms, at the price so far, takes at most a third of the time. The rest of the
    time is for the rungs above.

    >>> policy = TimedHalving(arms=64, seconds=90.0)
    >>> sizes = []
    >>> while len(sizes) < 5:
    ...     pulls = policy.ask(64)
    ...     for pull in pulls:
    ...         policy.tell(Loss(pull, 0.5, Work(trained=1, train_seconds=2.0)))
    ...     sizes.append(len(pulls))
    >>> sizes  # 15 arms, whose first pulls take 30 seconds; then the best of them
    [1, 1, 2, 4, 7]

    It reads no clock. It is told how long things took, and the journal keeps these times, so that
    a resumed search makes the same decisions again. But two searches take different times, so the
    promise that every runner gives the same answer does not hold for it.

    - `arms`, `budget`: how many arms there are, and the total of pulls and looks, in pulls. The
      budget may be left out if there are `seconds`.
    - `max_pulls`: the most pulls that one arm may get. It may be left out with the budget.
    - `eta`: the best 1/eta of a rung go on. "chosen" leaves it to the model.
    - `seed`: the draw of arms is derived from it.
    - `seconds`: the time for all training and looking, summed over all workers.
    - `at_once`: how many workers there are. `seconds` are then for each of them.
    - `open_ended`: whether `arms` is only the most that may be drawn, and not a wish.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: ours.
    """

    name: ClassVar[str] = "timed-halving"
    version: ClassVar[int] = 1
    who_goes_on: ClassVar[str] = Facts.who_goes_on
    why_higher: ClassVar[str] = Facts.why_higher
    adaptive: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    budget: int = added_later(UNBOUNDED)
    max_pulls: int = added_later(UNBOUNDED)
    eta: Number = CHOSEN
    seconds: float | None = None
    at_once: int = added_later(1)
    open_ended: bool = added_later(False)

    def __post_init__(self) -> None:
        meaning = "the time for all training and looking, summed over all workers"
        self._limit = time_limit("seconds", self.seconds, meaning)
        self.seconds = None if self._limit == inf else self._limit
        self.at_once = whole_number("at_once", self.at_once, 1, "how many workers there are")
        self._limit *= self.at_once
        for name, needs in (
            ("budget", self.seconds is None),
            ("max_pulls", not self.has_no_budget),
        ):
            if needs and _left_out(getattr(self, name)):
                raise InvalidArgument(
                    f"timed-halving needs {name}, which was not given. Add it, or leave out "
                    "budget and max_pulls and give it seconds.",
                    argument=name,
                )
        self._works: list[Work] = []
        super().__post_init__()

    def tell(self, event: Told) -> None:
        """Take what became of a pull, and how long it took."""
        self._works.append(event.work)
        try:
            super().tell(event)
        except Exception:
            self._works.pop()  # what is refused changes nothing
            raise

    @property
    def has_no_budget(self) -> bool:
        """Whether only the seconds bound what it does."""
        return _left_out(self.budget)

    @property
    def out_of_time(self) -> bool:
        """Whether it has ended because of its seconds, and not because there is nothing to do."""
        reached = [level for level in self._level if level]
        to_do = len(reached) < self.arms or min(reached, default=0) < self.max_pulls
        return self.has_no_budget and self.finished and to_do

    def algorithm(self) -> Algorithm:
        """Pull one arm, to know what things cost; then halving."""
        if self.has_no_budget:
            return (yield from self._as_many_as_fit())
        probe, lost = self.draw(1), set[int]()
        try:
            yield [Pull(arm, upto=1) for arm in probe]
        except NoHealthyArm:
            lost = set(probe)
        # A pull that was lost is booked too, and one whose arm restarts is not a part of more.
        before = 1 if self.restarts else len(lost)
        n, eta = self._worth_drawing(before)
        arms = [arm for arm in self.draw(min(n + len(lost), self.arms)) if arm not in lost]
        if not arms:
            raise NoHealthyArm

        def purse(pulls: int, looks: int) -> tuple[Cost, Cost]:
            return self.purse(pulls + before, looks)

        return (
            yield from horizon_halving(arms, self.max_pulls, eta, purse, restarts=self.restarts)
        )

    def _as_many_as_fit(self) -> Algorithm:
        """Pull arms once, while that takes at most a third of the time; then halving."""
        arms, begun, more = self.draw(self.arms), 0, 1
        most = min(len(arms), max(2, int(ARMS_A_SECOND * self._limit)))
        losses: dict[int, float] = {}
        while more > 0:
            with suppress(NoHealthyArm):  # there are others
                losses |= yield [Pull(arm, upto=1) for arm in arms[begun : begun + more]]
            begun += more
            spent = sum(work.train_seconds + work.loss_seconds for work in self._works)
            fit = self._limit / FIRST_LEVEL_SHARE / spent * begun if spent else most
            more = min(begun, int(min(fit, most)) - begun)
        if not losses:
            raise NoHealthyArm
        left, look_cost = self.purse(0, 0)
        eta = Fraction(2 if self.eta == CHOSEN else self.eta)
        if self.eta == CHOSEN and self.max_pulls < UNBOUNDED:
            _, eta = worth_drawing(
                len(losses), left, self.max_pulls, CHOSEN, look_cost, restarts=self.restarts
            )
        sizes = entering(len(losses), eta)
        planned = levels(
            sizes, left, self.max_pulls, at=1, look_cost=look_cost, restarts=self.restarts
        )
        higher = (size for size, level in zip(sizes, planned, strict=True) if level > 1)
        best = ranking(losses)[: next(higher, 1)]
        return (
            yield from horizon_halving(
                best, self.max_pulls, eta, self.purse, at=1, restarts=self.restarts
            )
        )

    def plan_remarks(self, plan: Plan) -> list[str]:
        """What bounds it."""
        if self.has_no_budget:
            return ["It plans for its seconds: how many pulls fit is known when it runs."]
        return super().plan_remarks(plan)

    def purse(self, pulls: int, looks: int) -> tuple[Cost, Cost]:
        """What is left, in pulls of the mean duration so far, and what a look costs in these."""
        training = sum(work.train_seconds for work in self._works)
        looking = sum(work.loss_seconds for work in self._works)
        trained = sum(work.trained for work in self._works)
        if not training or not trained:  # nothing is known, or nothing takes time
            return self.budget - pulls, 0
        a_pull = training / trained
        look_cost = looking / len(self._works) / a_pull
        if self._limit == inf:
            return self.budget - pulls - look_cost * (looks + 1), look_cost
        return min(self.budget - pulls, (self._limit - training - looking) / a_pull), look_cost


def _left_out(number: Any) -> bool:
    """Whether it is the default; what is not a whole number may refuse to be compared."""
    return isinstance(number, int) and number == UNBOUNDED
