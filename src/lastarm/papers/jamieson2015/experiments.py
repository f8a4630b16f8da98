"""The paper's three experiments, §5.1 to §5.3: what is trained, on what, how often.

As in the paper: splits of 90/10 and 80/20, every dimension and the target with mean 0 and variance
1 on TRAIN (not for completion), the ranges of the hyperparameters, the numbers of arms and trials.
The paper does not say how large its budgets are; here they double from the least that every policy
can use.

The protocol is trials of many searches, each with its own journal. In every trial the split, the
order of the samples and the arms are drawn again. For every policy there is one search for each
budget of a doubling sequence, with counters at 0 again: "we do not warm start upon doubling". Its
error is that of its recommendation J_t on TEST, its wall-clock time what training and looking
took. Arms are trained one at a time, as in the paper; `together`, many in one kernel.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from signal import SIGTERM
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lastarm.batched import BatchedTrainer
from lastarm.batched.completion import MatrixCompletion
from lastarm.batched.kernel_svm import KernelSVM
from lastarm.batched.ridge import RidgeRegression
from lastarm.events import Pull
from lastarm.papers.jamieson2015.data import (
    RatingTable,
    Table,
    classification_table,
    ratings,
    regression_table,
)
from lastarm.papers.jamieson2015.page import Row, Settings, Stopped
from lastarm.plain import as_python
from lastarm.policies import POLICIES
from lastarm.policies.named import takes
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, Policy, added_later, ranking
from lastarm.result import Result
from lastarm.runners import AnyRunner, Serial
from lastarm.searching import search
from lastarm.signals import stop_on_signals
from lastarm.space import Grid, Integer, LogUniform, Space, Uniform
from lastarm.trainers import arm_seed
from lastarm.trainers.splits import split

Array = NDArray[np.float64]


@dataclass(eq=False)
class InThePaper(InRounds):
    """A policy as the paper's experiments run it.

    It recommends J_t = argmin ℓ_{θ,T_θ}, the arm whose latest loss is the lowest (§4.1), even if
    that arm was dropped. And the general algorithm runs until it is stopped from outside (figure
    2): a policy that ends when it is sure gives the rest of its budget to the arm that it found.
    What rounding leaves, less than a pull for each arm, stays unspent, as with the other policies.
    """

    name: ClassVar[str] = "in-the-paper"
    version: ClassVar[int] = 2  # version 1 gave what rounding left to an arm, too
    adaptive: ClassVar[bool] = True
    of: str = "successive-halving"
    seed: int = 0
    ends: bool = added_later(False)  # a policy that is sure leaves the rest unspent
    low: float | None = added_later(None)  # the range of the losses, if it is known
    high: float | None = added_later(None)

    def algorithm(self) -> Algorithm:
        """The policy's own algorithm, perhaps one pull with the rest of the budget, then J_t."""
        given = {"seed": self.seed, "low": self.low, "high": self.high}
        taken = {name: value for name, value in given.items() if takes(self.of, name)}
        policy = POLICIES[self.of](self.arms, self.budget, **taken)
        assert isinstance(policy, InRounds)
        arm = yield from policy.algorithm()
        left = self.budget - sum(self._level)
        if policy.ends_when_sure and left >= self.arms and not self.ends:
            yield [Pull(arm, upto=self._level[arm] + left)]
        return ranking(self._healthy())[0]

    def least_budget(self, arms: int) -> int:
        """That of the policy."""
        return POLICIES[self.of](1, 1).least_budget(arms)


@dataclass(frozen=True)
class Experiment:
    """A problem, its arms, and the policies that are compared on it.

    `policies` has the greatest budget of each policy: those that look at every pull get less.
    """

    name: str
    title: str
    error: str
    pull: str
    load: Callable[..., Any]
    problem: Callable[[Any, int], BatchedTrainer[Any, Any]]
    space: Space
    arms: int
    trials: int
    budgets: tuple[int, ...]
    policies: Mapping[str, int]

    def quick(self) -> Experiment:
        """The same in small: two trials and three budgets."""
        budgets = self.budgets[:3]
        policies = {name: min(most, budgets[-1]) for name, most in self.policies.items()}
        return replace(self, trials=2, budgets=budgets, policies=policies)


