"""The laws that every policy, trainer and runner obeys, as checks that anybody can run.

    from lastarm.testing import policy_checks

    @pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
    def test_my_policy(check):
        check(MyPolicy)

A check takes a function that makes a policy (or a trainer, or a runner). It plays many small games
in which losses often tie, fail or diverge. If a law is broken, it raises an AssertionError that
shows the game. Tests of single policies, trainers or runners belong in `tests/`, not here.
"""

from lastarm.testing.policies import policy_checks
from lastarm.testing.runners import runner_checks
from lastarm.testing.trainers import trainer_checks

__all__ = ["policy_checks", "runner_checks", "trainer_checks"]
