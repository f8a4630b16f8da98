"""Dask: a real cluster of worker processes, and the answer of the serial runner."""

import asyncio
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, secede

from lastarm import (
    ASHA,
    Checkpoints,
    Configs,
    SuccessiveHalving,
    Uniform,
    UniformAllocation,
    search,
)
from lastarm.errors import (
    AllArmsFailed,
    ClusterLost,
    FolderNotSeen,
    TrainerChanged,
    WorkersNotStarted,
)
from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.runners import Arms
from lastarm.runners.dask import Dask
from lastarm.runners.performer import Task
from lastarm.runners.remote import sendable
from lastarm.runners.states import size_of
from lastarm.testing import runner_checks
from lastarm.testing.runners import CheckRunner, Drifting
from lastarm.testing.runners import Rooted as OnlyThere
from lastarm.trainers import Config
from lastarm.trainers.reporting.loops import THREAD
from tests.boosted_arms import KINDS, KillsAWorker, boosted
from tests.eventually import eventually
from tests.refusals import refused, warned
from tests.test_causes import raised_there
from tests.test_raised import METHODS, failures
from tests.test_reporting import SPACE, wandering, without_states

LOOPBACK = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        # A local cluster does without a worker that is away so long after one that was lost.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(n_workers=2, threads_per_worker=1, **LOOPBACK) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def both(client: Client) -> Client:
    """The client once all workers are there, whatever a test before has done to them."""
    for _ in range(600):
        if len(client.nthreads()) == 2:
            return client
        time.sleep(0.1)
    raise AssertionError("the workers have not come back")


@pytest.mark.parametrize("check", runner_checks(seeds=2), ids=lambda check: check.__name__)
def test_the_laws_of_runners(both: Client, check: CheckRunner) -> None:
    check(partial(Dask, client=both))


