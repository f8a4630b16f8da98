"""Halving that measures, while it runs, what pulls and looks cost in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import ClassVar

from lastarm.arguments import Number, time_limit
from lastarm.events import Pull, Told, Work
from lastarm.policies.horizon_halving import HorizonHalving, horizon_halving
from lastarm.policies.parts.expectation import CHOSEN, worth_drawing
from lastarm.policies.parts.rungs import Cost
from lastarm.policy import Algorithm, NoHealthyArm


@dataclass(eq=False)
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

    It reads no clock. It is told how long things took, and the journal keeps these times, so that
    a resumed search makes the same decisions again. But two searches take different times, so the
    promise that every runner gives the same answer does not hold for it.

    - `arms`, `budget`: how many arms there are, and the total of pulls and looks, in pulls.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on. "chosen" leaves it to the model.
    - `seed`: the draw of arms is derived from it.
    - `seconds`: the time for all training and looking, summed over all workers.

    Source: ours.
    """

    name: ClassVar[str] = "timed-halving"
    adaptive: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    eta: Number = CHOSEN
    seconds: float | None = None

    def __post_init__(self) -> None:
        meaning = "the time for all training and looking, summed over all workers"
        self._limit = time_limit("seconds", self.seconds, meaning)
        self.seconds = None if self._limit == inf else self._limit
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

    def algorithm(self) -> Algorithm:
        """Pull one arm, to know what things cost; then halving."""
        probe, lost = self.draw(1), set[int]()
        try:
            yield [Pull(arm, upto=1) for arm in probe]
        except NoHealthyArm:
            lost = set(probe)
        n, eta = self._worth_drawing(len(lost))
        arms = [arm for arm in self.draw(min(n + len(lost), self.arms)) if arm not in lost]
        if not arms:
            raise NoHealthyArm

        def purse(pulls: int, looks: int) -> tuple[Cost, Cost]:
            return self.purse(pulls + len(lost), looks)  # a pull that was lost is booked too

        return (yield from horizon_halving(arms, self.max_pulls, eta, purse))

    def _worth_drawing(self, lost: int = 0) -> tuple[int, Fraction]:
        left, look_cost = self.purse(lost, 0)
        return worth_drawing(self.arms, left, self.max_pulls, self.eta, look_cost)

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
