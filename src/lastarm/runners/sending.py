"""How a trainer gets into another process, also one that was written in a script or a notebook."""

from __future__ import annotations

import io
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import cloudpickle

from lastarm.errors import InvalidArgument


def write_trainer(trainer: Any, path: Path) -> None:
    """Write a trainer for `read_trainer`, or say why it cannot be sent."""
    path.write_bytes(pickled_trainer(trainer))


def read_trainer(path: Path) -> Any:
    """The trainer that was written there."""
    return unpickled_trainer(path.read_bytes())


def pickled_trainer(trainer: Any) -> bytes:
    """A trainer for `unpickled_trainer`, or an error that says why it cannot be sent.

    Before it come the classes of the main script, by their names: with those at hand, another
    process can pickle states of such classes by reference, and whoever loads them finds its own
    class.
    """
    classes = {}
    for name, value in vars(sys.modules["__main__"]).copy().items():
        if isinstance(value, type) and value.__module__ == "__main__":
            with suppress(Exception):  # one that cannot be pickled is in nobody's state
                classes[name] = cloudpickle.dumps(value)
    try:
        return pickle.dumps(classes) + by_value(trainer)
    except Exception as error:
        raise InvalidArgument(
            f"the trainer {type(trainer).__qualname__} cannot be sent to worker processes: "
            f"{error}. Let it open files, connections and the like when it starts an arm, or use "
            "the serial runner."
        ) from error


def unpickled_trainer(pickled: bytes) -> Any:
    """The trainer; its script's classes are put in their places."""
    file = io.BytesIO(pickled)
    for name, by_itself in pickle.load(file).items():
        setattr(sys.modules["__main__"], name, pickle.loads(by_itself))
    return pickle.load(file)


def by_value(sent: Any) -> bytes:
    """A pickle that holds, too, what is of modules that no other process could import."""
    file = io.BytesIO()
    pickler = cloudpickle.Pickler(file, protocol=5)
    reduced = pickler.reducer_override

    def reducer_override(value: Any) -> Any:
        if isinstance(value, type | FunctionType):
            module = sys.modules.get(value.__module__)
            if module and not _can_be_imported(value.__module__):
                cloudpickle.register_pickle_by_value(module)
        return reduced(value)

    pickler.reducer_override = reducer_override
    pickler.dump(sent)
    return file.getvalue()


def _can_be_imported(module: str) -> bool:
    package = module.partition(".")[0]
    return package == "__main__" or any(f.find_spec(package, None) for f in sys.meta_path)