class Slow(Drifting):
    """Takes its time, and notes every step that it makes."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        for _ in range(pulls):
            time.sleep(0.002)
            state = super().train(state, 1)
            with self.notes.open("a") as file:
                file.write(".")
        return state


LIMITS = Configs([{"limit": k / 20} for k in range(12)])
HALVING = SuccessiveHalving(12, 480)


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


class At:
    """Does something at the nth event."""

    def __init__(self, nth: int, deed: Any) -> None:
        self.left, self.deed = nth, deed
        self.failures: list[Failure] = []

    def __call__(self, event: Event) -> None:
        self.left -= 1
        if self.left == 0:
            self.deed()
        if isinstance(event, Failure):
            self.failures.append(event)


def test_a_client_is_a_runner_and_every_step_is_booked(both: Client, tmp_path: Path) -> None:
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    notes = tmp_path / "dask"
    found = search(Slow(notes), LIMITS, policy=HALVING, runner=both)
    assert found.digest == serial.digest
    assert found.test_loss == serial.test_loss
    assert found.spent.pulls == len(notes.read_text())
    assert found.spent.repeated == 0
    assert found.state is not None
    for _ in range(100):  # Dask releases what nobody holds in its own time
        left = both.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {left}")


@pytest.mark.parametrize("journal", [False, True], ids=["in memory", "with checkpoints"])
def test_a_worker_that_is_killed_changes_nothing(
    both: Client, tmp_path: Path, journal: bool
) -> None:
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    notes, killed = tmp_path / "notes", At(40, lambda: os.kill(pids(both)[0], signal.SIGKILL))
    call: dict[str, Any] = {
        "policy": HALVING,
        "journal": tmp_path / "journal" if journal else None,
    }
    found = search(Slow(notes), LIMITS, runner=both, on_event=killed, **call)
    assert found.digest == serial.digest
    assert killed.left < 0
    assert found.failures.keys() == serial.failures.keys()
    assert found.spent.pulls <= len(notes.read_text()) <= found.spent.pulls + found.spent.repeated
    if journal:
        assert search(Slow(notes), LIMITS, **call).digest == serial.digest


@pytest.mark.parametrize("kind", KINDS)
def test_live_boosters_have_the_digest_of_serial_also_after_a_kill(
    both: Client, kind: str
) -> None:
    for draws, kills in ((False, None), (True, KillsAWorker())):
        found = boosted(kind, draws=draws)(runner=both, on_event=kills)
        assert found.digest == boosted(kind, draws=draws)().digest
        assert kills is None or kills.killed


def test_a_frozen_worker_is_given_up_after_the_lease_and_its_thaw_changes_nothing(
    both: Client, tmp_path: Path
) -> None:
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    frozen = pids(both)[0]
    freeze = At(20, lambda: os.kill(frozen, signal.SIGSTOP))
    try:
        found = search(
            Slow(tmp_path / "notes"),
            LIMITS,
            policy=HALVING,
            runner=partial(Dask, client=both, lease=2.0),
            on_event=freeze,
        )
    finally:
        with suppress(ProcessLookupError):  # its nanny has replaced it
            os.kill(frozen, signal.SIGCONT)
    assert found.digest == serial.digest
    assert {failure.lost for failure in freeze.failures} == {True}


class Poisonous(Slow):
    """One arm ends its process, another takes for ever."""

    def loss(self, state: list[Any]) -> float:
        if state[1] > 50:
            os._exit(3)
        if state[1] > 40:
            time.sleep(3600)
        return super().loss(state)

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        return state if state[1] > 10 else super().train(state, pulls)


def test_an_arm_that_kills_its_workers_is_blamed_and_no_other(
    both: Client, tmp_path: Path
) -> None:
    limits = [{"limit": k / 20} for k in range(5)]
    serial = search(Slow(tmp_path / "serial"), Configs(limits), policy=SuccessiveHalving(5, 60))
    poisoned = search(
        Poisonous(tmp_path / "notes"),
        Configs([*limits, {"limit": 60.0}]),
        policy=SuccessiveHalving(6, 72),
        runner=both,
    )
    assert poisoned.failures.keys() == {5}
    assert "running alone" in poisoned.failures[5].error
    assert poisoned.arm == serial.arm


def test_a_pull_that_takes_too_long_is_a_failure(both: Client, tmp_path: Path) -> None:
    found = search(
        Poisonous(tmp_path / "notes"),
        Configs([{"limit": k / 20} for k in range(3)] + [{"limit": 45.0}]),
        policy=SuccessiveHalving(4, 32),
        runner=both,
        pull_seconds=2.0,
    )
    assert found.failures.keys() == {3}
    assert "no result within 2 s" in found.failures[3].error


def test_a_generator_stays_with_its_worker(both: Client) -> None:
    def shrinking(config: Config) -> Iterator[float]:
        x = 1.0
        while True:
            x *= config["factor"]
            yield x

    space, policy = {"factor": Uniform(0.1, 0.9)}, SuccessiveHalving(9, 120)
    serial = search(shrinking, space, policy=policy)
    found = search(shrinking, space, policy=policy, runner=both)
    assert found.digest == serial.digest
    assert found.spent.repeated == 0


def threads_of_loops(client: Client) -> int:
    """How many there are on all workers."""

    def here() -> int:
        gc.collect()
        return sum(thread.name == THREAD for thread in threading.enumerate())

    return sum(client.run(here).values())


@pytest.mark.parametrize("function", [wandering, without_states])
def test_loops_that_report_have_the_digest_of_serial_and_leave_no_thread(
    both: Client, function: Any
) -> None:
    found = partial(search, function, SPACE, policy=SuccessiveHalving(16, 320))
    # In a process of its own: after other test files, this one gave another digest. Why is open.
    serial = found(runner="processes", workers=1)
    result = found(runner=both)
    assert result.digest == serial.digest
    assert result.spent.repeated == 0
    assert found(runner=both, checkpoints=Checkpoints(alive=2)).digest == serial.digest
    eventually(lambda: not threads_of_loops(both))


class Heavy:
    """A megabyte that every pull changes in place."""

    def start(self, config: Config, seed: int) -> Any:
        return np.full(2**17, config["x"])

    def train(self, state: Any, pulls: int) -> Any:
        for _ in range(pulls):
            state *= 0.9
        return state

    def loss(self, state: Any) -> float:
        return float(state.sum())


def test_states_that_change_in_place_move_between_workers(both: Client) -> None:
    space, policy = {"x": Uniform(0.1, 0.9)}, SuccessiveHalving(16, 200)
    serial = search(Heavy(), space, policy=policy)
    found = search(Heavy(), space, policy=policy, runner=both)
    assert found.digest == serial.digest
    assert found.spent.repeated == 0
    assert (found.state == serial.state).all()


def test_asha_replays_what_was_journalled(both: Client, tmp_path: Path) -> None:
    call: dict[str, Any] = {
        "policy": ASHA(arms=30, budget=120, max_pulls=9),
        "journal": tmp_path / "journal",
    }
    found = search(Heavy(), {"x": Uniform(0.1, 0.9)}, runner=both, **call)
    assert search(Heavy(), {"x": Uniform(0.1, 0.9)}, **call).digest == found.digest


def test_resources_bound_what_is_under_way(tmp_path: Path) -> None:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=5, resources={"GPU": 1}, **LOOPBACK
        ) as cluster,
        Client(cluster) as client,
    ):
        serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
        runner = partial(Dask, client=client, resources={"GPU": 1})
        found = search(Slow(tmp_path / "notes"), LIMITS, policy=HALVING, runner=runner)
        assert found.digest == serial.digest
        assert found.utilisation is not None
        assert found.utilisation.workers == 1
        threads = search(Slow(tmp_path / "more"), LIMITS, policy=HALVING, runner=client)
        assert threads.digest == serial.digest
        with closing(Dask(Arms(Heavy(), []), client=client, resources={"GPU": 0.2})) as fifths:
            assert fifths.free == 5


class Scratching(Heavy):
    """Uses itself as scratch space, as a trainer with buffers does, and takes long to load."""

    def __init__(self) -> None:
        self.scratch = np.empty(1000)

    def __setstate__(self, state: dict[str, Any]) -> None:
        time.sleep(1.5)
        self.__dict__.update(state)

    def train(self, state: Any, pulls: int) -> Any:
        for _ in range(pulls):
            np.multiply(state[:1000], 0.1, out=self.scratch)
            time.sleep(0.001)
            state[:1000] -= self.scratch
        return state


def test_threads_do_not_share_a_trainer_and_loading_it_is_no_part_of_a_pull() -> None:
    space, policy = {"x": Uniform(0.1, 0.9)}, SuccessiveHalving(12, 120)
    serial = search(Scratching(), space, policy=policy)
    with (
        LocalCluster(n_workers=1, threads_per_worker=3, **LOOPBACK) as cluster,
        Client(cluster) as client,
    ):
        found = search(Scratching(), space, policy=policy, runner=client, pull_seconds=1.0)
    assert found.digest == serial.digest
    assert not found.failures


class NotLoaded(Heavy):
    """Cannot be loaded by a worker."""

    def __setstate__(self, state: Any) -> None:
        raise ModuleNotFoundError("No module named 'of_yours'")

    def __getstate__(self) -> Any:
        return {"something": 1}


def test_a_trainer_that_workers_cannot_load_is_nobodys_failure(
    both: Client, tmp_path: Path
) -> None:
    with pytest.raises(WorkersNotStarted) as broken:
        search(
            NotLoaded(),
            {"x": Uniform(0.1, 0.9)},
            policy=HALVING,
            runner=both,
            journal=tmp_path / "journal",
        )
    assert "of_yours" in broken.value.details
    again = search(Heavy(), {"x": Uniform(0.1, 0.9)}, policy=HALVING)
    assert again.complete


def test_a_folder_that_workers_do_not_see_is_said_and_done_without(
    both: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "states"
    monkeypatch.setattr("lastarm.runners.dask.runner.Kit.of", _in_another_folder(Path(os.devnull)))
    call: dict[str, Any] = {
        "policy": HALVING,
        "journal": tmp_path / "journal",
        "checkpoints": Checkpoints(seen),
    }
    with warned(FolderNotSeen, path=Path(os.devnull) / "nowhere"):
        found = search(Slow(tmp_path / "notes"), LIMITS, runner=both, **call)
    assert found.digest == search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING).digest


def _in_another_folder(folder: Path) -> Any:
    of = Dask.__init__.__globals__["Kit"].of
    return staticmethod(lambda arms: of(arms)._replace(folder=folder / "nowhere"))


def test_without_its_scheduler_the_search_ends_and_is_finished_elsewhere(tmp_path: Path) -> None:
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **LOOPBACK)
    call: dict[str, Any] = {"policy": HALVING, "journal": tmp_path / "journal"}
    with Client(cluster) as client, pytest.raises(ClusterLost):
        search(
            Slow(tmp_path / "notes"),
            LIMITS,
            runner=client,
            on_event=At(30, cluster.close),
            **call,
        )
    assert search(Slow(tmp_path / "notes"), LIMITS, **call).digest == serial.digest


def test_an_interrupt_that_an_arm_raises_is_its_failure(both: Client, tmp_path: Path) -> None:
    told = failures(partial(Dask, client=both), tmp_path / "j.jsonl", "interrupt")
    assert told == ["KeyboardInterrupt: its own"] * len(METHODS)


def test_all_arms_failing_is_one_error(both: Client) -> None:
    with pytest.raises(AllArmsFailed) as failed:
        search(Drifting(), Configs([{"limit": NotSent()}]), policy=HALVING_OF_ONE, runner=both)
    assert "TypeError: not this one" in failed.value.causes[0]


def test_the_first_cause_has_its_line_number(both: Client) -> None:
    raised_there(runner=both)


class NotSent:
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not this one")


HALVING_OF_ONE = SuccessiveHalving(1, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease": 0},
        {"lease": "x"},
        {"pull_seconds": -1},
        {"resources": {"GPU": 0}},
        {"resources": {"GPU": -1}},
        {"resources": {"GPU": "x"}},
        {"resources": "GPU"},
    ],
)
def test_arguments_that_are_not_valid(both: Client, wrong: dict[str, Any]) -> None:
    with refused(*next(iter(wrong.items()))):
        search(Heavy(), LIMITS, policy=HALVING, runner=partial(Dask, client=both, **wrong))
    with refused("workers", 1):
        search(Heavy(), LIMITS, policy=HALVING, runner=both, workers=1)
    with refused("client", "tcp://x"):
        search(Heavy(), LIMITS, policy=HALVING, runner=partial(Dask, client="tcp://x"))
    with refused("client", both.cluster):
        search(Heavy(), LIMITS, policy=HALVING, runner=both.cluster)


def test_results_name_their_workers(both: Client) -> None:
    losses: list[Event] = []
    search(
        Heavy(),
        {"x": Uniform(0.1, 0.9)},
        policy=SuccessiveHalving(16, 200),
        runner=both,
        on_event=losses.append,
    )
    assert len({loss.work.worker for loss in losses if isinstance(loss, Loss)}) == 2


def test_a_connection_that_was_lost_for_a_moment_costs_no_arm(tmp_path: Path) -> None:
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    call: dict[str, Any] = {"policy": HALVING, "journal": tmp_path / "journal"}
    with (
        # Of its own: now and then Dask's scheduler does not get over a client that is gone.
        LocalCluster(processes=False, protocol="tcp", n_workers=2, **LOOPBACK) as cluster,
        Client(cluster, set_as_default=False) as client,
        Client(cluster, set_as_default=False) as another,
    ):
        lost = client.scheduler_comm
        cut = At(30, lambda: client.loop.add_callback(lost.comm.abort))
        with pytest.raises(ClusterLost):
            search(Slow(tmp_path / "notes"), LIMITS, runner=client, on_event=cut, **call)
        again = another  # now and then a client of Dask does not find back, either
        for _ in range(100):
            if client.status == "running" and client.scheduler_comm is not lost:
                again = client
                break
            time.sleep(0.1)
        found = search(Slow(tmp_path / "notes"), LIMITS, runner=again, on_event=cut, **call)
    assert found.digest == serial.digest
    assert not any(failure.lost for failure in cut.failures)


class Seceding(Heavy):
    """Leaves its thread to others, as trainers do that use Dask themselves."""

    def train(self, state: Any, pulls: int) -> Any:
        secede()
        time.sleep(0.05)  # until that is known
        return super().train(state, pulls)


def test_a_trainer_may_use_dask_itself(both: Client) -> None:
    space, policy = {"x": Uniform(0.1, 0.9)}, SuccessiveHalving(4, 16)
    found = search(Seceding(), space, policy=policy, runner=both, seconds=60)
    assert found.digest == search(Heavy(), space, policy=policy).digest


class Rooted:
    """Its states cannot be pickled; a step takes as long as the config says."""

    def start(self, config: Config, seed: int) -> list[Any]:
        return [config["seconds"], 0, threading.Lock()]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        time.sleep(state[0] * pulls)
        return [state[0], state[1] + pulls, state[2]]

    def loss(self, state: list[Any]) -> float:
        return float(1 / (1 + state[1]))


def brought(runner: Dask, number: int = 1) -> list[Told]:
    told: list[Told] = []
    while len(told) < number:
        told += runner.wait(1.0)
    return told


def test_a_suspect_is_alone_also_where_the_state_of_another_arm_is(both: Client) -> None:
    arms = Arms(Rooted(), [{"seconds": seconds} for seconds in (0.4, 0.0, 0.0)])
    with closing(Dask(arms, client=both)) as runner:
        at: set[str] = set()
        for arm in (0, 1):
            runner.start(Pull(arm, 1), 1)
            at |= {told.work.worker for told in brought(runner)}
        assert len(at) == 1
        runner.start(Pull(0, 2), 3)
        runner.start(Pull(1, 2), 1)
        assert [flight.task.pull.arm for flight in runner._flights.values()] == [0]
        assert runner.free  # on the other worker
        runner.start(Pull(2, 1), 1)
        told = {result.pull.arm: result for result in brought(runner, 3)}
    assert list(told) == [2, 0, 1]
    assert [told[arm].work.trained for arm in (0, 1)] == [1, 1]
    assert {told[arm].work.worker for arm in (0, 1)} == at


def test_nothing_of_a_search_stays_with_the_client(
    both: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Dask]] = []
    delayed: list[float] = []

    def runner(arms: Arms) -> Dask:
        dask_runner = Dask(arms, client=both)
        made.append(weakref.ref(dask_runner))
        return dask_runner

    def at_once(seconds: float, deed: Any, *given: Any) -> None:
        delayed.append(seconds)
        deed(*given)

    monkeypatch.setattr(both.loop, "call_later", at_once)
    before = set(both._event_handlers)
    search(Heavy(), {"x": Uniform(0.1, 0.9)}, policy=SuccessiveHalving(4, 16), runner=runner)
    gc.collect()
    assert made[0]() is None
    assert delayed
    assert set(both._event_handlers) <= before


def test_workers_that_nobody_could_restart_are_refused_where_pulls_have_a_limit() -> None:
    space, policy = {"x": Uniform(0.1, 0.9)}, SuccessiveHalving(4, 16)
    with (
        LocalCluster(processes=False, protocol="tcp", n_workers=1, **LOOPBACK) as cluster,
        Client(cluster) as bare,
    ):
        with refused("pull_seconds"):
            search(Heavy(), space, policy=policy, runner=bare, pull_seconds=1.0)
        found = search(Heavy(), space, policy=policy, runner=bare)
    assert found.digest == search(Heavy(), space, policy=policy).digest


async def _no_answer(*_: Any, **__: Any) -> None:
    await asyncio.sleep(3600)


async def _not_installed(*_: Any, **__: Any) -> None:
    raise ModuleNotFoundError("No module named 'lastarm'")


@pytest.mark.parametrize(
    ("answer", "kind"), [(_no_answer, ClusterLost), (_not_installed, WorkersNotStarted)]
)
def test_a_scheduler_that_is_frozen_or_without_lastarm_holds_up_nobody(
    both: Client, monkeypatch: pytest.MonkeyPatch, answer: Any, kind: type[Exception]
) -> None:
    for constant in ("cluster.ANSWER", "cluster.PATIENCE", "runner.ANSWER"):
        monkeypatch.setattr(f"lastarm.runners.dask.{constant}", 0.2)
    monkeypatch.setattr(both, "_run_on_scheduler", answer)
    with pytest.raises(kind):
        search(Heavy(), LIMITS, policy=HALVING, runner=partial(Dask, client=both, lease=0.5))


def test_states_that_are_on_the_disk_take_no_more_memory_than_is_said(
    both: Client, tmp_path: Path
) -> None:
    made: list[Dask] = []
    most = 0

    def runner(arms: Arms) -> Dask:
        made.append(Dask(arms, client=both))
        return made[-1]

    def look(_: Event) -> None:
        nonlocal most
        most = max(most, len(made[0]._homes._homes))

    space, policy = {"x": Uniform(0.1, 0.9)}, SuccessiveHalving(16, 200)
    found = search(
        Heavy(),
        space,
        policy=policy,
        runner=runner,
        journal=tmp_path / "journal",
        checkpoints=Checkpoints(memory=3 * 2**20),
        on_event=look,
    )
    assert found.digest == search(Heavy(), space, policy=policy).digest
    assert found.spent.repeated == 0
    assert most == 2  # of a little more than a megabyte


class Planted(Slow, OnlyThere):
    """Says how large its states are; their copies are of no use."""

    def size(self, state: list[Any]) -> int:
        return 1000


@pytest.mark.parametrize("journal", [False, True], ids=["in memory", "with checkpoints"])
def test_states_whose_copies_do_not_continue_take_no_more_memory_than_is_said(
    both: Client, tmp_path: Path, journal: bool
) -> None:
    serial = search(Drifting(), LIMITS, policy=HALVING)
    made: list[Dask] = []
    most = [0, 0]

    def runner(arms: Arms) -> Dask:
        made.append(Dask(arms, client=both))
        return made[-1]

    def look(_: Event) -> None:
        most[len(made) - 1] = max(most[len(made) - 1], len(made[-1]._homes._homes))

    # Of 12 arms, the 6 that go on are kept; then, fewer than go on.
    for case, memory in enumerate((6_500, 2_500)):
        notes = tmp_path / f"notes {case}"
        found = search(
            Planted(notes),
            LIMITS,
            policy=HALVING,
            runner=runner,
            journal=tmp_path / f"journal {case}" if journal else None,
            checkpoints=Checkpoints(memory=memory),
            on_event=look,
        )
        assert found.digest == serial.digest
        assert len(notes.read_text()) == found.spent.pulls + found.spent.repeated
        assert (found.spent.repeated > 0) == (case == 1)
    assert most == [6, 2]


def test_what_a_worker_told_before_it_was_gone_counts(
    both: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Dask(Arms(Rooted(), [{"seconds": 0.2}]), client=both)) as runner:

        def survey() -> None:
            while runner._messages.empty():
                time.sleep(0.01)
            runner._workers.known = {}

        runner.start(Pull(0, 1), 1)
        monkeypatch.setattr(runner._workers, "survey", survey)
        runner._workers._surveyed = 0.0
        assert [type(told) for told in brought(runner)] == [Loss]


class Saving(Rooted):
    """Writes its states in its own way."""

    def save(self, state: list[Any], path: Path) -> None:
        path.write_text(f"{state[0]} {state[1]}")

    def load(self, path: Path) -> list[Any]:
        seconds, steps = path.read_text().split()
        return [float(seconds), int(steps), threading.Lock()]


def test_a_state_that_only_its_trainer_can_write_is_not_bound_to_its_worker(
    both: Client, tmp_path: Path
) -> None:
    class Found(NotSent):
        """Can be pickled by value only."""

        __reduce__ = object.__reduce__

    assert size_of([Found(), np.zeros(1000)]) > 8000
    assert size_of([np.zeros(1000), threading.Lock()]) == 0
    space = Configs([{"seconds": arm / 2000} for arm in range(12)])
    left = tmp_path / "journal.states" / f"lastarm-{'0' * 32}"  # of a search that was killed
    left.parent.mkdir()
    left.touch()
    call: dict[str, Any] = {"policy": SuccessiveHalving(12, 96), "journal": tmp_path / "journal"}
    found = search(Saving(), space, runner=both, **call)
    assert found.spent.repeated == 0
    assert found.digest == search(Saving(), space, policy=call["policy"]).digest
    assert not list(left.parent.glob("lastarm-*"))


class Fatal(Slow):
    """Ends its process once, where the file is."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        if self.notes.exists():
            self.notes.unlink()
            os._exit(3)
        return Drifting.train(self, state, pulls)


