"""Making states durable in the coordinator, while the workers that wrote them go on."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from lastarm.checkpoints import Folder
from lastarm.events import Loss
from lastarm.runners.processes.handle import Worker


class Settled(NamedTuple):
    """The state that belongs to a loss is durable."""

    loss: Loss


class Settling:
    """A thread that is given losses whose states are written, and says when these are durable.

    What has come in while it waited for the disk is synced together. An error is put among the
    messages, too: whoever reads them is to raise it.
    """

    def __init__(self, folder: Folder, messages: queue.SimpleQueue[tuple[Worker, Any]]) -> None:
        self._folder = folder
        self._messages = messages
        self._written: queue.SimpleQueue[tuple[Worker, Loss]] = queue.SimpleQueue()
        self._thread = ThreadPoolExecutor(1)

    def add(self, worker: Worker, loss: Loss) -> None:
        """Take a loss whose state that worker has written."""
        self._written.put((worker, loss))
        self._thread.submit(self._settle)

    def close(self) -> None:
        """Finish what is under way, and nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _settle(self) -> None:
        batch = [self._written.get() for _ in range(self._written.qsize())]
        if not batch:
            return  # it was settled with the one before
        try:
            self._folder.settle((loss.pull, worker.pid) for worker, loss in batch)
        except BaseException as error:
            self._messages.put((batch[0][0], error))
        else:
            for worker, loss in batch:
                self._messages.put((worker, Settled(loss)))
