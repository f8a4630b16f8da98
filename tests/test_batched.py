"""Batched trainers: many arms in one kernel, and the answer of one arm at a time."""

import math
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import lastarm.batched
from lastarm import (
    Configs,
    Result,
    SuccessiveHalving,
    SuccessiveRejects,
    UniformAllocation,
    search,
)
from lastarm.batched import OneByOne, Single, SomeFailed
from lastarm.batched.completion import MatrixCompletion
from lastarm.batched.kernel_svm import KernelSVM
from lastarm.batched.kernels.pegasos import POINTS
from lastarm.batched.ridge import RidgeRegression
from lastarm.batched.sample_order import order
from lastarm.events import Event, Failure, Loss, Pull
from lastarm.runners import Arms, MakeRunner
from lastarm.runners.batched import Batched
from lastarm.testing import runner_checks, trainer_checks
from lastarm.testing.runners import CheckRunner, Drifting, Scripted
from lastarm.testing.trainers import CheckTrainer
from lastarm.trainers import Config, RecordedCurves, arm_seed
from tests.refusals import refused

CLOSE = 1e-9


@cache
def ridge(seed: int = 0, dtype: str = "float64") -> RidgeRegression:
    random = np.random.default_rng([1, seed])
    X = random.normal(size=(120, 5))
    y = X @ random.normal(size=5) + 0.5 * random.normal(size=120)
    return RidgeRegression(
        X[:70], y[:70], X[70:100], y[70:100], X[100:], y[100:], seed=seed, dtype=dtype, step=0.1
    )