def test_a_state_is_not_lost_with_the_worker_that_it_was_sent_to(
    both: Client, tmp_path: Path
) -> None:
    trainer = Fatal(tmp_path / "fatal")
    with closing(Dask(Arms(trainer, [{"limit": 0.0}]), client=both)) as runner:
        runner.start(Pull(0, 3), 1)
        home = brought(runner)[0].work.worker
        other = next(worker for worker in runner._workers.known if worker != home)
        trainer.notes.touch()
        task = sendable(runner._arms.task(Pull(0, 5), 1))
        assert isinstance(task, Task)
        runner._submit(task, other)
        lost = brought(runner)[0]
        assert isinstance(lost, Failure)
        assert lost.lost
        runner.start(Pull(0, 5), 2)
        assert brought(runner)[0].work.trained == 2


def test_a_state_that_a_pull_has_changed_is_not_gone_on_from_again(both: Client) -> None:
    arms = Arms(Drifting(), [{"limit": 0.0}])
    values: list[Any] = []
    for changed in (True, False):
        with closing(Dask(arms, client=both)) as runner:
            runner.start(Pull(0, 3), 1)
            brought(runner)
            if changed:
                home = runner._homes._homes[0]
                runner.start(Pull(0, 5), 1)
                brought(runner)
                runner._homes.put(0, home)
                assert pickle.loads(pickle.dumps(home.state.result())).taken
            runner.start(Pull(0, 6), 1)
            told = brought(runner)[0]
            assert isinstance(told, Loss)
            assert told.work.trained == (6 if changed else 3)
            values.append(told.value)
    assert values[0] == values[1]


