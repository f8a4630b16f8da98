"""A trainer for ordinary PyTorch: a module, its optimizer and rows; a pull is an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from lastarm.arguments import as_float, one_of, whole_number
from lastarm.errors import InvalidArgument
from lastarm.torch.arm import Arm
from lastarm.torch.course import PRECISIONS, Course
from lastarm.torch.data import Batches, called, on_device, rows_in
from lastarm.torch.together import BatchedModules
from lastarm.torch.way import ONE_BY_ONE, TOGETHER, faster_way
from lastarm.trainers import Config

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
    :param together: whether arms of one architecture are trained in one step: many small networks
        then take a fraction of the time. With True the faster way is found out before a search,
        by a few batches whose work is thrown away, and the journal says which it was, so that a
        search that is resumed takes the same. "always" and False fix it. Worker processes train
        one by one. Losses agree up to rounding, and a digest is that of one way.
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
        together: bool | Literal["always"] = False,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        if together not in (True, False, "always"):
            rule = "it says whether arms are trained in one step"
            raise InvalidArgument.of("together", together, rule, 'Use True, False or "always"')
        self._together = together
        self._way = TOGETHER if together == "always" else ONE_BY_ONE
        self._make_model, self._make_optimizer = make_model, make_optimizer
        self._make_scheduler = make_scheduler
        self._metrics = dict(metrics or {})
        if "loss" in self._metrics:
            rule = "the loss is told under this name"
            raise InvalidArgument.of("metrics", "loss", rule, "Use another name")
        one_of("schedule", schedule, ("epoch", "step"), "when the rate changes")
        if precision is not None:
            one_of("precision", precision, PRECISIONS, "that of automatic mixed precision")
        if clip_norm is not None and not as_float(clip_norm) > 0:
            rule = "it is the largest norm of the gradients of a step"
            raise InvalidArgument.of("clip_norm", clip_norm, rule, "Use a number greater than 0")
        if not callable(batch_size):
            whole_number("batch_size", batch_size, 1, "the rows in a batch")
        self._seed = whole_number("seed", seed, 0, "what decides the order of the rows")
        given = {"train": train, "val": val} | ({} if test is None else {"test": test})
        self._course = Course(
            {name: Batches(name, part, self._seed) for name, part in given.items()},
            loss,
            batch_size,
            by_step=schedule == "step",
            clip_norm=clip_norm,
            precision=precision,
            device=torch.device(device),
            threads=whole_number("threads", threads, 1, "how many an arm takes"),
        )
        self._options: list[Any] = []
        if test is not None:
            self.test = self._test  # without TEST there is no such method

    def expect(self, settings: Mapping[str, Any]) -> None:
        """Know the classes and functions that configs may have, so that states may name them."""
        listed = [one for values in settings.values() for one in values]
        self._options = [one for one in listed if hasattr(one, "__qualname__")]

    def choose_way(self, configs: Sequence[Config], begun: Mapping[str, Any] | None) -> None:
        """Decide whether arms are trained together, before a search begins or is resumed."""
        if self._together is not True:
            return
        self._way = ONE_BY_ONE
        if begun and begun.get("way") in (ONE_BY_ONE, TOGETHER):
            self._way = begun["way"]
        elif configs:
            self._way = faster_way(self.start, configs, self._course)

    @property
    def batched(self) -> BatchedModules | None:
        """What trains many arms in one step, if that is the way; else None."""
        if self._way == ONE_BY_ONE:
            return None
        return BatchedModules(self, self._course, always=self._together == "always")

    def start(self, config: Config, seed: int) -> Arm:
        """A new module with its optimizer, in ordinary memory."""
        with self._course.own(seed, 0):
            model = self._make_model({**config})
            _require(nn.Module, "make_model", model, "a module, such as nn.Linear(64, 10)")
            optimizer = self._make_optimizer(model, {**config})
            way_out = "an optimizer, such as torch.optim.Adam(model.parameters())"
            _require(torch.optim.Optimizer, "make_optimizer", optimizer, way_out)
            scheduler = self._make_scheduler and self._make_scheduler(optimizer, {**config})
        if isinstance(scheduler, ReduceLROnPlateau):
            rule = "it asks for a loss after each epoch, and an arm is looked at less often"
            way_out = "Use a scheduler that counts epochs, such as StepLR"
            raise InvalidArgument.of("make_scheduler", "ReduceLROnPlateau", rule, way_out)
        scales = self._course.precision == "float16"
        scaler = torch.amp.GradScaler(self._course.device.type, enabled=scales)
        return Arm(config, seed, model, optimizer, scheduler, scaler)

    def train(self, state: Arm, pulls: int) -> Arm:
        """Train for that many epochs more."""
        course, size = self._course, self._course.size(state.config)
        state.to(course.device)
        state.model.train()
        for _ in range(pulls):
            state.epochs += 1
            with course.own(state.seed, state.epochs):
                for inputs, targets in course.epoch(state.epochs, size):
                    course.step(state, inputs, targets)
                    if course.by_step and state.scheduler:
                        state.scheduler.step()
            if not course.by_step and state.scheduler:
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
        course = self._course
        return {
            **{name: part.fingerprint() for name, part in course.rows.items()},
            "loss": getattr(course.loss, "__qualname__", type(course.loss).__qualname__),
            "batch_size": None if callable(course.batch_size) else course.batch_size,
            "schedule": "step" if course.by_step else "epoch",
            "clip_norm": course.clip_norm,
            "precision": course.precision,
            "seed": self._seed,
            "way": self._way,
        }

    def _look(self, state: Arm, part: str) -> float | dict[str, float]:
        """The means over the rows of a part. The arm is then in ordinary memory again."""
        course = self._course
        judges = {"loss": course.loss, **self._metrics}
        sums, count = dict.fromkeys(judges, 0.0), 0
        state.to(course.device)
        state.model.eval()
        with course.own(state.seed, LOOKING), torch.no_grad(), course.cast():
            for batch in course.rows[part].in_order(course.size(state.config)):
                inputs, targets = on_device(batch, course.device)
                outputs, rows = called(state.model, inputs), rows_in(inputs)
                count += rows
                for name, judge in judges.items():
                    sums[name] += rows * float(judge(outputs, targets))
        state.to("cpu")
        means = {name: total / count for name, total in sums.items()}
        return means if self._metrics else means["loss"]


def _require(kind: type, name: str, made: Any, way_out: str) -> None:
    if not isinstance(made, kind):
        rule = f"it made {type(made).__name__}"
        raise InvalidArgument(f"{name} is not valid: {rule}. Return {way_out}.", argument=name)
