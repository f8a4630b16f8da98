"""How a search gets into other processes: what the processes, Dask and Ray runners share.

The trainer is sent once, by value, so that one from a script or a notebook works. Then tasks are
sent, and each worker answers with a `Report`.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from mmap import mmap
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import cloudpickle

from lastarm.arguments import as_float
from lastarm.errors import CheckpointNotWritten, FolderNotSeen, InvalidArgument
from lastarm.events import Failure, Told, Work
from lastarm.journal.disk import Folder, make_folder
from lastarm.runners.asides import Aside
from lastarm.runners.performer import Task
from lastarm.runners.protocol import Arms


class Report(NamedTuple):
    """What a worker answers: what became of a pull, and what it keeps of the arm's state."""

    told: Told
    level: int = 0  # of the state that it keeps; 0 if it keeps none
    movable: bool = True  # whether a copy of that state can go to another process
    continues: bool = True  # whether it could be trained further there
    size: int = 0  # about how many bytes it holds, where that is asked
    let_go: tuple[int, ...] = ()  # arms whose states left its memory to make room
    resident: int = 0  # bytes that the worker uses
    aside: Aside = Aside()  # what else there is to say


def sendable(task: Task) -> Task | Failure:
    """The task as it is sent, with its config by value; a failure if that is not possible.

    The config is apart, so that the rest can be loaded where the config cannot.
    """
    try:
        return task._replace(config={}, pickled=by_value(task.config))
    except Exception as error:
        why = f"its config cannot be sent to a worker: {type(error).__name__}: {error}"
        return Failure(task.pull, why[:1000], work=Work(attempt=task.attempt))


