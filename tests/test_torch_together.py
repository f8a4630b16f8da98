"""Many networks in one step: every arm has the losses that it would have alone."""

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lastarm import LogUniform, Result, SuccessiveHalving, Uniform, search
from lastarm.batched import SomeFailed
from lastarm.errors import AllArmsFailed, OtherSearch
from lastarm.events import Loss
from lastarm.journal import read
from lastarm.journal.header import header_of
from lastarm.testing import trainer_checks
from tests.refusals import refused

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not find_spec("torch"), reason="torch: make frameworks"),
]
if find_spec("torch"):
    import torch
    from torch import nn
    from torch.optim import lr_scheduler

    import lastarm.torch.module
    from lastarm.torch import Module
    from lastarm.torch.way import ONE_BY_ONE, TOGETHER

    class Scaled(nn.Module):
        """A layer with a number that is not a parameter."""

        def __init__(self, scale: float) -> None:
            super().__init__()
            self.scale, self.inner = scale, nn.Linear(6, 3)

        def forward(self, inputs: Any) -> Any:
            return self.scale * self.inner(inputs)

    class Tied(nn.Module):
        """A layer that is used twice, and one that does not learn."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
            self.again = self.first
            self.last.bias.requires_grad_(False)

        def forward(self, inputs: Any) -> Any:
            return self.last(torch.tanh(self.again(torch.tanh(self.first(inputs)))))

    def cross_entropy(outputs: Any, targets: Any) -> Any:
        """The same as PyTorch's, of which nothing is known."""
        return nn.functional.cross_entropy(outputs, targets)


ARMS = 6
CONFIGS = [
    {"lr": 0.002 * (i + 1), "momentum": 0.5 + 0.07 * i, "decay": 0.001 * i, "beta": 0.8 + 0.02 * i}
    for i in range(ARMS)
]


def small(config: Any) -> Any:
    width = config.get("width", 5)
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))


def with_memory(config: Any) -> Any:
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def convolving(config: Any) -> Any:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    )


def dropping(config: Any) -> Any:
    return nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.2), nn.Linear(5, 3))


def adam(model: Any, config: Any) -> Any:
    betas, decay = (config.get("beta", 0.9), 0.99), config.get("decay", 0)
    return torch.optim.Adam(model.parameters(), config["lr"], betas=betas, weight_decay=decay)


def adamw(model: Any, config: Any) -> Any:
    return torch.optim.AdamW(model.parameters(), config["lr"], weight_decay=config["decay"])


def sgd(**others: Any) -> Any:
    def make(model: Any, config: Any) -> Any:
        return torch.optim.SGD(model.parameters(), config["lr"], **others)

    return make


def momentum(model: Any, config: Any) -> Any:
    given = {"momentum": config["momentum"], "weight_decay": config["decay"]}
    return torch.optim.SGD(model.parameters(), config["lr"], nesterov=True, **given)


def groups(model: Any, config: Any) -> Any:
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    parts = [{"params": weights, "weight_decay": config["decay"]}, {"params": others, "lr": 0.1}]
    return torch.optim.SGD(parts, config["lr"], momentum=0.9)


def rmsprop(model: Any, config: Any) -> Any:
    return torch.optim.RMSprop(model.parameters(), config["lr"])


def falling(optimizer: Any, config: Any) -> Any:
    return lr_scheduler.StepLR(optimizer, 2)


def one_cycle(optimizer: Any, config: Any) -> Any:
    return lr_scheduler.OneCycleLR(optimizer, config["lr"], total_steps=100)


def module(model: Any = small, optimizer: Any = adam, double: bool = False, **others: Any) -> Any:
    kind = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 6, dtype=kind, generator=generator)
    targets = inputs[:, :3].argmax(dim=1)
    given: dict[str, Any] = {
        "train": (inputs[:40], targets[:40]),
        "val": (inputs[40:], targets[40:]),
        "loss": nn.functional.cross_entropy,
        "batch_size": 16,
    }
    return Module(lambda config: model(config).to(kind), optimizer, **given | others)


def batched(*given: Any, **others: Any) -> Any:
    return module(*given, together="always", **others).batched


class Four:
    """An arm that is trained in a stack with three others."""

    def __init__(self) -> None:
        self.batched = batched(double=True)

    def start(self, config: Any, seed: int) -> Any:
        return self.batched.start([config] * 4, [seed, 1, 2, 3])

    def train(self, state: Any, pulls: int) -> Any:
        self.batched.train(state, range(4), pulls)
        return state

    def loss(self, state: Any) -> Any:
        return self.batched.losses(state, [0])[0]