SCRIPT = """
class State:
    def __init__(self, x):
        self.x = x

class Trainer:
    def start(self, config, seed):
        return State(config["x"])

    def train(self, state, pulls):
        copied = pickle.loads(pickle.dumps(state))  # by reference, as programs do
        assert type(state) is type(copied) is State
        return State(copied.x / 2**pulls)

    def loss(self, state):
        return state.x
"""


@pytest.mark.parametrize("saved", [True, False])
def test_scripts_whose_classes_have_the_same_names_do_not_meet(
    both: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: bool
) -> None:
    scripts: list[dict[str, Any]] = [{"__name__": "__main__", "pickle": pickle} for _ in range(2)]

    def run(number: int, on_event: Any = None) -> Any:
        exec(SCRIPT, script := scripts[number])
        with monkeypatch.context() as patch:
            for name in ("State", "Trainer"):
                patch.setattr(sys.modules["__main__"], name, script[name], raising=False)
            found = search(
                script["Trainer"](),
                {"x": Uniform(0.1, 0.9)},
                policy=SuccessiveHalving(8, 48),
                runner=both,
                journal=tmp_path / f"{number}.jsonl" if saved else None,
                checkpoints=Checkpoints(memory=0) if saved else True,
                on_event=on_event,
            )
            assert found.failures == {}
            assert type(found.state) is script["State"]
            return found.digest

    first = run(0, At(24, lambda: run(1)))
    assert first == run(1)
    left = both.run(lambda: {"State", "Trainer"} & vars(sys.modules["__main__"]).keys())
    assert set().union(*left.values()) == set()


