"""Worker processes: the answer of serial, whatever happens to the workers."""

import errno
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import pytest

from faults.processes import children as running_children
from lastarm import ASHA, Configs, Processes, Result, SuccessiveHalving, UniformAllocation, search
from lastarm.checkpoints import Checkpoints, StateFolder
from lastarm.errors import (
    AllArmsFailed,
    CheckpointNotWritten,
    WorkersNotStarted,
)
from lastarm.events import Event, Loss, Pull, Started, Told
from lastarm.journal import read
from lastarm.runners import Arms
from lastarm.runners.processes import STARTING, Setup, TrainerFile, send
from lastarm.runners.remote import load_trainer, pickled_trainer
from lastarm.testing import runner_checks
from lastarm.testing.runners import CheckRunner, Drifting
from lastarm.trainers import Config
from tests.eventually import eventually
from tests.refusals import refused

LIMITS = Configs([{"limit": k / 10} for k in range(16)])
LOSSES = Configs([{"loss": float(k)} for k in range(16)])
HALVING = SuccessiveHalving(16, 320)


@pytest.mark.parametrize("check", runner_checks(seeds=1), ids=lambda check: check.__name__)
def test_the_laws_of_runners(check: CheckRunner) -> None:
    check(partial(Processes, workers=2))


@pytest.mark.parametrize("seed", range(6))
def test_two_workers_give_the_digest_of_serial(seed: int) -> None:
    configs = Configs([{"limit": (k * 7 + seed) % 16 / 10} for k in range(16)])
    found = partial(search, Drifting(), configs, policy=HALVING, seed=seed)
    assert found(workers=2).digest == found().digest


