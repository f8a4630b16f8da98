"""Ray: the answer of serial on real actors, whatever happens to them or to their cluster."""

import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import ray

from faults.engines import KILLED, Engine, strike
from faults.planted import mutated
from lastarm import Checkpoints, Configs, SuccessiveHalving, UniformAllocation, search
from lastarm.errors import CheckpointNotWritten, ClusterLost, FolderNotSeen, WorkersNotStarted
from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.journal import read
from lastarm.runners import Arms, Runner
from lastarm.runners.ray import Ray
from lastarm.runners.ray.cluster import ClusterWatch, LocalRay, room
from lastarm.runners.remote import Kit
from lastarm.testing import runner_checks
from lastarm.testing.runners import CheckRunner, Drifting, Rooted
from lastarm.trainers import Config
from tests.boosted_arms import KINDS, KillsAWorker, boosted
from tests.eventually import eventually
from tests.refusals import refused, warned
from tests.test_causes import raised_there
from tests.test_raised import METHODS, failures
from tests.test_reporting import SPACE, wandering, without_states

LIMITS = Configs([{"limit": k / 10} for k in range(16)])
HALVING = SuccessiveHalving(16, 320)
TWO = partial(Ray, workers=2)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[LocalRay]:
    """A Ray that all of these use, as a user's own."""
    with closing(LocalRay(2)) as own:
        yield own


@pytest.mark.parametrize("check", runner_checks(seeds=1), ids=lambda check: check.__name__)
def test_the_laws_of_runners(check: CheckRunner) -> None:
    check(TWO)


class Noted(Drifting):
    """Notes every step in a file, takes its time, and tells which process it was in."""

    def __init__(self, file: Path, seconds: float = 0.0) -> None:
        self.file, self.seconds = file, seconds

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        time.sleep(self.seconds)
        with self.file.open("a") as file:
            file.write("x" * pulls)
        return super().train(state, pulls)

    def loss(self, state: list[Any]) -> Any:
        return {"loss": super().loss(state), "process": os.getpid()}


def test_every_step_is_booked_and_none_is_done_twice(tmp_path: Path) -> None:
    found = partial(search, space=LIMITS, policy=HALVING)
    result = found(Noted(tmp_path / "steps"), runner=TWO)
    assert result.digest == found(Drifting()).digest
    assert result.spent.pulls == (tmp_path / "steps").stat().st_size
    assert result.spent.repeated == 0


@pytest.mark.parametrize("journalled", [False, True])
def test_killed_workers_cost_no_more_than_their_pulls(tmp_path: Path, journalled: bool) -> None:
    killed: set[int] = set()
    lost: list[Failure] = []

    def kill_some(event: Event) -> None:
        if isinstance(event, Failure) and event.lost:
            lost.append(event)
        if isinstance(event, Loss) and event.pull.arm % 5 == 0 and event.metrics:
            process = event.metrics["process"]
            if len(killed) < 2 and process not in killed:
                killed.add(process)
                os.kill(process, signal.SIGKILL)

    found = partial(search, space=LIMITS, policy=HALVING)
    result = found(
        Noted(tmp_path / "steps", 0.02),
        runner=TWO,
        journal=tmp_path / "j.jsonl" if journalled else None,
        on_event=kill_some,
    )
    assert result.digest == found(Drifting()).digest
    assert len(killed) == 2
    assert lost
    assert all(failure.retried for failure in lost)
    assert result.spent.repeated <= sum(failure.work.trained for failure in lost)
    if journalled:
        losses = [event for event in read(tmp_path / "j.jsonl") if isinstance(event, Loss)]
        assert all(loss.saved for loss in losses)


@pytest.mark.parametrize("kind", KINDS)
def test_live_boosters_have_the_digest_of_serial_also_after_a_kill(kind: str) -> None:
    for draws, kills in ((False, None), (True, KillsAWorker())):
        found = boosted(kind, draws=draws)(runner=TWO, on_event=kills)
        assert found.digest == boosted(kind, draws=draws)().digest
        assert kills is None or kills.killed


