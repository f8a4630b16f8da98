"""What people write out of habit: each either works as they mean it, or is refused at once.

Each mistake says what was written and which error it meets: its class and the argument that it
names. Nothing has been trained by then, and the error is ours.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats

from lastarm import (
    ASHA,
    Choice,
    Configs,
    Grid,
    Hyperband,
    Integer,
    LogUniform,
    Normal,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.errors import (
    AllArmsFailed,
    EndedEarly,
    InvalidArgument,
    LastarmError,
    StateNotSaved,
    UnknownArgument,
)
from lastarm.space import draw

SPACE = {"lr": LogUniform(1e-5, 1e-1)}
began: list[Any] = []


def training(config: dict[str, Any]) -> Iterator[float]:
    began.append(config)
    while True:
        yield 1.0


def searched(trainer: Any = training, space: Any = SPACE, **arguments: Any) -> Any:
    return search(trainer, space, **{"arms": 4, "budget": 16, **arguments})


def made(kind: Any, *given: Any, **named: Any) -> Any:
    """What a type checker would refuse already."""
    return kind(*given, **named)


def of(space: Any, arms: int = 2, **arguments: Any) -> Any:
    return draw(space, arms, seed=0, **arguments)


class Mistake(NamedTuple):
    """What was written, the name that the error has for it, and what to write instead."""

    written: Callable[[], Any]
    argument: str | None
    instead: str | None = None  # lastarm's name for an argument of another tool
    kind: type[LastarmError] = InvalidArgument


def other(name: str, instead: str | None, written: Callable[[], Any]) -> Mistake:
    return Mistake(written, name, instead, UnknownArgument)


MISTAKES = {
    # Arguments of other tools, and of other parts of lastarm
    "Optuna's n_trials": other("n_trials", "arms", lambda: searched(n_trials=9)),
    "Optuna's direction": other("direction", "maximize", lambda: searched(direction="maximize")),
    "Optuna's timeout": other("timeout", "seconds", lambda: searched(timeout=60)),
    "Optuna's storage": other("storage", "journal", lambda: searched(storage="a.db")),
    "Optuna's pruner": other("pruner", "policy", lambda: searched(pruner="hyperband")),
    "joblib's n_jobs": other("n_jobs", "workers", lambda: searched(n_jobs=-1)),
    "Ray's num_samples": other("num_samples", "arms", lambda: searched(num_samples=9)),
    "Ray's metric": other("metric", "metric", lambda: made(ASHA, 8, 64, 8, metric="loss")),
    "Ray's mode": other("mode", "maximize", lambda: searched(mode="max")),
    "Hyperopt's max_evals": other("max_evals", "arms", lambda: searched(max_evals=9)),
    "random_state": other("random_state", "seed", lambda: searched(random_state=0)),
    "cv of a search": other("cv", "cv", lambda: searched(cv=5)),
    "scoring of a search": other("scoring", "scoring", lambda: searched(scoring="roc_auc")),
    "eta of a search": other("eta", "eta", lambda: searched(eta=3)),
    "a name that is misspelled": other("budgets", None, lambda: searched(budgets=9)),
    "factor of a policy": other(
        "factor", "eta", lambda: made(SuccessiveHalving, arms=4, budget=16, factor=3)
    ),
    "Ray's grace_period": other(
        "grace_period", None, lambda: made(ASHA, arms=4, budget=16, max_pulls=9, grace_period=1)
    ),
    "Dask-ML's max_iter": other("max_iter", "max_pulls", lambda: made(Hyperband, max_iter=81)),
    "workers of a policy": other(
        "workers", "workers", lambda: made(SuccessiveHalving, arms=4, budget=16, workers=2)
    ),
    "a logarithmic Uniform": other("log", "log", lambda: made(Uniform, 1e-5, 1e-1, log=True)),
    "Ray's lower and upper": other("lower", "low", lambda: made(Uniform, lower=0, upper=1)),
    "Optuna's choices": other("choices", "options", lambda: made(Choice, choices=["a", "b"])),
    # Spaces
    "a class for a domain": Mistake(lambda: searched(space={"lr": LogUniform}), "lr"),
    "exponents for ends": Mistake(lambda: made(LogUniform, -5, -1), "low"),
    "ends that are exchanged": Mistake(lambda: made(Uniform, 1, 0), "high"),
    "a domain inside a dict": Mistake(
        lambda: searched(space={"model": {"lr": Uniform(0, 1)}}), "model"
    ),
    "domains in a list": Mistake(lambda: of({"lr": [Uniform(0, 1), Uniform(5, 6)]}), "lr"),
    "a domain in a Choice": Mistake(lambda: made(Choice, None, Uniform(0, 1)), "options"),
    "a domain in a config": Mistake(lambda: made(Configs, [{"lr": Uniform(0, 1)}]), "lr"),
    "a distribution in a dict": Mistake(
        lambda: of({"model": {"lr": scipy.stats.uniform(0, 1)}}), "model"
    ),
    "a set of choices": Mistake(lambda: of({"act": {"relu", "tanh"}}), "act"),
    "an iterator of choices": Mistake(lambda: of({"lr": map(float, "123")}), "lr"),
    "a function that draws": Mistake(lambda: of({"lr": lambda: 0.1}), "lr"),
    "skopt's tuple": Mistake(lambda: of({"lr": (1e-5, 1e-1, "log-uniform")}), "lr"),
    "a domain as on the command line": Mistake(lambda: of({"lr": "log:1e-5:1e-1"}), "lr"),
    "a space without names": Mistake(lambda: searched(space=LogUniform(1e-5, 1)), "space"),
    "include outside of its domain": Mistake(
        lambda: searched(include=[{"lr": 1.0}]), "include[0]"
    ),
    "a config that is not in a list": Mistake(lambda: searched(include={"lr": 0.01}), "include"),
    "a grid without an end": Mistake(lambda: made(Grid, {"lr": Uniform(0, 1)}), "lr"),
    # Trainers and numbers
    "a function that returns its loss": Mistake(
        lambda: searched(trainer=lambda config: 0.5), "trainer"
    ),
    "a generator that runs": Mistake(lambda: searched(trainer=training({})), "trainer"),
    "a policy's class": Mistake(
        lambda: made(search, training, SPACE, policy=SuccessiveHalving), "policy"
    ),
    "numbers beside a policy": Mistake(
        lambda: searched(policy=SuccessiveHalving(arms=4, budget=16)), "arms"
    ),
    "a budget for one arm": Mistake(lambda: searched(arms=64, budget=8), "budget"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_plausible_mistake_is_refused_before_anything_is_trained(name: str) -> None:
    began.clear()
    mistake = MISTAKES[name]
    with pytest.raises(mistake.kind) as refusal:
        mistake.written()
    error: Any = refusal.value
    assert error.argument == mistake.argument
    assert getattr(error, "instead", None) == mistake.instead
    assert isinstance(error, TypeError if mistake.kind is UnknownArgument else ValueError)
    assert not began


def test_there_are_44_of_them() -> None:
    assert len(MISTAKES) == 44


# Mistakes that only training can show ------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "workers"),
    [(0.9, None), (3, None), (np.float32(0.5), None), (np.array(0.5), None), (0.9, 1)],
)
def test_a_loss_with_a_number_beside_it_is_refused(second: Any, workers: int | None) -> None:
    def measured(config: dict[str, Any]) -> Iterator[Any]:
        while True:
            yield 1.0, second

    with pytest.raises(AllArmsFailed) as refusal:
        searched(measured, workers=workers)
    (cause,) = set(refusal.value.causes.values())
    assert cause.startswith("BadYield")
    assert "`metrics`" in cause
    assert "`resume`" in cause


def test_other_pairs_and_numbers_to_resume_from_are_states() -> None:
    def resumable(config: dict[str, Any], resume: float = 1.0) -> Iterator[Any]:
        while True:
            yield 1.0, 2.0

    def model(config: dict[str, Any]) -> Iterator[Any]:
        while True:
            yield 1.0, [0.9]

    assert (searched(resumable).state, searched(model).state) == (2.0, [0.9])


@pytest.mark.parametrize("workers", [None, 2])
def test_a_loop_that_ends_early_keeps_its_loss_and_is_reported_once(workers: int | None) -> None:
    def short(config: dict[str, Any]) -> Iterator[float]:
        yield from (1.0, 0.5, 0.25)

    with pytest.warns(EndedEarly) as told:
        result = searched(short, workers=workers)
    ended = [one.message for one in told if isinstance(one.message, EndedEarly)]
    assert [(one.pulls, one.upto) for one in ended] == [(3, 6)]
    assert f"arm {ended[0].arm}" in str(ended[0])
    assert (result.loss, result.level) == (0.25, 6)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_state_that_cannot_be_saved_is_reported_once_with_its_reason_and_cost(
    tmp_path: Path, workers: int | None
) -> None:
    def locked(config: dict[str, Any]) -> Iterator[Any]:
        while True:
            yield 1.0

    with pytest.warns(StateNotSaved) as told:
        searched(locked, journal=tmp_path / "j.jsonl", workers=workers)
    (warned,) = [one for one in told if isinstance(one.message, StateNotSaved)]
    unsaved = warned.message
    assert isinstance(unsaved, StateNotSaved)
    assert warned.filename == __file__, "where lastarm was called"
    assert "a running generator cannot be pickled" in unsaved.reason
    assert "`resume`" in str(unsaved)
    assert "trained again from its beginning" in str(unsaved)


def test_a_state_that_need_not_be_saved_is_not_reported(tmp_path: Path) -> None:
    assert searched().complete
    assert searched(journal=tmp_path / "j.jsonl", checkpoints=False).complete


# What works as it is meant ---------------------------------------------------------------------


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), np.array(["a", "b"])])
def test_a_choice_of_one_list_is_one_of_its_elements(given: Any) -> None:
    assert Choice(given) == Choice("a", "b")
    assert Choice(range(3)) == Choice(0, 1, 2)
    assert Choice("ab").options == ("ab",)
    assert {config["x"] for config in of({"x": Choice(given)})} == {"a", "b"}
    assert of({"x": [["a", "b"]]}, arms=1) == [{"x": ["a", "b"]}]


@pytest.mark.parametrize(
    ("option", "instead"),
    [("--n-trials", "--arms"), ("--timeout", "--seconds"), ("--factor", "--eta")],
)
def test_an_option_of_another_tool_is_refused_with_ours(
    option: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["tune", option, "9"])
    assert leaving.value.code == 2
    said = capsys.readouterr().err
    assert option in said
    assert instead in said


# Spaces ----------------------------------------------------------------------------------------


def test_steps_are_exact_and_end_at_or_below_the_high_end() -> None:
    assert Uniform(0, 1, step=0.1).values()[3] == 0.3
    assert Uniform(0, 0.95, step=0.1).values()[-1] == 0.9
    assert Integer(0, 10, step=4).values() == [0, 4, 8]
    for domain in (Uniform(0, 1, step=0.1), Integer(-5, 20, step=5)):
        drawn = [config["x"] for config in of({"x": domain}, arms=domain.size or 0)]
        assert sorted(drawn) == domain.values()
        assert [type(x) for x in drawn] == [type(domain.low)] * len(drawn)
        many = [domain.sample(np.random.default_rng(seed)) for seed in range(200)]
        assert set(many) == set(domain.values())


@pytest.mark.parametrize(
    ("domain", "argument"),
    [
        (lambda: made(Integer, 1, 9, step=0), "step"),
        (lambda: made(Integer, 1, 3, step=10), "step"),
        (lambda: made(Integer, 1, 9, log=True, step=2), "step"),
        (lambda: made(Uniform, 0, 1, step=0), "step"),
        (lambda: made(Uniform, 0, 1, step=2), "step"),
        (lambda: made(Normal, 0, 0), "sd"),
        (lambda: made(Normal, 0, "1"), "sd"),
        (lambda: made(Normal, 0, 1, low=2, high=1), "high"),
        (lambda: made(Normal, 0, 1, low=50), "high"),
        (lambda: made(Choice, "a", ordered=1), "ordered"),
    ],
)
def test_domains_that_hold_nothing_are_refused(domain: Callable[[], Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        domain()
    assert refusal.value.argument == argument


def test_a_normal_draws_around_its_mean_and_inside_of_its_ends() -> None:
    random = np.random.default_rng(0)
    drawn = [Normal(3, 2).sample(random) for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(3, abs=0.1)
    assert np.std(drawn) == pytest.approx(2, abs=0.1)
    ends = [Normal(0, 1, low=-0.5, high=2).sample(random) for _ in range(500)]
    assert -0.5 <= min(ends) < -0.4
    assert 1.5 < max(ends) <= 2


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Uniform(0, 1), [0, 1, 0.5, np.float32(0.5)], [1.5, "a", None, True]),
        (Uniform(0, 1, step=0.1), [0.3, 1], [0.35]),
        (Integer(0, 10, step=5), [5, np.int64(10)], [3, 5.0, 15]),
        (Normal(0, 1, low=0), [0.5, 9], [-1, float("nan")]),
        (Choice(1, "a", [2]), [1, 1.0, "a", [2]], [2, "b", [3], True]),
        ([1, 2], [2], [3]),
        (scipy.stats.uniform(0, 1), [0.5], [2, "a"]),
        (7, [7], [8]),
    ],
)
def test_a_config_to_include_is_inside_of_its_domains(
    domain: Any, inside: list[Any], outside: list[Any]
) -> None:
    space = {"x": domain, "y": [1, 2, 3]}
    for value in inside:
        assert of(space, 1, include=[{"x": value, "y": 1}])[0]["x"] == value
    for value in outside:
        with pytest.raises(InvalidArgument) as refusal:
            of(space, 1, include=[{"x": value, "y": 1}])
        assert refusal.value.argument == "include[0]"
