"""The paper's three experiments, §5.1 to §5.3: what is trained, on what, with which arms.

What the paper says is taken from there: splits of 90/10 and 80/20, every dimension and the target
of mean 0 and variance 1 on TRAIN (not for completion), the ranges of the hyperparameters, the
numbers of arms and trials. It does not say how far its budgets go: here they double from the least
that every policy can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lastarm.batched import BatchedTrainer
from lastarm.batched.completion import MatrixCompletion
from lastarm.batched.kernel_svm import KernelSVM
from lastarm.batched.ridge import RidgeRegression
from lastarm.events import Pull
from lastarm.papers.jamieson2015.data import (
    Ratings,
    Table,
    classification_table,
    ratings,
    regression_table,
)
from lastarm.policies import EXP3, POLICIES
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, ranking
from lastarm.space import Grid, Integer, LogUniform, Space, Uniform
from lastarm.trainers.splits import split

Array = NDArray[np.float64]
MAY_STOP = ("successive-elimination", "lucb", "lil-ucb")


@dataclass(eq=False)
class InThePaper(InRounds):
    """A policy as the paper's experiments run it.

    Recommended is J_t = argmin ℓ_{θ,T_θ}, the arm whose latest loss is the lowest (§4.1), even if
    it was dropped. And the general algorithm goes on until it is stopped from outside (figure 2):
    a policy that ends when it is sure gives what is left to the arm that it found.
    """

    name: ClassVar[str] = "in-the-paper"
    adaptive: ClassVar[bool] = True
    of: str = "successive-halving"
    seed: int = 0

    def algorithm(self) -> Algorithm:
        """The policy's own, perhaps one pull of all that is left, and then J_t."""
        seeded = {"seed": self.seed} if self.of == EXP3.name else {}
        policy = POLICIES[self.of](self.arms, self.budget, **seeded)
        assert isinstance(policy, InRounds)
        arm = yield from policy.algorithm()
        left = self.budget - sum(self._level.values())
        if left and self.of in MAY_STOP:
            yield [Pull(arm, upto=self._level[arm] + left)]
        return ranking(self._losses)[0]

    def least_budget(self, arms: int) -> int:
        """That of the policy."""
        return POLICIES[self.of](1, 1).least_budget(arms)


@dataclass(frozen=True)
class Experiment:
    """A problem, its arms, and the policies that are compared on it.

    `policies` says up to which budget each goes: those that look at every pull end earlier.
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
        return replace(
            self,
            trials=2,
            budgets=budgets,
            policies={name: min(most, budgets[-1]) for name, most in self.policies.items()},
        )


def doublings(first: int, last: int) -> tuple[int, ...]:
    """The powers of two from one to another.

    >>> doublings(64, 512)
    (64, 128, 256, 512)
    """
    return tuple(2**k for k in range(first.bit_length() - 1, last.bit_length()))


def scaled(X: Array, train: NDArray[np.intp]) -> Array:
    """Every column of mean 0 and variance 1 on TRAIN; one that is constant there becomes 0.

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
    """§5.2: rows of variance 1 a dimension are near 2d from each other, squared.

    With γ ≥ 1 such a kernel would be an identity; so rows are divided by √(2d), and squared
    distances are near 1.
    """
    train, val, test = split(table.y.astype(int), seed)
    X, y = scaled(table.X, train) / np.sqrt(2 * table.X.shape[1]), table.y
    return KernelSVM(X[train], y[train], X[val], y[val], X[test], y[test], seed=seed)


def matrix_completion(given: Ratings, seed: int) -> MatrixCompletion:
    """§5.3: ratings as they are."""
    train, val, test = split(len(given.rows), seed)
    return MatrixCompletion(given.rows[train], given.rows[val], given.rows[test], seed=seed)


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
    policies={
        "uniform": 2**20,
        "successive-halving": 2**20,
        "successive-rejects": 2**20,
        "successive-elimination": 2**20,
        "lucb": 2**12,
        "lil-ucb": 2**12,
        "exp3": 2**12,
    },
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
    policies={"uniform": 2**17, "successive-halving": 2**17, "successive-rejects": 2**17},
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
    policies={"uniform": 2**25, "successive-halving": 2**25, "successive-rejects": 2**25},
)
