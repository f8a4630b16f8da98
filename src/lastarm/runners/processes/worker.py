"""A worker process: what runs in it, and how the coordinator talks to it.

The worker loads the trainer once, then performs pulls until its coordinator is gone. Tasks come in
by standard input and reports go out by standard output, as pickles with their lengths before them;
what a trainer prints goes to standard error. The coordinator's end of the pipe is the worker's
lifeline: when it closes, the worker ends.
"""

from __future__ import annotations

import ctypes
import math
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
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import IO, Any, NamedTuple

from lastarm.checkpoints import StateFolder
from lastarm.errors import CheckpointNotWritten
from lastarm.events import Loss
from lastarm.runners.performer import Performer, Task
from lastarm.runners.remote import Report, load_trainer
from lastarm.runners.states import States

_LENGTH = struct.Struct("<Q")


class Setup(NamedTuple):
    """What a worker is told first."""

    coordinator: int
    worker: str
    trainer: Path  # where it was written
    scratch: Path  # for temporary files, which the coordinator deletes in the end
    states: Path | None
    durable: bool
    memory: int


class Ready(NamedTuple):
    """The trainer is loaded; the worker's process id, and how many bytes it uses."""

    pid: int
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
        self.pid = 0  # as the process itself sees it, once it is ready
        self.at_first = 0  # bytes that it used then
        self.task: Task | None = None
        self.since = math.inf  # when it began with its task, by the monotonic clock
        # Not by PYTHONPATH: programs that a trainer starts get the user's own environment.
        path = [entry or os.getcwd() for entry in sys.path]
        command = f"import sys; sys.path[:] = {path}; from {__name__} import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that Ctrl-C at the terminal does not reach it
        )
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
            send(self._process.stdin, pickle.dumps(message, protocol=5))

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


# With the worker comes its message; with None, a loss whose state is durable now, or an error.
Messages = queue.SimpleQueue[
    tuple[WorkerProcess, Message] | tuple[None, Loss] | tuple[None, BaseException]
]


def send(pipe: IO[bytes], message: bytes) -> None:
    """Write a pickle with its length before it."""
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()


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

    So also those that were put into process groups of their own are ended.
    """
    for member in _members(leader):
        if member not in (leader, os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


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
    tasks_in = os.fdopen(os.dup(0), "rb")
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator

    try:
        setup: Setup = receive(tasks_in)
    except EOFError:  # the coordinator was killed meanwhile
        return
    if os.name == "posix" and os.getppid() != setup.coordinator:
        return
    tempfile.tempdir = str(setup.scratch)
    busy = threading.Event()
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    threading.Thread(target=_take_in, args=(tasks_in, tasks, busy), daemon=True).start()
    try:
        performer, states = _performer(setup)
    except BaseException:
        send(reports, pickle.dumps(Broken(traceback.format_exc())))
        return
    looked, resident = monotonic(), _resident()
    send(reports, pickle.dumps(Ready(os.getpid(), resident)))

    with suppress(BrokenPipeError):
        while task := tasks.get():
            busy.set()
            try:
                told = performer.perform(task, setup.worker)
                if monotonic() > looked + 0.1:  # asking takes time, too
                    looked, resident = monotonic(), _resident()
                held = states.held(told.pull.arm)
                let_go = tuple(states.let_go)
                message: Report | Broken = Report(
                    told, held.level if held else 0, let_go=let_go, resident=resident
                )
            except CheckpointNotWritten as error:
                message = Broken(error)
            busy.clear()
            send(reports, pickle.dumps(message))


def _performer(setup: Setup) -> tuple[Performer, States]:
    trainer, script = load_trainer(setup.trainer.read_bytes())
    script.keep()
    if not getattr(trainer, "starts_processes", False):  # which would stay behind
        _die_with_the_coordinator()
    folder = None
    if setup.states:
        folder = StateFolder(setup.states, trainer, durable=setup.durable, only_writes=True)
    states = States(folder, memory=setup.memory, always=True)
    return Performer(trainer, states), states


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
    if os.name == "posix":
        end_session(os.getpid())
    os._exit(1)


def _die_with_the_coordinator() -> None:
    """Where the system offers it, be killed when the coordinator dies.

    The thread that takes tasks in does the same, but not while foreign code keeps it from running.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
