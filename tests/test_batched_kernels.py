"""The kernels of batched trainers: an arm's numbers are its own, to the last bit."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from lastarm.batched.completion import MatrixCompletion
from lastarm.batched.kernel_svm import KernelSVM
from lastarm.batched.kernels.pegasos import POINTS, SAMPLES
from lastarm.batched.kernels.powers_of_two import powers
from lastarm.batched.sample_order import order

types = pytest.mark.parametrize("dtype", ["float64", "float32"])


@cache
def svm(dtype: str) -> KernelSVM:
    """More points than a chunk has, and no whole number of blocks."""
    random = np.random.default_rng(0)
    points = POINTS + 3 * SAMPLES + 5
    X = random.uniform(-1, 1, size=(points + 50, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0.1 * random.normal(size=len(X)), 1, -1)
    return KernelSVM(
        X[:points], y[:points], X[points:], y[points:], sigmoid=3.0, seed=1, dtype=dtype
    )


SVM = [{"lambda": 10.0**-k, "gamma": gamma} for gamma in (0.0, 2.0, 700.0) for k in (0, 3, 6)]


@cache
def completion(dtype: str) -> MatrixCompletion:
    """Seven users and six items; a pull is a pass."""
    random = np.random.default_rng(0)
    cells = random.permutation(np.array(list(np.ndindex(7, 6))))
    known = np.c_[cells, random.normal(size=42)]
    return MatrixCompletion(known[:35], known[35:], ratings_per_pull=35, step=0.02, dtype=dtype)


PULLS = 12


def factorisations(*ranks: int) -> list[dict[str, Any]]:
    return [
        {"rank": rank, "lambda": 0.1 * (arm % 4), "sigma": 1e3 if arm == 2 else 0.5}
        for arm, rank in enumerate(ranks)
    ]


def bits(trainer: Any, batch: Any, arm: int) -> tuple[Any, ...]:
    one = trainer.take(batch, arm)
    state = (one.counts,) if hasattr(one, "counts") else (one.users, one.items)
    return (*(array.tobytes() for array in state), float(trainer.losses(batch, [arm])[0]).hex())


@types
def test_machines_are_the_same_however_their_pulls_are_divided_and_whoever_is_beside_them(
    dtype: str,
) -> None:
    trainer, arms = svm(dtype), range(len(SVM))
    pulls = 2 * POINTS + 90
    whole = trainer.start(SVM, arms)
    trainer.train(whole, arms, pulls)
    divided = trainer.start(SVM, arms)
    parts = [1, SAMPLES - 2, POINTS, 3, 100, 1, 1, 40]
    for part in [*parts, pulls - sum(parts)]:
        trainer.train(divided, arms, part)
    for arm in arms:
        alone = trainer.start(SVM[arm : arm + 1], [arm])
        trainer.train(alone, [0], pulls)
        assert bits(trainer, whole, arm) == bits(trainer, divided, arm) == bits(trainer, alone, 0)
    assert (whole.counts > 1).any()


def test_a_decision_on_the_edge_is_the_same_however_pulls_are_divided_and_whoever_is_beside() -> (
    None
):
    """While λ > S_t/t all samples are mistakes: the last bits of S_t decide about the greatest."""
    random, points = np.random.default_rng(0), POINTS + 3 * SAMPLES + 5
    X, y, first = np.empty((points, 4)), np.ones(points), order(1, points, 0)
    X[first] = random.uniform(-1, 1, size=(points, 4)) * np.linspace(2, 0.2, points)[:, None]
    trainer = KernelSVM(X, y, X[:1], y[:1], seed=1)
    squared = ((X[first, None] - X[None, first]) ** 2).sum(axis=2)
    configs = []
    for gamma in np.linspace(0.5, 4, 8):
        sums = np.tril(np.exp(-gamma * squared), -1).sum(axis=1)
        edge = (sums / np.arange(1, points + 1)).max()
        bits = np.arange(-16, 16)
        configs += [{"lambda": edge * (1 + k * 2.0**-52), "gamma": gamma} for k in bits]
    arms = range(len(configs))
    whole = trainer.start(configs, arms)
    trainer.train(whole, arms, points)
    mistakes = whole.counts.sum(axis=1).reshape(8, -1)
    assert (mistakes.min(axis=1) < points).all()  # the edge is a real one
    assert (mistakes.max(axis=1) == points).all()
    for begin in range(1, SAMPLES):
        divided = trainer.start(configs, arms)
        trainer.train(divided, arms, POINTS + begin)
        trainer.train(divided, arms, points - POINTS - begin)
        assert (divided.counts == whole.counts).all()
    for arm in arms[::5]:
        alone = trainer.start(configs[arm : arm + 1], [arm])
        trainer.train(alone, [0], points)
        assert (alone.counts[0] == whole.counts[arm]).all()


def test_a_machine_that_is_looked_at_beside_one_with_more_points_has_the_loss_it_has_alone() -> (
    None
):
    trainer = svm("float64")
    batch = trainer.start(SVM[3:5], [0, 1])
    trainer.train(batch, [0], SAMPLES + 3)
    trainer.train(batch, [1], POINTS + SAMPLES)
    assert trainer.losses(batch, [0, 1])[0] == trainer.losses(batch, [0])[0]


@types
@pytest.mark.parametrize("arms", [1, 2, 3, 4, 5, 8, 9])
def test_factorisations_are_the_same_to_the_last_bit_whoever_is_beside_them(
    dtype: str, arms: int
) -> None:
    trainer, seeds = completion(dtype), range(3 * arms)
    configs = [config for rank in (1, 6, 8) for config in factorisations(*[rank] * arms)]
    batch = trainer.start(configs, seeds)
    with np.errstate(all="ignore"):
        trainer.train(batch, list(seeds), PULLS)
        for arm in seeds:
            alone = trainer.start([configs[arm]], [arm])
            for _ in range(PULLS):
                trainer.train(alone, [0], 1)
            assert bits(trainer, batch, arm) == bits(trainer, alone, 0)


@types
def test_factorisations_that_diverge_are_nobody_elses_affair(dtype: str) -> None:
    trainer = completion(dtype)
    batch = trainer.start(factorisations(6, 6, 6, 6), [0, 1, 2, 3])
    trainer.train(batch, [0, 1, 2, 3], PULLS)
    finite = np.isfinite(trainer.losses(batch, [0, 1, 2, 3]))
    assert finite.tolist() == [True, True, False, True]


@pytest.mark.parametrize("rank", range(1, 14))
def test_factorisations_of_every_rank_are_the_formula_step_by_step(rank: int) -> None:
    trainer = completion("float64")
    configs = [{"rank": rank, "lambda": 0.1, "sigma": sigma} for sigma in (0.1, 0.5, 0.7)]
    batch = trainer.start(configs, [0, 1, 2])
    before = [trainer.take(batch, arm) for arm in range(3)]
    trainer.train(batch, [0, 1, 2], PULLS)
    users, items, ratings = trainer._parts["train"]
    for arm in range(3):
        U, V = before[arm].users, before[arm].items
        for epoch in range(PULLS):
            random = np.random.default_rng([0, epoch])
            for row in random.permutation(35):
                i, j = users[row], items[row]
                e, eta = ratings[row] - U[i] @ V[j], 0.02 * 0.9**epoch
                n_i, n_j = (users == i).sum(), (items == j).sum()
                U[i], V[j] = (
                    U[i] + 2 * eta * (e * V[j] - 0.1 / n_i * U[i]),
                    V[j] + 2 * eta * (e * U[i] - 0.1 / n_j * V[j]),
                )
        one = trainer.take(batch, arm)
        np.testing.assert_allclose(one.users, U, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.items, V, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_powers_are_those_of_numpy_down_to_the_smallest(dtype: Any, close: float) -> None:
    exponents = np.concatenate(
        [np.linspace(0, 1, 999), np.linspace(0, 1200, 9999), [1e30, np.inf]]
    ).astype(dtype)
    found = np.empty_like(exponents)
    powers(dtype(-1.0), exponents, 0, len(exponents), found)
    expected = np.exp2(-exponents.astype(np.float64))
    smallest = np.finfo(dtype).smallest_subnormal
    np.testing.assert_allclose(found, expected, rtol=close, atol=smallest)
    assert found[0] == 1
    assert (found[expected < 0.4 * smallest] == 0).all()
    nothing = np.empty(1, dtype)
    powers(
        dtype(-0.0), np.array([np.inf], dtype), 0, 1, nothing
    )  # γ = 0, and a distance too large
    assert nothing[0] == 0