@cache
def svm(seed: int = 0, dtype: str = "float64", sigmoid: float | None = None) -> KernelSVM:
    random = np.random.default_rng([2, seed])
    X = random.uniform(-1, 1, size=(120, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0.1 * random.normal(size=120), 1, -1)
    return KernelSVM(
        *(X[:70], y[:70], X[70:100], y[70:100], X[100:], y[100:]),
        seed=seed,
        dtype=dtype,
        sigmoid=sigmoid,
    )


@cache
def completion(seed: int = 0, dtype: str = "float64") -> MatrixCompletion:
    random = np.random.default_rng([3, seed])
    U, V = random.normal(size=(15, 2)), random.normal(size=(12, 2))
    cells = random.permutation(np.array(list(np.ndindex(15, 12))))
    known = np.c_[cells, (U[cells[:, 0]] * V[cells[:, 1]]).sum(axis=1)]
    return MatrixCompletion(
        *(known[:120], known[120:150], known[150:]),
        seed=seed,
        dtype=dtype,
        ratings_per_pull=7,
        step=0.05,
    )


RIDGE = [{"lambda": 10.0**-k} for k in range(7)] + [{"lambda": 0.1}]
SVM = [{"lambda": 10.0**-k, "gamma": gamma} for gamma in (1.0, 30.0, 1e3) for k in (0, 2, 4)]
COMPLETION = [
    {"rank": rank, "lambda": penalty, "sigma": sigma}
    for rank in (1, 2, 5)
    for penalty in (1e-6, 1.0)
    for sigma in (0.1, 1.0)
]
MODELS = [(ridge, RIDGE), (svm, SVM), (partial(svm, sigmoid=20.0), SVM), (completion, COMPLETION)]
models = pytest.mark.parametrize(
    ("make", "configs"), MODELS, ids=["ridge", "svm", "sigmoid", "completion"]
)


# The runner ------------------------------------------------------------------------------------


def given_a_batched_trainer(arms: Arms) -> Batched:
    together: Any = OneByOne(arms.trainer)
    return Batched(replace(arms, trainer=together))


@pytest.mark.parametrize(
    "make",
    [Batched, partial(Batched, group=1), partial(Batched, group=4), given_a_batched_trainer],
    ids=["all", "one", "four", "given"],
)
@pytest.mark.parametrize("check", runner_checks(), ids=lambda check: check.__name__)
def test_the_laws_of_runners(check: CheckRunner, make: MakeRunner) -> None:
    check(make)


@pytest.mark.parametrize("check", runner_checks(retries=2, seeds=3), ids=lambda c: c.__name__)
def test_the_laws_of_runners_with_retries(check: CheckRunner) -> None:
    check(Batched)


class Watched(OneByOne):
    """Arms in turn, with every call written down; errors are those of the whole batch."""

    def __init__(self, trainer: Any) -> None:
        super().__init__(trainer)
        self.calls: list[tuple[str, int]] = []

    def train(self, batch: list[Any], arms: Sequence[int], pulls: int) -> None:
        self.calls.append(("train", len(arms)))
        try:
            super().train(batch, arms, pulls)
        except SomeFailed as some:
            raise ValueError("somewhere in the batch") from some

    def losses(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        self.calls.append(("look", len(arms)))
        values = super().losses(batch, arms)
        for value in values:
            if isinstance(value, BaseException):
                raise value
        return values


def told(runner: Batched, pulls: Sequence[Pull], attempt: int = 1) -> list[Any]:
    for pull in pulls:
        runner.start(pull, attempt)
    results: list[Any] = []
    while len(results) < len(pulls):
        results += runner.wait()
    return results


def test_a_rung_is_trained_and_looked_at_in_one_call() -> None:
    watched = Watched(Scripted())
    policy = SuccessiveHalving(16, 16 * 4 * 4)
    configs = Configs([{"script": [k / 16, k / 16]} for k in range(16)])
    found = search(Single(watched), configs, policy=policy, runner=Batched)
    assert found.arm == 0
    assert watched.calls == [(what, arms) for arms in (16, 8, 4, 2) for what in ("train", "look")]


def test_arms_that_were_begun_apart_are_trained_together_once_they_are_at_one_level() -> None:
    watched = Watched(Drifting())
    runner = Batched(Arms(Single(watched), [{"limit": 0.1}] * 3))
    for arm in range(3):
        told(runner, [Pull(arm, 2)])
    watched.calls.clear()
    apart = told(runner, [Pull(arm, 5) for arm in range(3)])
    assert watched.calls == [("train", 3), ("look", 3)]
    whole = Batched(Arms(Drifting(), [{"limit": 0.1}] * 3))
    at_once = told(whole, [Pull(arm, 5) for arm in range(3)])
    assert [loss.value for loss in apart] == [loss.value for loss in at_once]


def test_what_a_group_took_is_divided_among_its_arms() -> None:
    found = search(
        Single(ridge()), Configs(RIDGE), policy=UniformAllocation(8, 8 * 500), runner=Batched
    )
    assert found.spent.pulls == 4000
    assert found.spent.repeated == 0
    runner = Batched(Arms(Drifting(), [{"limit": 0.1}] * 4))
    works = [result.work for result in told(runner, [Pull(arm, 3) for arm in range(4)])]
    assert [work.trained for work in works] == [3] * 4
    assert len({(work.train_seconds, work.loss_seconds) for work in works}) == 1
    assert works[0].train_seconds > 0
    assert works[0].loss_seconds > 0


@pytest.mark.parametrize("script", [["raise"], [0.5, 0.5, "raise", 0.5]])
def test_an_error_of_the_whole_batch_is_the_failure_of_the_guilty_arm_only(
    script: list[Any],
) -> None:
    watched = Watched(Scripted())
    configs = Configs([{"script": [0.5 + k]} for k in range(3)] + [{"script": script}])
    events: list[Event] = []
    found = search(
        Single(watched),
        configs,
        policy=SuccessiveHalving(4, 16),
        runner=Batched,
        on_event=events.append,
    )
    assert found.arm == 0
    assert {arm: failure.error for arm, failure in found.failures.items()} == {
        3: "RuntimeError: this arm raises"
    }
    assert found.spent.repeated == 0  # looking raised, and what was trained is kept
    lost = [event for event in events if isinstance(event, Failure) and event.retried]
    assert len(lost) == 4
    assert all(failure.lost for failure in lost)


def test_a_batch_that_raises_in_training_is_trained_again_one_by_one() -> None:
    configs = Configs([{"limit": limit} for limit in (0.1, 0.2, 1.49)])
    policy = UniformAllocation(3, 3 * 20)
    expected = search(Drifting(), configs, policy=policy, seed=3)
    found = search(Single(Watched(Drifting())), configs, policy=policy, seed=3, runner=Batched)
    assert list(expected.failures) == list(found.failures) == [2]
    assert found.digest == expected.digest
    assert found.spent.repeated == 3 * 20


def test_a_config_that_cannot_begin_is_its_own_arms_failure() -> None:
    configs = Configs([{"lambda": 0.1}, {"lambda": "high"}, {"lambda": 0.2}])
    found = search(Single(ridge()), configs, policy=UniformAllocation(3, 30), runner=Batched)
    assert list(found.failures) == [1]
    assert found.failures[1].error.startswith("InvalidArgument: ")
    assert "'high'" in found.failures[1].error
    assert found.complete


def test_a_diverging_arm_is_nobody_elses_affair() -> None:
    configs = Configs([{"lambda": 1e9}, *RIDGE])
    found = search(Single(ridge()), configs, policy=UniformAllocation(9, 900), runner=Batched)
    assert not math.isfinite(found.curves[0][-1][1])
    assert found.arm != 0
    alone = search(Single(ridge()), Configs(RIDGE), policy=UniformAllocation(8, 800))
    assert [curve for arm, curve in sorted(found.curves.items()) if arm] == [
        curve for _, curve in sorted(alone.curves.items())
    ]


def test_the_group_is_a_whole_number() -> None:
    with refused("group", 0):
        Batched(Arms(Scripted(), [{"script": [0.5]}]), group=0)


@models
def test_a_search_that_was_killed_goes_on_from_each_arms_own_state(
    make: Any, configs: list[Config], tmp_path: Path
) -> None:
    trainer, journal = Single(make()), tmp_path / "journal.jsonl"
    policy = SuccessiveHalving(len(configs), 60 * len(configs))
    found = partial(search, trainer, Configs(configs), policy=policy, runner=Batched)
    whole = found()
    looks = 0

    def kill(event: Event) -> None:
        nonlocal looks
        looks += isinstance(event, Loss)
        if looks == len(configs) + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found(journal=journal, on_event=kill)
    events: list[Event] = []
    resumed = found(journal=journal, on_event=events.append)
    assert resumed.digest == whole.digest
    assert resumed.test_loss == whole.test_loss
    last = [event for event in events if isinstance(event, Loss)][-1]
    assert last.work.trained < last.pull.upto
    assert found(journal=journal).digest == whole.digest


# The models ------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("policy", [UniformAllocation, SuccessiveHalving, SuccessiveRejects])
def test_the_decisions_and_the_losses_are_those_of_one_arm_at_a_time(
    make: Any, configs: list[Config], policy: Any
) -> None:
    for seed in range(4):
        trainer = Single(make(seed))
        arms = len(configs)
        found = partial(
            search, trainer, Configs(configs), policy=policy(arms, 80 * arms), seed=seed
        )
        apart, together = found(), found(runner=Batched)
        assert together.arm == apart.arm
        assert _levels(together) == _levels(apart)
        for arm, curve in apart.curves.items():
            ours, theirs = (
                np.array([loss for _, loss in c]) for c in (together.curves[arm], curve)
            )
            np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=0)
        assert together.test_loss == pytest.approx(apart.test_loss, rel=CLOSE)


def _levels(result: Result) -> dict[int, list[int]]:
    return {arm: [upto for upto, _ in curve] for arm, curve in result.curves.items()}


@models
@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
def test_the_laws_of_trainers(make: Any, configs: list[Config], check: CheckTrainer) -> None:
    for config in configs[::3]:
        check(lambda: Single(make()), config)


@models
def test_dropping_arms_in_between_changes_nothing_for_the_others(
    make: Any, configs: list[Config]
) -> None:
    trainer, seeds = make(), range(len(configs))
    everyone = list(seeds)
    batch, other = trainer.start(configs, seeds), trainer.start(configs, seeds)
    trainer.train(batch, everyone, 100)
    trainer.train(other, everyone, 30)
    kept = everyone[1::2]
    trainer.train(other, kept, 20)
    trainer.train(other, kept[::-1], 50)
    assert list(trainer.losses(other, kept)) == list(trainer.losses(batch, kept))
    before = list(trainer.losses(other, [0]))
    trainer.train(other, kept, 10)
    assert list(trainer.losses(other, [0])) == before


@models
def test_an_arm_that_was_taken_out_stays_as_it_was(make: Any, configs: list[Config]) -> None:
    trainer, seeds = make(), range(len(configs))
    batch = trainer.start(configs, seeds)
    trainer.train(batch, list(seeds), 40)
    one = trainer.take(batch, 2)
    was = pickle.dumps(one)
    trainer.train(batch, list(seeds), 40)
    assert pickle.dumps(one) == was
    back = trainer.gather([one, trainer.take(trainer.start(configs, seeds), 1)])
    trainer.train(back, [0], 40)
    assert trainer.losses(back, [0])[0] == trainer.losses(batch, [2])[0]


@models
def test_equal_arms_tie(make: Any, configs: list[Config]) -> None:
    trainer = make()
    batch = trainer.start([*configs, configs[0]], [7] * (len(configs) + 1))
    trainer.train(batch, range(len(configs) + 1), 90)
    losses = trainer.losses(batch, range(len(configs) + 1))
    assert losses[0] == losses[-1]


@models
def test_arms_of_different_levels_are_refused(make: Any, configs: list[Config]) -> None:
    trainer = make()
    batch = trainer.start(configs[:2], [0, 1])
    trainer.train(batch, [0], 3)
    with refused("arms", [0, 1]):
        trainer.train(batch, [0, 1], 1)


@models
def test_single_precision_is_near(make: Any, configs: list[Config]) -> None:
    double, single = make(), make(dtype="float32")
    configs = [config for config in configs if config.get("gamma", 0) < 1e3]  # κ vanishes there
    seeds = range(len(configs))
    losses = []
    for trainer in (double, single):
        batch = trainer.start(configs, seeds)
        trainer.train(batch, list(seeds), 60)
        losses.append(trainer.losses(batch, list(seeds)))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3, atol=0.05)


