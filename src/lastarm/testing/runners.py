"""The laws of runners: the answer of every runner is that of the serial runner."""

from __future__ import annotations

import asyncio
import itertools
import math
import signal
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.journal import read
from lastarm.policies import (
    ASHA,
    Brackets,
    SuccessiveHalving,
    SuccessiveRejects,
    UniformAllocation,
)
from lastarm.result import Result
from lastarm.runners import Arms, MakeRunner, Runner, Serial
from lastarm.samplers import GaussianProcess
from lastarm.searching import search
from lastarm.space import Configs, Uniform
from lastarm.testing.policies import FINITE
from lastarm.trainers import Config, Trainer

CheckRunner = Callable[[MakeRunner], None]

# Made anew each time: an error that is raised again keeps its tracebacks, and they grow.
RAISED: dict[str, Callable[[], BaseException]] = {
    "raise": lambda: RuntimeError("this arm raises"),
    "exit": lambda: SystemExit("this arm exits"),
    "cancelled": lambda: asyncio.CancelledError("this arm was cancelled"),
    "closed": lambda: GeneratorExit("this arm was closed"),
    "many": lambda: BaseExceptionGroup("this arm raises two", [GeneratorExit(), KeyError("x")]),
}
NOT_LOSSES = (None, "0.5", b"1", 1 + 2j, [0.5], {"accuracy": 0.5}, {"loss": None}, True, *RAISED)


class Scripted:
    """Arms that do, at each level, what their config says: return a value, or raise an error."""

    def start(self, config: Config, seed: int) -> tuple[Config, int]:
        """The beginning of the script."""
        return config, 0

    def train(self, state: tuple[Config, int], pulls: int) -> tuple[Config, int]:
        """Further on in the script."""
        return state[0], state[1] + pulls

    def loss(self, state: tuple[Config, int]) -> Any:
        """What is written there."""
        script = state[0]["script"]
        outcome = script[state[1] % len(script)]
        if isinstance(outcome, str) and outcome in RAISED:
            raise RAISED[outcome]()
        return outcome


class Drifting:
    """Arms that use their seed, change their state in place, and never have round losses."""

    def start(self, config: Config, seed: int) -> list[Any]:
        """A random source of the arm's own, and where it has drifted to."""
        return [np.random.default_rng(seed), config["limit"]]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """One step a pull; an arm that drifts too far raises, with its state half changed."""
        for _ in range(pulls):
            state[1] += 0.1 * state[0].normal()
            if abs(state[1]) > 1.5:
                raise RuntimeError("drifted off")
        return state

    def loss(self, state: list[Any]) -> float:
        """Where it is."""
        return float(state[1])

    def test(self, state: list[Any]) -> float:
        """Where it would be next, which depends on the whole state."""
        return float(state[1] + state[0].normal())


class Root:
    """What does not come along when a state is copied."""

    torn = False

    def __reduce__(self) -> Any:
        return _torn_root, ()


def _torn_root() -> Root:
    root = Root()
    root.torn = True
    return root


class Rooted(Drifting):
    """Arms that can only be trained where they were started; copies of them can be looked at."""

    def start(self, config: Config, seed: int) -> list[Any]:
        """An arm with a root."""
        return [*super().start(config, seed), Root()]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """As long as it has its root; a copy would drift to somewhere else."""
        state[1] += state[2].torn
        return super().train(state, pulls)

    def continues(self, state: list[Any]) -> bool:
        """Not as a copy."""
        return False


class Restarting(Drifting):
    """The same arms, trained from zero at every level; a file counts all pulls."""

    restarts = True

    def __init__(self, tally: Path) -> None:
        self._tally = tally

    def start(self, config: Config, seed: int) -> list[Any]:
        """An arm, and what it begins with each time."""
        return [None, config["limit"], config, seed, 0]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """All pulls of the arm, those before and the new ones, in one go."""
        _, _, config, seed, before = state
        with self._tally.open("ab", buffering=0) as file:
            file.write(b"x" * (before + pulls))
        drifted = super().train(super().start(config, seed), before + pulls)
        return [*drifted, config, seed, before + pulls]


LIMITS = Configs([{"limit": k / 10} for k in range(8)])
HALVING = SuccessiveHalving(8, 80)


