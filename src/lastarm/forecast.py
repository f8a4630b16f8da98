"""How long a search will take on so many workers, before any of them is begun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastarm.events import Loss
from lastarm.journal import Unwritten
from lastarm.loop import run
from lastarm.policy import Policy, fresh
from lastarm.runners import Arms, Simulated
from lastarm.trainers import Config


@dataclass(frozen=True)
class Forecast:
    """The time from the first pull to the last, and how much of it the workers would work."""

    workers: int
    seconds: float
    busy_seconds: float  # of all workers together

    @property
    def utilisation(self) -> float:
        """The share of the workers' time in which they train or look; the rest they wait."""
        return self.busy_seconds / (self.workers * self.seconds) if self.seconds else 1.0

    @property
    def idle_seconds(self) -> float:
        """The time that workers wait, all together: for the last arm of a round, mostly."""
        return self.workers * self.seconds - self.busy_seconds


class Ranked:
    """Arms whose losses never change, for a policy to drop some of them."""

    def start(self, config: Config, seed: int) -> float:
        """Its loss."""
        return float(config["loss"])

    def train(self, state: float, pulls: int) -> float:
        """No change."""
        return state

    def loss(self, state: float) -> float:
        """As it was."""
        return state


def forecast(
    policy: Policy, *, workers: int, seconds_per_pull: float = 1.0, seconds_per_look: float = 0.0
) -> Forecast:
    """Play the policy on simulated workers that take so long for a pull and for a look.

    >>> from lastarm import ASHA, SuccessiveHalving
    >>> halving = SuccessiveHalving(arms=16, budget=256)
    >>> [forecast(halving, workers=k).seconds for k in (1, 16)]
    [256.0, 60.0]
    >>> forecast(halving, workers=16).utilisation
    0.2666...

    A synchronous policy waits for the last arm of a round, and has ever fewer arms to train; ASHA
    waits for none.

    >>> forecast(ASHA(arms=1000, budget=3000, max_pulls=9), workers=16).utilisation > 0.9
    True

    Losses are made up, each arm's the same for ever, so for a policy that decides by them this is
    an example of its course, not a bound.
    """
    losses = np.random.default_rng(0).permutation(policy.arms)
    configs = [{"loss": int(loss)} for loss in losses]
    runner = Simulated(
        Arms(Ranked(), configs),
        workers=workers,
        seconds_per_pull=seconds_per_pull,
        seconds_per_look=seconds_per_look,
    )
    events = run(fresh(policy), runner, Unwritten(), configs)
    works = [event.work for event in events if isinstance(event, Loss)]
    busy = sum(work.train_seconds + work.loss_seconds for work in works)
    return Forecast(workers, runner.now, busy)