@models
def test_trainers_can_be_sent_and_tell_what_they_are_made_of(
    make: Any, configs: list[Config]
) -> None:
    trainer = make()
    there = pickle.loads(pickle.dumps(trainer))
    assert there.fingerprint() == trainer.fingerprint() != make(1).fingerprint()
    losses = []
    for by in (trainer, there):
        batch = by.start(configs, range(len(configs)))
        by.train(batch, [0, 1], 10)
        losses.append([*by.losses(batch, [0, 1]), *by.tests(batch, [0, 1])])
    assert losses[0] == losses[1]


# The oracles: step by step, as the formulas are written ----------------------------------------


def stream(seed: int, count: int, length: int) -> list[int]:
    passes = (order(seed, count, number) for number in range(length // count + 1))
    return [int(row) for rows in passes for row in rows][:length]


def test_ridge_is_the_formula_step_by_step() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 4)), random.normal(size=50)
    trainer = RidgeRegression(X[:30], y[:30], X[30:40], y[30:40], X[40:], y[40:], seed=5)
    arms = list(range(len(RIDGE)))
    batch = trainer.start(RIDGE, arms)
    trainer.train(batch, arms, 200)
    for arm, config in enumerate(RIDGE):
        w = np.zeros(4)
        for T, i in enumerate(stream(5, 30, 200)):
            gradient = 2 * (w @ X[i] - y[i]) * X[i] + 2 * config["lambda"] * w
            w = w - 0.01 / np.sqrt(2 + T) * gradient
        np.testing.assert_allclose(trainer.take(batch, arm).weights[0], w, rtol=CLOSE)
        val, test = (
            np.mean((X[part] @ w - y[part]) ** 2) for part in (slice(30, 40), slice(40, 50))
        )
        assert trainer.losses(batch, [arm])[0] == pytest.approx(val, rel=CLOSE)
        assert trainer.tests(batch, [arm])[0] == pytest.approx(test, rel=CLOSE)


