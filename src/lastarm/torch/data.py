"""Where networks get their rows: tensors, a dataset or a loader, in one order for all arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from lastarm.batched.sample_order import order
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.torch.randomness import drawn_apart

FORMS = "Pass a pair of tensors, a Dataset with a length, or a DataLoader"
LOOKS = 4  # times as many rows are in a batch where nothing is learnt, which takes less memory


class Batches:
    """TRAIN, VAL or TEST: inputs and targets.

    - `name`: the argument that gave them.
    - `given`: a pair of tensors or arrays, a dataset, or a loader, whose batches are then used.
    - `seed`: decides the order of TRAIN, and all that a dataset or a loader draws.

    >>> batches = Batches("train", (torch.arange(4), torch.arange(4)), seed=0)
    >>> [inputs.tolist() for inputs, _ in batches.shuffled(3, epoch=1)]
    [[3, 0, 2], [1]]
    >>> [inputs.tolist() for inputs, _ in batches.in_order(3)]
    [[0, 1, 2, 3]]
    """

    def __init__(self, name: str, given: Any, seed: int) -> None:
        if isinstance(given, TensorDataset) and len(given.tensors) == 2:
            given = given.tensors
        self._seed = seed
        self._tensors: tuple[Any, Any] | None = None
        self._loader: Any = None
        self._dataset: Any = None
        if isinstance(given, tuple | list) and len(given) == 2:
            self._tensors = _pair(name, given)
        elif isinstance(given, DataLoader):
            self._loader = _loader(name, given)
        elif isinstance(given, Dataset) and hasattr(given, "__len__"):
            self._dataset = given
        else:
            raise InvalidArgument.of(name, given, "it has the rows and their targets", FORMS)

    def shuffled(self, size: int, epoch: int) -> Iterator[tuple[Any, Any]]:
        """The batches of an epoch, the same for every arm."""
        if self._loader is not None:
            for generator in _generators(self._loader):
                generator.manual_seed(_one_number(self._seed, epoch))
            return drawn_apart(_pairs(self._loader), self._seed, epoch)
        rows = torch.tensor(order(self._seed, self._count, epoch))
        if self._tensors is not None:
            inputs, targets = self._tensors
            return ((inputs[some], targets[some]) for some in rows.to(inputs.device).split(size))
        loader: Any = DataLoader(self._dataset, size, sampler=rows.tolist())
        return drawn_apart(_pairs(loader), self._seed, epoch)

    def in_order(self, size: int) -> Iterator[tuple[Any, Any]]:
        """All rows, as they are looked at: always the same batches."""
        if self._tensors is not None:
            return zip(*(part.split(LOOKS * size) for part in self._tensors), strict=True)
        if self._loader is not None:
            return self.shuffled(size, 0)
        return drawn_apart(_pairs(DataLoader(self._dataset, LOOKS * size)), self._seed, 0)

    def fingerprint(self) -> Any:
        """The sha256 of tensors; of others, what they are and how long."""
        if self._tensors is not None:
            return fingerprint([_as_bytes(part) for part in self._tensors])
        rows = self._dataset if self._loader is None else self._loader.dataset
        told: dict[str, Any] = {"dataset": type(rows).__qualname__}
        if hasattr(rows, "__len__"):
            told["rows"] = len(rows)
        if self._loader is not None:
            told["batch_size"] = self._loader.batch_size
        return told

    @property
    def _count(self) -> int:
        return len(self._dataset if self._tensors is None else self._tensors[0])


def on_device(value: Any, device: torch.device) -> Any:
    """A batch, or a part of one, on a device."""
    match value:
        case torch.Tensor():
            return value.to(device, non_blocking=True)
        case Mapping():
            return {name: on_device(part, device) for name, part in value.items()}
        case list() | tuple():
            return [on_device(part, device) for part in value]
    return value


def called(model: Any, inputs: Any) -> Any:
    """What a module says of inputs: of a tensor, of a list of them, or by their names."""
    match inputs:
        case Mapping():
            return model(**inputs)
        case list() | tuple():
            return model(*inputs)
    return model(inputs)


def rows_in(inputs: Any) -> int:
    """How many rows a batch has."""
    while not isinstance(inputs, torch.Tensor):
        inputs = next(iter(inputs.values() if isinstance(inputs, Mapping) else inputs))
    return len(inputs)


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    inputs, targets = (torch.as_tensor(part) for part in given)
    if not inputs.dim() or not targets.dim() or not 0 < len(inputs) == len(targets):
        shapes = tuple(inputs.shape), tuple(targets.shape)
        rule = "the inputs and the targets have as many rows, at least one"
        raise InvalidArgument.of(name, shapes, rule, "Pass a target for each row")
    return inputs, targets


def _loader(name: str, given: Any) -> Any:
    if given.persistent_workers:
        rule = "what they draw in an epoch depends on the epochs before"
        raise InvalidArgument.of(f"{name}.persistent_workers", True, rule, "Use False")
    return given


def _generators(loader: Any) -> list[torch.Generator]:
    """The generators that a loader has of its own; they are seeded anew for every epoch."""
    parts = (loader, loader.sampler, loader.batch_sampler)
    found = (getattr(part, "generator", None) for part in parts)
    return [one for one in found if isinstance(one, torch.Generator)]


def _pairs(loader: Any) -> Iterator[tuple[Any, Any]]:
    for batch in loader:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            rule = "a batch is a pair, inputs and targets"
            way_out = "Have the dataset give such pairs, or the loader collate them"
            raise InvalidArgument.of("batch", type(batch).__name__, rule, way_out)
        yield batch[0], batch[1]


def _as_bytes(part: Any) -> Any:
    part = part.detach().cpu().contiguous()
    return [str(part.dtype), list(part.shape), part.view(-1).view(torch.uint8).numpy()]


def _one_number(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