CASES: dict[str, dict[str, Any]] = {
    "Adam": {},
    "AdamW": {"optimizer": adamw},
    "SGD": {"optimizer": sgd()},
    "SGD with dampening": {"optimizer": sgd(momentum=0.9, dampening=0.3)},
    "SGD with Nesterov's momentum": {"optimizer": momentum},
    "groups of parameters": {"optimizer": groups},
    "batch normalisation": {"model": with_memory},
    "convolutions": {"model": convolving},
    "clipped gradients": {"clip_norm": 0.05},
    "a scheduler": {"optimizer": momentum, "make_scheduler": falling},
    "a scheduler of steps": {
        "optimizer": momentum,
        "make_scheduler": one_cycle,
        "schedule": "step",
    },
}


def trained_alone(trainer: Any, arm: int, pulls: int) -> float:
    loss: float = trainer.loss(trainer.train(trainer.start(CONFIGS[arm], seed=arm), pulls))
    return loss


@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_an_arm_has_the_losses_that_it_would_have_alone(case: str, double: bool) -> None:
    together = batched(double=double, **CASES[case])
    batch = together.start(CONFIGS, range(ARMS))
    pulls = dict.fromkeys(range(ARMS), 0)
    for arms, more in ((range(ARMS), 2), ([5, 3, 0, 2], 3), ([2, 0], 1)):  # rungs, that shrink
        together.train(batch, arms, more)
        for arm in arms:
            pulls[arm] += more
    losses = together.losses(batch, range(ARMS))
    trainer = module(double=double, **CASES[case])
    alone = [trained_alone(trainer, arm, pulls[arm]) for arm in range(ARMS)]
    assert losses == pytest.approx(alone, rel=1e-9 if double else 1e-4)


@pytest.mark.parametrize("other", ["Tied", "cross_entropy", "named"])
def test_also_with_parts_of_a_users_own(other: str) -> None:
    given: dict[str, Any] = {"double": True}
    if other == "cross_entropy":
        given["loss"] = cross_entropy
    elif other == "Tied":
        given["model"] = lambda config: Tied()
    else:
        given["loss"] = nn.CrossEntropyLoss(label_smoothing=0.1)
    together, trainer = batched(**given), module(**given)
    batch = together.start(CONFIGS, range(ARMS))
    together.train(batch, range(ARMS), 3)
    alone = [trained_alone(trainer, arm, 3) for arm in range(ARMS)]
    assert together.losses(batch, range(ARMS)) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    "check", trainer_checks(relative=1e-9, saves=False), ids=lambda check: check.__name__
)
def test_a_stack_keeps_the_laws_of_trainers(check: Any) -> None:
    check(Four, CONFIGS[1])


def test_arms_that_differ_in_more_than_numbers_are_in_stacks_of_their_own() -> None:
    def model(config: Any) -> Any:
        return Scaled(config["scale"])

    configs = [{"lr": 0.01, "scale": scale} for scale in (1.0, 2.0, 1.0, 2.0, 3.0)]
    together, trainer = batched(model, double=True), module(model, double=True)
    batch = together.start(configs, range(5))
    together.train(batch, range(5), 2)
    alone = [
        trainer.loss(trainer.train(trainer.start(config, seed), 2))
        for seed, config in enumerate(configs)
    ]
    assert together.losses(batch, range(5)) == pytest.approx(alone, rel=1e-9)


def test_what_is_taken_is_an_ordinary_module_that_trains_on_alone() -> None:
    together = batched(optimizer=momentum, double=True, make_scheduler=falling)
    batch = together.start(CONFIGS, range(ARMS))
    together.train(batch, range(ARMS), 2)
    one = together.take(batch, 3)
    before = [tensor.clone() for tensor in one.tensors()]
    together.train(batch, range(ARMS), 1)
    assert all(map(torch.equal, before, one.tensors()))  # it is a copy
    assert type(one.model) is nn.Sequential
    assert type(one.optimizer) is torch.optim.SGD
    trainer = module(optimizer=momentum, double=True, make_scheduler=falling)
    assert trainer.loss(trainer.train(one, 1)) == pytest.approx(together.losses(batch, [3])[0])
    again = together.gather([together.take(batch, arm) for arm in (4, 1)])
    assert together.losses(again, [1, 0]) == together.losses(batch, [1, 4])


