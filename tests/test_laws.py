"""Every law over every policy and every runner."""

import dataclasses
import math
import random
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from lastarm import Loss, Pull, Serial, Simulated
from lastarm.errors import NotAsked
from lastarm.events import Told, Work
from lastarm.policies import (
    ASHA,
    Brackets,
    EXP3,
    POLICIES,
    Doubling,
    EnvelopeHalving,
    HorizonHalving,
    Hyperband,
    LilUCB,
    PricedHalving,
    SuccessiveHalving,
    TimedHalving,
    UniformAllocation,
)
from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.successive_halving import successive_halving
from lastarm.policy import Algorithm
from lastarm.runners import Arms, MakeRunner
from lastarm.testing import policy_checks, runner_checks
from lastarm.testing.policies import CheckPolicy, MakePolicy
from lastarm.testing.runners import CheckRunner


def fields(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


SYNCHRONOUS: dict[str, MakePolicy] = {
    **{name: kind for name, kind in POLICIES.items() if "max_pulls" not in fields(kind)},
    "successive-halving, eta 3": partial(SuccessiveHalving, eta=3),
    "successive-halving, eta 10": partial(SuccessiveHalving, eta=10),
    "lil-ucb, proven": partial(LilUCB, constants="proven"),
    "exp3, another seed": partial(EXP3, seed=7),
    "doubling of rejects": partial(Doubling, of="successive-rejects"),
    "doubling of uniform": partial(Doubling, of="uniform"),
    "hyperband": partial(Hyperband, max_pulls=9),
    "hyperband, eta 2, longer": partial(Hyperband, max_pulls=50, eta=2, seed=3),
    "brackets": partial(Brackets, max_pulls=9),
    "brackets, eta 2, longer": partial(Brackets, max_pulls=50, eta=2),
    "brackets, three at once": partial(Brackets, max_pulls=27, at_once=3),
    "brackets, one pull": partial(Brackets, max_pulls=1),
    "horizon-halving": partial(HorizonHalving, max_pulls=9),
    "horizon-halving, longer": partial(HorizonHalving, max_pulls=50, eta="3/2", seed=3),
    "horizon-halving, eta hardly above 1": partial(HorizonHalving, max_pulls=20, eta=1.01),
    "horizon-halving, one pull": partial(HorizonHalving, max_pulls=1, eta=10**9),
    "priced-halving": partial(PricedHalving, max_pulls=20),
    "priced-halving, dear": partial(PricedHalving, max_pulls=20, look_cost="7/2"),
    "timed-halving": partial(TimedHalving, max_pulls=20),
    "envelope-halving": partial(EnvelopeHalving, max_pulls=9),
    "envelope-halving, longer": partial(EnvelopeHalving, max_pulls=50, eta="5/4"),
    "successive-halving, restarts": partial(SuccessiveHalving, restarts=True),
    "successive-halving, restarts, eta 3": partial(SuccessiveHalving, eta=3, restarts=True),
    "hyperband, restarts": partial(Hyperband, max_pulls=9, restarts=True),
    "brackets, restarts": partial(Brackets, max_pulls=9, restarts=True),
    "horizon-halving, restarts": partial(HorizonHalving, max_pulls=9, restarts=True),
    "horizon-halving, restarts, longer": partial(
        HorizonHalving, max_pulls=50, eta="5/4", seed=3, restarts=True
    ),
    "priced-halving, restarts": partial(
        PricedHalving, max_pulls=20, look_cost="7/2", restarts=True
    ),
    "timed-halving, restarts": partial(TimedHalving, max_pulls=20, restarts=True),
    "envelope-halving, restarts": partial(EnvelopeHalving, max_pulls=9, restarts=True),
}
BY_CHANCE = {"successive-elimination", "lucb", "lil-ucb", "lil-ucb, proven", "exponential-gap"}
BY_CHANCE |= {"exp3", "exp3, another seed"}
BY_VALUE = {"envelope-halving", "envelope-halving, longer", "envelope-halving, restarts"}
ASYNCHRONOUS: dict[str, MakePolicy] = {
    "asha": partial(ASHA, max_pulls=9),
    "asha, eta 2, longer": partial(ASHA, max_pulls=50, eta=2),
}


@pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", sorted(SYNCHRONOUS.keys() - BY_CHANCE - BY_VALUE))
def test_policy_that_ranks(name: str, check: CheckPolicy) -> None:
    check(SYNCHRONOUS[name])


@pytest.mark.parametrize(
    "check", policy_checks(only_ranks=False), ids=lambda check: check.__name__
)
@pytest.mark.parametrize("name", sorted(BY_CHANCE | BY_VALUE))
def test_policy_that_reasons_about_losses(name: str, check: CheckPolicy) -> None:
    check(SYNCHRONOUS[name])


@pytest.mark.parametrize(
    "name",
    [
        *("uniform", "successive-halving", "successive-halving, eta 3", "successive-rejects"),
        *("horizon-halving", "horizon-halving, longer", "priced-halving", "priced-halving, dear"),
        *("successive-halving, restarts", "horizon-halving, restarts, longer"),
    ],
)
def test_policy_that_goes_level_by_level(name: str) -> None:
    for check in policy_checks(level_by_level=True):
        check(SYNCHRONOUS[name])


@pytest.mark.parametrize(
    "check", policy_checks(synchronous=False), ids=lambda check: check.__name__
)
@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_policy(name: str, check: CheckPolicy) -> None:
    check(ASYNCHRONOUS[name])


STEADY: dict[str, MakeRunner] = {
    "serial, in groups": partial(Serial, group=7),
    "one worker": Simulated,
    "many workers": partial(Simulated, workers=13, seconds_per_look=0.3),
    "unequal arms": lambda arms: Simulated(
        arms, workers=3, seconds_per_pull=[1.0 + i for i in range(len(arms.configs))]
    ),
    "results twice": partial(Simulated, workers=4, duplicating=0.5),
}
FAULTY: dict[str, MakeRunner] = {
    "dying workers": partial(Simulated, workers=4, failing=0.3),
    "stragglers given up, whose results are late": partial(
        Simulated, workers=4, straggling=0.3, slowdown=1e6, lease=1e5
    ),
    "all at once": partial(
        Simulated, workers=5, straggling=0.3, failing=0.3, duplicating=0.5, lease=2000.0
    ),
}


@pytest.mark.parametrize("check", runner_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", STEADY)
def test_steady_runner(name: str, check: CheckRunner) -> None:
    check(STEADY[name])


@pytest.mark.parametrize("check", runner_checks(retries=30), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", FAULTY)
def test_faulty_runner(name: str, check: CheckRunner) -> None:
    check(FAULTY[name])


# Planted bugs: the laws must catch each of them.


class TiesByThePreviousRanking(SuccessiveHalving):
    def algorithm(self) -> Algorithm:
        S, R, rounds = list(range(self.arms)), 0, ceil_log(self.arms, 2)
        for _ in range(rounds):
            R += self.budget // (len(S) * rounds)
            losses = yield [Pull(arm, upto=R) for arm in S]
            S = sorted(losses, key=losses.__getitem__)[: max(1, len(S) // 2)]
        return S[0]


class Spendthrift(SuccessiveHalving):
    def algorithm(self) -> Algorithm:
        return successive_halving(range(self.arms), 2 * self.budget)


class Impatient(SuccessiveHalving):
    def ask(self, n: int = 1) -> list[Pull]:
        return [Pull(pull.arm, pull.upto + (n > 2)) for pull in super().ask(n)]


class Gullible(UniformAllocation):
    def tell(self, event: Told) -> None:
        infinite = isinstance(event, Loss) and event.value == -math.inf
        super().tell(Loss(event.pull, -1.0) if infinite else event)


class Forgetful(UniformAllocation):
    def tell(self, event: Told) -> None:
        with suppress(NotAsked):
            super().tell(event)


class Moody(SuccessiveHalving):
    def algorithm(self) -> Algorithm:
        arms = list(range(self.arms))
        random.shuffle(arms)
        return successive_halving(arms, self.budget)


@pytest.mark.parametrize(
    ("bug", "law"),
    [
        (TiesByThePreviousRanking, "ties_at_a_level_go_to_the_lower_arm_number"),
        (Spendthrift, "the_budget_is_never_exceeded"),
        (Impatient, "asking_n_at_once_is_asking_one_n_times"),
        (Gullible, "a_loss_that_is_not_finite_never_wins"),
        (Forgetful, "only_what_was_asked_can_be_told_and_once"),
        (Moody, "the_same_calls_give_the_same_answers"),
    ],
)
def test_the_laws_catch_a_policy_with_a_bug(bug: MakePolicy, law: str) -> None:
    (check,) = (c for c in policy_checks(level_by_level=True) if c.__name__ == f"check_{law}")
    with pytest.raises(AssertionError):
        check(bug)


class WrongSeed(Serial):
    def __init__(self, arms: Arms) -> None:
        super().__init__(dataclasses.replace(arms, seed=arms.seed + 1))


class HalfPrecision(Serial):
    def wait(self, seconds: float = 0.0) -> list[Told]:
        return [
            result._replace(value=float(np.float32(result.value)))
            if isinstance(result, Loss)
            else result
            for result in super().wait()
        ]


class OtherState(Serial):
    def state(self, pull: Pull) -> Any:
        state = super().state(pull)
        return state and [state[0], state[1] + 1]


class OtherAttempt(Serial):
    def wait(self, seconds: float = 0.0) -> list[Told]:
        return [result._replace(work=Work(attempt=2)) for result in super().wait()]


class Lossy(Serial):
    def wait(self, seconds: float = 0.0) -> list[Told]:
        return super().wait()[1:]


@pytest.mark.parametrize(
    ("bug", "law"),
    [
        (WrongSeed, "seeds_and_states_are_those_of_serial"),
        (HalfPrecision, "seeds_and_states_are_those_of_serial"),
        (OtherState, "seeds_and_states_are_those_of_serial"),
        (OtherAttempt, "every_pull_comes_back_with_its_own_attempt"),
        (Lossy, "every_pull_comes_back_with_its_own_attempt"),
        (HalfPrecision, "a_search_that_was_cut_short_goes_on"),
        (WrongSeed, "a_failed_attempt_is_tried_again_and_counted"),
    ],
)
def test_the_laws_catch_a_runner_with_a_bug(bug: MakeRunner, law: str) -> None:
    (check,) = (c for c in runner_checks() if c.__name__ == f"check_{law}")
    with pytest.raises(AssertionError):
        check(bug)
