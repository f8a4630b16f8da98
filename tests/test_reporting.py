"""Loops that report: the losses that each arm would have alone, and nothing is left behind."""

import gc
import importlib
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import (
    Checkpoints,
    Configs,
    Dropped,
    Reporting,
    SuccessiveHalving,
    Uniform,
    UniformAllocation,
    load,
    search,
)
from lastarm.errors import CheckpointLost, EndedEarly, LoopsLeft, StateNotSaved
from lastarm.events import Event, Loss
from lastarm.testing.trainers import CheckTrainer, trainer_checks
from lastarm.trainers import Maximized, as_trainer
from lastarm.trainers.reporting import BadReport, arms, global_random
from lastarm.trainers.reporting.loops import THREAD, DropIgnored
from tests.eventually import eventually
from tests.refusals import refused, warned
from tests.test_forms import curve, trained

SPACE = {"x": Uniform(0, 1)}
HALVING = SuccessiveHalving(arms=16, budget=320)
FOUR = Configs([{"x": x / 4} for x in range(4)])
TWICE = SuccessiveHalving(arms=4, budget=16)  # looks twice at arms 0 and 1


def waiting() -> list[threading.Thread]:
    """The threads of loops in this process."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = len(waiting())
    yield
    gc.collect()
    eventually(lambda: len(waiting()) <= before, seconds=30)


def wandering(config: Any, report: Any) -> None:
    """Draws from global generators wherever it can, and can be restored."""
    x = config["x"] + random.random() + np.random.normal()
    state = report.restore()
    if state is not None:
        x = state["x"]
    while True:
        x += random.gauss(0, 1) * np.random.random()
        report(abs(x), state={"x": x}, twice=2 * x)


def without_states(config: Any, report: Any) -> None:
    """The same walk, which lives in its process, with a loss that draws as well."""
    x = config["x"] + random.random() + np.random.normal()
    while True:
        x += random.gauss(0, 1) * np.random.random()
        report(partial(noisy, x))


def noisy(x: float) -> float:
    return float(abs(x) + 0.01 * random.random())


def in_place(config: Any, report: Any, seed: int) -> None:
    """Changes its state in place, and makes a copy of it only when that is needed."""
    x = np.array([config["x"], seed % 7])
    restored = report.restore()
    x = x if restored is None else restored
    while True:
        np.multiply(x, 1 + 0.1 * np.random.normal(size=2), out=x)
        report(lambda: {"loss": x[0], "other": x[1]}, state=lambda: x)


# The laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("function", [wandering, in_place])
def test_the_laws_of_trainers(function: Any, check: CheckTrainer) -> None:
    check(lambda: Reporting(function), {"x": 0.5})


@pytest.mark.parametrize("check", trainer_checks(saves=False), ids=lambda check: check.__name__)
def test_the_laws_of_trainers_without_states(check: CheckTrainer) -> None:
    check(lambda: Reporting(without_states), {"x": 0.5})


@pytest.mark.parametrize("function", [wandering, without_states, in_place])
def test_arms_that_take_turns_have_the_losses_that_they_would_have_alone(function: Any) -> None:
    trainer, configs = Reporting(function), [{"x": k / 5} for k in range(5)]
    alone = [curve(trainer, config, 1, 2, 3, seed=k) for k, config in enumerate(configs)]
    states = [trainer.start(config, k) for k, config in enumerate(configs)]
    together: list[list[Any]] = [[] for _ in configs]
    for pulls in (1, 2, 3):
        for k in range(5):
            states[k] = trainer.train(states[k], pulls)
            together[k].append(trainer.loss(states[k]))
    assert together == alone


@pytest.mark.parametrize("function", [wandering, without_states, in_place])
def test_the_digest_is_that_of_serial_with_workers_a_journal_and_little_room(
    function: Any, tmp_path: Path
) -> None:
    found = partial(search, function, SPACE, policy=HALVING)
    serial = found()
    assert serial.spent.repeated == 0
    for alive in (1, 3, 64):
        for workers in (None, 2):
            journal = tmp_path / f"{alive}-{workers}.jsonl"
            kept = Checkpoints(alive=alive)
            if function is without_states:
                with warned(StateNotSaved):
                    other = found(workers=workers, journal=journal, checkpoints=kept)
                assert (other.spent.repeated > 0) == (alive < 16 // (workers or 1))
            else:
                other = found(workers=workers, journal=journal, checkpoints=kept)
                assert other.spent.repeated == 0
            assert other.digest == serial.digest
    assert found(checkpoints=False).digest == serial.digest
    assert found(checkpoints=Checkpoints(memory=0)).digest == serial.digest


# Room and threads --------------------------------------------------------------------------------


class Model:
    """Counts how many of its kind there are."""

    alive = most = 0

    def __init__(self, x: float) -> None:
        self.x = x
        Model.alive += 1
        Model.most = max(Model.most, Model.alive)

    def __del__(self) -> None:
        Model.alive -= 1


def with_a_model(config: Any, report: Any) -> None:
    model = Model(config["x"])
    model.x = report.restore() or model.x
    while True:
        model.x *= 0.5 + 0.4 * random.random()
        report(model.x, state=model.x)


def test_two_hundred_arms_in_room_for_twenty(tmp_path: Path) -> None:
    policy = SuccessiveHalving(arms=200, budget=200 * 8 * 4)
    found = partial(search, with_a_model, SPACE, policy=policy)
    Model.most = 0
    roomy = found(checkpoints=Checkpoints(alive=200))
    assert Model.most == 200
    Model.most = 0
    place = tmp_path / "states"
    tight = found(checkpoints=Checkpoints(place, alive=20))
    assert tight.digest == roomy.digest
    assert (tight.spent.pulls, tight.spent.repeated) == (roomy.spent.pulls, 0)
    assert Model.most == 20
    assert Model.alive == 0
    assert waiting() == []
    assert list(place.iterdir()) == []


def test_by_default_sixty_four_arms_wait() -> None:
    Model.most = 0
    search(with_a_model, SPACE, policy=UniformAllocation(80, 160))
    assert Model.most == arms.MOST_ALIVE == 64


@pytest.mark.parametrize("alive", [0, -1, 1.5, True])
def test_room_is_a_number_of_arms(alive: Any) -> None:
    with refused("alive", alive):
        Checkpoints(alive=alive)


def test_when_the_search_ends_dropped_is_raised_where_loops_wait() -> None:
    seen: list[str] = []

    def tidy(config: Any, report: Any) -> None:
        try:
            while True:
                try:
                    report(config["x"])
                except Exception:  # which it is not
                    seen.append("caught")
        except Dropped:
            seen.append("dropped")
            raise
        finally:
            seen.append("cleaned up")

    search(tidy, SPACE, policy=UniformAllocation(3, 6))
    assert seen == ["dropped", "cleaned up"] * 3


def test_a_loop_ends_when_its_arm_is_not_there_any_more() -> None:
    arm: Any = trained(Reporting(without_states), {"x": 0.5}, 2)
    assert len(waiting()) == 1
    del arm
    gc.collect()
    eventually(lambda: not waiting())


def test_a_loop_that_catches_dropped_gets_it_again_and_then_its_arm_fails_by_name() -> None:
    caught: list[float] = []

    def once(config: Any, report: Any) -> None:
        while len(caught) < 2:
            try:
                report(config["x"])
            except BaseException:
                caught.append(config["x"])

    search(once, Configs([{"x": 0.5}]), policy=UniformAllocation(1, 2))
    assert len(caught) == 2

    def deaf(config: Any, report: Any) -> None:
        while True:
            try:
                report(config["x"])
            except BaseException:
                caught.append(config["x"])

    del caught[:]
    before = set(waiting())
    configs = Configs([{"x": 0.5}, {"x": 0.25}])
    with warned(LoopsLeft, function=f"{__name__}.{deaf.__qualname__}", many=1):
        found = search(
            deaf,
            configs,
            policy=SuccessiveHalving(2, 8),
            checkpoints=Checkpoints(alive=1),
        )
    assert found.arm in (0, 1)
    assert sorted(caught) == [0.25, 0.25, 0.5, 0.5]
    left = set(waiting()) - before
    assert len(left) == 2, "they cannot be ended"
    for thread in left:
        thread.name = "left on purpose"

    trainer = Reporting(deaf)
    trainer.keep_alive(1)
    one = trained(trainer, {"x": 0.5}, 1)
    other = trained(trainer, {"x": 0.25}, 1)
    with pytest.raises(DropIgnored) as error:
        trainer.train(one, 1)
    assert error.value.function.endswith("deaf")
    with warned(LoopsLeft):
        trainer.let_go()
    del other
    for thread in waiting():
        thread.name = "left on purpose"


def test_a_loop_that_lost_its_arm_has_ended_before_the_search_has(tmp_path: Path) -> None:
    """One that has left the memory cleans up by itself, and draws as it does so."""

    def tidying(config: Any, report: Any) -> None:
        x = config["x"]
        state = report.restore()
        x = x if state is None else state[0]
        try:
            while True:
                x += random.random()
                report(x, state=np.full(1000, x))
        finally:
            for _ in range(20):
                time.sleep(0.02)
                random.random()

    random.seed(5)
    expected = [random.random() for _ in range(50)]
    for disk in (2**30, 0):
        random.seed(5)
        kept = Checkpoints(tmp_path, memory=0, disk=disk)
        search(tidying, SPACE, policy=HALVING, checkpoints=kept)
        assert waiting() == []
        drawn = []
        for _ in range(50):
            drawn.append(random.random())
            time.sleep(0.002)
        assert drawn == expected


def test_a_search_within_an_arm_has_its_own_turns() -> None:
    def outer(config: Any, report: Any) -> None:
        while True:
            inner = search(wandering, SPACE, policy=UniformAllocation(3, 6), seed=1)
            report(config["x"] + inner.loss + random.random())

    found = partial(search, outer, SPACE, policy=SuccessiveHalving(4, 16))
    assert found().digest == found(checkpoints=Checkpoints(alive=1)).digest


def test_two_searches_in_two_threads_do_not_draw_each_others_numbers() -> None:
    digests: list[str] = []

    def one() -> None:
        digests.append(search(wandering, SPACE, policy=HALVING).digest)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(digests) == {search(wandering, SPACE, policy=HALVING).digest}


# Global generators -------------------------------------------------------------------------------


def test_the_generators_of_whoever_searches_stay_as_they_were() -> None:
    random.seed(7)
    np.random.seed(7)
    before = pickle.dumps(global_random.current())
    search(wandering, SPACE, policy=HALVING)
    assert pickle.dumps(global_random.current()) == before


def test_a_library_that_an_arm_loads_is_seeded_as_if_it_had_been_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lately.py").write_text("import random\ngenerator = random.Random(0)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def generator() -> random.Random:
        own: random.Random = sys.modules["lately"].generator
        return own

    lately = global_random.LIBRARIES["random"]._replace(
        get=lambda: generator().getstate(),
        put=lambda state: generator().setstate(state),
        seed=lambda seed: generator().seed(seed),
    )
    monkeypatch.setitem(global_random.LIBRARIES, "lately", lately)

    def late(config: Any, report: Any) -> None:
        lately: Any = importlib.import_module("lately")
        while True:
            report(lately.generator.random())

    def found() -> tuple[str, int]:
        result = search(late, SPACE, policy=HALVING)
        return result.digest, len({loss for curve in result.curves.values() for _, loss in curve})

    finders = list(sys.meta_path)
    fresh, different = found()
    assert sys.meta_path == finders
    assert "lately" in sys.modules
    assert (fresh, different) == found()
    assert different > 16
    monkeypatch.delitem(sys.modules, "lately")


# Ends and errors ---------------------------------------------------------------------------------


def test_a_function_that_returns_keeps_its_last_loss() -> None:
    def short(config: Any, report: Any) -> float:
        for loss in (0.5, 0.25):
            report(loss)
        return 7.0  # as an objective of Optuna, which reported it before

    assert curve(Reporting(short), {}, 1, 5, 100) == [0.5, 0.25, 0.25]
    assert curve(Reporting(short), {}, 7) == [0.25]
    with warned(EndedEarly, arm=0, pulls=2, upto=4):
        search(short, SPACE, policy=UniformAllocation(2, 8))


def test_one_that_has_returned_is_not_begun_again() -> None:
    def stops(config: Any, report: Any) -> None:
        assert report.restore() is None, "it had ended"
        report(0.5, state="state")

    trainer = Reporting(stops)
    state = pickle.loads(pickle.dumps(trained(trainer, {}, 2)))
    assert trainer.loss(trainer.train(state, 3)) == 0.5
    assert trainer.unwrap(state) == "state"


def test_what_a_loop_raises_is_the_failure_of_its_arm_with_its_own_line() -> None:
    def raising(config: Any, report: Any) -> None:
        report(0.5)
        if config["x"] > 0.5:
            raise RuntimeError("diverged")
        report(0.25)

    for workers in (None, 2):
        found = search(
            raising,
            Configs([{"x": 0.0}, {"x": 1.0}]),
            policy=UniformAllocation(2, 4),
            workers=workers,
        )
        assert found.failures[1].error == "RuntimeError: diverged"
        assert 'raise RuntimeError("diverged")' in found.failures[1].traceback
    trainer = Reporting(raising)
    arm = trained(trainer, {"x": 1.0}, 1)
    with pytest.raises(RuntimeError) as error:
        trainer.train(arm, 1)
    assert "raising" in "".join(traceback.format_exception(error.value))
    with pytest.raises(CheckpointLost):
        trainer.train(arm, 1)


@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), Dropped()])
def test_whatever_it_raises_is_its_failure(raised: BaseException) -> None:
    def raising(config: Any, report: Any) -> None:
        if config["x"] > 0.5:
            raise raised
        report(0.5)

    found = search(raising, Configs([{"x": 0.0}, {"x": 1.0}]), policy=UniformAllocation(2, 2))
    assert found.failures.keys() == {1}
    assert found.failures[1].error.startswith(type(raised).__name__)


def test_a_second_ctrl_c_is_raised_in_the_loop() -> None:
    seen: list[str] = []

    def slow(config: Any, report: Any) -> None:
        report(0.5)
        try:
            for _ in range(1000):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)
        except KeyboardInterrupt:
            seen.append("interrupted")
            raise

    with pytest.raises(KeyboardInterrupt):
        search(slow, SPACE, policy=UniformAllocation(2, 8))
    assert seen == ["interrupted"]


def test_after_one_ctrl_c_the_pull_is_finished(tmp_path: Path) -> None:
    def interrupted(config: Any, report: Any) -> None:
        for pull in range(100):
            if pull == 2 and config["x"] < 0.5 and not (tmp_path / "pressed").exists():
                (tmp_path / "pressed").touch()
                signal.raise_signal(signal.SIGINT)
            report(config["x"] / (pull + 1))

    found = partial(search, interrupted, SPACE, policy=HALVING, journal=tmp_path / "j.jsonl")
    with warned(StateNotSaved):
        first = found()
    assert (first.complete, waiting()) == (False, [])
    with warned(StateNotSaved):
        assert found().complete


def test_a_child_that_is_forked_never_comes_back(tmp_path: Path) -> None:
    def forking(config: Any, report: Any) -> None:
        if os.fork() == 0:
            report(0.0)  # in the child, where it ends
        if os.fork() == 0:
            return
        with (tmp_path / "parents").open("a") as file:
            file.write("x")
        os.wait()
        os.wait()
        while True:
            report(config["x"])

    found = search(forking, SPACE, policy=UniformAllocation(3, 6))
    assert found.spent.pulls == 6
    assert (tmp_path / "parents").read_text() == "xxx"


# What a report is --------------------------------------------------------------------------------


def test_a_loss_and_a_state_are_made_only_when_they_are_needed() -> None:
    made: list[str] = []

    def lazy(config: Any, report: Any) -> None:
        at = report.restore() or 0
        while True:
            at += 1
            report(partial(note, "loss", at), state=partial(note, "state", at))

    def note(what: str, at: int) -> int:
        made.append(what)
        return at

    trainer = Reporting(lazy)
    arm = trained(trainer, {}, 5)
    assert made == []
    assert [trainer.loss(arm), trainer.loss(arm), trainer.unwrap(arm)] == [5, 5, 5]
    assert made == ["loss", "state"]
    with warned(StateNotSaved):
        search(lambda config, report: report(0.5), SPACE, arms=2, budget=2, workers=2)


def test_metrics_go_along_with_any_form_of_a_loss() -> None:
    def telling(config: Any, report: Any) -> None:
        report(0.5, accuracy=0.9)
        report(lambda: 0.5, accuracy=0.9)
        report({"loss": 0.5}, accuracy=0.9)
        report(lambda: {"loss": 0.5, "accuracy": 0.1}, accuracy=0.9)

    assert curve(Reporting(telling), {}, 1, 1, 1, 1) == [{"loss": 0.5, "accuracy": 0.9}] * 4
    found = search(
        lambda config, report: report(config["x"], accuracy=0.5),
        SPACE,
        policy=UniformAllocation(2, 2),
        maximize=True,
    )
    assert found.metrics[0][1] == {"accuracy": 0.5}
    assert isinstance(Maximized(Reporting(wandering)).fingerprint(), dict)


def _with_a_step(config: Any, report: Any) -> None:
    report(0.5, 1)


def _asking_optunas_question(config: Any, report: Any) -> None:
    report(0.5)
    report.should_prune()


def _without_restore(config: Any, report: Any) -> None:
    report(0.5, state=1)


def _with_some_states(config: Any, report: Any) -> None:
    report.restore()
    report(0.5, state=1)
    report(0.5)


def _with_a_late_state(config: Any, report: Any) -> None:
    report.restore()
    report(0.5)
    report(0.5, state=1)


def _returning_at_once(config: Any, report: Any) -> None:
    """Reports nothing."""


def _catching_all(config: Any, report: Any) -> None:
    while True:
        try:
            report(0.5, 1)
        except BaseException:
            time.sleep(0)


@pytest.mark.parametrize(
    "function",
    [
        _with_a_step,
        _asking_optunas_question,
        _without_restore,
        _with_some_states,
        _with_a_late_state,
        _returning_at_once,
        _catching_all,
    ],
)
def test_what_would_be_misread_fails_by_the_name_of_the_function(function: Any) -> None:
    with pytest.raises(BadReport) as error:
        trained(Reporting(function), {}, 2)
    assert error.value.function == f"{__name__}.{function.__name__}"
    for thread in waiting():  # that of the one that catches all
        thread.name = "left on purpose"


def test_a_state_that_a_function_did_not_make_is_not_saved() -> None:
    def forgetful(config: Any, report: Any) -> None:
        report.restore()
        while True:
            report(0.5, state=lambda: None)

    with pytest.raises(TypeError, match="returned None"):
        pickle.dumps(trained(Reporting(forgetful), {}, 1))
    with pytest.raises(TypeError, match=r"report\.restore"):
        pickle.dumps(trained(Reporting(without_states), {"x": 0.5}, 1))


@pytest.mark.parametrize("raised", [RuntimeError("no state"), SystemExit(3)])
def test_what_a_state_raises_is_the_failure_of_its_own_arm(raised: BaseException) -> None:
    """Another arm needs the room, and is not the one that fails."""

    def giving(config: Any, report: Any) -> None:
        at = report.restore() or 0

        def state() -> int:
            if config["x"] == 0:
                raise raised
            return at

        while True:
            at += 1
            report(config["x"], state=state)

    found = search(giving, FOUR, policy=TWICE, checkpoints=Checkpoints(alive=1))
    assert found.failures.keys() == {0}
    assert found.failures[0].error.startswith(type(raised).__name__)
    assert (found.arm, found.state) == (1, found.level)
    assert waiting() == []


def test_what_a_loss_raises_costs_no_other_arm_its_room() -> None:
    def leaving(config: Any, report: Any) -> None:
        while True:
            report(sys.exit if config["x"] > 0.5 else 0.5)

    configs = Configs([{"x": 0.75}, {"x": 0.25}])
    found = search(
        leaving, configs, policy=UniformAllocation(2, 2), checkpoints=Checkpoints(alive=1)
    )
    assert found.failures.keys() == {0}


def test_a_state_that_cannot_be_made_does_not_cost_the_search_its_answer(tmp_path: Path) -> None:
    def giving(config: Any, report: Any) -> None:
        report.restore()
        while True:
            report(config["x"], state=lambda: 1 // 0)

    for journal in (None, tmp_path / "j.jsonl"):
        with pytest.warns(StateNotSaved):
            found = search(giving, SPACE, policy=UniformAllocation(2, 4), journal=journal)
        assert found.complete
        assert found.state is None


def test_when_the_search_ends_no_state_is_made_but_that_of_the_winner() -> None:
    made: list[int] = []

    def giving(config: Any, report: Any) -> None:
        report.restore()
        while True:
            report(config["x"], state=make)

    def make() -> str:
        made.append(1)
        return "state"

    # In a process that takes more than this, states are measured, and made for that.
    plenty = Checkpoints(memory=2**60)
    found = search(giving, SPACE, policy=UniformAllocation(4, 8), checkpoints=plenty)
    assert found.state == "state"
    assert len(made) == 1


def test_a_report_that_nobody_waits_for_fails_and_does_not_wait_for_ever() -> None:
    kept: list[Any] = []

    def short(config: Any, report: Any) -> None:
        kept.append(report)
        report(config["x"])
        if config["x"] > 0.5:
            report(config["x"])

    configs = Configs([{"x": 0.25}, {"x": 0.75}])
    search(short, configs, policy=UniformAllocation(2, 2))
    for report in kept:
        for _ in range(3):
            with pytest.raises(BadReport, match="has ended"):
                report(0.5)
            with pytest.raises(BadReport, match="has ended"):
                report.should_prune()

    def within(config: Any, report: Any) -> None:
        while True:
            report(lambda: report(0.5))

    trainer = Reporting(within)
    arm = trained(trainer, {}, 1)
    with pytest.raises(BadReport, match="waits"):
        trainer.loss(arm)
    trainer.let_go()


def test_an_arm_that_reports_for_another_one_fails() -> None:
    """As by a callback that finds `report` in a global."""
    last: list[Any] = []

    def mistaken(config: Any, report: Any) -> None:
        last[:] = [report]
        while True:
            last[0](config["x"])

    found = search(mistaken, FOUR, policy=TWICE)
    assert found.failures.keys() == {0, 1}
    assert "the `report` of an arm" in found.failures[0].error


def test_another_thread_of_a_loop_may_report_for_it() -> None:
    def with_a_thread(config: Any, report: Any) -> None:
        def work() -> None:
            with suppress(Dropped):
                while True:
                    report(config["x"])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    found = search(with_a_thread, SPACE, policy=HALVING)
    assert found.spent.pulls == 320
    assert not found.failures


def test_the_state_is_what_is_tested_and_given_back() -> None:
    trainer = Reporting(wandering, test=lambda state: state["x"])
    arm = trained(trainer, {"x": 0.5}, 2)
    assert trainer.test(arm) == trainer.unwrap(arm)["x"]
    assert not hasattr(Reporting(wandering), "test")
    with pytest.raises(BadReport):
        Reporting(without_states, test=len).test(trained(Reporting(without_states), {"x": 0.5}, 1))


# What is such a function -------------------------------------------------------------------------


def test_a_function_with_a_parameter_named_report_is_one() -> None:
    class Loop:
        def __call__(self, config: Any, seed: int, *, report: Any, factor: int = 1) -> None:
            report(seed * factor)

    given: list[Any] = [wandering, Loop(), partial(Loop(), factor=2), in_place]
    for one in given:
        trainer = as_trainer(one)
        assert isinstance(trainer, Reporting)
        assert "loop" in trainer.fingerprint()
    assert curve(as_trainer(Loop()), {}, 1, seed=3) == [3]


def test_other_functions_are_refused_with_what_to_write() -> None:
    def objective(trial: Any) -> float:
        return 0.5

    async def later(config: Any, report: Any) -> None:
        report(0.5)

    def yields(config: Any, report: Any) -> Iterator[float]:
        yield 0.5

    def tells(config: Any, tell: Any) -> None:
        tell(0.5)

    def more(config: Any, report: Any, data: Any) -> None:
        report(0.5)

    said: dict[Any, str] = {
        objective: "trial.report",
        later: "async",
        yields: "report",
        tells: "`report`",
    }
    said[more] = "data"
    for function, way_out in said.items():
        with pytest.raises(ValueError, match=way_out):
            as_trainer(function)
    with refused("function", tells):
        Reporting(tells)
    assert as_trainer(partial(more, data=1))


# Crashes -----------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys
import numpy as np
from lastarm import SuccessiveHalving, Uniform, search

def training(config, report):
    weights = np.random.normal(size=8)
    done, state = 0, report.restore()
    if state is not None:
        done, weights = state["done"], state["weights"]
    while True:
        weights *= config["x"] + 0.1 * np.random.normal(size=8)
        done += 1
        report(float(abs(weights).sum()), state={"done": done, "weights": weights})

events = 0
def kill(event):
    global events
    events += 1
    if events == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

found = search(training, {"x": Uniform(0, 1)}, policy=SuccessiveHalving(16, 320), workers=2,
               journal=sys.argv[1] or None, on_event=kill)
print(found.digest, found.spent.repeated)
"""


