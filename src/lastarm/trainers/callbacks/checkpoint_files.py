"""The checkpoints of frameworks are files; the state of an arm is what is in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lastarm.arguments import real
from lastarm.errors import BadLoss, listed

Files = dict[str, bytes]
"""The path of each file in a folder, and what is in it."""


def read_files(folder: Path) -> Files:
    """All files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(files: Files, folder: Path) -> Path:
    """The same files in another folder."""
    for name, written in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written)
    return folder


def loss_among(figures: Mapping[str, Any], monitor: str) -> dict[str, Any]:
    """What a loop reports: the figure with the name `monitor` as its loss, and the others.

    >>> loss_among({"val_loss": 0.5, "accuracy": 0.9, "loss": 0.4}, "val_loss")
    {'loss': 0.5, 'accuracy': 0.9, 'train_loss': 0.4}

    Another figure named "loss" is that of training, and is called so.
    """
    if monitor not in figures:
        there = listed(list(map(str, figures))) or "none"
        raise BadLoss(
            f"the callback reports {monitor!r}, and the framework has no figure of this name. "
            f"There are: {there}",
            monitor,
        )
    others = {
        "train_loss" if name == "loss" else name: number
        for name, value in figures.items()
        if name != monitor and (number := real(value)) is not None
    }
    loss = real(figures[monitor])
    return {"loss": math.nan if loss is None else loss, **others}
