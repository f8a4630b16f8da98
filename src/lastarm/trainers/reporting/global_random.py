"""The global generators of `random`, NumPy and PyTorch: they belong to one arm at a time.

A training loop may draw from them without a word about it: a layer that drops out, an initial
weight, the order of rows. So that arms which take turns in one process do not draw each other's
numbers, each has generators of its own, which begin with its seed. They are put in place when its
turn begins, and those that were there before come back when it ends.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

States = dict[str, Any]
"""Library → the state of its global generators, as plain data."""

_turn = threading.RLock()  # a process has one set of global generators
_thread = threading.local()  # whether this one is an arm's, which has the turn of who waits for it


class _Generators(NamedTuple):
    """How the state of a library's generators is read, put in place, and made of a seed."""

    get: Callable[[], Any]
    put: Callable[[Any], object]
    seed: Callable[[int], object]


def _state_of_torch() -> tuple[bytes, list[bytes]]:
    """That of the processor, and of each graphics card if any was used."""
    torch: Any = sys.modules["torch"]
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return bytes(torch.get_rng_state().numpy()), [bytes(card.numpy()) for card in cards]


def _seed_torch(seed: int) -> None:
    torch: Any = sys.modules["torch"]
    torch.manual_seed(seed)


def _put_in_torch(state: tuple[bytes, list[bytes]]) -> None:
    torch: Any = sys.modules["torch"]

    def tensor(one: bytes) -> Any:
        return torch.frombuffer(bytearray(one), dtype=torch.uint8)

    processor, cards = state
    torch.set_rng_state(tensor(processor))
    if cards:
        torch.cuda.set_rng_state_all([tensor(card) for card in cards])


LIBRARIES = {
    "random": _Generators(random.getstate, random.setstate, random.seed),
    "numpy": _Generators(
        lambda: np.random.get_state(legacy=False), np.random.set_state, np.random.seed
    ),
    "torch": _Generators(_state_of_torch, _put_in_torch, _seed_torch),
}


def current() -> States:
    """The states of all that are loaded."""
    return {name: library.get() for name, library in LIBRARIES.items() if _is_loaded(name)}


def adopt(states: States, seed: int | None = None) -> None:
    """Put states in place. A library that was not loaded when they were taken is seeded."""
    for name, library in LIBRARIES.items():
        if name in states and _is_loaded(name):
            library.put(states[name])
        elif seed is not None and _is_loaded(name):
            library.seed(seed)


def is_arms_thread(*, yes: bool = True) -> None:
    """Say that this thread works for an arm while another one waits, and has the turn for both."""
    _thread.is_arms = yes


def has_anothers_turn() -> bool:
    """Whether this thread works for an arm, and whoever waits for it has the turn for both."""
    return getattr(_thread, "is_arms", False)


@contextmanager
def turn() -> Iterator[None]:
    """Within, no other thread of this process has global generators of an arm in place."""
    if has_anothers_turn():  # a search within an arm
        yield
        return
    with _turn:
        yield


@contextmanager
def belonging_to(own: States, seed: int) -> Iterator[None]:
    """Within, the global generators are an arm's. Afterwards `own` is where they came to."""
    with turn():
        others = current()
        adopt(own, seed)
        late = [_SeededWhenLoaded(n, seed, others) for n in LIBRARIES if not _is_loaded(n)]
        sys.meta_path[:0] = late
        try:
            yield
        finally:
            for finder in late:
                finder.withdraw()
            own.update(current())
            adopt(others)


def _is_loaded(name: str) -> bool:
    if name not in sys.modules:
        return False
    importlib.import_module(name)  # waits, if another thread is just importing it
    return True


class _SeededWhenLoaded(MetaPathFinder):
    """Seeds a library as soon as an arm has imported it, as if it had been there before."""

    def __init__(self, name: str, seed: int, others: States) -> None:
        self._name, self._seed, self._others = name, seed, others

    def withdraw(self) -> None:
        """Look no more."""
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the library is, as others find it."""
        if fullname != self._name:
            return None
        self.withdraw()
        spec = importlib.util.find_spec(fullname)
        if spec and spec.loader:
            load: Callable[[ModuleType], None] = spec.loader.exec_module
            loader: Any = spec.loader

            def load_and_seed(module: ModuleType) -> None:
                load(module)
                vars(loader).pop("exec_module", None)
                library = LIBRARIES[fullname]
                self._others[fullname] = library.get()
                library.seed(self._seed)

            loader.exec_module = load_and_seed
        return spec
