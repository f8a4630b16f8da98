"""Lightning: a callback that reports at the end of each epoch."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from lastarm.system.temporary import Scratch
from lastarm.trainers.callbacks.checkpoint_files import loss_among
from lastarm.trainers.reporting import Reporter

try:
    from lightning.pytorch import Callback
except ImportError as error:
    raise ImportError(
        "this callback needs Lightning, which is not installed: pip install 'lastarm[lightning]'"
    ) from error

NAME = "arm.ckpt"


class LightningReport(Callback):  # type: ignore[misc]
    """Reports a figure that the model has logged, once for each epoch of training.

    :param report: what the function of the search was given.
    :param monitor: the name of the figure, such as "val_loss". The others that were logged are
        metrics beside it.

    The state of an arm is Lightning's own checkpoint. Give `fit` the one to continue from:
    `trainer.fit(model, …, ckpt_path=reporting.checkpoint)`.

    Lightning steps the schedulers of an epoch after the last hook of it, and begins an epoch anew
    if a checkpoint was saved in its first. So an epoch is reported when the next one begins, and
    the checkpoint says of the loops what was so at its end.
    """

    def __init__(self, report: Reporter, monitor: str) -> None:
        self._report, self._monitor = report, monitor
        self._scratch = Scratch()
        self._restored = False  # whether the loop continues from a checkpoint
        self._figures: dict[str, Any] = {}  # of the epoch that has ended, and is not reported
        self._loops: dict[str, Any] = {}  # how far they were then

    @property
    def checkpoint(self) -> Path | None:
        """The file to continue from; None at the beginning of an arm."""
        saved = self._report.restore()
        self._restored = saved is not None
        if saved is None:
            return None
        file = self._scratch.path / NAME
        file.write_bytes(saved)
        return file

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Draw from here on what is drawn when an epoch begins: the loader is next."""
        if self._restored:
            self._report.restore()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Take what the model has logged."""
        self._figures = loss_among(trainer.callback_metrics, self._monitor)
        self._loops = deepcopy(trainer.fit_loop.state_dict())

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Report the epoch before, and wait."""
        self._report_epoch(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the last epoch."""
        self._report_epoch(trainer)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Put in how far the loops were."""
        if self._loops:
            checkpoint["loops"]["fit_loop"] = self._loops

    def _report_epoch(self, trainer: Any) -> None:
        if self._figures:
            self._report(self._figures, state=partial(self._saved, trainer))
            self._figures, self._loops = {}, {}

    def _saved(self, trainer: Any) -> bytes:
        file = self._scratch.path / NAME
        trainer.save_checkpoint(file)
        return file.read_bytes()