class Ill:
    """An arm does what its config's `does` says, once it has had `after` pulls."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def start(self, config: Config, seed: int) -> list[Any]:
        return [config, 0]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        config, level = state
        if level + pulls > config.get("after", 0):
            match config.get("does"):
                case "raise":
                    raise RuntimeError("boom")
                case "exit":
                    sys.exit(0)
                case "vanish":
                    os._exit(0)
                case "die":
                    os.kill(os.getpid(), signal.SIGKILL)
                case int(number):
                    os.kill(os.getpid(), number)
                case "hang":
                    time.sleep(600)
                case "die once":
                    assert self.folder
                    mark = self.folder / f"{config['loss']}-{level}"
                    if not mark.exists():
                        mark.touch()
                        os.kill(os.getpid(), signal.SIGKILL)
        return [config, level + pulls]

    def loss(self, state: list[Any]) -> Any:
        does = state[0].get("does")
        return {"nan": math.nan, "string": "low"}.get(does, state[0]["loss"])


def test_bad_arms_of_every_kind_are_survived_and_told(tmp_path: Path) -> None:
    kinds = ["raise", "exit", "vanish", "die", "hang", "nan", "string"]
    configs = [{"loss": 0.0, "does": kind} for kind in kinds]
    configs += [{"loss": 1.0 + k} for k in range(9)]
    result = search(
        Ill(),
        Configs(configs),
        policy=HALVING,
        workers=2,
        pull_seconds=2,
        journal=tmp_path / "j.jsonl",
    )
    assert result.complete
    assert result.config == {"loss": 1.0}
    errors = {kinds[arm]: failure.error for arm, failure in result.failures.items()}
    assert errors == {
        "raise": "RuntimeError: boom",
        "exit": "SystemExit: 0",
        "vanish": "its worker died (exit code 0), running alone",
        "die": "its worker died (killed by SIGKILL), running alone",
        "hang": "no result within 2 s, so its worker was stopped",
        "string": "BadLoss: the loss 'low' is a str, not a real number",
    }
    assert math.isnan(result.curves[5][0][1])
    starts = [event.arm for event in read(tmp_path / "j.jsonl") if isinstance(event, Pull)]
    assert [starts.count(arm) for arm in range(5)] == [1, 1, 3, 3, 1]


@pytest.mark.parametrize("checkpoints", [True, False])
def test_the_line_of_a_pull_says_which_worker_performs_it(
    tmp_path: Path, checkpoints: bool
) -> None:
    journal = tmp_path / "j.jsonl"
    search(Drifting(), LIMITS, policy=HALVING, workers=2, journal=journal, checkpoints=checkpoints)
    said = {event: event.worker for event in read(journal) if isinstance(event, Started)}
    assert said == {
        event.pull: event.work.worker for event in read(journal) if isinstance(event, Told)
    }


def test_all_arms_taking_their_workers_down_is_one_error_that_lists_the_causes(
    tmp_path: Path,
) -> None:
    configs = Configs([{"loss": 0.0, "does": "die"}] * 3)
    with pytest.raises(AllArmsFailed) as failed:
        search(Ill(), configs, policy=UniformAllocation(3, 3), workers=2, journal=tmp_path / "j")
    assert set(failed.value.causes) == {0, 1, 2}
    assert all("SIGKILL" in cause for cause in failed.value.causes.values())
    assert len(read(tmp_path / "j")) == 1 + 3 * 3 * 2


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="real-time signals are of Linux")
def test_a_worker_that_a_signal_without_a_name_killed_is_its_arms_failure() -> None:
    configs = Configs([{"loss": 0.0, "does": 40}, {"loss": 1.0}])
    result = search(Ill(), configs, policy=UniformAllocation(2, 2), workers=2)
    assert result.arm == 1
    assert "signal 40" in result.failures[0].error


def test_a_suspect_runs_alone_before_it_is_blamed(tmp_path: Path) -> None:
    log = tmp_path / "log"

    class Logged(Ill):
        def train(self, state: list[Any], pulls: int) -> list[Any]:
            def note(what: str) -> None:
                with log.open("a") as file:
                    file.write(f"{what} {state[0]['arm']}\n")

            note("begin")
            time.sleep(0.02)
            trained = super().train(state, pulls)
            note("end")
            return trained

    configs: list[dict[str, Any]] = [{"loss": float(k), "arm": k} for k in range(20)]
    configs[0]["does"] = "die"
    search(Logged(), Configs(configs), policy=UniformAllocation(20, 20), workers=2)
    lines = [line.split() for line in log.read_text().splitlines()]
    last = [n for n, line in enumerate(lines) if line == ["begin", "0"]][-1]
    under_way: set[str] = set()
    for what, arm in lines[: last + 1]:
        under_way = under_way | {arm} if what == "begin" else under_way - {arm}
    assert under_way == {"0"}, "all others had ended"
    assert len(lines) == last + 1 or lines[last + 1][0] == "begin"


def test_a_death_is_noticed_while_a_forked_child_lives(tmp_path: Path) -> None:
    class Forking(Ill):
        def train(self, state: list[Any], pulls: int) -> list[Any]:
            if state[0].get("does") == "die" and os.fork() == 0:
                time.sleep(600)  # with the pipe to the coordinator open
                (tmp_path / "ended by itself").touch()
                os._exit(0)
            return super().train(state, pulls)

    configs = Configs([{"loss": 0.0, "does": "die"}, {"loss": 1.0}])
    result = search(Forking(), configs, policy=UniformAllocation(2, 2), workers=2)
    assert result.arm == 1
    assert "its worker died" in result.failures[0].error
    assert not list(tmp_path.iterdir())


class Odd:
    """Can be sent, and cannot be loaded."""

    def __reduce__(self) -> Any:
        return exec, ("raise LookupError('not on this side')",)


def test_a_config_that_cannot_be_sent_or_loaded_is_its_arms_failure() -> None:
    configs = Configs([{"x": Odd()}, {"x": threading.Lock()}, {"x": 1}])

    def generator(config: dict[str, Any]) -> Iterator[float]:
        while True:
            yield 0.5

    result = search(generator, configs, policy=UniformAllocation(3, 3), workers=2)
    assert result.arm == 2
    assert "LookupError: not on this side" in result.failures[0].error
    assert "cannot be sent to a worker: TypeError" in result.failures[1].error


def test_a_checkpoint_that_a_worker_cannot_write_stops_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointNotWritten) as stopped:
        search(
            Drifting(),
            LIMITS,
            policy=HALVING,
            workers=2,
            journal=tmp_path / "j.jsonl",
            checkpoints=tmp_path / "file" / "states",
        )
    assert stopped.value.path.name.startswith("arm-")
    result = search(Drifting(), LIMITS, policy=HALVING, journal=tmp_path / "j.jsonl")
    assert result.digest == search(Drifting(), LIMITS, policy=HALVING).digest


def test_a_loss_counts_when_its_state_has_its_name(tmp_path: Path) -> None:
    states: list[bool] = []

    def look(event: Event) -> None:
        if isinstance(event, Loss) and event.saved:
            at = tmp_path / "j.jsonl.states" / f"arm-{event.pull.arm}-at-{event.pull.upto}.state"
            states.append(sha256(at.read_bytes()).hexdigest() == event.saved.digest)

    journal = tmp_path / "j.jsonl"
    result = search(Ill(), LOSSES, policy=HALVING, workers=2, journal=journal, on_event=look)
    assert len(states) == result.spent.observations
    assert all(states)
    assert not list(tmp_path.glob("*.states/*.new"))


class SecondIsLate(Ill):
    """The second arm waits for a file, so that it does not come back together with the first."""

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        assert self.folder
        while state[0]["loss"] == 1 and not (self.folder / "go").exists():
            time.sleep(0.01)
        return super().train(state, pulls)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_goes_on_while_its_state_is_synced_unless_it_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    begun, went_on = threading.Semaphore(0), list[bool]()
    settle = StateFolder.settle

    def waiting_settle(self: StateFolder, written: Any) -> None:
        if not went_on:
            patience = 30 if workers > 1 else 0.5
            one_more = [begun.acquire(timeout=patience) for _ in range(workers + 1)]
            went_on.append(all(one_more))
        settle(self, written)

    monkeypatch.setattr(StateFolder, "settle", waiting_settle)

    def watch(event: Event) -> None:
        if isinstance(event, Pull):
            begun.release()
            if event.arm == workers:
                (tmp_path / "go").touch()

    trainer = SecondIsLate(tmp_path)
    runner = partial(Processes, workers=workers)
    policy = UniformAllocation(16, 32)
    journal = tmp_path / "j.jsonl"
    result = search(
        trainer,
        LOSSES,
        policy=policy,
        runner=runner,
        journal=journal,
        checkpoints=Checkpoints(sync=True),
        on_event=watch,
    )
    assert result.digest == search(trainer, LOSSES, policy=policy).digest
    assert went_on == [workers > 1]
    if workers == 1:
        assert [type(event) for event in read(journal)[1:-1]] == [Started, Loss] * 16


def test_all_results_that_are_there_come_back_together() -> None:
    arms = Arms(Ill(), [{"loss": 0.0}, {"loss": 1.0}])
    with closing(Processes(arms, workers=2)) as runner:
        while not all(worker.ready for worker in runner._workers.values()):
            assert runner.wait(0.1) == []
        for arm in (0, 1):
            runner.start(Pull(arm, 1), 1)
        while runner._messages.qsize() < 2:
            time.sleep(0.01)
        assert sorted(told.pull.arm for told in runner.wait(60)) == [0, 1]


def test_a_result_comes_back_before_the_error_that_came_after_it(tmp_path: Path) -> None:
    arms = Arms(Ill(), [{"loss": 0.0}])
    with closing(Processes(arms, workers=1)) as runner:
        runner.start(Pull(0, 1), 1)
        while runner._messages.qsize() < 2:  # that it is ready, and the report
            time.sleep(0.01)
        runner._messages.put((None, CheckpointNotWritten(tmp_path, OSError())))
        assert [told.pull.arm for told in runner.wait(60)] == [0]
        with pytest.raises(CheckpointNotWritten):
            runner.wait(60)


def test_one_worker_is_asked_for_what_serial_is_also_by_a_policy_that_never_waits(
    tmp_path: Path,
) -> None:
    def asked(runner: Any) -> list[Pull]:
        journal = tmp_path / f"{runner}.jsonl"
        policy = ASHA(16, 200, max_pulls=27)
        search(Drifting(), LIMITS, policy=policy, runner=runner, workers=1, journal=journal)
        return [event for event in read(journal) if isinstance(event, Pull)]

    assert asked("processes") == asked("serial")


@pytest.mark.parametrize("nth", [0, 7, 29])
def test_a_disk_that_cannot_sync_a_state_stops_the_search_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    syncs = iter(range(100))

    def failing_sync(path: Path) -> None:
        if next(syncs) >= nth:
            raise OSError(errno.EIO, "the disk is broken")

    counted: list[Event] = []
    journal = tmp_path / "j.jsonl"
    kept = Checkpoints(sync=True)
    found = partial(
        search, Ill(), LOSSES, policy=HALVING, workers=2, journal=journal, checkpoints=kept
    )
    with monkeypatch.context() as patch:
        patch.setattr("lastarm.checkpoints.folder.sync_file", failing_sync)
        with pytest.raises(CheckpointNotWritten) as stopped:
            found(on_event=counted.append)
    assert stopped.value.path.name.startswith("arm-")
    losses = [event for event in counted if isinstance(event, Loss)]
    assert len(losses) <= nth
    result = found()
    assert result.digest == search(Ill(), LOSSES, policy=HALVING).digest
    done = [event.pull for event in read(journal) if isinstance(event, Loss)]
    assert len(done) == len(set(done)) == result.spent.observations
    assert done[: len(losses)] == [loss.pull for loss in losses]


def test_a_worker_that_dies_is_replaced_and_only_its_pull_is_done_again(tmp_path: Path) -> None:
    configs = Configs([{"loss": float(k), "does": "die once"} for k in range(8)])
    found = partial(search, policy=SuccessiveHalving(8, 96), recommend="latest")
    result = found(Ill(tmp_path), configs, workers=2)
    assert result.digest == found(Ill(), Configs([{"loss": float(k)} for k in range(8)])).digest
    assert result.failures == {}
    assert result.spent.repeated == result.spent.pulls == 96, "each pull was done twice"


def test_killed_workers_change_nothing_and_leave_nothing_behind(tmp_path: Path) -> None:
    def slowly(config: dict[str, Any]) -> Iterator[float]:
        while True:
            time.sleep(0.005)
            yield config["limit"]

    children: set[int] = set()
    others = running_children()  # such as what an engine has left running for this whole process

    def kill_some(event: Event) -> None:
        own = sorted(running_children() - others)
        children.update(own)
        if isinstance(event, Loss) and event.pull.arm % 5 == 0 and own:
            os.kill(own[0], signal.SIGKILL)

    found = partial(search, slowly, LIMITS, policy=HALVING)
    result = found(workers=2, on_event=kill_some)
    assert result.digest == found().digest
    assert len(children) > 3
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_workers_end_when_their_coordinator_is_killed(
    tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        "import time, os\n"
        "from lastarm import UniformAllocation, search\n"
        "def hang(config):\n"
        "    os.write(2, b'%d\\n' % os.getpid())\n"
        "    time.sleep(600)\n"
        "    yield 0.5\n"
        "search(hang, {'x': [1, 2]}, policy=UniformAllocation(2, 2), workers=2)\n"
    )
    with subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True) as search_:
        assert search_.stderr
        workers = [int(search_.stderr.readline()) for _ in range(2)]
        search_.kill()
    eventually(lambda: not any(map(alive, workers)))


@pytest.mark.parametrize("holds_all", [False, True], ids=["sleeping", "lets no thread run"])
def test_workers_end_when_their_coordinator_is_killed_while_they_load(
    tmp_path: Path, alive: Callable[[int], bool], holds_all: bool
) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        "import ctypes, os, time, warnings\n"
        "from lastarm import UniformAllocation, search\n"
        "class Slow:\n"
        "    def __setstate__(self, state):\n"
        "        warnings.simplefilter('ignore')\n"  # of forking beside a thread, since 3.12
        "        os.fork()\n"
        "        os.write(2, b'%d\\n' % os.getpid())\n"  # in one piece
        f"        sleep = ctypes.PyDLL(None).sleep if {holds_all} else time.sleep\n"
        "        sleep(600)\n"
        "    def start(self, config, seed):\n"
        "        pass\n"
        "    train = loss = start\n"
        "slow = Slow()\n"
        "slow.data = b'the training data'\n"
        "search(slow, {'x': [1, 2]}, policy=UniformAllocation(2, 2), workers=2)\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as search_:
        assert search_.stderr
        # Each worker, and a child of each.
        workers = {int(search_.stderr.readline()) for _ in range(4)}
        files = [path for path in tmp_path.rglob("*") if path.is_file() and path != script]
        search_.kill()
        eventually(lambda: not any(map(alive, workers)))
        assert not search_.stderr.read(), "on the way"
    assert all(b"the training data" not in file.read_bytes() for file in files)


def test_a_worker_whose_coordinator_takes_no_answer_ends_in_silence(tmp_path: Path) -> None:
    with closing(TrainerFile(pickled_trainer(Drifting()), tmp_path)) as trainer:
        assert isinstance(trainer.place, int)
        setup = Setup(os.getpid(), "it", trainer.place, tmp_path, None, durable=False, memory=0)
        worker = subprocess.Popen(
            [sys.executable, "-c", f"from {Setup.__module__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[trainer.place],
            start_new_session=True,
        )
        assert worker.stdin
        assert worker.stdout
        worker.stdout.close()
        send(worker.stdin.fileno(), pickle.dumps(setup))
        assert worker.wait(120) != 0
        _, said = worker.communicate()
    assert said == b""


def test_a_trainer_of_a_script_works_and_its_states_are_of_the_scripts_own_classes(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from dataclasses import dataclass\n"
        "from lastarm import SuccessiveHalving, Uniform, search\n"
        "@dataclass\n"
        "class State:\n"
        "    x: float\n"
        "class Trainer:\n"
        "    def start(self, config, seed):\n"
        "        return State(config['x'])\n"
        "    def train(self, state, pulls):\n"
        "        assert type(state) is State\n"
        "        return State(state.x / 2**pulls)\n"
        "    def loss(self, state):\n"
        "        return state.x\n"
        "policy = SuccessiveHalving(8, 96)\n"
        "for journal in ('j.jsonl', 'j.jsonl', None):\n"
        "    result = search(Trainer(), {'x': Uniform(0, 1)}, policy=policy, workers=2,\n"
        "                    journal=journal)\n"
        "    assert type(result.state) is State\n"
        "    print(result.digest)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert len({digest for run in runs for digest in run.stdout.split()}) == 1


def test_sending_a_trainer_registers_nothing_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("nowhere_to_be_found")
    exec("class Trainer: pass", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    before = cloudpickle.list_registry_pickle_by_value()
    pickled = pickled_trainer(module.Trainer())
    assert cloudpickle.list_registry_pickle_by_value() == before
    monkeypatch.delitem(sys.modules, module.__name__)
    trainer, _ = load_trainer(pickled)
    assert type(trainer).__name__ == "Trainer"


def test_states_that_cannot_leave_their_worker_stay_with_it() -> None:
    def generator(config: dict[str, Any]) -> Iterator[float]:
        loss = config["limit"]
        while True:
            loss *= 0.9
            yield loss

    found = partial(search, generator, LIMITS, policy=HALVING)
    result = found(workers=2)
    assert result.digest == found().digest
    assert result.spent.repeated == 0


def test_a_worker_that_uses_too_much_memory_is_replaced_between_pulls(tmp_path: Path) -> None:
    workers: set[int] = set()

    def watch(event: Event) -> None:
        workers.update(running_children())

    class Leaking(Drifting):
        def start(self, config: Config, seed: int) -> list[Any]:
            vars(sys).setdefault("leaked", []).append(bytearray(b"x" * 2**26))
            time.sleep(0.12)  # how much is in use is looked at every tenth of a second
            return super().start(config, seed)

    runner = partial(Processes, workers=2, worker_memory=2**27)
    result = search(Leaking(), LIMITS, policy=HALVING, runner=runner, on_event=watch)
    assert result.digest == search(Drifting(), LIMITS, policy=HALVING).digest
    assert len(workers) > 6
    assert result.spent.repeated == 0


def test_asha_replays_what_was_journalled(tmp_path: Path) -> None:
    policy = ASHA(16, 200, max_pulls=27)
    found = partial(
        search, Drifting(), LIMITS, policy=policy, workers=2, journal=tmp_path / "j.jsonl"
    )
    first = found()
    assert found().digest == first.digest


def test_what_cannot_be_sent_or_loaded_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    class Holding(Drifting):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    holding = Holding()
    with refused("trainer", holding):
        search(holding, LIMITS, policy=HALVING, workers=2)

    class Unloadable(Drifting):
        def __reduce__(self) -> Any:
            return exec, ("raise RuntimeError('not here')",)

    with pytest.raises(WorkersNotStarted) as broken:
        search(Unloadable(), LIMITS, policy=HALVING, workers=2)

    assert "not here" in broken.value.details

    class Deadly(Drifting):
        def __reduce__(self) -> Any:
            return exec, ("import os; os._exit(3)",)

    with pytest.raises(WorkersNotStarted) as broken:
        search(Deadly(), LIMITS, policy=HALVING, workers=2)
    assert broken.value.details == "exit code 3"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2, "pull_seconds": 0}, "pull_seconds"),
        ({"runner": "serial", "pull_seconds": 1}, "pull_seconds"),
        ({"runner": "serial", "workers": 2}, "workers"),
        ({"runner": "threads"}, "runner"),
        ({"runner": np.array([1, 2])}, "runner"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": math.nan}, "seconds"),
    ],
)
def test_arguments_that_are_not_valid(arguments: dict[str, Any], named: str) -> None:
    with refused(named, arguments[named]):
        search(Drifting(), LIMITS, policy=HALVING, **arguments)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_time_limit_ends_with_the_recommendation_so_far_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    hours = itertools.count(-3)  # with the fifth loss, an hour has passed
    now = [0.0]
    monkeypatch.setattr("lastarm.signals.monotonic", lambda: now[0])

    def watch(event: Event) -> None:
        if isinstance(event, Loss):
            now[0] = max(0, next(hours)) and 3600.0

    def found(seconds: float | None) -> Result:
        return search(
            Drifting(),
            LIMITS,
            policy=HALVING,
            workers=workers,
            seconds=seconds,
            journal=tmp_path / "j.jsonl",
            on_event=watch,
        )

    stopped = found(seconds=3600)
    assert not stopped.complete
    assert stopped.stopped_by == "seconds"
    assert "Stopped before the end. Run the same again, with the journal" in str(stopped)
    assert stopped.arm is not None
    assert found(seconds=None).complete


def test_a_second_ctrl_c_ends_workers_at_once(
    tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        "import time, os\n"
        "from lastarm import UniformAllocation, search, signals\n"
        "signals.GRACE = 3600.0\n"  # so long would what is in flight be waited for
        "def hang(config):\n"
        "    os.write(2, b'%d\\n' % os.getpid())\n"
        "    time.sleep(600)\n"
        "    yield 0.5\n"
        "search(hang, {'x': [1, 2]}, policy=UniformAllocation(2, 2), workers=2)\n"
    )
    with subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True) as search_:
        assert search_.stderr
        workers = [int(search_.stderr.readline()) for _ in range(2)]

        def ends() -> bool:
            search_.send_signal(signal.SIGINT)  # two that come at the same time count as one
            with suppress(subprocess.TimeoutExpired):
                search_.wait(0.5)
            return search_.returncode is not None

        assert not ends()
        eventually(ends)
        assert search_.returncode == -signal.SIGINT
    assert not any(map(alive, workers))


def test_a_worker_that_freezes_while_it_starts_is_given_up() -> None:
    frozen: list[int] = []

    class Frozen(Processes):
        """Its first worker is frozen at once."""

        def _add_worker(self, name: str) -> None:
            super()._add_worker(name)
            if not frozen:
                worker = self._workers[name]
                worker.born -= STARTING  # so it takes too long from now on
                frozen.append(worker._process.pid)
                os.kill(frozen[0], signal.SIGSTOP)

    limits = Configs([{"limit": k / 10} for k in range(4)])
    policy = UniformAllocation(4, 8)
    found = search(
        Drifting(), limits, policy=policy, runner=partial(Frozen, workers=2, pull_seconds=STARTING)
    )
    assert found.digest == search(Drifting(), limits, policy=policy).digest