@pytest.mark.parametrize("sigmoid", [None, 30.0])
def test_the_kernel_svm_is_the_figure_step_by_step(sigmoid: float | None) -> None:
    random = np.random.default_rng(0)
    points, T = 2 * POINTS + 40, 2 * POINTS + 100
    X = random.normal(size=(points + 30, 3))
    y = np.where(X[:, 0] ** 2 > 0.5 + 0.3 * random.normal(size=len(X)), 1.0, -1.0)
    trainer = KernelSVM(X[:points], y[:points], X[points:], y[points:], seed=5, sigmoid=sigmoid)
    arms = list(range(len(SVM)))
    batch = trainer.start(SVM, arms)
    trainer.train(batch, arms, T)
    losses = trainer.losses(batch, arms)
    squared = ((X[:, None] - X[None, :points]) ** 2).sum(axis=2)
    for arm, config in enumerate(SVM):
        K, alpha = np.exp(-config["gamma"] * squared), np.zeros(points)
        for t, i in enumerate(stream(5, points, T), start=1):
            if y[i] / (config["lambda"] * t) * np.sum(alpha * y[:points] * K[i]) < 1:
                alpha[i] += 1
        own = batch.counts[arm, :points]
        assert (own == alpha[order(5, points, 0)]).all()
        margins = y[points:] * (K[points:] @ (alpha * y[:points])) / (config["lambda"] * T)
        with np.errstate(over="ignore"):
            loss = margins <= 0 if sigmoid is None else 1 / (1 + np.exp(sigmoid * margins))
        assert losses[arm] == pytest.approx(np.mean(loss), rel=CLOSE)


