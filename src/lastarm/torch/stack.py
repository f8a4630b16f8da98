"""Arms of one kind, stacked: one step trains all of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import accumulate
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, vmap

from lastarm.errors import CannotBeStacked
from lastarm.torch.arm import Arm
from lastarm.torch.course import Course
from lastarm.torch.data import called
from lastarm.torch.stacked_optimizers import numbers_of, stacked_optimizer

BLOCK = 2**18  # parameters that an optimizer changes at a time, so that they stay in the cache
# Losses that are means over numbers, so that the mean of all arms is the mean of their means.
MEANS = (nn.CrossEntropyLoss, nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss)
MEAN_FUNCTIONS = (
    nn.functional.cross_entropy,
    nn.functional.mse_loss,
    nn.functional.l1_loss,
    nn.functional.smooth_l1_loss,
    nn.functional.huber_loss,
    nn.functional.binary_cross_entropy_with_logits,
)


class Stack:
    """Copies of arms of one kind: the parameters of each are a row.

    Every step is that of the arm alone, up to rounding. The arms stay as they are until
    `put_back`. Their own optimizers and schedulers say what their settings are.

    - `arms`: arms of one kind, which are equally far.
    - `course`: how they are trained.
    """

    def __init__(self, arms: Sequence[Arm], course: Course) -> None:
        self._arms, self._course = arms, course
        self._steps = torch.tensor([[_steps(arm)] for arm in arms], dtype=torch.float64)
        optimizer = stacked_optimizer(arms[0].optimizer)
        assert optimizer is not None, "arms of this kind can be stacked"
        self._optimizer = optimizer
        learning = [(n, p) for n, p in arms[0].model.named_parameters() if p.requires_grad]
        self._names = [name for name, _ in learning]
        self._shapes = [parameter.shape for _, parameter in learning]
        ends = list(accumulate(parameter.numel() for _, parameter in learning))
        self._spans = list(zip([0, *ends], ends, strict=False))
        groups = arms[0].optimizer.param_groups
        place = {p: at for at, group in enumerate(groups) for p in group["params"]}
        self._group = None  # of each column, if there are several
        if len(groups) > 1:
            sizes = torch.tensor([parameter.numel() for _, parameter in learning])
            self._group = torch.tensor([place[p] for _, p in learning]).repeat_interleave(sizes)

        self._rows = self._stacked([_learning(arm) for arm in arms])
        self._kept = {
            name: self._stacked([self._remembered(arm, name) for arm in arms])
            for name in optimizer.keeps
        }
        self._parts = [
            self._rows[:, begin:end].unflatten(1, shape).detach().requires_grad_()
            for (begin, end), shape in zip(self._spans, self._shapes, strict=True)
        ]
        others = [dict(_others(arm)) for arm in arms]
        self._others = {
            name: torch.stack([other[name] for other in others]).to(course.device)
            for name in others[0]
        }
        size = max(1, BLOCK // max(1, ends[-1]))
        self._blocks = [slice(low, low + size) for low in range(0, len(arms), size)]
        try:
            self._model = deepcopy(arms[0].model)  # its tensors are never used
        except Exception as error:
            raise CannotBeStacked(
                f"a copy of it raises {type(error).__name__}: {error}"
            ) from error
        every = sum(1 for _ in self._model.named_parameters(remove_duplicate=False))
        self._ties = every > sum(1 for _ in self._model.parameters())
        self._outputs = vmap(self._output, in_dims=(0, 0, None))
        self._losses = vmap(course.loss, in_dims=(0, None))
        self._begun = False
        self._numbers: dict[str, Any] = {}
        self._read()

    def train(self, pulls: int) -> None:
        """Train for that many epochs more; `CannotBeStacked` if the first step already fails."""
        course, first = self._course, self._arms[0]
        size = course.size(first.config)
        self._model.train()
        for arm in self._arms:
            if arm.scheduler:  # it warns if its optimizer never steps: this, without gradients,
                arm.optimizer.zero_grad()  # changes nothing
                arm.optimizer.step()
        for number in range(first.epochs + 1, first.epochs + pulls + 1):
            with course.own(number):
                for inputs, targets in course.epoch(number, size):
                    self.step(inputs, targets)
                    if course.by_step:
                        self._schedule()
            if not course.by_step:
                self._schedule()
        for arm in self._arms:
            arm.epochs += pulls

    def step(self, inputs: Any, targets: Any) -> None:
        """Train all arms on one batch."""
        gradients = self._gradients(inputs, targets)
        found = self._optimizer.factors(self._numbers, self._steps)
        factors = {name: self._spread(table) for name, table in found.items()}
        with torch.no_grad():
            for block in self._blocks:
                self._optimizer.step(
                    self._rows[block],
                    gradients[block],
                    {name: rows[block] for name, rows in self._kept.items()},
                    {name: factor[block] for name, factor in factors.items()},
                )
        self._steps += 1

    def put_back(self) -> None:
        """Give every arm what it has learnt."""
        rows = self._rows.cpu()
        kept = {name: values.cpu() for name, values in self._kept.items()}
        others = {name: values.cpu() for name, values in self._others.items()}
        with torch.no_grad():
            for at, arm in enumerate(self._arms):
                for parameter, (begin, end) in zip(_learning(arm), self._spans, strict=True):
                    parameter.copy_(rows[at, begin:end].view_as(parameter))
                    state = {
                        name: values[at, begin:end].view_as(parameter).clone()
                        for name, values in kept.items()
                    }
                    if "exp_avg" in kept:
                        state["step"] = self._steps[at, 0].to(torch.float32)
                    arm.optimizer.state[parameter] = state
                for name, tensor in _others(arm):
                    tensor.copy_(others[name][at])

    def _output(self, parts: list[Any], others: dict[str, Any], inputs: Any) -> Any:
        """What one arm says of inputs, as a function of its tensors."""
        tensors = {**dict(zip(self._names, parts, strict=True)), **others}

        def model(*positional: Any, **named: Any) -> Any:
            return functional_call(self._model, tensors, positional, named, tie_weights=self._ties)

        return called(model, inputs)

    def _total(self, inputs: Any, targets: Any) -> Any:
        """The sum of the losses of all arms, each of which depends on its own row only."""
        outputs, count = self._outputs(self._parts, self._others, inputs), len(self._arms)
        if not _is_mean(self._course.loss, outputs, targets):
            return self._losses(outputs, targets).sum()
        rows = targets.expand(count, *targets.shape).flatten(0, 1)
        return count * self._course.loss(outputs.flatten(0, 1), rows)

    def _gradients(self, inputs: Any, targets: Any) -> Any:
        """A row of gradients for each arm."""
        try:
            with self._course.cast():
                total = self._total(inputs, targets)
            gradients = torch.autograd.grad(total, self._parts)
        except Exception as error:
            if self._begun:
                raise
            raise CannotBeStacked(f"{type(error).__name__}: {error}") from error
        self._begun = True
        rows = torch.cat([part.flatten(1) for part in gradients], 1)
        if self._course.clip_norm is not None:
            norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
            rows *= (self._course.clip_norm / (norms + 1e-6)).clamp(max=1)
        return rows

    def _schedule(self) -> None:
        """Let every arm's own scheduler change its settings, and read them."""
        scheduled = [arm.scheduler for arm in self._arms if arm.scheduler]
        for scheduler in scheduled:
            scheduler.step()
        if scheduled:
            self._read()

    def _read(self) -> None:
        """The settings of all arms, as their optimizers have them now."""
        told = [[numbers_of(group) for group in arm.optimizer.param_groups] for arm in self._arms]
        self._numbers = {
            name: torch.tensor(
                [[group[name] for group in arm] for arm in told], dtype=torch.float64
            )
            for name in self._optimizer.settings
        }

    def _spread(self, table: Any) -> Any:
        """A number for each group of parameters, for each column; one is for all columns."""
        table = table.to(self._rows.dtype).to(self._rows.device)
        return table if self._group is None else table[:, self._group]

    def _stacked(self, tensors: Sequence[Sequence[Any]]) -> Any:
        rows = [torch.cat([tensor.detach().flatten() for tensor in own]) for own in tensors]
        return torch.stack(rows).to(self._course.device)

    def _remembered(self, arm: Arm, name: str) -> list[Any]:
        """What its optimizer keeps of each parameter; zeros before the first step."""
        states = ((p, arm.optimizer.state.get(p, {}).get(name)) for p in _learning(arm))
        return [torch.zeros_like(p) if kept is None else kept for p, kept in states]