class Stumbling(Drifting):
    """Arms whose first two attempts at each level fail; files in a folder count them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def loss(self, state: list[Any]) -> float:
        """Where it is, once it has stumbled twice there."""
        falls = list(self._folder.glob(f"{state[1]!r}-*"))
        if len(falls) < 2:
            (self._folder / f"{state[1]!r}-{len(falls)}").touch()
            raise RuntimeError("stumbled")
        return super().loss(state)


class CutShort(Exception):
    """A search was left in the middle."""


def runner_checks(retries: int = 0, seeds: int = 12) -> list[CheckRunner]:
    """The laws of a runner, each as a function that takes what makes the runner.

    :param retries: how often a pull may be tried again, for a runner that loses workers.
    :param seeds: with how many seeds each law is tried; use few for a runner that starts slowly.

    What differs between runners is not a law, and is tested for each: limits of time, a second
    Ctrl-C, that no process is left behind, that nothing listens. Results that come twice or late
    are handled by the loop; campaign F11 tests that.
    """

    def check_the_answer_is_that_of_serial(make: MakeRunner) -> None:
        for seed in range(seeds):
            random = np.random.default_rng(seed)
            outcomes = [*FINITE * 5, math.inf, -math.inf, math.nan, "raise"]
            table = random.integers(0, len(outcomes), (9 + seed, 7)).tolist()
            configs = [{"script": [outcomes[k] for k in row]} for row in table]
            _same_answers(make, configs, seed, retries)

    def check_seeds_and_states_are_those_of_serial(make: MakeRunner) -> None:
        for seed in range(min(seeds, 5)):
            _same_answers(make, [{"limit": k / 10} for k in range(11)], seed, retries, Drifting())

    def check_a_copy_that_does_not_continue_is_never_trained(make: MakeRunner) -> None:
        _same_answers(make, [{"limit": k / 10} for k in range(11)], 0, retries, Rooted())
        halving = _went_on(make, HALVING, _leave, 14, retries, Rooted())
        assert halving.digest == search(Drifting(), LIMITS, policy=HALVING).digest

    def check_what_is_not_a_loss_is_that_arms_failure(make: MakeRunner) -> None:
        configs = [{"script": [value]} for value in (*NOT_LOSSES, 0.25, 0.5)]
        _same_answers(make, configs, 0, retries)

    def check_every_pull_comes_back_with_its_own_attempt(make: MakeRunner) -> None:
        arms = 5
        with closing(make(Arms(Scripted(), [{"script": [0.5]}] * arms))) as runner:
            for attempt in (1, 2, 3):
                to_start = [Pull(arm, upto=attempt) for arm in range(arms)]
                awaited: set[tuple[Pull, int]] = set()
                while to_start or awaited:
                    while to_start and runner.free:
                        pull = to_start.pop()
                        runner.start(pull, attempt)
                        awaited.add((pull, attempt))
                    for result in _waited(runner):
                        assert 1 <= result.work.attempt <= attempt, "it was never started"
                        awaited.discard((result.pull, result.work.attempt))

    def check_a_search_that_was_cut_short_goes_on(make: MakeRunner) -> None:
        for cut in (14, 4, 23)[:seeds]:
            halving = _went_on(make, HALVING, _leave, cut, retries)
            assert halving.digest == search(Drifting(), LIMITS, policy=HALVING).digest, cut
            _went_on(make, ASHA(arms=8, budget=60, max_pulls=9), _ctrl_c, cut, retries)

    def check_a_failed_attempt_is_tried_again_and_counted(make: MakeRunner) -> None:
        if retries:
            return  # a runner that loses workers has other attempts, too
        with TemporaryDirectory(prefix="lastarm-") as folder:
            attempts: list[int] = []

            def note(event: Event) -> None:
                if isinstance(event, Loss | Failure):
                    attempts.append(event.work.attempt)

            policy = UniformAllocation(8, 24)
            found = search(
                Stumbling(Path(folder)),
                LIMITS,
                policy=policy,
                runner=make,
                retries=2,
                on_event=note,
            )
            assert sorted(attempts) == [1] * 8 + [2] * 8 + [3] * 8
            assert found.digest == search(Drifting(), LIMITS, policy=policy).digest
            assert found.spent.pulls == 24
            assert found.spent.repeated == 0, "looking changes nothing, so nothing is lost"

    def check_a_trainer_that_restarts_is_booked_by_its_levels(make: MakeRunner) -> None:
        _booked_by_levels(make, retries)

    def check_arms_that_are_chosen_as_it_goes_are_those_of_serial(make: MakeRunner) -> None:
        _chosen_as_it_goes(make, retries)

    return [
        check_the_answer_is_that_of_serial,
        check_seeds_and_states_are_those_of_serial,
        check_a_copy_that_does_not_continue_is_never_trained,
        check_what_is_not_a_loss_is_that_arms_failure,
        check_every_pull_comes_back_with_its_own_attempt,
        check_a_search_that_was_cut_short_goes_on,
        check_a_failed_attempt_is_tried_again_and_counted,
        check_a_trainer_that_restarts_is_booked_by_its_levels,
        check_arms_that_are_chosen_as_it_goes_are_those_of_serial,
    ]


def _chosen_as_it_goes(make: MakeRunner, retries: int) -> None:
    """Choose arms by what became of others: stopped, then continued with more budget."""

    def found(
        folder: str, by: MakeRunner, budget: int, on_event: Callable[[Event], None] | None = None
    ) -> Result:
        return search(
            Drifting(),
            {"limit": Uniform(-1, 1), "drawn": Uniform(0, 1)},
            policy=Brackets(budget=budget, max_pulls=9, at_once=2),
            sampler=GaussianProcess(),
            runner=by,
            journal=Path(folder, "search.jsonl"),
            retries=retries,
            seed=1,
            on_event=on_event,
        )

    prefix = "lastarm-"
    with TemporaryDirectory(prefix=prefix) as one, TemporaryDirectory(prefix=prefix) as other:
        with suppress(CutShort):
            found(one, make, 86, _after(75, _leave))  # among the first arms that are chosen
        found(other, Serial, 86)
        ours, theirs = found(one, make, 130), found(other, Serial, 130)
        begun = [event for event in read(Path(one, "search.jsonl")) if isinstance(event, Pull)]
    assert ours.digest == theirs.digest
    assert ours.test_loss == theirs.test_loss
    assert list(ours.configs) == list(theirs.configs)
    assert ours.complete
    assert any(pull.origin and pull.origin.how == "chosen" for pull in begun)


def _booked_by_levels(make: MakeRunner, retries: int) -> None:
    """Search with arms that are trained from zero at every level, and count what is trained."""
    losses: list[Loss] = []

    def note(event: Event) -> None:
        losses.extend([event] if isinstance(event, Loss) else [])

    with TemporaryDirectory(prefix="lastarm-") as folder:
        tally = Path(folder, "tally")
        found = search(
            Restarting(tally),
            LIMITS,
            policy=HALVING,
            runner=make,
            retries=retries,
            on_event=note,
        )
        spent, trained = found.spent, tally.stat().st_size
        alone = search(Restarting(tally), LIMITS, policy=HALVING)
    assert found.digest == alone.digest
    assert found.test_loss == alone.test_loss
    assert spent.pulls == sum(loss.pull.upto for loss in losses) <= HALVING.budget
    assert spent.pulls <= trained <= spent.pulls + spent.repeated
    assert retries or spent.repeated == 0


def _leave() -> None:
    raise CutShort


def _ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def _went_on(
    make: MakeRunner,
    policy: Any,
    cut_short: Callable[[], None],
    cut: int,
    retries: int,
    trainer: Trainer[Any] | None = None,
) -> Result:
    """Leave a search after `cut` events and resume it; the serial runner finds the same in it."""
    with TemporaryDirectory(prefix="lastarm-") as folder:
        journal = Path(folder) / "search.jsonl"

        def again(by: MakeRunner, on_event: Callable[[Event], None] | None = None) -> Result:
            return search(
                trainer or Drifting(),
                LIMITS,
                policy=policy,
                runner=by,
                journal=journal,
                retries=retries,
                on_event=on_event,
            )

        with suppress(CutShort):
            again(make, _after(cut, cut_short))
        before = [event for event in read(journal) if isinstance(event, Loss)]
        resumed = again(make)
        assert resumed.complete, (policy, cut)
        for loss in before:
            point = loss.pull.upto, loss.value
            assert point in resumed.curves[loss.pull.arm], "an acknowledged loss is lost"
        assert again(Serial).digest == resumed.digest, (policy, cut)
        return resumed


def _after(events: int, cut_short: Callable[[], None]) -> Callable[[Event], None]:
    seen = itertools.count()

    def watch(event: Event) -> None:
        if next(seen) == events:
            cut_short()

    return watch


def _same_answers(
    make: MakeRunner,
    configs: Sequence[Config],
    seed: int,
    retries: int,
    trainer: Trainer[Any] | None = None,
) -> None:
    for policy in (
        UniformAllocation(len(configs), 5 * len(configs)),
        SuccessiveHalving(len(configs), 50 * len(configs)),
        SuccessiveRejects(len(configs), 50 * len(configs)),
    ):

        def found(by: MakeRunner, policy: Any = policy) -> Result:
            return search(
                trainer or Scripted(),
                Configs(configs),
                policy=policy,
                runner=by,
                seed=seed,
                retries=retries,
            )

        ours, theirs = found(Serial), found(make)
        assert theirs.complete, policy
        assert theirs.digest == ours.digest, (policy, configs)
        assert theirs.test_loss == ours.test_loss, (policy, configs)
        assert theirs.spent.pulls == ours.spent.pulls, (policy, configs)
        assert theirs.spent.observations == ours.spent.observations, (policy, configs)
        assert theirs.failures.keys() == ours.failures.keys(), (policy, configs)
        if not retries:  # else the last of many attempts may have failed in another way
            assert theirs.spent.repeated == 0, (policy, configs)
            assert _errors(theirs) == _errors(ours), (policy, configs)


def _waited(runner: Runner) -> list[Told]:
    for _ in range(100):
        if results := runner.wait(0.6):
            return results
    raise AssertionError("a pull that was started has not come back")


def _errors(result: Result) -> dict[int, str]:
    return {arm: failure.error for arm, failure in result.failures.items()}