INTERRUPTED = """
import signal, sys, time
from distributed import Client, LocalCluster
from lastarm import Configs, SuccessiveHalving, search
from lastarm.testing.runners import Drifting

signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow(Drifting):
    def train(self, state, pulls):
        time.sleep(0.1)
        return super().train(state, pulls)

if __name__ == "__main__":
    arms = Configs([{"limit": k / 20} for k in range(12)])
    kind = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, **kind) as cluster, Client(cluster) as c:
        halving = SuccessiveHalving(12, 480)
        found = search(Slow(), arms, policy=halving, runner=c, journal=sys.argv[1])
    print(found.stopped_by, found.complete, found.arm)
"""


def test_ctrl_c_ends_in_good_order(tmp_path: Path) -> None:
    script, journal = tmp_path / "interrupted.py", tmp_path / "journal"
    script.write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, str(script), str(journal)], stdout=subprocess.PIPE, text=True
    ) as child:
        for _ in range(1200):
            begun = journal.exists() and journal.read_bytes().count(b'"loss"') > 4
            if begun or child.poll() is not None:
                break
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    stopped_by, complete, arm = said.split()
    assert (child.returncode, int(stopped_by), complete) == (0, signal.SIGINT, "False")
    assert arm != "None"
    serial = search(Slow(tmp_path / "serial"), LIMITS, policy=HALVING)
    with pytest.warns(TrainerChanged):  # the script has a class of its own
        found = search(Slow(tmp_path / "notes"), LIMITS, policy=HALVING, journal=journal)
    assert found.digest == serial.digest
    assert found.spent.repeated == 0


class Pooling(Drifting):
    """Trains with a pool, whose function is one of an importable module."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        with multiprocessing.Pool(1) as pool:
            assert pool.map(abs, [-1]) == [1]
        return super().train(state, pulls)


def test_where_workers_may_not_have_children_the_arms_error_names_the_setting(
    both: Client,
) -> None:
    policy = UniformAllocation(2, 2)
    with pytest.raises(AllArmsFailed) as failed:
        search(Pooling(), LIMITS, policy=policy, runner=both)
    assert all("distributed.worker.daemon" in cause for cause in failed.value.causes.values())
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(n_workers=1, threads_per_worker=1, **LOOPBACK) as cluster,
        Client(cluster) as client,
    ):
        found = search(Pooling(), LIMITS, policy=policy, runner=client)
    assert found.digest == search(Drifting(), LIMITS, policy=policy).digest