@pytest.mark.parametrize("per_rating", [False, True])
def test_completion_is_the_formula_step_by_step(per_rating: bool) -> None:
    random = np.random.default_rng(0)
    cells = random.permutation(np.array(list(np.ndindex(9, 8))))
    known = np.c_[cells, random.normal(size=72)]
    train, val, test = known[:50], known[50:60], known[60:]
    trainer = MatrixCompletion(
        *(train, val, test), seed=5, ratings_per_pull=3, step=0.05, per_rating=per_rating
    )
    arms = list(range(len(COMPLETION)))
    batch = trainer.start(COMPLETION, arms)
    trainer.train(batch, arms, 60)
    n = [np.bincount(train[:, side].astype(int), minlength=9) for side in (0, 1)]
    n = [np.ones_like(count) for count in n] if per_rating else n
    for arm, config in enumerate(COMPLETION):
        d, lam = int(config["rank"]), config["lambda"]
        draws = np.random.default_rng(arm).standard_normal((9 + 8) * d)
        U, V = np.split(config["sigma"] / np.sqrt(d) * draws.reshape(17, d), [9])
        for t, row in enumerate(stream(5, 50, 180)):
            i, j, r = int(train[row, 0]), int(train[row, 1]), train[row, 2]
            eta, e, u, v = 0.05 * 0.9 ** (t // 50), r - U[i] @ V[j], U[i].copy(), V[j].copy()
            U[i] = u + 2 * eta * (e * v - lam / n[0][i] * u)
            V[j] = v + 2 * eta * (e * u - lam / n[1][j] * v)
        np.testing.assert_allclose(trainer.take(batch, arm).users, U, rtol=1e-8, atol=1e-12)
        for part, looked in ((val, trainer.losses), (test, trainer.tests)):
            users, items = part[:, :2].astype(int).T
            error = np.mean((part[:, 2] - (U[users] * V[items]).sum(axis=1)) ** 2)
            assert looked(batch, [arm])[0] == pytest.approx(error, rel=CLOSE)


def test_the_kernel_is_never_stored_as_a_matrix() -> None:
    points = 3000
    random = np.random.default_rng(0)
    X, y = random.normal(size=(points, 2)), np.where(random.random(points) < 0.5, 1.0, -1.0)
    trainer = KernelSVM(X, y, X[:1000], y[:1000])
    warm = trainer.start([{"lambda": 1.0, "gamma": 1.0}], [0])
    trainer.train(warm, [0], 1)
    trainer.losses(warm, [0])
    tracemalloc.start()
    batch = trainer.start([{"lambda": 1e-3, "gamma": 1.0}], [0])
    trainer.train(batch, [0], points)
    trainer.losses(batch, [0])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 * points * 8  # a matrix of distances would be 3000 × 3000 × 8


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "argument", "given"),
    [
        (lambda: RidgeRegression([[1.0]], [1.0, 2.0], [[1.0]], [1.0]), "X_train", [[1.0]]),
        (lambda: RidgeRegression([[1.0]], [math.nan], [[1.0]], [1.0]), "y_train", [math.nan]),
        (lambda: RidgeRegression([[1.0]], [1.0], [[1.0, 2.0]], [1.0]), "X_val", [[1.0, 2.0]]),
        (lambda: RidgeRegression([[1.0]], [1.0], [[1.0]], [1.0], [[1.0]]), "y_test", None),
        (lambda: RidgeRegression([[1.0]], [1.0], [[1.0]], [1.0], dtype=int), "dtype", int),
        (lambda: KernelSVM([[1.0]], [2.0], [[1.0]], [1.0]), "y_train", np.array([2.0])),
        (lambda: KernelSVM([[1.0]], [1.0], [[1.0]], [1.0], sigmoid=0.0), "sigmoid", 0.0),
        (lambda: MatrixCompletion([[0, 0]], [[0, 0, 1]]), "train", [[0, 0]]),
        (lambda: MatrixCompletion([[0, -1, 1]], [[0, 0, 1]]), "train", [[0, -1, 1]]),
        (lambda: MatrixCompletion([[0, 0, 1]], [[0, 0, math.inf]]), "val", [[0, 0, math.inf]]),
        (lambda: MatrixCompletion([[0, 0, 1]], [[0, 0, 1]], shrink=2.0), "shrink", 2.0),
        (lambda: MatrixCompletion([[0, 0, 1]], [[0, 0, 1]], step=0.0), "step", 0.0),
        (lambda: Single(cast(Any, ridge)), "batched", ridge),
        (lambda: ridge().start([{}], [0]), "lambda", None),
        (lambda: completion().start([{"rank": 1.5}], [0]), "rank", 1.5),
    ],
)
def test_what_is_not_valid_is_refused_by_its_name(make: Any, argument: str, given: Any) -> None:
    with refused(argument, given):
        make()


