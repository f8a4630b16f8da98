"""An arm: an ordinary module with its optimizer, and how the two become a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from lastarm.plain import as_python
from lastarm.trainers import Config

PARTS = ("model", "optimizer", "scheduler", "scaler")


@dataclass
class Arm:
    """A network that is trained epoch by epoch. Between two pulls it is in ordinary memory.

    What is random in an epoch follows from the `seed` and the number of the epoch. So these two
    numbers are the state of the generators, too.
    """

    config: Config
    """What it was made with."""
    seed: int
    """Its own seed."""
    model: Any
    """The module, which can be used as it is."""
    optimizer: Any
    """Its optimizer."""
    scheduler: Any
    """What changes the learning rate, or None."""
    scaler: Any
    """The `GradScaler`, which does nothing unless the precision is float16."""
    epochs: int = 0
    """How many epochs it was trained."""

    def to(self, device: torch.device | str) -> None:
        """Move all of its tensors: of the module, of the optimizer, and the gradients."""
        device = torch.device(device)
        if all(tensor.device.type == device.type for tensor in self.tensors()):
            return
        self.model.to(device)
        for state in self.optimizer.state.values():
            for name in _moving(state):
                state[name] = state[name].to(device)

    def tensors(self) -> list[Any]:
        """The tensors of the module and of the optimizer."""
        found = [*self.model.parameters(), *self.model.buffers()]
        for state in self.optimizer.state.values():
            found += [state[name] for name in _moving(state)]
        return found

    def size(self) -> int:
        """How many bytes its tensors have, and something for the rest."""
        return 4096 + sum(int(tensor.nbytes) for tensor in self.tensors())

    def packed(self) -> dict[str, Any]:
        """Plain data and tensors of its own: what `torch.load` reads with `weights_only=True`."""
        states = {name: getattr(self, name) for name in PARTS}
        return {
            "config": {name: as_python(value) for name, value in self.config.items()},
            "seed": self.seed,
            "epochs": self.epochs,
            **{
                name: None if part is None else _copied(part.state_dict())
                for name, part in states.items()
            },
        }

    def take_from(self, packed: Mapping[str, Any]) -> None:
        """Have what another arm with this config had learnt."""
        for name in PARTS:
            if getattr(self, name) is not None:
                getattr(self, name).load_state_dict(packed[name])
        self.epochs = packed["epochs"]


def _moving(state: Mapping[str, Any]) -> list[str]:
    """What an optimizer keeps of a parameter where the parameter is; it counts its steps here."""
    tensors = {name for name, value in state.items() if isinstance(value, torch.Tensor)}
    return sorted(tensors - {"step"})


def _copied(value: Any) -> Any:
    match value:
        case torch.Tensor():
            return value.detach().to("cpu", copy=True)
        case Counter():
            return Counter(value)
        case Mapping():
            return {name: _copied(part) for name, part in value.items()}
        case list() | tuple():
            return type(value)(map(_copied, value))
    return as_python(value)
