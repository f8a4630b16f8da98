"""The processes runner: pulls on worker processes of this machine.

States stay with the worker that trained them, and go to others through the checkpoints' folder;
they never pass through the coordinator. Workers are started afresh, not forked, and get the
trainer by cloudpickle. So a trainer from a notebook, or from a script without a guard, works.

Tasks go to a worker by its standard input and reports come by its standard output, as pickles with
their lengths before them; what a trainer prints goes to standard error. The trainer is in a file
without a name, which the system removes with the last process that has it open.

A worker does not outlive its coordinator, not even while it loads the trainer. Where the system
offers it, it is killed at once. On any system a thread notices that the pipe has closed, and if
foreign code lets no thread run, there is the guard, which also ends what the worker has started.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import IO, Any, NamedTuple, NoReturn

from lastarm.arguments import time_limit, whole_number
from lastarm.checkpoints import StateFolder
from lastarm.errors import CheckpointNotWritten, WorkersNotStarted
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.runners.asides import Asides
from lastarm.runners.performer import Performer, Task
from lastarm.runners.protocol import Arms
from lastarm.runners.remote import Report, load_trainer, pickled_trainer, sendable
from lastarm.runners.states import States
from lastarm.runners.turns import Turns, failed
from lastarm.system.offspring import CLEANS_UP, Guard, ThisProcess
from lastarm.system.temporary import Scratch, needing_room, persistently

MOST_FALSE_STARTS = 3
STARTING = 60.0  # seconds that a worker may take to start, where pulls have a limit of time
_LENGTH = struct.Struct("<Q")


class Processes:
    """Performs pulls on `workers` worker processes of this machine.

    - `arms`: the arms of the search
    - `workers`: how many processes there are, each of which performs one pull at a time
    - `pull_seconds`: how long a pull may take. One that takes longer is a failure of its arm, and
      its worker is replaced
    - `worker_memory`: how many bytes a worker may use. One that uses more is replaced once its
      pull is done. By default, an even share of nine tenths of the machine's memory

    If a worker dies, it is replaced, and its pull comes back as a failure whose worker was `lost`.
    From the third attempt on the pull runs while no other does, so that an arm is blamed only if
    it brings its worker down by itself.

    Where each state has to be synced, workers only write them. They are synced here, and a loss
    comes back when its state is. The worker goes on meanwhile, unless it is the only one: its next
    pull is one that the policy could ask for without that loss. A crash in these few milliseconds
    costs a worker two pulls, the one that it has just done and the one just begun.
    """

    def __init__(
        self,
        arms: Arms,
        *,
        workers: int = 2,
        pull_seconds: float | None = None,
        worker_memory: int | None = None,
    ) -> None:
        self._number = whole_number("workers", workers, 1, "how many pulls can be under way")
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._arms = arms
        self._worker_memory = worker_memory or _share_of_memory(workers)
        self._messages: Messages = queue.SimpleQueue()
        self.asides = Asides()
        self._unsent: list[Told] = []  # failures of arms whose configs cannot be sent
        # arm → the worker that has its state in memory, and the level it is at
        self._home: dict[int, tuple[WorkerProcess, int]] = {}
        self.turns: Turns[str] = Turns(
            home=lambda arm: self._home[arm][0].name if arm in self._home else None,
            # Not one that has just died: a suspect would be blamed for it.
            slots=lambda: {name: 1 for name, worker in self._workers.items() if worker.alive},
            under_way=lambda: [(n, w.task) for n, w in self._workers.items() if w.task],
            only_home=lambda task: self._home[task.pull.arm][1] > task.saved_level,
            switch_seconds=arms.switch_seconds,
            restarts=arms.restarts,
        )
        self._false_starts = 0
        self._error: Exception | None = None
        self._scratch = Scratch()
        try:
            self._trainer = TrainerFile(pickled_trainer(arms.trainer), self._scratch.path)
        except BaseException:
            self._scratch.close()
            raise
        self._syncing: Syncing | None = None
        if arms.folder and arms.folder.sync:
            self._syncing = Syncing(arms.folder, self._messages)
        self._unsynced = 0  # losses whose states are not synced yet
        self._workers: dict[str, WorkerProcess] = {}
        for number in range(workers):
            self._add_worker(f"process {number}")

    @property
    def free(self) -> int:
        """How many workers are idle, as long as the disk keeps up with them."""
        return max(0, min(self.turns.free, self._number - self._unsynced))

    def worker_of(self, pull: Pull, attempt: int) -> str:
        """The worker that the pull would be started on now, or "" if that is not known yet."""
        return self.turns.expected(self._arms.task(pull, attempt)) or ""

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin the pull on the worker that `turns` names, now or when that has room."""
        task = sendable(self._arms.task(pull, attempt))
        if isinstance(task, Failure):
            self._unsent.append(task)
        else:
            self.turns.start(task)
            self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back: all of it, so that the journal is synced once for many losses."""
        if self._error:
            raise self._error
        deadline = min(worker.since + self._limit for worker in self._workers.values())
        results, self._unsent = self._unsent, []
        try:
            patience = 0.0 if results else max(0.0, min(seconds, deadline - monotonic()))
            results += self._take(*self._messages.get(timeout=patience))
            while True:
                results += self._take(*self._messages.get_nowait())
        except queue.Empty:
            results += self._give_up_the_late()
        except Exception as error:
            if not results:
                raise
            self._error = error  # for the next time, so that these results count
        self._dispatch()
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint; a state that cannot be pickled stays away."""
        return self._arms.index.load(pull) if self._arms.index else None

    def close(self) -> None:
        """End all workers and delete what they left."""
        for worker in self._workers.values():
            if worker.task:
                worker.kill()
        for worker in self._workers.values():
            worker.close()
        if self._syncing:
            self._syncing.close()
        self._trainer.close()
        self._scratch.close()

    def _dispatch(self) -> None:
        for task, worker in self.turns.begin():
            self._workers[worker].begin(task)

    def _take(
        self, worker: WorkerProcess | None, message: Message | Loss | BaseException
    ) -> list[Told]:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, Loss):
            self._unsynced -= 1
            return [message]
        if worker is None or self._workers[worker.name] is not worker:
            return []  # it was replaced before
        match message:
            case Ready(resident):
                self._false_starts = 0
                worker.ready, worker.at_first = True, resident
                worker.since = monotonic() if worker.task else math.inf
                return []
            case Report():
                return self._take_report(worker, message)
            case Broken(CheckpointNotWritten() as error):
                raise error
            case Broken(reason):
                raise WorkersNotStarted("a worker could not load the trainer", str(reason))
            case None:
                return self._bury(worker)

    def _take_report(self, worker: WorkerProcess, report: Report) -> list[Told]:
        told = report.told
        self.asides.take(told, report.aside)
        worker.task, worker.since = None, math.inf
        self._home.pop(told.pull.arm, None)
        for arm in report.let_go:
            if arm in self._home and self._home[arm][0] is worker:
                del self._home[arm]
        if report.level:  # also of an arm that failed when it was looked at
            self._home[told.pull.arm] = worker, report.level
        # A worker that needs as much to begin with would be no better if it were started again.
        if report.resident > max(self._worker_memory, 2 * worker.at_first):
            self._replace(worker)
        if self._syncing and isinstance(told, Loss) and told.saved:
            self._unsynced += 1
            self._syncing.add(told)
            return []
        return [told]

    def _bury(self, worker: WorkerProcess) -> list[Told]:
        """Replace a worker that has died; its pull was lost."""
        end, task = worker.end(), worker.task
        level = self._level(worker, task) if task else 0
        self._false_starts += not worker.ready
        if self._false_starts == MOST_FALSE_STARTS:
            what = f"{MOST_FALSE_STARTS} workers in a row ended while they started"
            raise WorkersNotStarted(what, end)
        self._replace(worker)
        if task is None:
            return []
        return [failed(task, worker.name, f"its worker died ({end})", level=level, lost=True)]

    def _give_up_the_late(self) -> list[Told]:
        results: list[Told] = []
        for worker in list(self._workers.values()):
            if not worker.ready and monotonic() >= worker.born + max(STARTING, self._limit):
                results += self._bury(worker)
            elif worker.task and monotonic() >= worker.since + self._limit:
                why = f"no result within {self._limit:g} s, so its worker was stopped"
                level = self._level(worker, worker.task)
                results.append(failed(worker.task, worker.name, why, level=level))
                worker.kill()
                self._replace(worker)
        return results

    def _level(self, worker: WorkerProcess, task: Task) -> int:
        """How far the arm had come when the task began, or where it would be if it had not."""
        if not worker.ready:
            return task.pull.upto
        home, level = self._home.get(task.pull.arm, (None, 0))
        return max(level if home is worker else 0, task.saved_level)

    def _replace(self, worker: WorkerProcess) -> None:
        """Start another worker in its place; what only it had is trained again."""
        threading.Thread(target=worker.close, daemon=True).start()
        self._add_worker(worker.name)
        self._home = {arm: home for arm, home in self._home.items() if home[0] is not worker}

    def _add_worker(self, name: str) -> None:
        folder = self._arms.folder
        setup = Setup(
            coordinator=os.getpid(),
            worker=name,
            trainer=self._trainer.place,
            scratch=self._scratch.path,
            states=folder.path if folder else None,
            durable=bool(folder and folder.durable),
            memory=self._arms.memory // self._number,
        )
        self._workers[name] = WorkerProcess(setup, self._messages)