def doublings(first: int, last: int) -> tuple[int, ...]:
    """The powers of two from one to another.

    >>> doublings(64, 512)
    (64, 128, 256, 512)
    """
    return tuple(2**k for k in range(first.bit_length() - 1, last.bit_length()))


def scaled(X: Array, train: NDArray[np.intp]) -> Array:
    """Every column with mean 0 and variance 1 on TRAIN; a column that is constant there becomes 0.

    >>> scaled(np.array([[1.0, 5.0], [3.0, 5.0], [4.0, 5.0]]), np.array([0, 1]))
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 2.,  0.]])
    """
    deviation = X[train].std(axis=0)
    constant = deviation < 1e-12 * np.abs(X[train]).max(axis=0, initial=1.0)
    result: Array = (X - X[train].mean(axis=0)) / np.where(constant, np.inf, deviation)
    return result


def ridge_regression(table: Table, seed: int) -> RidgeRegression:
    """§5.1: squared error of a target of mean 0 and variance 1."""
    train, val, test = split(len(table.y), seed)
    X, y = scaled(table.X, train), scaled(table.y[:, None], train)[:, 0]
    return RidgeRegression(X[train], y[train], X[val], y[val], X[test], y[test], seed=seed)


def kernel_svm(table: Table, seed: int) -> KernelSVM:
    """§5.2: with variance 1 in each dimension, squared distances of rows are near 2d.

    With γ ≥ 1 the kernel would then be an identity. So rows are divided by √(2d), and squared
    distances are near 1.
    """
    train, val, test = split(table.y.astype(int), seed)
    X, y = scaled(table.X, train) / np.sqrt(2 * table.X.shape[1]), table.y
    return KernelSVM(X[train], y[train], X[val], y[val], X[test], y[test], seed=seed)


def matrix_completion(given: RatingTable, seed: int) -> MatrixCompletion:
    """§5.3: ratings as they are."""
    train, val, test = split(len(given.rows), seed)
    return MatrixCompletion(given.rows[train], given.rows[val], given.rows[test], seed=seed)


IN_ALL = ("uniform", "successive-halving", "successive-rejects")
RIDGE = Experiment(
    name="ridge",
    title="Ridge regression by stochastic gradient descent",
    error="mean squared error on TEST",
    pull="one sample",
    load=regression_table,
    problem=ridge_regression,
    space={"lambda": LogUniform(1e-6, 1.0)},
    arms=10,
    trials=32,
    budgets=doublings(64, 2**20),
    policies=dict.fromkeys((*IN_ALL, "successive-elimination"), 2**20)
    | dict.fromkeys(("lucb", "lil-ucb", "exp3"), 2**12),
)
SVM = Experiment(
    name="svm",
    title="Kernel SVM by Pegasos",
    error="fraction of TEST on the wrong side",
    pull="one sample",
    load=classification_table,
    problem=kernel_svm,
    space=Grid({"lambda": LogUniform(1e-6, 1.0), "gamma": LogUniform(1.0, 1e3)}, samples=10),
    arms=100,
    trials=64,
    budgets=doublings(2**10, 2**17),
    policies=dict.fromkeys(IN_ALL, 2**17),
)
COMPLETION = Experiment(
    name="completion",
    title="Matrix completion by stochastic gradient descent",
    error="mean squared error on TEST",
    pull="one rating",
    load=ratings,
    problem=matrix_completion,
    space=Grid(
        {"rank": Integer(2, 50), "sigma": Uniform(0.01, 3.0), "lambda": LogUniform(1e-6, 1.0)},
        samples=4,
    ),
    arms=64,
    trials=32,
    budgets=doublings(2**16, 2**25),
    policies=dict.fromkeys(IN_ALL, 2**25),
)


# The protocol: trials of many searches --------------------------------------------------------