def test_killed_in_the_middle_on_two_workers_it_comes_to_the_same_digest(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(journal: str, kill_at: int = -1) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, script, journal, str(kill_at)],
            capture_output=True,
            text=True,
            check=False,
        )

    undisturbed = run("")
    assert undisturbed.returncode == 0, undisturbed.stderr
    journal = str(tmp_path / "search.jsonl")
    for kill_at in (9, 33):
        assert run(journal, kill_at).returncode == -signal.SIGKILL
    resumed = run(journal)
    assert resumed.stdout.split()[0] == undisturbed.stdout.split()[0], resumed.stderr


def test_an_arm_goes_on_from_its_state_and_not_from_the_beginning(tmp_path: Path) -> None:
    begun: list[Any] = []

    def noting(config: Any, report: Any) -> None:
        at = report.restore()
        begun.append(at)
        at = at or 0
        while True:
            at += 1
            report(config["x"] / at, state=at)

    def stop(event: Event) -> None:
        if isinstance(event, Loss) and event.pull.arm == 7:
            raise KeyboardInterrupt

    found = partial(search, noting, SPACE, policy=HALVING, journal=tmp_path / "j.jsonl")
    with pytest.raises(KeyboardInterrupt):
        found(on_event=stop)
    del begun[:]
    result = found()
    assert 5 in begun
    assert result.spent.repeated == 0
    assert load(tmp_path / "j.jsonl").state == result.state == result.level


def test_the_last_state_is_what_the_winner_has_on_any_runner(tmp_path: Path) -> None:
    found = partial(search, wandering, SPACE, policy=HALVING)
    states = [found().state, found(workers=2).state, found(checkpoints=False).state]
    assert states[0] == states[1] == states[2]