class TrainerFile:
    """The trainer as a file for workers to load, also for those that replace others later.

    It may contain the training data. So it has no name that would stay behind, or that an arm
    could remove: workers inherit its descriptor. Only on Windows does it have a name, in `folder`.
    """

    def __init__(self, pickled: bytes, folder: Path) -> None:
        path = folder / "trainer"
        with needing_room(folder.parent), ExitStack() as failing:
            self._file = failing.enter_context(path.open("x+b"))
            if os.name == "posix":
                path.unlink()
            self._file.write(pickled)
            self._file.flush()
            failing.pop_all()

    @property
    def place(self) -> int | Path:
        """What a worker opens: the descriptor, or a path."""
        return self._file.fileno() if os.name == "posix" else Path(self._file.name)

    def close(self) -> None:
        """Remove it."""
        self._file.close()


class Syncing:
    """A thread that syncs states while the workers that wrote them go on.

    It takes losses whose states are written, and puts each among the messages when its state is
    synced. What comes in while it waits for the disk is synced together. An error goes among the
    messages as well, to be raised where these are read.
    """

    def __init__(self, folder: StateFolder, messages: Messages) -> None:
        self._folder, self._messages = folder, messages
        self._written: queue.SimpleQueue[Loss] = queue.SimpleQueue()
        self._thread = ThreadPoolExecutor(1)

    def add(self, loss: Loss) -> None:
        """Take a loss whose state is written."""
        self._written.put(loss)
        self._thread.submit(self._sync)

    def close(self) -> None:
        """Finish what is under way, and nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _sync(self) -> None:
        group = [self._written.get() for _ in range(self._written.qsize())]
        if not group:
            return  # it was synced with the one before
        try:
            self._folder.settle(loss.pull for loss in group)
        except BaseException as error:
            self._messages.put((None, error))
        else:
            for loss in group:
                self._messages.put((None, loss))


def _share_of_memory(workers: int) -> float:
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # the system does not say how much there is
        return math.inf
    with suppress(OSError, ValueError):  # a container may have less
        machine = min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return 0.9 * machine / workers


class Setup(NamedTuple):
    """What a worker is told first."""

    coordinator: int
    worker: str
    trainer: int | Path  # the file of the trainer, by its descriptor or its path
    scratch: Path  # for temporary files, which the coordinator deletes in the end
    states: Path | None
    durable: bool
    memory: int


class Ready(NamedTuple):
    """The trainer is loaded; how many bytes the worker uses."""

    resident: int


class Broken(NamedTuple):
    """The worker cannot go on, and no arm is the cause."""

    error: CheckpointNotWritten | str


Message = Ready | Report | Broken | None  # None: the process has ended, or sends nonsense


class WorkerProcess:
    """A worker process, as its coordinator sees it.

    What comes from it goes into the queue `messages`, with the worker itself.
    """

    def __init__(self, setup: Setup, messages: Messages) -> None:
        self.name = setup.worker
        self.born = monotonic()
        self.ready = False
        self.at_first = 0  # bytes that it used then
        self.task: Task | None = None
        self.since = math.inf  # when it began with its task, by the monotonic clock
        # Not by PYTHONPATH: programs that a trainer starts get the user's own environment.
        path = [entry or os.getcwd() for entry in sys.path]
        command = f"import sys; sys.path[:] = {path}; from {__name__} import main; main()"
        self._guard = Guard(leads=False) if os.name == "posix" else None
        with ExitStack() as failing:
            if self._guard:
                failing.enter_context(self._guard)
            self._process = subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # so that Ctrl-C at the terminal does not reach it
                pass_fds=[setup.trainer] if isinstance(setup.trainer, int) else [],
            )
            failing.pop_all()
        if self._guard:  # it waits for its setup, so it has started nothing yet
            self._guard.watch(self._process.pid)
        self._messages = messages
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        threading.Thread(target=self._await_the_end, daemon=True).start()
        self._send(setup)

    def begin(self, task: Task) -> None:
        """Give it a task."""
        self.task = task
        self.since = monotonic() if self.ready else math.inf
        self._send(task)

    @property
    def alive(self) -> bool:
        """Whether its process has not ended, as far as is known."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it now, with all that it has started."""
        if os.name == "posix":
            end_session(self._process.pid)
        self._process.kill()

    def close(self) -> None:
        """End it: let it finish if it is idle, kill it if it is not."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self.task else 1)
        self.kill()
        self._process.wait()
        if self._guard:
            self._guard.close()

    def end(self) -> str:
        """How it ended; a process that sends nonsense is killed first."""
        if self._process.poll() is None:
            self.kill()
        code = self._process.wait()
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal, which has no name
            return f"killed by signal {-code}"

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        with suppress(OSError):  # it is dead, and the thread that listens says so
            send(self._process.stdin.fileno(), pickle.dumps(message, protocol=5))

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as pipe, suppress(Exception):  # at its end, or at nonsense
            while True:
                self._messages.put((self, receive(pipe)))
        self._messages.put((self, None))

    def _await_the_end(self) -> None:
        """Report its end also while a child that it forked keeps the pipe open."""
        self._process.wait()
        self._listener.join(1.0)
        self._messages.put((self, None))


# With the worker comes its message; with None, a loss whose state is synced now, or an error.
Messages = queue.SimpleQueue[
    tuple[WorkerProcess, Message] | tuple[None, Loss] | tuple[None, BaseException]
]


def send(pipe: int, message: bytes) -> None:
    """Write a pickle with its length before it.

    Not by way of a buffer: what the other side does not take any more would be written once again
    when this process ends, and Python would complain.
    """
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def receive(pipe: IO[bytes]) -> Any:
    """The next message; EOFError when there will be no more."""
    length = pipe.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(length)
    message = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return pickle.loads(message)


def end_session(leader: int) -> None:
    """Kill every process of the session that `leader` leads, the leader last.

    So also those that were put into process groups of their own are ended. Those that clean up
    after the others end by themselves.
    """
    spared = False
    for member in _members(leader):
        if member not in (leader, os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                if _cleans_up(member):
                    spared = True
                else:
                    os.kill(member, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        (os.kill if spared else os.killpg)(leader, signal.SIGKILL)


def _cleans_up(process: int) -> bool:
    try:
        return CLEANS_UP.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def _members(leader: int) -> list[int]:
    """The processes of a session; only its leader where the system does not list them."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # After the name, in brackets: its state, parent, group, session.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[3]) == leader:
                members.append(int(stat.parent.name))
    return members or [leader]