def run(
    experiment: Experiment, settings: Settings, *, together: bool = False
) -> tuple[Any, list[Row]]:
    """The data, and all searches of all trials; finished searches are read from their journals."""
    data = _data(experiment.load, settings.data, settings.quick)
    kind = f"{experiment.name}-{data.name}{'-together' * together}{'-quick' * settings.quick}"
    trials = settings.trials or experiment.trials
    one = partial(
        trial,
        experiment,
        settings.data,
        settings.quick,
        settings.seed,
        settings.journals / kind,
        together,
    )
    found: dict[int, list[Row]] = {}
    for number, rows in _performed(one, trials, settings.workers):
        found[number] = rows
        settings.progress(len(found), trials)
    return data, [row for number in range(trials) for row in found[number]]


def _performed(
    one: Callable[[int], list[Row]], trials: int, workers: int
) -> Iterator[tuple[int, list[Row]]]:
    if workers == 1:
        yield from ((number, one(number)) for number in range(trials))
        return
    with (
        stop_on_signals() as stop,
        ProcessPoolExecutor(workers, get_context("spawn"), _end_with_the_parent) as pool,
    ):
        numbers = {pool.submit(one, number): number for number in range(trials)}
        left = set(numbers)
        try:
            while left:
                done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
                if stop():
                    raise Stopped(stop.signal or SIGTERM)
                yield from ((numbers[future], future.result()) for future in done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.kill()  # its work so far is in its journal
            raise


def _end_with_the_parent() -> None:
    """End this worker when its parent is killed; else it would continue, and hold the journals."""
    parent = parent_process()
    assert parent

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def trial(
    experiment: Experiment,
    given: str | None,
    quick: bool,
    seed: int,
    journals: Path,
    together: bool,
    number: int,
) -> list[Row]:
    """All searches of one trial."""
    own_seed = arm_seed(seed, number)
    trainer: Any = experiment.problem(_data(experiment.load, given, quick), own_seed)
    # Kernels are compiled before the first search is timed.
    batch = trainer.start([{"lambda": 1.0, "gamma": 1.0, "rank": 2, "sigma": 1.0}], [0])
    trainer.train(batch, [0], 1)
    trainer.losses(batch, [0])
    trainer.tests(batch, [0])
    folder = journals / f"trial-{number:03d}"
    runner: AnyRunner = None if together else partial(Serial, group=experiment.arms)
    rows: list[Row] = []
    for name, most in experiment.policies.items():
        for budget in (budget for budget in experiment.budgets if budget <= most):
            journal = folder / f"{name}-{budget}.jsonl"
            policy = InThePaper(experiment.arms, budget, of=name, seed=own_seed)
            once = partial(searched, trainer, experiment.space, policy, journal)
            result = once(seed=own_seed, runner=runner)
            if result.spent.repeated:
                # It was stopped before, so its seconds are not those of one search.
                journal.unlink()
                result = once(seed=own_seed, runner=runner)
            spent = result.spent
            rows.append(
                {"trial": number, "policy": name, "budget": budget, "pulls": spent.pulls}
                | {"observations": spent.observations, "train_seconds": spent.train_seconds}
                | {"loss_seconds": spent.loss_seconds}
                | {"val_loss": result.loss, "test_loss": result.test_loss}
                | recommended(result)
            )
    return rows


def recommended(result: Result) -> dict[str, Any]:
    """The arm of a recommendation, its level, and its config as JSON."""
    assert result.arm is not None
    level, _ = result.curves[result.arm][-1]
    spelled = json.dumps(dict(result.config or {}), sort_keys=True, default=as_python)
    return {"arm": result.arm, "level": level, "config": spelled}


@cache
def _data(load: Callable[..., Any], given: str | None, quick: bool) -> Any:
    return load(given, quick=quick)


def searched(
    trainer: BatchedTrainer[Any, Any],
    space: Space,
    policy: Policy,
    journal: Path,
    *,
    seed: int = 0,
    runner: AnyRunner = None,
) -> Result:
    """Run a search to its end, or take up the one that is in the journal."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    with stop_on_signals() as stop:
        result = search(
            trainer,
            space,
            policy=policy,
            runner=runner,
            seed=seed,
            journal=journal,
            checkpoints=False,  # at most a search of some seconds is trained again
            progress=False,
        )
    if stop.signal:
        raise Stopped(stop.signal)
    return result