def test_a_frozen_worker_is_given_up_and_changes_nothing_when_it_thaws(tmp_path: Path) -> None:
    frozen: list[int] = []
    lost: list[Failure] = []

    def freeze_one(event: Event) -> None:
        if isinstance(event, Loss) and event.metrics and not frozen:
            frozen.append(event.metrics["process"])
            os.kill(frozen[0], signal.SIGSTOP)
        if isinstance(event, Failure) and event.lost:
            lost.append(event)
            os.kill(frozen[0], signal.SIGCONT)

    found = partial(search, space=LIMITS, policy=HALVING)
    result = found(
        Noted(tmp_path / "steps", 0.02), runner=partial(TWO, lease=3), on_event=freeze_one
    )
    assert result.digest == found(Drifting()).digest
    assert [failure.error for failure in lost] == ["its worker was silent for 3 s"]
    assert lost[0].retried


def test_no_worker_is_blamed_when_it_is_the_coordinator_that_was_frozen(tmp_path: Path) -> None:
    trainer = Noted(tmp_path / "steps", 0.1)
    with closing(Ray(Arms(trainer, [{"limit": 0.1}]), workers=1, lease=3)) as runner:
        runner.start(Pull(0, 1), 1)
        (told,) = _waited(runner, 1)
        assert isinstance(told, Loss)
        assert told.metrics
        process = told.metrics["process"]
        os.kill(process, signal.SIGSTOP)
        runner.start(Pull(0, 2), 1)
        began = time.monotonic()
        while time.monotonic() < began + 1.5:  # long enough for a question to be open
            assert runner.wait(0.1) == []
        time.sleep(3)
        os.kill(process, signal.SIGCONT)
        (told,) = _waited(runner, 1)
        assert isinstance(told, Loss)


ENGINE = Engine(partial(TWO, lease=3), 3.0, lambda: None, lambda: None)


def test_campaign_f10(tmp_path: Path) -> None:
    _, blow = strike(0, KILLED, ENGINE, tmp_path)
    assert blow.struck == 1


def test_campaign_f10_catches_a_bug(tmp_path: Path) -> None:
    with (
        mutated(Ray, "_bury", "lost=True", "lost=False"),
        pytest.raises(AssertionError, match=r"\{\d"),  # the arms that are out
    ):
        strike(0, KILLED, ENGINE, tmp_path)