def _is_mean(loss: Any, outputs: Any, targets: Any) -> bool:
    """Whether the loss of these outputs, which are of several arms, is a mean over all numbers."""
    if not (isinstance(outputs, torch.Tensor) and isinstance(targets, torch.Tensor)):
        return False
    known = type(loss) in MEANS and loss.reduction == "mean"
    classes = outputs.dim() > 2 and outputs.shape[1:2] + outputs.shape[3:] == targets.shape
    by_class = loss is nn.functional.cross_entropy or type(loss) is nn.CrossEntropyLoss
    fits = outputs.shape[1:] == targets.shape or (by_class and classes)
    return (known or loss in MEAN_FUNCTIONS) and fits


def _learning(arm: Arm) -> list[Any]:
    return [parameter for parameter in arm.model.parameters() if parameter.requires_grad]


def _others(arm: Arm) -> list[tuple[str, Any]]:
    """The tensors of a module that its optimizer does not change: of some, the module does."""
    frozen = ((n, p) for n, p in arm.model.named_parameters() if not p.requires_grad)
    return [*frozen, *arm.model.named_buffers()]


def _steps(arm: Arm) -> float:
    """How many steps its optimizer has had. SGD only remembers whether it had any."""
    for state in arm.optimizer.state.values():
        return float(state["step"]) if "step" in state else float("momentum_buffer" in state)
    return 0.0