def test_without_numba_the_extra_is_named_and_the_contract_is_there() -> None:
    script = (
        "import sys; sys.modules['numba'] = None\n"
        "import lastarm.runners.batched\n"
        "import lastarm.batched.ridge\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "pip install 'lastarm[batched]'" in run.stderr
    assert "line 3, in <module>" in run.stderr  # not before


def test_the_seed_of_an_arm_decides_where_its_factors_begin() -> None:
    runner = Batched(Arms(Single(completion()), COMPLETION, seed=9))
    told(runner, [Pull(arm, 1) for arm in range(3)])
    trainer = Single(completion())
    for arm in range(3):
        alone = trainer.train(trainer.start(COMPLETION[arm], arm_seed(9, arm)), 1)
        assert (runner.state(Pull(arm, 1)).users == alone.users).all()
    assert runner.state(Pull(0, 2)) is None


def test_a_class_with_a_new_name_has_its_first_one_in_journals() -> None:
    curves = RecordedCurves([[0.5]])
    recorded = Single(OneByOne(curves)).fingerprint()
    assert recorded == {
        "batched": "Together",
        "together": "RecordedCurves",
        **curves.fingerprint(),
    }
    assert lastarm.batched.Together is OneByOne
    assert Single(Watched(curves)).fingerprint()["batched"] == "Watched"


def test_a_batched_trainer_is_trained_together_without_asking() -> None:
    policy = SuccessiveHalving(8, 800)
    together = search(ridge(), Configs(RIDGE), policy=policy)
    asked = search(Single(ridge()), Configs(RIDGE), policy=policy, runner="batched")
    alone = search(ridge(), Configs(RIDGE), policy=policy, runner="serial")
    assert together.digest == asked.digest
    assert together.arm == alone.arm
    assert together.loss == pytest.approx(alone.loss, rel=1e-9)
    assert together.curves.keys() == alone.curves.keys()
    apart = search(ridge(), Configs(RIDGE), policy=policy, workers=2)
    assert apart.digest == alone.digest


class Accuracies(Watched):
    """Figures to be made large: numbers, one with others beside it, and one that is not valid."""

    def losses(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        told = {0.25: {"loss": 0.25, "beside": 3.0}, 0.375: "high"}
        return [told.get(value, value) for value in super().losses(batch, arms)]


@pytest.mark.parametrize("runner", [None, "batched"])
def test_what_is_maximized_is_trained_in_batches_too(runner: Any) -> None:
    curves = RecordedCurves([[arm / 8] * 4 for arm in range(8)], test=list(range(8)))
    configs, policy = Configs([{"row": arm} for arm in range(8)]), UniformAllocation(8, 16)
    watched = Accuracies(curves)
    found = search(watched, configs, policy=policy, maximize=True, runner=runner)
    assert watched.calls == [("train", 8), ("look", 8)]
    assert (found.arm, found.loss, found.test_loss) == (7, -0.875, -7)
    assert found.curves[2] == [(2, -0.25)]
    assert found.metrics[2] == {2: {"beside": 3.0}}
    assert list(found.failures) == [3]
    alone = search(Accuracies(curves), configs, policy=policy, maximize=True, runner="serial")
    assert alone.digest == found.digest
    assert alone.failures.keys() == found.failures.keys()


def test_a_maximized_search_one_by_one_is_resumed_in_batches(tmp_path: Path) -> None:
    configs, policy = Configs(RIDGE), SuccessiveHalving(8, 240)
    found = partial(search, ridge(), configs, policy=policy, maximize=True)
    journal, looks = tmp_path / "journal.jsonl", 0

    def kill(event: Event) -> None:
        nonlocal looks
        looks += isinstance(event, Loss)
        if looks == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found(journal=journal, runner="serial", on_event=kill)
    resumed, whole = found(journal=journal), found()
    assert resumed.arm == whole.arm
    assert resumed.spent.repeated == 0, "the states are those of one arm"
    assert resumed.loss == pytest.approx(whole.loss, rel=CLOSE)