class Ill:
    """An arm does what its config's `does` says, and all is written down."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def start(self, config: Config, seed: int) -> Config:
        return config

    def train(self, state: Config, pulls: int) -> Config:
        self._note("begin", state)
        time.sleep(0.02)
        match state.get("does"):
            case "vanish":
                os._exit(0)
            case "hang":
                with subprocess.Popen(["sleep", "600"]) as child:
                    self._note(f"child {child.pid}", state)
        self._note("end", state)
        return state

    def loss(self, state: Config) -> float:
        return float(state["arm"])

    def _note(self, what: str, state: Config) -> None:
        with self.log.open("a") as file:
            file.write(f"{what} {state['arm']}\n")


def test_only_an_arm_that_brings_its_worker_down_alone_is_blamed(tmp_path: Path) -> None:
    configs: list[dict[str, Any]] = [{"arm": k} for k in range(20)]
    configs[0]["does"] = "vanish"
    result = search(
        Ill(tmp_path / "log"),
        Configs(configs),
        policy=UniformAllocation(20, 20),
        runner=TWO,
        journal=tmp_path / "j.jsonl",
    )
    assert result.arm == 1
    assert [(a, f.error) for a, f in result.failures.items()] == [
        (0, "its worker died, running alone")
    ]
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    starts = [n for n, line in enumerate(lines) if line == ["begin", "0"]]
    assert len(starts) == 3
    under_way: set[str] = set()
    for what, arm in lines[: starts[-1] + 1]:
        under_way = under_way | {arm} if what == "begin" else under_way - {arm}
    assert under_way == {"0"}, "all others had ended"


def test_a_suspect_goes_on_where_its_state_is() -> None:
    with closing(TWO(Arms(InPlace(), [{"seconds": 0.5}, {"seconds": 0.5}]))) as runner:
        eventually(
            lambda: runner.wait(0.1) == [] and all(w.ready for w in runner._workers.values())
        )
        for arm in (0, 1):
            runner.start(Pull(arm, 1), 1)
        for first in _waited(runner, 2):
            runner.start(Pull(first.pull.arm, 2), 3)
            (alone,) = _waited(runner, 1)
            assert (alone.work.worker, alone.work.trained) == (first.work.worker, 1)


def test_a_pull_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    configs = Configs([{"arm": 0, "does": "hang"}, {"arm": 1}, {"arm": 2}])
    result = search(
        Ill(tmp_path / "log"),
        configs,
        policy=UniformAllocation(3, 3),
        runner=partial(TWO, pull_seconds=2),
    )
    assert result.arm == 1
    assert result.failures[0].error == "no result within 2 s, so its worker was stopped"
    assert not result.failures[0].lost
    (child,) = [
        int(line.split()[1])
        for line in (tmp_path / "log").read_text().splitlines()
        if line.startswith("child")
    ]
    eventually(lambda: not alive(child))


def test_states_that_cannot_leave_their_worker_stay_with_it() -> None:
    def generator(config: dict[str, Any]) -> Iterator[float]:
        loss = config["limit"]
        while True:
            loss *= 0.9
            yield loss

    found = partial(search, generator, LIMITS, policy=HALVING)
    result = found(runner=TWO)
    assert result.digest == found().digest
    assert result.spent.repeated == 0


@pytest.mark.parametrize("function", [wandering, without_states])
def test_loops_that_report_have_the_digest_of_serial(function: Any) -> None:
    found = partial(search, function, SPACE, policy=SuccessiveHalving(16, 320))
    serial = found()
    result = found(runner=TWO)
    assert result.digest == serial.digest
    assert result.spent.repeated == 0
    assert found(runner=TWO, checkpoints=Checkpoints(alive=2)).digest == serial.digest


class InPlace:
    """Many numbers, changed where they are; a slow arm takes its time."""

    def start(self, config: Config, seed: int) -> Any:
        return [np.zeros(2**18), config.get("seconds", 0)]

    def train(self, state: Any, pulls: int) -> Any:
        time.sleep(state[1])
        state[0] += pulls
        return state

    def loss(self, state: Any) -> float:
        return float(state[0].mean())


def test_a_state_goes_to_another_worker_and_can_be_changed_there() -> None:
    arms = Arms(InPlace(), [{}, {"seconds": 0.5}, {}, {"seconds": 2}])
    with closing(Ray(arms, workers=2)) as runner:
        eventually(
            lambda: runner.wait(0.1) == [] and all(w.ready for w in runner._workers.values())
        )
        runner.start(Pull(0, 1), 1)
        (first,) = _waited(runner, 1)
        runner.start(Pull(1, 1), 1)
        runner.start(Pull(0, 3), 1)
        (second, _) = _waited(runner, 2)
        assert isinstance(second, Loss)
        assert (second.value, second.work.trained) == (3.0, 2)
        assert first.work.worker != second.work.worker
        state = runner.state(Pull(0, 3))
        state[0] += 1
        assert state[0].mean() == 4
        assert runner.state(Pull(0, 1)) is None
        runner.start(Pull(2, 1), 1)
        runner.start(Pull(3, 1), 1)  # where arm 0 was last, so that it has to go back
        _waited(runner, 1)
        runner.start(Pull(0, 4), 1)
        (third, _) = _waited(runner, 2)
        assert isinstance(third, Loss)
        assert (third.value, third.work.trained) == (4.0, 1)
        assert third.work.worker == first.work.worker


def test_only_the_latest_state_of_an_arm_is_held() -> None:
    before = _references()
    with closing(Ray(Arms(InPlace(), [{}, {}]), workers=1)) as runner:
        for level in range(1, 51):
            for arm in range(2):
                runner.start(Pull(arm, level), 1)
                _waited(runner, 1)
        eventually(lambda: _references() <= before + 12)
    eventually(lambda: _references() <= before)


class Weighty(Drifting):
    """Tells how many of its states are in memory."""

    def start(self, config: Config, seed: int) -> list[Any]:
        return [*super().start(config, seed), np.full(2**17, seed)]

    def loss(self, state: list[Any]) -> Any:
        held = [s for s in gc.get_objects() if type(s) is list and len(s) == 3]
        arrays = {id(s[2]) for s in held if type(s[2]) is np.ndarray and s[2].size == 2**17}
        return {"loss": super().loss(state), "held": len(arrays)}


def test_what_an_actor_has_no_memory_for_comes_back_from_the_object_store() -> None:
    held: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, Loss) and event.metrics:
            held.append(event.metrics["held"])

    found = partial(search, space=LIMITS, policy=HALVING)
    result = found(
        Weighty(), runner=TWO, checkpoints=Checkpoints(memory=2 * 3 * 2**20), on_event=watch
    )
    assert result.digest == found(Drifting()).digest
    assert result.spent.repeated == 0
    assert max(held) == 3, "two, and the one that is looked at"


class Planted(Rooted):
    """Says how large its states are; their copies are of no use."""

    def size(self, state: list[Any]) -> int:
        return 1000


def test_what_cannot_come_back_is_trained_again_as_far_as_memory_goes() -> None:
    found = partial(search, space=LIMITS, policy=HALVING)
    alone, repeated = found(Drifting()), []
    for each in (8_500, 1_500):  # an actor has memory for the 8 that go on; then, for one
        result = found(Planted(), runner=TWO, checkpoints=Checkpoints(memory=2 * each))
        assert result.digest == alone.digest
        repeated.append(result.spent.repeated)
    assert repeated[0] == 0 < repeated[1]


def test_copies_of_what_is_saved_are_held_only_while_there_is_memory(tmp_path: Path) -> None:
    copies: list[int] = []
    runners: list[Ray] = []

    def make(arms: Arms) -> Ray:
        runners.append(TWO(arms))
        return runners[0]

    def watch(event: Event) -> None:
        copies.append(sum(kept.copy is not None for kept in runners[0]._kept.values()))

    found = partial(search, space=LIMITS, policy=HALVING)
    result = found(
        Weighty(),
        runner=make,
        journal=tmp_path / "j.jsonl",
        checkpoints=Checkpoints(memory=4 * 2**20),
        on_event=watch,
    )
    assert result.digest == found(Drifting()).digest
    assert result.spent.repeated == 0
    assert max(copies) == 3


def test_a_folder_that_workers_do_not_see_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit_of = Kit.of
    monkeypatch.setattr(Kit, "of", lambda arms: kit_of(arms)._replace(identity="elsewhere"))
    found = partial(search, space=LIMITS, policy=UniformAllocation(4, 4))
    with warned(FolderNotSeen, path=tmp_path / "j.jsonl.states"):
        result = found(Drifting(), runner=TWO, journal=tmp_path / "j.jsonl")
    assert result.digest == found(Drifting()).digest


def test_what_cannot_be_loaded_or_written_is_said_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    class Unloadable(Drifting):
        def __reduce__(self) -> Any:
            return exec, ("raise RuntimeError('not here')",)

    with pytest.raises(WorkersNotStarted) as broken:
        search(Unloadable(), LIMITS, policy=HALVING, runner=TWO)

    assert "not here" in broken.value.details

    class Deadly(Drifting):
        def __reduce__(self) -> Any:
            return exec, ("import os; os._exit(3)",)

    with pytest.raises(WorkersNotStarted):
        search(Deadly(), LIMITS, policy=HALVING, runner=TWO)

    class Freezing(Drifting):
        def __reduce__(self) -> Any:
            then = "time.sleep(0.5); os.kill(os.getpid(), signal.SIGSTOP)"
            return exec, (f"import os, signal, time; {then}",)

    with pytest.raises(WorkersNotStarted) as silent:
        search(Freezing(), LIMITS, policy=HALVING, runner=partial(TWO, lease=1))

    assert silent.value.details == "its worker was silent for 1 s"

    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointNotWritten) as stopped:
        search(
            Drifting(),
            LIMITS,
            policy=HALVING,
            runner=TWO,
            journal=tmp_path / "j.jsonl",
            checkpoints=tmp_path / "file" / "states",
        )
    assert stopped.value.path.parent == tmp_path / "file" / "states"


def test_an_interrupt_that_an_arm_raises_is_its_failure(tmp_path: Path) -> None:
    told = failures(TWO, tmp_path / "j.jsonl", "interrupt")
    assert told == ["KeyboardInterrupt: its own"] * len(METHODS)


def test_the_first_cause_has_its_line_number() -> None:
    raised_there(runner="ray", workers=2)


def test_a_config_that_cannot_be_sent_is_its_arms_failure() -> None:
    def generator(config: dict[str, Any]) -> Iterator[float]:
        while True:
            yield 0.5

    configs = Configs([{"x": iter([1])}, {"x": (k for k in "ab")}, {"x": 1}])
    runner = partial(Ray, workers=1)
    result = search(generator, configs, policy=UniformAllocation(3, 3), runner=runner)
    assert "cannot be sent to a worker: TypeError" in result.failures[1].error


@pytest.mark.parametrize(
    "arguments", [{"workers": 0}, {"pull_seconds": 0}, {"lease": -1}], ids=lambda a: next(iter(a))
)
def test_arguments_that_are_not_valid(arguments: dict[str, Any]) -> None:
    ((name, value),) = arguments.items()
    with refused(name, value):
        search(Drifting(), LIMITS, policy=HALVING, runner=partial(Ray, **arguments))


def test_more_than_a_ray_of_its_own_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int | None] = []

    def local_ray(cpus: int | None) -> Any:
        started.append(cpus)
        return SimpleNamespace(close=started.pop)

    with monkeypatch.context() as patched:
        patched.setattr(ray, "is_initialized", lambda: False)
        patched.setattr("lastarm.runners.ray.runner.LocalRay", local_ray)
        with refused(None):
            Ray(Arms(Drifting(), []), num_gpus=1000)
    assert started == []


def test_what_a_pull_takes_goes_into_a_machine_as_often_as_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = {"Alive": True, "Resources": {"CPU": 1.0, "GPU": 0.3}}
    monkeypatch.setattr(ray, "nodes", lambda: [machine, {**machine, "Alive": False}])
    assert room({"CPU": 0.2}) == 5
    assert room({"CPU": 0.2, "GPU": 0.1}) == 3
    assert room({"CPU": 0.3}) == 3


def test_a_lost_head_is_noticed_however_short_the_lease_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("lastarm.runners.ray.cluster.monotonic", lambda: clock.now)
    watch = ClusterWatch(patience=0.5)

    def look_again_and_again() -> None:
        for _ in range(5):
            clock.now += 1.0
            watch.look()

    with socket.create_server(("127.0.0.1", 0)) as there:
        watch._addresses = [there.getsockname()]
        look_again_and_again()
    with pytest.raises(ClusterLost):
        look_again_and_again()


def test_nothing_listens_beyond_loopback() -> None:
    listening: set[str] = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            try:
                connections = process.net_connections(kind="inet")
            except psutil.AccessDenied:  # it has ended, or is a browser's that locks itself in
                command = " ".join(process.cmdline())
                assert "/ray/" not in command
                assert "ray::" not in command
                continue
            listening |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    assert listening
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def _waited(runner: Runner, number: int) -> list[Told]:
    results: list[Told] = []

    def all_are_there() -> bool:
        results.extend(runner.wait(0.2))
        return len(results) >= number

    eventually(all_are_there)
    return sorted(results, key=lambda told: told.pull.arm)


def _references() -> int:
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


class Pooling(Drifting):
    """Trains with a pool, whose function is one of an importable module."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        with multiprocessing.Pool(1) as pool:
            # If Ray's handler were in force there, the pool could wait for its end for ever.
            assert pool.apply(signal.getsignal, [signal.SIGTERM]) is signal.SIG_DFL
        return super().train(state, pulls)


def test_a_pool_works_in_a_pull() -> None:
    found = partial(search, space=LIMITS, policy=UniformAllocation(2, 2))
    assert found(Pooling(), runner=TWO).digest == found(Drifting()).digest
