"""A worker process: loads the trainer once, then performs pulls until its coordinator is gone.

Tasks come in by standard input and results go out by standard output, as pickles with their
lengths before them; what a trainer prints goes to standard error. The coordinator's end of the
pipe is the worker's lifeline: when it closes, the worker ends.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import struct
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import IO, Any, NamedTuple

from lastarm.checkpoints import Folder
from lastarm.errors import CheckpointNotWritten
from lastarm.events import Told
from lastarm.runners.performer import Performer
from lastarm.runners.processes.sessions import end_session
from lastarm.runners.remote import Order, obeyed
from lastarm.runners.sending import read_trainer
from lastarm.runners.states import States

_LENGTH = struct.Struct("<Q")


class Setup(NamedTuple):
    """What a worker is told first."""

    coordinator: int
    worker: str
    trainer: Path  # where it was written
    scratch: Path  # where temporary files go, so that they can be cleared away behind it
    states: Path | None
    durable: bool
    memory: int


class Done(NamedTuple):
    """What became of a task, how far the arm's state is here, and how many bytes are in use.

    States of the arms that were `let_go` are in memory no more.
    """

    result: Told
    level: int  # 0 if there is no state
    resident: int
    let_go: tuple[int, ...] = ()


class Ready(NamedTuple):
    """The trainer is loaded, and the worker, so called, has so many bytes in use."""

    pid: int
    resident: int


class Broken(NamedTuple):
    """The worker cannot go on, for a reason that no arm is to blame for."""

    error: CheckpointNotWritten | str


def send(pipe: IO[bytes], message: bytes) -> None:
    """Write a pickle with its length before it."""
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message; EOFError when whoever sent them is gone."""
    length = pipe.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(length)
    message = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return pickle.loads(message)


def main() -> None:
    """Perform tasks until the coordinator closes the pipe or dies."""
    tasks_in = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's affair

    try:
        setup: Setup = receive(tasks_in)
    except EOFError:  # the coordinator was killed meanwhile
        return
    if os.name == "posix" and os.getppid() != setup.coordinator:
        return
    tempfile.tempdir = str(setup.scratch)
    busy = threading.Event()
    tasks: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks_in, tasks, busy), daemon=True).start()
    try:
        performer, states = _performer(setup)
    except BaseException:
        send(results, pickle.dumps(Broken(traceback.format_exc())))
        return
    looked, resident = monotonic(), _resident()
    send(results, pickle.dumps(Ready(os.getpid(), resident)))

    with suppress(BrokenPipeError):
        while order := tasks.get():
            busy.set()
            try:
                told = obeyed(performer, order, setup.worker)
                if monotonic() > looked + 0.1:  # asking takes time, too
                    looked, resident = monotonic(), _resident()
                held = states.held(told.pull.arm)
                level, let_go = held.level if held else 0, tuple(states.let_go)
                message: Done | Broken = Done(told, level, resident, let_go)
            except CheckpointNotWritten as error:
                message = Broken(error)
            busy.clear()
            send(results, pickle.dumps(message))


def _performer(setup: Setup) -> tuple[Performer, States]:
    trainer = read_trainer(setup.trainer)
    if not getattr(trainer, "starts_processes", False):  # which would be left behind
        _die_with_the_coordinator()
    folder = None
    if setup.states:
        folder = Folder(setup.states, trainer, durable=setup.durable, only_writes=True)
    states = States(folder, memory=setup.memory, always=True)
    return Performer(trainer, states), states


def _listen(
    tasks_in: IO[bytes], tasks: queue.SimpleQueue[Order | None], busy: threading.Event
) -> None:
    """Take tasks in; a closed pipe ends an idle worker in good order, and a busy one at once."""
    try:
        while True:
            tasks.put(receive(tasks_in))
    except (EOFError, OSError):
        tasks.put(None)
        while not busy.wait(0.1):
            pass
    except BaseException:  # nonsense: whoever waits for an answer is to learn that there is none
        traceback.print_exc()
    if os.name == "posix":
        end_session(os.getpid())
    os._exit(1)


def _die_with_the_coordinator() -> None:
    """Where the system offers it, be killed when the coordinator dies.

    The thread that listens sees to that as well, but not while foreign code keeps it from running.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
