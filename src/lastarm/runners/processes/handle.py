"""A worker process, as its coordinator sees it."""

from __future__ import annotations

import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Any

from lastarm.events import Failure
from lastarm.runners.performer import Task
from lastarm.runners.processes.sessions import end_session
from lastarm.runners.processes.worker import Done, Setup, receive, send
from lastarm.runners.remote import order


class Worker:
    """Sends tasks to a process of its own, and puts what comes back into a queue.

    When the process has ended, or talks nonsense, None comes back.
    """

    def __init__(self, setup: Setup, messages: queue.SimpleQueue[tuple[Worker, Any]]) -> None:
        self.name = setup.worker
        self.born = monotonic()
        self.ready = False
        self.pid = 0  # what it calls itself, once it is ready
        self.at_first = 0  # bytes that it used then
        self.task: Task | None = None
        self.since = math.inf  # when it began with its task, by the monotonic clock
        self.queue: deque[Task] = deque()  # what only this worker can go on with
        # Not by PYTHONPATH: what a trainer starts is to have the user's own environment.
        path = [entry or os.getcwd() for entry in sys.path]
        command = (
            f"import sys; sys.path[:] = {path}; "
            "from lastarm.runners.processes.worker import main; main()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at the terminal is not for it
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
        sent = order(task)
        if isinstance(sent, Failure):
            self._messages.put((self, Done(sent, 0, 0)))
        else:
            self._send(sent)

    @property
    def alive(self) -> bool:
        """Whether its process has not ended, as far as the system knows."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it now, with whatever it has started."""
        if os.name == "posix":
            end_session(self._process.pid)
        self._process.kill()

    def close(self) -> None:
        """End it: in good order if it is idle, now if it is not."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self.task else 1)
        self.kill()
        self._process.wait()

    def end(self) -> str:
        """How it ended; one that talks nonsense is ended here."""
        if self._process.poll() is None:
            self.kill()
        code = self._process.wait()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        with suppress(OSError):  # it is dead, and whoever listens will say so
            send(self._process.stdin, pickle.dumps(message, protocol=5))

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as pipe, suppress(Exception):  # at its end, or at nonsense
            while True:
                self._messages.put((self, receive(pipe)))
        self._messages.put((self, None))

    def _await_the_end(self) -> None:
        """The pipe's end tells of it, unless a child that it forked still holds the pipe."""
        self._process.wait()
        self._listener.join(1.0)
        self._messages.put((self, None))