def test_the_error_of_an_arm_is_its_own() -> None:
    def model(config: Any) -> Any:
        if config["lr"] == CONFIGS[2]["lr"]:
            raise OSError("no such weights")
        return small(config)

    together = batched(model)
    batch = together.start(CONFIGS, range(ARMS))
    with pytest.raises(SomeFailed) as info:
        together.train(batch, range(ARMS), 1)
    assert list(info.value.causes) == [2]
    assert len(together.losses(batch, [0, 1, 3, 4, 5])) == 5


def test_what_cannot_be_stacked_is_trained_alone_and_refused_if_it_always_is_to_be() -> None:
    for given in ({"model": dropping}, {"optimizer": rmsprop}, {"precision": "float16"}):
        together = batched(**given)
        with pytest.raises(SomeFailed) as info:
            together.train(together.start(CONFIGS, range(ARMS)), range(ARMS), 1)
        for cause in info.value.causes.values():
            with refused("together", "always"):
                raise cause


SPACE = {"lr": LogUniform(1e-3, 1e-1), "beta": Uniform(0.8, 0.95)}


def tuned(journal: Path | None = None, trainer: Any = None, **others: Any) -> Any:
    policy = SuccessiveHalving(arms=8, budget=48)
    given = trainer or module(together=True)
    return search(given, SPACE, policy=policy, journal=journal, **others)


def way_in(journal: Path) -> Any:
    return header_of(read(journal)).trainer["way"]


@pytest.mark.parametrize("way", ["one by one", "together"])
def test_the_way_is_chosen_once_and_a_resumed_search_reads_it(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "j.jsonl"
    monkeypatch.setattr(lastarm.torch.module, "faster_way", lambda *_: way)
    found = tuned(journal)
    assert way_in(journal) == way
    other = TOGETHER if way == ONE_BY_ONE else ONE_BY_ONE
    monkeypatch.setattr(lastarm.torch.module, "faster_way", lambda *_: other)
    assert tuned(journal).digest == found.digest
    fixed = "always" if way == ONE_BY_ONE else False
    with pytest.raises(OtherSearch) as info:
        tuned(journal, module(together=fixed))
    assert [name for name, *_ in info.value.differences] == ["trainer.way"]


def test_what_is_timed_before_a_search_leaves_no_trace() -> None:
    torch.manual_seed(0)
    expected = float(torch.rand(1))
    torch.manual_seed(0)
    chosen = module(together=True)
    found = tuned(trainer=chosen)
    assert float(torch.rand(1)) == expected
    fixed = "always" if chosen.batched else False
    assert tuned(trainer=module(together=fixed)).digest == found.digest
    assert tuned(trainer=module(together=False)).loss == pytest.approx(found.loss, rel=1e-4)


def test_architectures_of_which_there_are_few_are_not_even_timed() -> None:
    trainer = module(together=True)
    trainer.choose_way([{"lr": 0.01, "width": width} for width in range(3, 40)], None)
    assert trainer.batched is None


def test_worker_processes_train_one_by_one(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    found = tuned(journal, workers=2)
    assert way_in(journal) == ONE_BY_ONE
    assert tuned(trainer=module()).digest == found.digest


def test_higher_may_be_better_for_arms_that_are_trained_together() -> None:
    usual, other = (tuned(trainer=module(together="always"), maximize=m) for m in (False, True))
    assert other.curves[0][0][1] == -usual.curves[0][0][1]


def test_a_search_of_arms_that_cannot_be_stacked_says_why() -> None:
    with pytest.raises(AllArmsFailed) as info:
        tuned(trainer=module(dropping, together="always"))
    assert "randomness" in str(info.value)
    assert tuned(trainer=module(dropping, together=True)).complete


SCRIPT = """
import os, signal, sys
from tests.test_torch_together import module, tuned
from lastarm.events import Loss
left = int(sys.argv[2])
def watch(event):
    global left
    left -= isinstance(event, Loss)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
tuned(sys.argv[1], module(together="always"), on_event=watch)
"""


def test_killed_in_the_middle_it_comes_to_the_same_digest(tmp_path: Path) -> None:
    undisturbed = tuned(tmp_path / "undisturbed.jsonl", module(together="always"))
    journal = tmp_path / "killed.jsonl"
    root = Path(__file__).parent.parent
    for after in (3, 12):
        command = [sys.executable, "-c", SCRIPT, str(journal), str(after)]
        assert subprocess.run(command, cwd=root, check=False).returncode == -signal.SIGKILL
    found = tuned(journal, module(together="always"))
    assert found.digest == undisturbed.digest
    assert sum(isinstance(event, Loss) for event in read(journal)) == found.spent.observations
    assert Result.of(read(journal)).complete


def test_a_word_that_is_not_known_is_refused() -> None:
    with refused("together", "never"):
        module(together="never")
