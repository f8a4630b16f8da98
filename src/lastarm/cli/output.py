"""--output: where the winner of a search is written, and what is said if it cannot be."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lastarm.checkpoints.folder import StateNotRead
from lastarm.cli import display
from lastarm.errors import InvalidArgument
from lastarm.result import Result
from lastarm.runners.performer import said
from lastarm.runners.states import packed
from lastarm.trainers.programs import ArmFolder


def require_free(output: str) -> None:
    """Refuse an --output that cannot be written, before anything is trained."""
    path = Path(output).absolute()
    above = next(folder for folder in (*path.parents, path) if os.path.lexists(folder))
    if os.path.lexists(path):
        rule, way_out = "it exists already, and is not replaced", "Use a new name"
    elif not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        rule, way_out = f"nothing can be made in {above}", "Use a folder that you may write to"
    else:
        return
    raise InvalidArgument.of("--output", output, rule, way_out)


def write_winner(result: Result, output: str) -> int:
    """Write the winner's state, after the answer is printed; the exit code.

    The folder of a program is copied. Otherwise it is a file: what the trainer's own `save`
    writes, or else a pickle of the state.
    """
    state, winner = result.state, result.winner
    write: Callable[[Path], None]
    if state is None:
        why = "there is no state of the winner: it was lost, or cannot be saved, or its generator "
        why += "yields none, or it has no seal of this user and is not loaded"
        return _not_made(output, why)
    if isinstance(state, ArmFolder):
        write = partial(_copy, state)
    elif winner and hasattr(winner.trainer, "save"):
        write = partial(_create, partial(winner.trainer.save, winner.state))
    elif pickled := packed(state):
        write = partial(_create, lambda path: path.write_bytes(pickled))
    else:
        return _not_made(
            output, "the winner's state cannot be pickled, and its trainer has no `save`"
        )
    try:
        write(Path(output))
    except OSError as error:  # somebody was there before us, or the disk is full
        kept, what = (
            Path(tempfile.mkdtemp(prefix="lastarm-winner-")) / Path(output).name,
            "The winner",
        )
        try:
            write(kept)
        except Exception:
            what = "What could be written of the winner"
        why = error.strerror or "some files could not be copied"
        display.note(f"lastarm: {output} could not be written: {why}. {what} is in {kept}.")
        return 2
    except Exception as error:  # of the trainer's own `save`
        return _not_made(output, f"the trainer's `save` failed: {said(error)}")
    return 0


def _not_made(output: str, why: str) -> int:
    display.note(f"lastarm: {why}, so {output} was not made.")
    return 1


def _copy(folder: ArmFolder, path: Path) -> None:
    try:
        shutil.copytree(folder, path, symlinks=True)
    except OSError as error:
        if not isinstance(error, FileExistsError):
            shutil.rmtree(path, ignore_errors=True)  # what was copied of it so far
        raise


def _create(save: Callable[[Path], object], path: Path) -> None:
    """A new file that `save` writes; none if it raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("xb").close()
    try:
        save(path)
        if not path.stat().st_size:
            raise StateNotRead("it wrote nothing to the path that it was given")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
