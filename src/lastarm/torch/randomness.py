"""Global generators: each user of them has its own numbers, and leaves no trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch


class Generators(NamedTuple):
    """The states of the global generators: of Python, of NumPy, and of PyTorch on the processor.

    They can be put back, so that what was drawn meanwhile changes nothing.

    >>> before = Generators.now()
    >>> first = torch.rand(1)
    >>> before.put_back()
    >>> bool(torch.rand(1) == first)
    True
    """

    python: Any
    numpy: Any
    torch: Any

    @classmethod
    def now(cls) -> Generators:
        """As they are."""
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state())

    def put_back(self) -> None:
        """Have them as they were."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)


def seed_generators(*numbers: int) -> None:
    """Seed the global generators on the processor by these numbers."""
    python, numpy, low, high = np.random.SeedSequence(numbers).generate_state(4).tolist()
    random.seed(python)
    np.random.seed(numpy)
    torch.default_generator.manual_seed(low + (high << 32))


@contextmanager
def seeded(device: torch.device, *numbers: int) -> Iterator[None]:
    """In here the global generators are seeded by these numbers; outside nothing changes.

    - `device`: the accelerator whose generator is seeded, too.
    """
    outside, theirs = Generators.now(), None
    module: Any = getattr(torch, device.type) if device.type != "cpu" else None
    if hasattr(module, "get_rng_state"):
        theirs = module.get_rng_state(device)
        torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))
    seed_generators(*numbers)
    try:
        yield
    finally:
        outside.put_back()
        if theirs is not None:
            module.set_rng_state(theirs, device)


def drawn_apart(batches: Iterator[Any], *numbers: int) -> Iterator[Any]:
    """The same batches, drawn by generators that are seeded by these numbers.

    Rows and their augmentation are then the same, whatever a network draws between two batches.
    """
    theirs: Generators | None = None
    while True:
        outside = Generators.now()
        try:
            if theirs is None:
                seed_generators(*numbers)
            else:
                theirs.put_back()
            batch = next(batches, None)
            theirs = Generators.now()
        finally:
            outside.put_back()
        if batch is None:
            return
        yield batch
