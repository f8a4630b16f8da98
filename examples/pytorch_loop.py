"""Tune a PyTorch training loop: begin an arm, train it further, look at its loss.

The state is the model with its optimizer, so that an arm goes on exactly where it was. It is
saved with `torch.save`, which streams large tensors to the file.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from lastarm import Choice, Integer, LogUniform, SuccessiveHalving, search
from lastarm.data import digits
from lastarm.trainers.splits import split


class Network:
    """A pull is an epoch over TRAIN."""

    def __init__(self) -> None:
        images, labels = digits()
        parts = split(labels, seed=0)
        inputs = torch.tensor(images / 16.0, dtype=torch.float32)
        targets = torch.tensor(labels, dtype=torch.long)
        self.train_set, self.val_set, self.test_set = (
            (inputs[rows], targets[rows]) for rows in (parts.train, parts.validation, parts.test)
        )

    def start(self, config: Any, seed: int) -> dict[str, Any]:
        """A fresh model, drawn by its own generator."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            act = {"relu": nn.ReLU, "tanh": nn.Tanh}[config["act"]]
            model = nn.Sequential(
                nn.Linear(64, config["width"]), act(), nn.Linear(config["width"], 10)
            )
        optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
        return {"model": model, "optimizer": optimizer, "seed": seed, "epoch": 0}

    def train(self, state: dict[str, Any], pulls: int) -> dict[str, Any]:
        """Train for that many epochs more."""
        inputs, targets = self.train_set
        for _ in range(pulls):
            state["epoch"] += 1
            order = torch.Generator().manual_seed(state["seed"] + state["epoch"])
            for rows in torch.randperm(len(inputs), generator=order).split(64):
                state["optimizer"].zero_grad()
                nn.functional.cross_entropy(state["model"](inputs[rows]), targets[rows]).backward()
                state["optimizer"].step()
        return state

    def loss(self, state: dict[str, Any]) -> float:
        """The log loss on VAL."""
        return self._loss(state, self.val_set)

    def test(self, state: dict[str, Any]) -> float:
        """The log loss on TEST, asked for once."""
        return self._loss(state, self.test_set)

    def _loss(self, state: dict[str, Any], rows: Any) -> float:
        with torch.no_grad():
            return float(nn.functional.cross_entropy(state["model"](rows[0]), rows[1]))

    def save(self, state: dict[str, Any], path: Path) -> None:
        """Write the state to a file."""
        torch.save(state, path)

    def load(self, path: Path) -> Any:
        """Read it back; lastarm has checked that it is the one that it wrote."""
        return torch.load(path, weights_only=False)


if __name__ == "__main__":
    result = search(
        Network(),
        {
            "lr": LogUniform(1e-5, 1e-1),
            "width": Integer(8, 128, log=True),
            "act": Choice("relu", "tanh"),
        },
        policy=SuccessiveHalving(arms=16, budget=128),
        journal="network.jsonl",
    )
    print(result)
