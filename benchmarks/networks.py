"""Networks of PyTorch: many in one step beside one by one, and whole searches beside Optuna's.

    .venv-bench/bin/python benchmarks/networks.py [--seeds N]

The networks classify the handwritten digits by Adam, on one core: a hidden layer of some width, or
two layers of convolutions. 32 arms differ in learning rate, weight decay and beta. Ratios are CPU
seconds of one by one over those of the other way: for a rung of 32 arms and one epoch; and for a
whole search by halving, which times both ways and takes the faster one. Each is the lesser of
two runs, in turns. Beside Optuna, all get the same configs and the same budget of epochs, and
losses are log losses, means over the seeds. Its SuccessiveHalvingPruner is asked after each epoch,
and its loop is the one that people write.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import fmean
from time import process_time
from typing import Any, Literal

import optuna
import torch
from torch import nn

from lastarm import Configs, LogUniform, SuccessiveHalving, Uniform, search
from lastarm.data import digits
from lastarm.space import draw
from lastarm.torch import Module
from lastarm.trainers.splits import split
from record import Cell, Record

COMMAND = ".venv-bench/bin/python benchmarks/networks.py"
ARMS, BUDGET, MOST = 32, 160, 31  # epochs of all arms, and of the last one of our halving
SPACE = {"lr": LogUniform(1e-4, 1e-1), "decay": LogUniform(1e-6, 1e-2), "beta": Uniform(0.8, 0.95)}
RUNS = 2

images, labels = digits()
inputs = torch.tensor(images / 16, dtype=torch.float32)
targets = torch.tensor(labels, dtype=torch.long)
rows = split(labels, seed=0)
TRAIN, VAL, TEST = (
    (inputs[part], targets[part]) for part in (rows.train, rows.validation, rows.test)
)


def layer(width: int) -> Callable[[Any], nn.Module]:
    """Makes networks with one hidden layer."""
    return lambda config: nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def convolutions(channels: int) -> Callable[[Any], nn.Module]:
    """Makes networks with two layers of convolutions."""
    return lambda config: nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * channels, 10),
    )


NETWORKS = {
    "width 16": layer(16),
    "width 64": layer(64),
    "width 256": layer(256),
    "4 and 8 channels": convolutions(4),
    "16 and 32 channels": convolutions(16),
}
GOALS = {("width 16", 64): 5.0, ("width 64", 64): 3.5}
LEAST = 0.95


def adam(model: nn.Module, config: Any) -> torch.optim.Optimizer:
    """The optimizer of an arm."""
    betas, decay = (config["beta"], 0.999), config["decay"]
    return torch.optim.Adam(model.parameters(), config["lr"], betas=betas, weight_decay=decay)


def trainer(network: str, size: int, together: bool | Literal["always"]) -> Module:
    """The arms of a benchmark."""
    return Module(
        NETWORKS[network],
        adam,
        TRAIN,
        VAL,
        nn.functional.cross_entropy,
        test=TEST,
        batch_size=size,
        together=together,
    )


def configs(seed: int) -> list[dict[str, Any]]:
    """The settings of all arms."""
    return list(draw(SPACE, ARMS, seed))


def searched(given: Module, seed: int) -> Any:
    """What a search by halving finds."""
    policy = SuccessiveHalving(arms=ARMS, budget=BUDGET)
    return search(given, Configs(configs(seed)), policy=policy, seed=seed, progress=False)


def a_rung_apart(network: str, size: int) -> None:
    """Train all arms, one by one."""
    given = trainer(network, size, False)
    for seed, config in enumerate(configs(0)):
        given.train(given.start(config, seed), 1)


def a_rung_together(network: str, size: int) -> None:
    """Train all arms, in one step."""
    batched = trainer(network, size, "always").batched
    assert batched is not None, "the way is fixed"
    batch = batched.start(configs(0), range(ARMS))
    batched.train(batch, range(ARMS), 1)


def optunas(network: str, size: int, seed: int) -> dict[str, float]:
    """A study with the same configs, which ends when the budget is spent."""
    states: dict[int, nn.Module] = {}
    spent = 0

    def objective(trial: optuna.Trial) -> float:
        nonlocal spent
        config = {name: trial.suggest_float(name, 0, 1) for name in SPACE}
        torch.manual_seed(trial.number)
        model = states[trial.number] = NETWORKS[network](config)
        optimizer = adam(model, config)
        loss = float("inf")
        for epoch in range(1, BUDGET + 1):
            if spent == BUDGET:
                trial.study.stop()
                break
            spent += 1
            model.train()
            for batch in torch.randperm(len(TRAIN[0])).split(size):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(TRAIN[0][batch]), TRAIN[1][batch]).backward()
                optimizer.step()
            loss = judged(model, VAL)
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
            if epoch == MOST:
                break
        return loss

    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = optuna.create_study(pruner=pruner)
    for config in configs(seed):
        study.enqueue_trial(config)
    study.optimize(objective, n_trials=ARMS)
    ended = [trial for trial in study.trials if trial.intermediate_values]
    best = min(ended, key=lambda trial: trial.intermediate_values[trial.last_step or 1])
    model = states[best.number]
    return {"epochs": spent, "loss": judged(model, VAL), "test loss": judged(model, TEST)}


def judged(model: nn.Module, part: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The log loss on a part."""
    model.eval()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(part[0]), part[1]))


