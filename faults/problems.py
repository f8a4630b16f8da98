"""Small searches, and the answers that they must give whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from lastarm import loop
from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.journal import Unwritten
from lastarm.ledger import Ledger
from lastarm.policies import (
    ASHA,
    HorizonHalving,
    Hyperband,
    SuccessiveHalving,
    SuccessiveRejects,
)
from lastarm.policies import UniformAllocation as Uniform
from lastarm.policy import Policy, fresh
from lastarm.runners import Arms, Serial
from lastarm.testing.policies import ANY
from lastarm.testing.runners import Drifting, Scripted
from lastarm.trainers import Config, Trainer

PROBLEMS = 60
PLAYED = (  # the code of these problems, beside what every search runs through
    "src/lastarm/policies/asha.py",
    "src/lastarm/policies/horizon_halving.py",
    "src/lastarm/policies/hyperband.py",
    "src/lastarm/policies/parts/as_many.py",
    "src/lastarm/policies/parts/expectation.py",
    "src/lastarm/policies/parts/rungs.py",
    "src/lastarm/policies/parts/trust.py",
    "src/lastarm/policies/successive_rejects.py",
    "src/lastarm/testing/policies.py",
    "src/lastarm/testing/runners.py",
    "faults/problems.py",
)
TO_WIN = -1.0  # below every loss, so that believing a wrong result shows


class Problem(NamedTuple):
    """A search without its schedule, and the answer that every schedule must lead to."""

    configs: Sequence[Config]
    policy: Policy
    seed: int
    digest: str  # of the serial runner; of no meaning for ASHA, which heeds the order
    pulls: int

    @property
    def trainer(self) -> Trainer[Any]:
        """What its arms are trained by."""
        return Scripted() if "script" in self.configs[0] else Drifting()


@cache
def problem(number: int) -> Problem:
    """The problem of that number: losses that tie, fail and diverge, or arms that drift."""
    random = np.random.default_rng([1, number])
    arms = int(random.integers(2, 13))
    configs: list[Config] = [{"limit": k / 10} for k in range(arms)]
    if number % 3:
        outcomes = ["raise" if outcome is None else outcome for outcome in ANY]
        table = random.integers(0, len(outcomes), (arms, 7)).tolist()
        configs = [{"script": [outcomes[k] for k in row]} for row in table]
    policies: list[Policy] = [
        SuccessiveHalving(arms, 8 * arms),
        SuccessiveHalving(arms, 12 * arms, eta=3),
        SuccessiveRejects(arms, 8 * arms),
        Uniform(arms, 5 * arms),
        Hyperband(arms, 9 * arms, max_pulls=9),
        ASHA(arms, 6 * arms, max_pulls=9),
        HorizonHalving(arms, 6 * arms, max_pulls=9),
    ]
    asked = Problem(configs, policies[number % len(policies)], number, "", 0)
    policy, serial = fresh(asked.policy), Serial(Arms(asked.trainer, configs, number))
    answer = Ledger(loop.run(policy, serial, Unwritten(), configs))
    return asked._replace(digest=answer.digest(policy.recommendation), pulls=answer.spent.pulls)


def checked(
    run: Iterator[Event], journal: Sequence[Event], counted: list[Told]
) -> Iterator[Event]:
    """The events of a run, if they continue its journal and repeat nothing that had `counted`.

    What counts in this run is added to what had.
    """
    for event in journal:
        assert next(run) == event, "what is in the journal is not what was replayed"
        yield event
    kept = {event.pull: event for event in journal if is_final(event)}
    # By what they look like: nan is not equal to the nan that it was written as.
    lost = [told for told in counted if repr(kept.get(told.pull)) != repr(told)]
    assert not lost, f"{lost[0]} had counted and is lost"
    for event in run:
        pull = event if isinstance(event, Pull) else getattr(event, "pull", None)
        assert pull not in kept, f"{event} had counted already"
        if is_final(event):
            kept[event.pull] = event
            counted.append(event)
        yield event


def is_final(event: Event) -> TypeGuard[Told]:
    """Whether it is the final outcome of a pull: no other attempt follows."""
    return isinstance(event, Loss) or (isinstance(event, Failure) and not event.retried)
