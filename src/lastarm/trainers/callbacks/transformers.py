"""Hugging Face's `Trainer`: a callback that reports at each evaluation."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from lastarm.system.temporary import Scratch
from lastarm.trainers.callbacks.checkpoint_files import loss_among, read_files, write_files
from lastarm.trainers.reporting import Reporter

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as error:
    raise ImportError(
        "this callback needs Transformers, which is not installed: "
        "pip install 'lastarm[transformers]'"
    ) from error


class TransformersReport(TrainerCallback):  # type: ignore[misc]
    """Reports a figure of each evaluation, such as one for each epoch with eval_strategy="epoch".

    :param report: what the function of the search was given.
    :param monitor: the name of the figure. The others of the evaluation are metrics beside it.

    The state of an arm is the `Trainer`'s own checkpoint, which is saved in its `output_dir` after
    each evaluation, and removed there once it is not needed any more. Give each arm a folder of
    its own, and `train` the checkpoint to continue from:
    `Trainer(…, callbacks=[reporting]).train(resume_from_checkpoint=reporting.checkpoint)`.
    """

    def __init__(self, report: Reporter, monitor: str = "eval_loss") -> None:
        self._report, self._monitor = report, monitor
        self._scratch = Scratch()
        self._figures: dict[str, Any] = {}  # of an evaluation that is not reported yet
        self._only_ours = False  # whether the checkpoint would not have been saved otherwise

    @property
    def checkpoint(self) -> str | None:
        """The folder to continue from; None at the beginning of an arm."""
        saved = self._report.restore()
        if saved is None:
            return None
        name, files = saved
        return str(write_files(files, self._scratch.path / name))

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, Any], **kwargs: Any
    ) -> Any:
        """Take the figures, and have a checkpoint saved."""
        self._figures = loss_among(metrics, self._monitor)
        self._only_ours = not control.should_save
        control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Report, and wait."""
        if not self._figures:  # saved by the user's own settings, between two evaluations
            return
        folder = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
        figures, self._figures = self._figures, {}
        self._report(figures, state=partial(_saved, folder))
        if self._only_ours:
            shutil.rmtree(folder, ignore_errors=True)


def _saved(folder: Path) -> tuple[str, dict[str, bytes]]:
    return folder.name, read_files(folder)
