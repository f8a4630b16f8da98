"""`lastarm.torch.Module`: it keeps the laws of trainers, and what is in its files is never run."""

import hashlib
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import Choice, Result, SuccessiveHalving, Uniform, load, search
from lastarm.checkpoints import Checkpoints, StateFolder
from lastarm.errors import CheckpointLost, CheckpointReplaced, StateNotLoaded
from lastarm.events import Loss, Pull, Saved
from lastarm.journal import read
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
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    from lastarm.torch import Module
    from lastarm.torch.data import Batches

    class Noisy(Dataset[Any]):
        """Batches that are another each time that they are asked for."""

        def __len__(self) -> int:
            return 50

        def __getitem__(self, row: int) -> Any:
            noise = torch.randn(4) + random.random() + np.random.random()
            return torch.full((4,), row / 50) + 0.01 * noise.float(), row % 3


EXAMPLE = Path(__file__).parent.parent / "examples" / "pytorch_module.py"
CONFIG = {"lr": 0.01, "width": 6}


def rows(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Inputs of four columns, and which of three classes they are."""
    inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    return inputs, inputs[:, :3].argmax(dim=1)


def network(config: Any) -> Any:
    width = config["width"]
    return nn.Sequential(nn.Linear(4, width), config.get("act", nn.Tanh)(), nn.Linear(width, 3))


def drawing(config: Any) -> Any:
    """A network that draws whenever it is trained, and whose layers remember what they saw."""
    return nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3)
    )


def adam(model: Any, config: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=config["lr"])


def sgd(model: Any, config: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9, nesterov=True)


def module(model: Any = network, optimizer: Any = adam, **others: Any) -> Any:
    given: dict[str, Any] = {"train": rows(50), "val": rows(20, seed=1), "batch_size": 16} | others
    return Module(model, optimizer, loss=nn.functional.cross_entropy, **given)


def step(optimizer: Any, config: Any) -> Any:
    return lr_scheduler.MultiStepLR(optimizer, [2, 4])


def one_cycle(optimizer: Any, config: Any) -> Any:
    return lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100)


def warm_up(optimizer: Any, config: Any) -> Any:
    parts = [lr_scheduler.LinearLR(optimizer), lr_scheduler.LambdaLR(optimizer, lambda e: 0.9**e)]
    return lr_scheduler.SequentialLR(optimizer, parts, [3])


def loader(**others: Any) -> Any:
    return DataLoader(Noisy(), 16, shuffle=True, **others)


CASES: dict[str, Any] = {
    "plain": dict,
    "draws": lambda: {"model": drawing},
    "momentum, clipped": lambda: {"optimizer": sgd, "clip_norm": 0.1},
    "steps of the rate": lambda: {"make_scheduler": step},
    "one cycle": lambda: {"make_scheduler": one_cycle, "schedule": "step"},
    "two schedulers": lambda: {"make_scheduler": warm_up},
    "bfloat16": lambda: {"precision": "bfloat16"},
    "float16": lambda: {"precision": "float16", "clip_norm": 1.0},
    "a dataset that draws": lambda: {"train": Noisy(), "val": Noisy(), "test": Noisy()},
    "a loader that draws": lambda: {"train": loader(), "model": drawing},
    "a loader with a generator": lambda: {"train": loader(generator=torch.Generator())},
    "a loader with workers": lambda: {"train": loader(num_workers=1)},
    "metrics": lambda: {"metrics": {"wrong": wrong}, "test": rows(20, seed=2)},
}


def wrong(outputs: Any, targets: Any) -> Any:
    return (outputs.argmax(dim=1) != targets).float().mean()


@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES)
def test_it_keeps_the_laws_of_trainers_to_the_last_bit(case: str, check: Any) -> None:
    if case == "a loader with workers" and "a_plus_b" not in check.__name__:
        pytest.skip("each epoch starts processes, which takes time")
    check(lambda: module(**CASES[case]()), CONFIG)


# Where its rows come from ----------------------------------------------------------------------


def test_every_arm_gets_the_rows_in_one_order_and_each_epoch_has_another() -> None:
    for given in (rows(50), TensorDataset(*rows(50)), Noisy(), loader()):
        part = Batches("train", given, seed=3)
        torch.manual_seed(1)
        first = [batch[0] for batch in part.shuffled(16, epoch=1)]
        torch.manual_seed(2)
        again = [batch[0] for batch in part.shuffled(16, epoch=1)]
        other = [batch[0] for batch in part.shuffled(16, epoch=2)]
        assert all(map(torch.equal, first, again))
        assert not all(map(torch.equal, first, other))


def test_what_a_network_draws_does_not_change_the_rows() -> None:
    part = Batches("train", loader(), seed=3)
    quiet = [batch[0] for batch in part.shuffled(16, epoch=1)]
    drawn = []
    for batch in part.shuffled(16, epoch=1):
        torch.rand(7)
        drawn.append(batch[0])
    assert all(map(torch.equal, quiet, drawn))


def test_inputs_may_be_several_tensors_or_have_names() -> None:
    class Pairs(Dataset[Any]):
        def __init__(self, named: bool) -> None:
            self.named = named

        def __len__(self) -> int:
            return 20

        def __getitem__(self, row: int) -> Any:
            one, other = torch.tensor([row / 20.0]), torch.tensor([1.0])
            return ({"one": one, "other": other} if self.named else [one, other]), row % 2

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(2, 2)

        def forward(self, one: Any, other: Any) -> Any:
            return self.last(torch.cat([one, other], dim=1))

    losses = []
    for named in (False, True):
        trainer = module(lambda _: Both(), train=Pairs(named), val=Pairs(named))
        losses.append(trainer.loss(trainer.train(trainer.start(CONFIG, 0), 2)))
    assert losses[0] == losses[1]


def test_nothing_outside_of_an_arm_is_drawn_or_changed() -> None:
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.random(), float(torch.rand(1))
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    threads = torch.get_num_threads()
    trainer = module(drawing, train=Noisy())
    trainer.loss(trainer.train(trainer.start(CONFIG, 0), 2))
    assert (random.random(), np.random.random(), float(torch.rand(1))) == expected
    assert torch.get_num_threads() == threads


def test_functions_may_change_the_config_that_they_are_given() -> None:
    def popped(model: Any, config: Any) -> Any:
        return torch.optim.Adam(model.parameters(), lr=config.pop("lr"))

    config = dict(CONFIG)
    states = [module(optimizer=one).start(config, 0) for one in (popped, popped, adam)]
    assert config == CONFIG
    assert {state.optimizer.param_groups[0]["lr"] for state in states} == {CONFIG["lr"]}


def test_the_loss_is_the_mean_over_all_rows_whatever_the_batches() -> None:
    small, large = module(batch_size=3), module(batch_size=20)
    losses = [trainer.loss(trainer.start(CONFIG, 0)) for trainer in (small, large)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_the_size_of_a_batch_may_be_a_setting() -> None:
    def trained(**others: Any) -> float:
        trainer = module(**others)
        loss: float = trainer.loss(trainer.train(trainer.start({**CONFIG, "batch": 8}, 0), 1))
        return loss

    assert trained(batch_size=lambda config: config["batch"]) == trained(batch_size=8)
    assert trained(batch_size=8) != trained(batch_size=9)


def test_an_arm_that_waits_holds_nothing_of_an_accelerator() -> None:
    trainer = module(drawing, optimizer=sgd)
    arm = trainer.train(trainer.start(CONFIG, 0), 1)
    assert {tensor.device.type for tensor in arm.tensors()} == {"cpu"}
    assert len(arm.tensors()) == len(list(arm.model.state_dict())) + 6  # and the momenta
    arm.to("meta")  # a device without memory, in place of one that is not here
    assert {tensor.device.type for tensor in arm.tensors()} == {"meta"}
    assert all(parameter.grad is None for parameter in arm.model.parameters())


# Its files ---------------------------------------------------------------------------------------


def test_a_state_is_read_with_weights_only(tmp_path: Path) -> None:
    trainer = module(drawing, make_scheduler=step)
    arm = trainer.train(trainer.start(CONFIG, 5), 3)
    trainer.save(arm, tmp_path / "arm")
    found = torch.load(tmp_path / "arm", weights_only=True)
    assert (found["config"], found["seed"], found["epochs"]) == (CONFIG, 5, 3)
    assert {"model", "optimizer", "scheduler", "scaler"} < set(found)
    assert all(torch.equal(found["model"][name], t) for name, t in arm.model.state_dict().items())


def test_an_arm_that_was_read_says_what_it_said_before(tmp_path: Path) -> None:
    """In the mode for training, its layers would drop out."""
    trainer = module(drawing)
    arm = trainer.train(trainer.start(CONFIG, 5), 2)
    trainer.loss(arm)
    trainer.save(arm, tmp_path / "arm")
    read = trainer.load(tmp_path / "arm")
    inputs, _ = rows(20)
    assert torch.equal(arm.model(inputs), read.model(inputs))


def test_classes_that_the_space_lists_may_be_in_configs(tmp_path: Path) -> None:
    space = {"lr": 0.01, "width": 6, "act": Choice(nn.ReLU, nn.Tanh), "x": Uniform(0, 1)}
    policy = SuccessiveHalving(arms=4, budget=16)
    journal = tmp_path / "j.jsonl"
    found = search(module(), space, policy=policy, journal=journal, runner="processes", workers=1)
    assert found.state.config == found.config
    assert found.spent.repeated == 0
    never_told = module()
    with pytest.warns(StateNotLoaded):
        assert load(journal, never_told).state is None
    never_told.expect({"act": [nn.ReLU, nn.Tanh]})
    assert load(journal, never_told).state.epochs == found.level


class Hostile:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def test_a_hostile_checkpoint_is_refused_before_anything_in_it_runs(tmp_path: Path) -> None:
    trainer, ran = module(), tmp_path / "ran"
    pull = Pull(0, 1)
    folder = StateFolder(tmp_path / "states", trainer, durable=True)
    saved = folder.save(pull, trainer.train(trainer.start(CONFIG, 0), 1))
    assert saved
    assert folder.load(pull, saved).epochs == 1
    packed = trainer.start(CONFIG, 0).packed()
    ours = StateFolder(tmp_path / "states", object(), durable=True)  # as it pickles other states
    for hostile in ("by torch", "a pickle", "as lastarm pickles"):
        file = folder.file(pull)
        if hostile == "by torch":
            torch.save({**packed, "model": Hostile(ran)}, file)
        elif hostile == "a pickle":
            file.write_bytes(pickle.dumps(Hostile(ran)))
        else:
            assert ours.save(pull, Hostile(ran))
        content = file.read_bytes()
        sealed = Saved(hashlib.sha256(content).hexdigest(), len(content))  # as if it were ours
        with pytest.raises(CheckpointLost):
            folder.load(pull, sealed)
        assert not ran.exists(), hostile
        if hostile != "as lastarm pickles":
            torch.load(file, weights_only=False) if hostile == "by torch" else pickle.loads(
                content
            )
            assert ran.exists(), "it was hostile"
            ran.unlink()


def test_a_search_that_is_given_hostile_states_trains_again(tmp_path: Path) -> None:
    space, ran = {"lr": Uniform(0.001, 0.1), "width": 6}, tmp_path / "ran"
    journal = tmp_path / "j.jsonl"

    def tuned(budget: int) -> Any:
        policy = SuccessiveHalving(arms=4, budget=budget)
        return search(module(), space, policy=policy, journal=journal)

    tuned(16)
    for file in Checkpoints().states_of(journal).iterdir():
        torch.save(Hostile(ran), file)
    with pytest.warns(CheckpointReplaced):
        extended = tuned(32)
    assert not ran.exists()
    assert extended.spent.repeated > 0
    once = SuccessiveHalving(arms=4, budget=16)
    clean = search(module(), space, policy=once, journal=tmp_path / "other.jsonl")
    assert set(clean.curves[0]) <= set(extended.curves[0])


# What it refuses ---------------------------------------------------------------------------------


def test_arguments_that_are_not_valid_are_refused() -> None:
    with refused("train"):
        module(train=rows(50)[0])
    with refused("val", ((50, 4), (20,))):
        module(val=(rows(50)[0], rows(20)[1]))
    with refused("train.persistent_workers", True):
        module(train=loader(num_workers=1, persistent_workers=True))
    for name, value in (
        ("batch_size", 0),
        ("clip_norm", 0.0),
        ("precision", "bf16"),
        ("schedule", "batch"),
        ("threads", 0),
        ("seed", -1),
    ):
        with refused(name, value):
            module(**{name: value})
    with refused("metrics", "loss"):
        module(metrics={"loss": wrong})
    with refused("make_model"):
        module(lambda config: None).start(CONFIG, 0)
    with refused("make_optimizer"):
        module(optimizer=lambda model, config: None).start(CONFIG, 0)
    with refused("make_scheduler"):
        module(
            make_scheduler=lambda optimizer, _: lr_scheduler.ReduceLROnPlateau(optimizer)
        ).start(CONFIG, 0)
    trainer = module(train=DataLoader([1, 2, 3]))
    with refused("batch"):
        trainer.train(trainer.start(CONFIG, 0), 1)


# Killed ------------------------------------------------------------------------------------------


def run(script: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a script in a folder, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, script], cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True
    )


def losses(journal: Path) -> int:
    """How many losses count so far."""
    return sum(isinstance(e, Loss) for e in read(journal)) if journal.exists() else 0


def test_the_script_of_the_page_resumes_from_a_kill_to_the_same_digest(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in (undisturbed, killed):
        folder.mkdir()
    assert run(EXAMPLE, undisturbed).wait() == 0
    for enough in (5, 20):
        process = run(EXAMPLE, killed)
        while losses(killed / "network.jsonl") < enough and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was killed in the middle"
    assert run(EXAMPLE, killed).wait() == 0
    found = [Result.of(read(folder / "network.jsonl")) for folder in (undisturbed, killed)]
    assert found[0].complete
    assert found[0].digest == found[1].digest
