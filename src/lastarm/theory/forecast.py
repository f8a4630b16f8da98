"""How long a search will take, before it is begun."""

from __future__ import annotations

import numpy as np

from lastarm.journal import Unwritten
from lastarm.ledger.utilisation import Timesheet, Utilisation
from lastarm.loop import run
from lastarm.policy import Policy, fresh
from lastarm.runners import Arms, Simulated
from lastarm.trainers import Functions


def forecast(
    policy: Policy, *, workers: int, seconds_per_pull: float = 1.0, seconds_per_look: float = 0.0
) -> Utilisation:
    """Play the policy on simulated workers, and see how long it takes and how busy they are.

    :param policy: the policy to play; it is not changed.
    :param workers: how many workers train at the same time.
    :param seconds_per_pull: how long a pull takes.
    :param seconds_per_look: how long one look at a loss takes.

    >>> from lastarm import ASHA, SuccessiveHalving
    >>> halving = SuccessiveHalving(arms=16, budget=256)
    >>> [forecast(halving, workers=k).seconds for k in (1, 16)]
    [256.0, 60.0]
    >>> forecast(halving, workers=16).share
    0.2666...

    A synchronous policy waits for the last arm of a round, and has ever fewer arms to train; ASHA
    waits for none.

    >>> forecast(ASHA(arms=1000, budget=3000, max_pulls=9), workers=16).share > 0.9
    True

    The losses are made up and never change, so for a policy that decides by losses this is an
    example of its course, not a bound.
    """
    losses = np.random.default_rng(0).permutation(policy.arms)
    configs = [{"loss": int(loss)} for loss in losses]
    ranked = Functions(lambda config, state, pulls: config["loss"], lambda state: state)
    ranked.restarts = getattr(policy, "restarts", False)
    runner = Simulated(
        Arms(ranked, configs),
        workers=workers,
        seconds_per_pull=seconds_per_pull,
        seconds_per_look=seconds_per_look,
    )
    sheet = Timesheet(workers)
    for event in run(fresh(policy), runner, Unwritten(), configs):
        sheet.add(event, runner.now)
    foreseen = sheet.utilisation
    assert foreseen is not None, "every policy pulls"
    return foreseen