def ours(network: str, size: int, seed: int, together: bool) -> dict[str, float]:
    """The same of a search of ours."""
    found = searched(trainer(network, size, together), seed)
    return {"epochs": found.spent.pulls, "loss": found.loss, "test loss": found.test_loss}


def least_seconds(*works: Callable[[], object]) -> list[float]:
    """The CPU seconds of each, at least, of some runs in turns."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(RUNS):
        for taken, work in zip(seconds, works, strict=True):
            began = process_time()
            work()
            taken.append(process_time() - began)
    return [min(taken) for taken in seconds]


def ways(record: Record) -> None:
    """Both ways, for a rung and for a whole search."""
    table: dict[str, dict[str, Cell]] = {}
    ratios: dict[tuple[str, int], float] = {}
    whole: list[float] = []
    for size in (64, 256):
        for network in NETWORKS:
            apart, together = least_seconds(
                lambda: a_rung_apart(network, size),  # noqa: B023
                lambda: a_rung_together(network, size),  # noqa: B023
            )
            chosen = trainer(network, size, True)
            one_by_one, faster = least_seconds(
                lambda: searched(trainer(network, size, False), 0),  # noqa: B023
                lambda: searched(chosen, 0),  # noqa: B023
            )
            print(
                f"{network}, {size}: {apart / together:.2f}, {one_by_one / faster:.2f}", flush=True
            )
            ratios[network, size] = apart / together
            whole.append(one_by_one / faster)
            table[f"{network}, batches of {size}"] = {
                "rung, one by one, s": apart,
                "rung, together, s": together,
                "ratio": apart / together,
                "search, one by one, s": one_by_one,
                "search, way chosen, s": faster,
                "ratio of searches": one_by_one / faster,
                "way": "together" if chosen.batched else "one by one",
            }
    record.table(f"{ARMS} networks, one core", table)
    record.section("What must show")
    for (network, size), goal in GOALS.items():
        ratio = ratios[network, size]
        missed = "" if ratio >= goal else ", missed"
        what = f"{network}, batches of {size}: a rung one by one / together"
        record.row(what, ratio, "times", f"at least {goal:g}{missed}")
    missed = "" if min(whole) >= LEAST else ", missed"
    what = "a search one by one / with the way that was chosen, at least"
    record.row(what, min(whole), "times", f"never below {LEAST}{missed}")


def beside_optuna(record: Record, seeds: int) -> None:
    """Whole searches, in turns."""
    for network in ("width 16", "width 64"):
        contenders: dict[str, Callable[[int], dict[str, float]]] = {
            "lastarm, together=True": lambda seed: ours(network, 64, seed, True),  # noqa: B023
            "lastarm, one by one": lambda seed: ours(network, 64, seed, False),  # noqa: B023
            "Optuna, SuccessiveHalvingPruner": lambda seed: optunas(network, 64, seed),  # noqa: B023
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
        for seed in range(seeds):
            for name, contender in contenders.items():
                began = process_time()
                one = contender(seed)
                found[name].append({"CPU seconds": process_time() - began, **one})
        means = {
            name: {key: fmean(one[key] for one in every) for key in every[0]}
            for name, every in found.items()
        }
        record.table(f"{ARMS} configs, {BUDGET} epochs: {network}, batches of 64", means)


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description="Networks of PyTorch, together and one by one.")
    parser.add_argument("--seeds", type=int, default=3, help="beside Optuna; default: 3")
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command = COMMAND if seeds == 3 else f"{COMMAND} --seeds {seeds}"
    record = Record("networks", command, ["lastarm", "torch", "optuna", "numpy"])
    record.note(__doc__.partition("\n\n")[2].partition("\n\n")[2].rstrip())
    searched(trainer("width 16", 64, True), 0)  # much is imported when it is first used
    optunas("width 16", 256, 0)
    ways(record)
    record.write()
    beside_optuna(record, seeds)
    record.write()


if __name__ == "__main__":
    main()