class Script:
    """What the main script of a search defines, in a process that is not that script.

    It is all classes, and the functions that the trainer uses.

    States of these classes are pickled by reference, as `__main__.State`, so that the script finds
    its own class when it loads them. So the classes have to be in `__main__` where states are
    pickled and loaded, and a trainer may count on it as well: so may what it sends to processes
    that it starts, such as the function of a `multiprocessing.Pool`. A worker process that works
    for one search gets them for good (`keep`). One that works for many searches has them while a
    pull runs (`present`), and because scripts may use the same names, only them while a state is
    pickled or loaded (`alone`).
    """

    def __init__(self, defined: Mapping[str, Any]) -> None:
        self._defined = defined

    def keep(self) -> None:
        """Put all into `__main__`, also into that of the processes that are started from here."""
        vars(sys.modules["__main__"]).update(self._defined)
        # A process that is forked has it. To others multiprocessing sends a copy of this dict,
        # which they load before what they are to do.
        vars(multiprocessing.current_process()).get("_config", {})["lastarm"] = self

    def __reduce__(self) -> Any:
        return _kept, (_pickled_apart(self._defined),)

    @contextmanager
    def present(self) -> Iterator[None]:
        """Within, all are in `__main__`, unless another script comes and has the same."""
        main = vars(sys.modules["__main__"])
        with _main_lock:
            for name, value in self._defined.items():
                _present.setdefault(name, [main.get(name, _ABSENT)]).append(value)
                main[name] = value
        try:
            yield
        finally:
            with _main_lock:
                for name, value in self._defined.items():
                    _present[name].remove(value)
                    main[name] = _present[name][-1]
                    if main[name] is _ABSENT:
                        del main[name]
                    if len(_present[name]) == 1:
                        del _present[name]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within, all are in `__main__`, and no other script comes."""
        if not self._defined:
            yield
            return
        with _main_lock, self.present():
            yield


_main_lock = threading.RLock()
_present: dict[str, list[Any]] = {}  # name → what was in `__main__` before, then those present
_ABSENT = object()


def pickled_trainer(trainer: Any) -> bytes:
    """A trainer as it is sent, with what its script defines, for `load_trainer`."""
    script = vars(sys.modules["__main__"]).copy().items()
    classes = {
        name: value
        for name, value in script
        if isinstance(value, type) and value.__module__ == "__main__"
    }
    used: dict[str, Any] = {}
    try:
        # The functions come last, when it is known which ones the trainer uses.
        return pickle.dumps(_pickled_apart(classes)) + by_value((trainer, used), functions=used)
    except Exception as error:
        raise InvalidArgument(
            f"the trainer {type(trainer).__qualname__} cannot be sent to worker processes: "
            f"{error}. Let it open files, connections and the like when it starts an arm, or use "
            "the serial runner.",
            argument="trainer",
            given=trainer,
        ) from error


def load_trainer(pickled: bytes | mmap) -> tuple[Any, Script]:
    """The trainer, and what its script defines."""
    file = io.BytesIO(pickled)
    classes = {name: pickle.loads(kind) for name, kind in pickle.load(file).items()}
    trainer, functions = pickle.load(file)
    return trainer, Script(classes | functions)


def _pickled_apart(defined: Mapping[str, Any]) -> dict[str, bytes]:
    """Each by itself, without those that cannot be pickled: no state can be of such a class."""
    pickled = {}
    for name, value in defined.items():
        with suppress(Exception):
            pickled[name] = cloudpickle.dumps(value)
    return pickled


def _kept(pickled: Mapping[str, bytes]) -> Script:
    """In a process that was started by one which keeps a script."""
    script = Script({name: pickle.loads(value) for name, value in pickled.items()})
    script.keep()
    return script


_by_value_lock = threading.RLock()  # what is pickled by value is registered for all threads


def by_value(sent: Any, functions: dict[str, Any] | None = None) -> bytes:
    """A pickle that also contains the code of modules that other processes cannot import.

    The functions of `__main__` that are in it are put into `functions`, by their names there.
    """
    main = vars(sys.modules["__main__"])
    file = io.BytesIO()
    pickler = cloudpickle.Pickler(file, protocol=5)
    reduced = pickler.reducer_override
    registered = []

    def reducer_override(value: Any) -> Any:
        if (
            functions is not None
            and isinstance(value, FunctionType)
            and value.__module__ == "__main__"
            and main.get(name := value.__name__) is value
        ):
            functions[name] = value
        if isinstance(value, type | FunctionType):
            module = sys.modules.get(value.__module__)
            if (
                module
                and module.__name__ not in cloudpickle.list_registry_pickle_by_value()
                and not _can_be_imported(value.__module__)
            ):
                cloudpickle.register_pickle_by_value(module)
                registered.append(module)
        return reduced(value)

    pickler.reducer_override = reducer_override
    with _by_value_lock:
        try:
            pickler.dump(sent)
        finally:
            for module in registered:
                cloudpickle.unregister_pickle_by_value(module)
    return file.getvalue()


def _can_be_imported(module: str) -> bool:
    package = module.partition(".")[0]
    return package == "__main__" or any(f.find_spec(package, None) for f in sys.meta_path)


_IDENTITY = re.compile("lastarm-[0-9a-f]{32}")


class Kit(NamedTuple):
    """What the workers of an engine need before the first pull: the trainer, by value.

    States are saved in `folder`, where there is one and a worker sees it: it contains a file named
    like the kit's `identity` as long as the kit is used.
    """

    identity: str
    trainer: bytes
    folder: Path | None
    durable: bool = False  # how: see `StateFolder`
    sync: bool = False

    @classmethod
    def of(cls, arms: Arms) -> Kit:
        """The kit for the arms of a search."""
        identity, trainer = f"lastarm-{uuid.uuid4().hex}", pickled_trainer(arms.trainer)
        folder = arms.folder if arms.always else None
        if folder is None:
            return cls(identity, trainer, None)
        try:
            make_folder(folder.path)
            with Folder(folder.path) as there:
                for name in list(there.files()):
                    if _IDENTITY.fullmatch(name):  # left by a search that was killed
                        there.unlink(name)
                os.close(there.create(identity))
        except OSError as error:
            raise CheckpointNotWritten(folder.path, error) from error
        return cls(identity, trainer, folder.path, folder.durable, folder.sync)

    @property
    def seen_folder(self) -> Path | None:
        """The folder, if this process sees it."""
        seen = self.folder is not None and (self.folder / self.identity).exists()
        return self.folder if seen else None

    def warn_of_unseen_folder(self) -> None:
        """Warn that states are not saved."""
        assert self.folder
        warnings.warn(FolderNotSeen(self.folder), stacklevel=2)

    def put_away(self) -> None:
        """Clean up when the kit is not needed any more."""
        if self.folder:
            with suppress(OSError):
                (self.folder / self.identity).unlink(missing_ok=True)


def amounts(given: Any) -> dict[str, float]:
    """What a pull takes of an engine's resources: names, and numbers greater than 0."""
    taken = {} if given is None else given
    fit = isinstance(taken, Mapping) and all(
        isinstance(name, str) and 0 < as_float(amount) < inf for name, amount in taken.items()
    )
    if not fit:
        rule = "it says what a pull takes of each resource, by name"
        raise InvalidArgument.of(
            "resources", given, rule, 'Use numbers greater than 0, such as {"GPU": 1}'
        )
    return dict(taken)
