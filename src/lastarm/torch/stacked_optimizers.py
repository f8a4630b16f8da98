"""SGD, Adam and AdamW over stacked tensors: a row for each arm, each with its own settings.

They do what those of `torch.optim` do, so that an arm can change between both. `numbers` are the
settings: of each a table, with a row for each arm and a column for each group of parameters;
`steps` is how many steps each arm has had. `factors` makes of them what a step multiplies with, in
double precision. `kept` is what an optimizer remembers of each parameter, by the names that it has
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class SGD:
    """Gradient descent with weight decay.

    - `momentum`: whether there is any.
    - `nesterov`: whether it looks ahead.
    """

    momentum: bool
    nesterov: bool

    settings = ("lr", "momentum", "dampening", "weight_decay")

    @property
    def keeps(self) -> tuple[str, ...]:
        """What is kept of each parameter."""
        return ("momentum_buffer",) if self.momentum else ()

    def factors(self, numbers: Numbers, steps: Any) -> dict[str, Any]:
        """For SGD, the first step is not dampened, and has no momentum."""
        decay = {"decay": numbers["weight_decay"]} if numbers["weight_decay"].any() else {}
        begun = (steps > 0).to(torch.float64)
        return {
            "lr": numbers["lr"],
            **decay,
            "momentum": numbers["momentum"] * begun,
            "share": 1 - numbers["dampening"] * begun,
            "ahead": numbers["momentum"],
        }

    def step(
        self, rows: Any, gradients: Any, kept: Mapping[str, Any], by: Mapping[str, Any]
    ) -> None:
        """Change rows of parameters, and what is kept of them."""
        if "decay" in by:
            gradients = gradients + by["decay"] * rows
        for momenta in kept.values():
            momenta.mul_(by["momentum"]).addcmul_(gradients, by["share"])
            gradients = gradients + by["ahead"] * momenta if self.nesterov else momenta
        rows.addcmul_(gradients, by["lr"], value=-1)


@dataclass(frozen=True)
class Adam:
    """Adam; with `decoupled` weight decay, AdamW."""

    decoupled: bool

    settings = ("lr", "beta1", "beta2", "eps", "weight_decay")
    keeps = ("exp_avg", "exp_avg_sq")

    def factors(self, numbers: Numbers, steps: Any) -> dict[str, Any]:
        """With the corrections of means that began at 0."""
        beta1, beta2 = numbers["beta1"], numbers["beta2"]
        root = (1 - beta2 ** (steps + 1)).sqrt()
        lr, decay = numbers["lr"], numbers["weight_decay"]
        shrinks = {"decay": 1 - lr * decay if self.decoupled else decay} if decay.any() else {}
        return {
            **shrinks,
            "new1": 1 - beta1,
            "new2": 1 - beta2,
            "lr": lr * root / (1 - beta1 ** (steps + 1)),
            "eps": numbers["eps"] * root,
        }

    def step(
        self, rows: Any, gradients: Any, kept: Mapping[str, Any], by: Mapping[str, Any]
    ) -> None:
        """Change rows of parameters, and what is kept of them."""
        if "decay" in by and self.decoupled:
            rows.mul_(by["decay"])
        elif "decay" in by:
            gradients = gradients + by["decay"] * rows
        means = kept["exp_avg"].lerp_(gradients, by["new1"])
        squares = kept["exp_avg_sq"].lerp_(gradients.square(), by["new2"])
        rows.addcdiv_(means * by["lr"], squares.sqrt().add_(by["eps"]), value=-1)


def stacked_optimizer(optimizer: Any) -> SGD | Adam | None:
    """What does the same as this optimizer for stacked arms; None if nothing does."""
    kind, groups = type(optimizer), optimizer.param_groups
    flags = ("maximize", "amsgrad", "nesterov", "decoupled_weight_decay")
    ways = {(bool(group.get("momentum")), *map(group.get, flags)) for group in groups}
    if len(ways) > 1 or any(group.get("maximize") or group.get("amsgrad") for group in groups):
        return None
    if kind is torch.optim.SGD:
        return SGD(momentum=groups[0]["momentum"] != 0, nesterov=groups[0]["nesterov"])
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        decoupled = kind is torch.optim.AdamW or bool(groups[0].get("decoupled_weight_decay"))
        return Adam(decoupled=decoupled)
    return None


def numbers_of(group: Mapping[str, Any]) -> dict[str, float]:
    """The settings of a group of parameters that are numbers; a pair of betas is two of them."""
    named = {**group, **dict(zip(("beta1", "beta2"), group.get("betas", ()), strict=False))}
    known = (*SGD.settings, *Adam.settings)
    return {name: float(named[name]) for name in known if name in named}