# In the worker ---------------------------------------------------------------------------------


def main() -> None:
    """Perform tasks until the coordinator closes the pipe or dies."""
    _die_with_the_coordinator()
    tasks_in = os.fdopen(os.dup(0), "rb")
    reports = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator

    try:
        setup: Setup = receive(tasks_in)
    except EOFError:  # the coordinator was killed meanwhile
        return
    if os.name == "posix" and os.getppid() != setup.coordinator:  # or even before
        return
    tempfile.tempdir = str(setup.scratch)
    busy = threading.Event()
    busy.set()  # with the trainer: loading one may take minutes
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    threading.Thread(target=_take_in, args=(tasks_in, tasks, busy), daemon=True).start()
    try:
        with ThisProcess():
            performer, states = _performer(setup)
    except BaseException:
        _answer(reports, Broken(traceback.format_exc()))
        return
    looked, resident = monotonic(), _resident()
    busy.clear()
    _answer(reports, Ready(resident))

    while task := tasks.get():
        busy.set()
        try:
            told = _performed(task, performer, setup)
            if monotonic() > looked + 0.1:  # asking takes time, too
                looked, resident = monotonic(), _resident()
            held = states.held(told.pull.arm)
            let_go = tuple(states.let_go)
            message: Report | Broken = Report(
                told,
                held.level if held else 0,
                let_go=let_go,
                resident=resident,
                aside=performer.aside.sendable(),
            )
        except CheckpointNotWritten as error:
            message = Broken(error)
        busy.clear()
        _answer(reports, message)
    performer.let_go()


