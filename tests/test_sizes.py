"""Values that are too large: each meets an error of ours that can be shown, and harms nothing."""

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from lastarm import (
    Checkpoints,
    Choice,
    Configs,
    Integer,
    LogUniform,
    Loss,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.errors import InvalidArgument
from lastarm.journal import read
from lastarm.policies import POLICIES
from lastarm.policies.named import make_policy
from lastarm.runners import Simulated
from lastarm.sklearn import HalvingSearch

HUGE = 10**5000  # Python does not even write it
SPACE = {"x": Uniform(0, 1)}
NUMBERS: dict[str, Any] = {"arms": 4, "budget": 400, "max_pulls": 9}


def halved(config: dict[str, Any]) -> Iterator[Any]:
    loss = config["x"]
    while True:
        loss /= 2
        yield loss


ARGUMENTS = ["arms", "budget", "max_pulls", "workers", "seed", "retries", "policy", "runner"]
SECONDS = ["seconds", "pull_seconds", "switch_seconds"]


@pytest.mark.parametrize("huge", [HUGE, -HUGE], ids=["huge", "negative"])
@pytest.mark.parametrize("name", ARGUMENTS + SECONDS)
def test_search_refuses_a_number_that_is_too_large(name: str, huge: int) -> None:
    with pytest.raises(InvalidArgument) as caught:
        search(halved, SPACE, **{**NUMBERS, name: huge})
    assert caught.value.argument == name
    assert "very large int" in str(caught.value)


OF_POLICIES = [
    (name, field.name)
    for name, kind in POLICIES.items()
    for field in dataclasses.fields(kind)
    if not isinstance(field.default, bool)
]


@pytest.mark.parametrize(
    "huge",
    [HUGE, -HUGE, Fraction(HUGE), Fraction(1, HUGE), Decimal("1e5000"), "1e5000", "1e-999999999"],
    ids=["huge", "negative", "fraction", "tiny", "decimal", "text", "exponent"],
)
@pytest.mark.parametrize(("policy", "name"), OF_POLICIES)
def test_policies_refuse_it_too(policy: str, name: str, huge: Any) -> None:
    if isinstance(huge, Fraction) and huge < 1 and name in ("low", "high", "seconds"):
        return  # it is 0.0
    fields = [field.name for field in dataclasses.fields(POLICIES[policy])]
    numbers = {key: value for key, value in NUMBERS.items() if key in fields}
    with pytest.raises(InvalidArgument) as caught:
        make_policy(policy, numbers | {name: huge})
    assert len(str(caught.value)) < 400


def test_a_policy_may_be_asked_for_any_number_of_pulls_and_not_extended_to_any_budget() -> None:
    policy = SuccessiveHalving(arms=4, budget=40)
    assert len(policy.ask(HUGE)) == 4
    with pytest.raises(InvalidArgument):
        policy.extend(HUGE)


@pytest.mark.parametrize(
    "name", ["n_arms", "budget", "max_pulls", "eta", "n_jobs", "random_state", "error_score"]
)
def test_the_estimator_refuses_it_too(name: str) -> None:
    rows = np.arange(20.0).reshape(10, 2)
    space = {"alpha": LogUniform(1e-4, 1)}
    given: dict[str, Any] = {"n_arms": 4, "budget": 20, name: HUGE}
    with pytest.raises(InvalidArgument):
        HalvingSearch(SGDClassifier(), space, **given).fit(rows, [0, 1] * 5)


@pytest.mark.parametrize(
    "written",
    [
        lambda: Choice(1, HUGE),
        lambda: Integer(1, HUGE),
        lambda: Uniform(0, HUGE),
        lambda: Uniform(0, 1, step=HUGE),
        lambda: Checkpoints(memory=HUGE),
        lambda: search(halved, {"x": 1.0, "y": HUGE}, arms=1, budget=4),
        lambda: search(halved, SPACE, include=[{"x": HUGE}], arms=1, budget=4),
    ],
)
def test_spaces_and_checkpoints_refuse_it_too(written: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        written()
    assert str(caught.value)


DIGITS = "1" + 5000 * "0"
OPTIONS = ["arms", "budget", "max-pulls", "eta", "seed", "workers", "retries"]


@pytest.mark.parametrize("option", [*OPTIONS, "seconds", "pull-seconds", "switch-seconds"])
def test_the_command_refuses_it_in_one_line(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    numbers = ["--arms", "4", "--budget", "40", "--max-pulls", "8"]
    with pytest.raises(SystemExit) as left:
        main(["tune", *numbers, "--param", "x=uniform:0:1", f"--{option}", DIGITS, "--", "true"])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.count("\n") == 1
    assert f"{option.replace('-', '_')}=(a very large int) is not valid" in said


@pytest.mark.parametrize("option", ["arms", "budget", "max-pulls", "eta", "workers"])
def test_so_does_its_plan(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["plan", "--arms", "4", "--budget", "40", f"--{option}", DIGITS])
    assert left.value.code == 2
    assert "is not valid" in capsys.readouterr().err


@pytest.mark.parametrize("domain", [f"choice:1,{DIGITS}", DIGITS, f"int:1:{DIGITS}"])
def test_so_do_its_spaces(capsys: pytest.CaptureFixture[str], domain: str, tmp_path: Path) -> None:
    numbers = ["--arms", "1", "--budget", "4"]
    file = tmp_path / "space.toml"
    file.write_text(f"x = {DIGITS}")
    for space in (["--param", f"x={domain}"], ["--space", str(file)]):
        with pytest.raises(SystemExit) as left:
            main(["tune", *numbers, *space, "--", "true"])
        assert left.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


# Metrics ----------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    return 0.5 if levels == 0 else [nested(levels - 1)]


def itself() -> Any:
    held: list[Any] = []
    held.extend([held] * 500)
    return held


TOO_LARGE: dict[str, tuple[Any, str]] = {
    "names": ({f"m{k}": k for k in range(10_001)}, "10,000 entries"),
    "entries": ({f"m{k}": list(range(900)) for k in range(12)}, "10,000 entries"),
    "levels": ({"deep": nested(17)}, "16 levels"),
    "itself": ({"itself": itself()}, "10,000 entries"),
    "bytes": ({"text": "ä" * 2**19}, "1,048,576 bytes"),
    "bytes of many": ({f"m{k}": "x" * 150_000 for k in range(8)}, "1,048,576 bytes"),
}


class Talkative:
    """Arm 1 has a lot to say."""

    def __init__(self, metrics: Any) -> None:
        self.metrics = metrics

    def start(self, config: Any, seed: int) -> dict[str, Any]:
        return {"n": config["n"], "pulls": 0}

    def train(self, state: dict[str, Any], pulls: int) -> dict[str, Any]:
        return state | {"pulls": state["pulls"] + pulls}

    def loss(self, state: dict[str, Any]) -> Any:
        loss = (state["n"] - 2) ** 2 + 1 / state["pulls"]
        return {"loss": loss, **(self.metrics if state["n"] == 1 else {"seen": state["n"]})}


def of_talkative(metrics: Any, **arguments: Any) -> Any:
    space = Configs([{"n": n} for n in range(4)])
    return search(Talkative(metrics), space, arms=4, budget=16, **arguments)


@pytest.mark.parametrize(("metrics", "limit"), TOO_LARGE.values(), ids=list(TOO_LARGE))
def test_metrics_that_are_too_large_fail_their_arm_and_no_other(metrics: Any, limit: str) -> None:
    found = of_talkative(metrics)
    assert found.complete
    assert found.arm == 2
    assert list(found.failures) == [1]
    assert "the metrics of arm 1 have more than" in found.failures[1].error
    assert limit in found.failures[1].error


def test_they_fail_with_the_same_text_on_every_runner() -> None:
    runners: list[dict[str, Any]] = [
        {"runner": "serial"},
        {"runner": "processes", "workers": 1},
        {"runner": "batched"},
        {"runner": Simulated},
    ]
    found = [of_talkative({"deep": nested(30)}, **runner) for runner in runners]
    assert len({one.failures[1].error for one in found}) == 1
    assert len({one.digest for one in found}) == 1


def test_metrics_up_to_the_limits_are_kept_in_the_journal(tmp_path: Path) -> None:
    metrics = {"deep": nested(15), "text": "x" * 10**6, "long": list(range(1000))}
    path = tmp_path / "j.jsonl"
    kept = of_talkative(metrics, journal=path)
    assert not kept.failures
    told = [e.metrics for e in read(path) if isinstance(e, Loss) and e.pull.arm == 1]
    assert told[0] == metrics


def test_a_test_loss_may_have_any_metrics() -> None:
    class Tested(Talkative):
        def test(self, state: dict[str, Any]) -> Any:
            return {"loss": 0.5, "deep": nested(100)}

    space = Configs([{"n": n} for n in range(4)])
    assert search(Tested({}), space, arms=4, budget=16).test_loss == 0.5
