"""A network for handwritten digits: its width, activation and learning rate, on two workers."""

from typing import Any

import torch
from torch import nn

from lastarm import Choice, Integer, LogUniform, SuccessiveHalving, search
from lastarm.data import digits
from lastarm.torch import Module
from lastarm.trainers.splits import split

images, labels = digits()
inputs, targets = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
rows = split(labels, seed=0)


def network(config: Any) -> nn.Module:
    """A layer of hidden units."""
    act = {"relu": nn.ReLU, "tanh": nn.Tanh}[config["act"]]
    return nn.Sequential(nn.Linear(64, config["width"]), act(), nn.Linear(config["width"], 10))


def optimizer(model: nn.Module, config: Any) -> torch.optim.Optimizer:
    """What trains it."""
    return torch.optim.Adam(model.parameters(), lr=config["lr"])


trainer = Module(
    network,
    optimizer,
    train=(inputs[rows.train], targets[rows.train]),
    val=(inputs[rows.validation], targets[rows.validation]),
    test=(inputs[rows.test], targets[rows.test]),
    loss=nn.functional.cross_entropy,
)
space = {
    "lr": LogUniform(1e-5, 1e-1),
    "width": Integer(8, 128, log=True),
    "act": Choice("relu", "tanh"),
}

if __name__ == "__main__":
    policy = SuccessiveHalving(arms=16, budget=128)
    print(search(trainer, space, policy=policy, journal="network.jsonl", workers=2))
