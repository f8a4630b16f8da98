"""A trainer for ordinary PyTorch: a module, its optimizer and rows; a pull is an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from lastarm.arguments import as_float, one_of, whole_number
from lastarm.errors import InvalidArgument
from lastarm.torch.arm import Arm
from lastarm.torch.data import Batches, called, on_device, rows_in
from lastarm.torch.randomness import seeded
from lastarm.trainers import Config

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
LOOKING = 2**32  # in place of the number of an epoch, in what seeds the generators


class Module:
    """Trains modules of PyTorch. A pull is an epoch over TRAIN, the loss is the mean over VAL.

    >>> import torch
    >>> from torch import nn
    >>> from lastarm import LogUniform, search
    >>> inputs = torch.linspace(-1, 1, 60)[:, None]
    >>> trainer = Module(
    ...     lambda config: nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)),
    ...     lambda model, config: torch.optim.Adam(model.parameters(), lr=config["lr"]),
    ...     train=(inputs[::2], inputs[::2] ** 2),
    ...     val=(inputs[1::2], inputs[1::2] ** 2),
    ...     loss=nn.functional.mse_loss,
    ...     batch_size=10,
    ... )
    >>> result = search(trainer, {"lr": LogUniform(1e-4, 0.1)}, arms=4, budget=80)
    >>> result.loss < 0.01, result.state.model
    (True, Sequential(...))

    Training a + b epochs is training a, then b: before each epoch all global generators are seeded
    by the arm's seed and the number of the epoch, and outside of training they are as they were.
    The order of the rows, and what a dataset or a loader draws, is the same for all arms. Between
    two pulls an arm is in ordinary memory, and takes nothing of an accelerator.

    States are files of `torch.save` with the config and the `state_dict` of each part, and are
    read with `weights_only=True`, which runs nothing that is in them. So the values of a config
    are plain data: numbers, texts and lists of them, or classes and functions that the space
    lists.

    :param make_model: `make_model(config)` makes a module. What it draws is drawn by the arm's
        seed.
    :param make_optimizer: `make_optimizer(model, config)` makes its optimizer.
    :param train: the rows to learn from: a pair of tensors or arrays, a `Dataset` of pairs, or a
        `DataLoader` with batches that are pairs. Inputs may be a list or a dict of tensors, which
        the module gets as its arguments.
    :param val: the rows that give the loss, of the same kinds.
    :param loss: `loss(outputs, targets)`, the mean over the rows of a batch.
    :param test: the rows that give the test loss; left out, there is none.
    :param metrics: other figures to tell, by their names: functions like `loss`. Each is the mean
        over VAL.
    :param batch_size: the rows in a batch, or a function of the config that says it. A
        `DataLoader` has its own.
    :param make_scheduler: `make_scheduler(optimizer, config)` makes what changes the learning
        rate.
    :param schedule: when it does so: after each "epoch" or each "step".
    :param clip_norm: the gradients of a step are made shorter if their norm is above this.
    :param precision: "bfloat16" or "float16" for automatic mixed precision; float16 scales losses.
    :param device: where arms are trained, such as "cuda".
    :param threads: how many threads of the processor an arm takes. `workers` train several arms at
        a time, which uses cores better than more threads do, unless the network is large.
    :param seed: decides the order of the rows.
    """

    def __init__(
        self,
        make_model: Callable[[Any], Any],
        make_optimizer: Callable[[Any, Any], Any],
        train: Any,
        val: Any,
        loss: Callable[[Any, Any], Any],
        *,
        test: Any = None,
        metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
        batch_size: int | Callable[[Any], int] = 64,
        make_scheduler: Callable[[Any, Any], Any] | None = None,
        schedule: Literal["epoch", "step"] = "epoch",
        clip_norm: float | None = None,
        precision: Literal["bfloat16", "float16"] | None = None,
        device: str | torch.device = "cpu",
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        self._threads = whole_number("threads", threads, 1, "how many an arm takes")
        self._seed = whole_number("seed", seed, 0, "what decides the order of the rows")
        self._make_model, self._make_optimizer = make_model, make_optimizer
        self._make_scheduler, self._loss = make_scheduler, loss
        self._metrics = dict(metrics or {})
        if "loss" in self._metrics:
            rule = "the loss is told under this name"
            raise InvalidArgument.of("metrics", "loss", rule, "Use another name")
        self._schedule = one_of("schedule", schedule, ("epoch", "step"), "when the rate changes")
        self._precision = precision
        if precision is not None:
            one_of("precision", precision, PRECISIONS, "that of automatic mixed precision")
        self._clip_norm = clip_norm
        if clip_norm is not None and not as_float(clip_norm) > 0:
            rule = "it is the largest norm of the gradients of a step"
            raise InvalidArgument.of("clip_norm", clip_norm, rule, "Use a number greater than 0")
        self._batch_size = batch_size
        if not callable(batch_size):
            whole_number("batch_size", batch_size, 1, "the rows in a batch")
        self._device = torch.device(device)
        given = {"train": train, "val": val} | ({} if test is None else {"test": test})
        self._rows = {name: Batches(name, part, self._seed) for name, part in given.items()}
        self._options: list[Any] = []
        if test is not None:
            self.test = self._test  # without TEST there is no such method

    def expect(self, settings: Mapping[str, Any]) -> None:
        """Know the classes and functions that configs may have, so that states may name them."""
        listed = [one for values in settings.values() for one in values]
        self._options = [one for one in listed if hasattr(one, "__qualname__")]

    def start(self, config: Config, seed: int) -> Arm:
        """A new module with its optimizer, in ordinary memory."""
        with self._own(seed, 0):
            model = self._make_model(config)
            _require(nn.Module, "make_model", model, "a module, such as nn.Linear(64, 10)")
            optimizer = self._make_optimizer(model, config)
            way_out = "an optimizer, such as torch.optim.Adam(model.parameters())"
            _require(torch.optim.Optimizer, "make_optimizer", optimizer, way_out)
            scheduler = self._make_scheduler and self._make_scheduler(optimizer, config)
        if isinstance(scheduler, ReduceLROnPlateau):
            rule = "it asks for a loss after each epoch, and an arm is looked at less often"
            way_out = "Use a scheduler that counts epochs, such as StepLR"
            raise InvalidArgument.of("make_scheduler", "ReduceLROnPlateau", rule, way_out)
        scales = self._precision == "float16"
        scaler = torch.amp.GradScaler(self._device.type, enabled=scales)
        return Arm(config, seed, model, optimizer, scheduler, scaler)

    def train(self, state: Arm, pulls: int) -> Arm:
        """Train for that many epochs more."""
        state.to(self._device)
        state.model.train()
        for _ in range(pulls):
            state.epochs += 1
            with self._own(state.seed, state.epochs):
                for batch in self._rows["train"].shuffled(self._size(state), state.epochs):
                    self._step(state, *on_device(batch, self._device))
                    if self._schedule == "step" and state.scheduler:
                        state.scheduler.step()
            if self._schedule == "epoch" and state.scheduler:
                state.scheduler.step()
        state.optimizer.zero_grad()
        return state

    def loss(self, state: Arm) -> float | dict[str, float]:
        """The mean loss over VAL, and the metrics, if there are any."""
        return self._look(state, "val")

    def _test(self, state: Arm) -> float | dict[str, float]:
        return self._look(state, "test")

    def save(self, state: Arm, path: Path) -> None:
        """Write an arm to a file."""
        torch.save(state.packed(), path)

    def load(self, path: Path) -> Arm:
        """Read an arm. Nothing that is in the file is run."""
        with torch.serialization.safe_globals(self._options):
            packed = torch.load(path, map_location="cpu", weights_only=True)
        state = self.start(packed["config"], packed["seed"])
        state.take_from(packed)
        state.model.eval()  # as it is after a look
        return state

    def size(self, state: Arm) -> int:
        """How many bytes an arm takes."""
        return state.size()

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the rows, where they are tensors, and the settings."""
        return {
            **{name: part.fingerprint() for name, part in self._rows.items()},
            "loss": getattr(self._loss, "__qualname__", type(self._loss).__qualname__),
            "batch_size": None if callable(self._batch_size) else self._batch_size,
            "schedule": self._schedule,
            "clip_norm": self._clip_norm,
            "precision": self._precision,
            "seed": self._seed,
        }

    def _size(self, state: Arm) -> int:
        if not callable(self._batch_size):
            return self._batch_size
        return whole_number("batch_size", self._batch_size(state.config), 1, "the rows in a batch")

    def _step(self, state: Arm, inputs: Any, targets: Any) -> None:
        state.optimizer.zero_grad()
        with self._cast():
            loss = self._loss(called(state.model, inputs), targets)
        state.scaler.scale(loss).backward()
        if self._clip_norm is not None:
            state.scaler.unscale_(state.optimizer)
            nn.utils.clip_grad_norm_(state.model.parameters(), self._clip_norm)
        state.scaler.step(state.optimizer)
        state.scaler.update()

    def _look(self, state: Arm, part: str) -> float | dict[str, float]:
        """The means over the rows of a part. The arm is then in ordinary memory again."""
        judges = {"loss": self._loss, **self._metrics}
        sums, count = dict.fromkeys(judges, 0.0), 0
        state.to(self._device)
        state.model.eval()
        with self._own(state.seed, LOOKING), torch.no_grad(), self._cast():
            for batch in self._rows[part].in_order(self._size(state)):
                inputs, targets = on_device(batch, self._device)
                outputs, rows = called(state.model, inputs), rows_in(inputs)
                count += rows
                for name, judge in judges.items():
                    sums[name] += rows * float(judge(outputs, targets))
        state.to("cpu")
        means = {name: total / count for name, total in sums.items()}
        return means if self._metrics else means["loss"]

    @contextmanager
    def _own(self, *numbers: int) -> Iterator[None]:
        """Generators that are seeded by these numbers, and the threads of an arm."""
        before = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            with seeded(self._device, *numbers):
                yield
        finally:
            torch.set_num_threads(before)

    def _cast(self) -> Any:
        if self._precision is None:
            return nullcontext()
        return torch.autocast(self._device.type, PRECISIONS[self._precision])


def _require(kind: type, name: str, made: Any, way_out: str) -> None:
    if not isinstance(made, kind):
        rule = f"it made {type(made).__name__}"
        raise InvalidArgument(f"{name} is not valid: {rule}. Return {way_out}.", argument=name)
