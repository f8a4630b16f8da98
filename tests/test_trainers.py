"""Trainers: training a + b is training a, then b; what a table is; what a loss is."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastarm import RecordedCurves, RunningMean, RunningMinimum
from lastarm.batched import OneByOne, Single
from lastarm.cli.demo import SPACE, DigitsNetwork
from lastarm.errors import BadLoss
from lastarm.space import draw
from lastarm.trainers import Maximized, as_loss
from tests.refusals import refused

NORMAL = {"mean": 0.1}
TRAINERS: dict[str, tuple[Any, Any]] = {
    "recorded": (RecordedCurves(np.linspace(1, 0, 60).reshape(3, 20)), {"row": 1}),
    "mean": (RunningMean(lambda c, random, k: random.normal(c["mean"], 1, k)), NORMAL),
    "minimum": (RunningMinimum(lambda c, random, k: random.normal(c["mean"], 1, k)), NORMAL),
}


@pytest.mark.parametrize("name", TRAINERS)
@given(steps=st.lists(st.integers(1, 20), min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_training_in_steps_is_training_at_once(name: str, steps: list[int], seed: int) -> None:
    trainer, config = TRAINERS[name]
    state = trainer.start(config, seed)
    for pulls in steps:
        state = trainer.train(state, pulls)
    at_once = trainer.train(trainer.start(config, seed), sum(steps))
    assert trainer.loss(state) == trainer.loss(at_once)


def test_the_demos_network_in_steps_is_the_network_at_once() -> None:
    trainer = DigitsNetwork()
    (config,) = draw(SPACE, 1, seed=0)
    state = trainer.train(trainer.train(trainer.start(config, 1), 1), 2)
    assert trainer.loss(state) == trainer.loss(trainer.train(trainer.start(config, 1), 3))


def test_a_mean_of_draws_settles_as_fast_as_hoeffding_says() -> None:
    arms, pulls = 200, 400
    trainer = RunningMean(lambda c, random, k: random.random(k) < c["p"])
    bound = math.sqrt(math.log(4 * arms * pulls**2) / (2 * pulls))  # the paper's §2
    for arm in range(arms):
        p = arm / arms
        state = trainer.train(trainer.start({"p": p}, arm), pulls)
        assert abs(trainer.loss(state) - p) <= bound


@pytest.mark.parametrize(
    ("value", "loss"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (np.float32(0.5), 0.5),
        (np.int64(2), 2.0),
        (np.array(0.25), 0.25),
        (Decimal("0.125"), 0.125),
        (Fraction(1, 8), 0.125),
        (math.inf, math.inf),
        (10**400, math.inf),
        (-(10**400), -math.inf),
    ],
)
def test_a_number_is_a_loss(value: Any, loss: float) -> None:
    assert as_loss(value) == loss


@pytest.mark.parametrize("value", [math.nan, np.float32("nan"), Decimal("nan"), Decimal("snan")])
def test_not_a_number_is_a_number_here(value: Any) -> None:
    assert math.isnan(as_loss(value))


@pytest.mark.parametrize(
    "value",
    [None, "0.5", b"1", 1 + 2j, np.complex128(1), [0.5], (1,), {}, True, np.True_, np.zeros(1)],
)
def test_anything_else_is_refused_by_what_it_is(value: Any) -> None:
    with pytest.raises(BadLoss) as refusal:
        as_loss(value)
    assert refusal.value.kind == type(value).__name__
    with pytest.raises(BadLoss) as refusal:
        as_loss("x" * 10_000)
    assert len(str(refusal.value)) < 300


def test_a_trainer_keeps_its_version_in_any_wrapping() -> None:
    class Changed(RecordedCurves):
        version = 2

    for kind, version in ((RecordedCurves, 1), (Changed, 2)):
        inside = Single(OneByOne(kind([[0.5]])))
        assert (inside.version, getattr(Maximized(inside), "version", 1)) == (version, version)


def test_tables_are_read_from_npz_and_csv(tmp_path: Path) -> None:
    losses = np.array([[0.5, 0.25], [1.0, np.nan]])
    np.savez(tmp_path / "t.npz", losses=losses.astype(np.float32), test=[0.1, 0.2])
    (tmp_path / "t.csv").write_text("0.5,0.25\n1,nan\n")
    (tmp_path / "header.CSV").write_text("\ufeffstep 1,step 2\r\n\r\n0.5,0.25\r\n1,NaN\r\n")
    for name in ("t.npz", "t.csv", "header.CSV"):
        np.testing.assert_array_equal(RecordedCurves.load(tmp_path / name).losses, losses)
    curves = RecordedCurves.load(tmp_path / "t.npz")
    assert curves.test(curves.start({"row": 1}, 0)) == 0.2


@pytest.mark.parametrize(
    "losses",
    [
        [],
        [1.0, 2.0],
        np.zeros((2, 0)),
        np.zeros((2, 2, 2)),
        [[1.0, 2.0], [3.0]],
        [["a", "b"]],
        [[1j]],
    ],
)
def test_what_is_not_a_table_is_refused(losses: Any) -> None:
    with refused("losses"):
        RecordedCurves(losses)


def test_a_test_loss_is_one_for_each_row() -> None:
    with refused("test", [1.0]):
        RecordedCurves([[1.0], [2.0]], test=[1.0])
