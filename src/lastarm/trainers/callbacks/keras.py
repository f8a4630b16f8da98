"""Keras 3: a callback that reports at the end of each epoch."""

from __future__ import annotations

from functools import partial
from typing import Any

from lastarm.system.temporary import Scratch
from lastarm.trainers.callbacks.checkpoint_files import loss_among, read_files, write_files
from lastarm.trainers.reporting import Reporter

try:
    from keras.callbacks import BackupAndRestore
except ImportError as error:
    raise ImportError(
        "this callback needs Keras 3, which is not installed, or has no backend: "
        "pip install 'lastarm[keras]', and one of torch, jax and tensorflow"
    ) from error

STATE = "state"


class KerasReport(BackupAndRestore):  # type: ignore[misc]
    """Reports a figure of `fit`, once for each epoch.

    :param report: what the function of the search was given.
    :param monitor: the name of the figure. The others in the logs are metrics beside it.

    The state of an arm is what Keras's own `BackupAndRestore` saves, and its way to continue from
    there is ours: `model.fit(…, callbacks=[KerasReport(report)])` is all. The model is built
    before, as by an `Input` layer.
    """

    def __init__(self, report: Reporter, monitor: str = "val_loss") -> None:
        self._report, self._monitor = report, monitor
        self._scratch = Scratch()
        super().__init__(str(self._scratch.path / STATE), delete_checkpoint=False)

    def on_train_begin(self, logs: Any = None) -> None:
        """Continue from the arm's state, if it has one."""
        if saved := self._report.restore():
            write_files(saved, self._scratch.path / STATE)
        super().on_train_begin(logs)
        self._report.restore()  # loading may have drawn random numbers

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report, and wait."""
        super().on_epoch_end(epoch, logs)
        figures = loss_among(logs or {}, self._monitor)
        self._report(figures, state=partial(read_files, self._scratch.path / STATE))
