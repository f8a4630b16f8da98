"""Every law over every policy and every runner."""

from functools import partial

import pytest

from lastarm import Serial, Simulated
from lastarm.policies import POLICIES, SuccessiveHalving
from lastarm.runners import MakeRunner
from lastarm.testing import policy_checks, runner_checks
from lastarm.testing.policies import CheckPolicy, MakePolicy
from lastarm.testing.runners import CheckRunner

MAKERS: dict[str, MakePolicy] = {
    **POLICIES,
    "successive-halving, eta 3": partial(SuccessiveHalving, eta=3),
    "successive-halving, eta 10": partial(SuccessiveHalving, eta=10),
}


@pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MAKERS)
def test_policy(name: str, check: CheckPolicy) -> None:
    check(MAKERS[name])


STEADY: dict[str, MakeRunner] = {
    "serial, in groups": partial(Serial, group=7),
    "one worker": Simulated,
    "many workers": partial(Simulated, workers=13, seconds_per_look=0.3),
    "unequal arms": lambda trainer, configs, seed: Simulated(
        trainer, configs, seed, workers=3, seconds_per_pull=[1.0 + i for i in range(len(configs))]
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