def _performed(task: Task, performer: Performer, setup: Setup) -> Told:
    """What became of a pull, also if arms remove the folder for temporary files."""
    mark = setup.scratch / f"whole-{setup.worker}"  # also that of the one before
    persistently(mark.touch, setup.scratch)
    told = performer.perform(task, setup.worker)
    if isinstance(told, Failure) and not mark.exists():
        # Another arm may have removed it. So it is tried again, as if its worker had died.
        return told._replace(lost=True)
    return told


def _answer(reports: int, message: Message) -> None:
    try:
        send(reports, pickle.dumps(message))
    except OSError:  # the coordinator is dead
        _end_at_once()


def _end_at_once() -> NoReturn:
    """End this process, with all that it has started."""
    if os.name == "posix":
        end_session(os.getpid())
    os._exit(1)


def _performer(setup: Setup) -> tuple[Performer, States]:
    with (
        open(setup.trainer, "rb") as file,
        # Workers share the descriptor, and with it the place at which they would read.
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pickled,
    ):
        trainer, script = load_trainer(pickled)
    script.keep()
    folder = None
    if setup.states:
        folder = StateFolder(setup.states, trainer, durable=setup.durable)
    states = States(folder, trainer, memory=setup.memory, always=True)
    return Performer(trainer, states, apart=True), states


def _take_in(
    tasks_in: IO[bytes], tasks: queue.SimpleQueue[Task | None], busy: threading.Event
) -> None:
    """Take tasks in; when the pipe closes, an idle worker finishes and a busy one ends at once."""
    try:
        while True:
            tasks.put(receive(tasks_in))
    except (EOFError, OSError):
        tasks.put(None)
        while not busy.wait(0.1):
            pass
    except BaseException:  # nonsense: end, so that the coordinator does not wait for an answer
        traceback.print_exc()
    _end_at_once()


def _die_with_the_coordinator() -> None:
    """Where the system offers it, be killed when the coordinator dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
