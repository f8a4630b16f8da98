"""Which arms are of one kind, so that what one of them does can be done for all in one step."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from types import MethodType
from typing import Any

from torch import nn

from lastarm.plain import identity
from lastarm.torch.arm import Arm
from lastarm.torch.stacked_optimizers import stacked_optimizer

USUAL = set(vars(nn.Module()))  # what every module has


def kind_of(arm: Arm, size: int) -> Hashable | None:
    """What arms share that can be stacked; None for an arm that cannot be.

    Modules of one kind do the same with other numbers: they have the same parts, of the same
    classes, with the same attributes, and tensors of the same shapes. What cannot be compared,
    such as a lambda that is an attribute, is its own kind. Optimizers differ in numbers only.

    - `size`: the rows in a batch of this arm.
    """
    parameters = list(arm.model.parameters())
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    groups = arm.optimizer.param_groups
    place = {parameter: at for at, group in enumerate(groups) for parameter in group["params"]}
    optimizer = stacked_optimizer(arm.optimizer)
    if (
        optimizer is None
        or arm.scaler.is_enabled()
        or len({parameter.dtype for parameter in learning}) != 1
        or {id(p) for p in place if p.requires_grad} != {id(p) for p in learning}
        or any(map(_is_hooked, (arm.optimizer, *arm.model.modules(), *parameters)))
    ):
        return None
    return (
        tuple(_parts(arm.model)),
        tuple(
            (name, tensor.shape, tensor.dtype, tensor.requires_grad)
            for tensors in (arm.model.named_parameters(), arm.model.named_buffers())
            for name, tensor in tensors
        ),
        optimizer,
        tuple(place[parameter] for parameter in learning),
        size,
    )


def _parts(model: Any) -> Iterator[Hashable]:
    for name, part in model.named_modules():
        own = ((key, value) for key, value in vars(part).items() if key not in USUAL)
        yield name, type(part), tuple((key, _compared(value)) for key, value in own)


def _compared(value: Any) -> Hashable:
    return id(value) if isinstance(value, MethodType) else identity(value)


def _is_hooked(thing: Any) -> bool:
    """Whether something else is called along with it, which is never called for a stack."""
    if isinstance(thing, nn.Parameter):
        names = ("_backward_hooks", "_post_accumulate_grad_hooks")
        return any(getattr(thing, name, None) for name in names)
    return any(bool(value) for name, value in vars(thing).items() if name.endswith("_hooks"))
