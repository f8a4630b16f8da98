"""One function turns names and numbers into a policy, for all who take them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from lastarm import (
    Brackets,
    Hyperband,
    LogUniform,
    Pull,
    Rounds,
    SuccessiveHalving,
    TimedHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.cli.replay import CurveTable
from lastarm.events import Opened
from lastarm.journal import read
from lastarm.policies import POLICIES
from lastarm.policies.named import choose, takes
from lastarm.policy import Algorithm, describe
from lastarm.sklearn import HalvingSearch
from tests.refusals import refused

SPACE = {"x": Uniform(0, 1)}
NUMBERS = {"arms": 9, "budget": 243, "max_pulls": 27}


def constant(config: dict[str, Any]) -> Iterator[float]:
    while True:
        yield config["x"]


def halving(**kwargs: Any) -> Any:
    rows, labels = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    search = HalvingSearch(SGDClassifier(), {"alpha": LogUniform(1e-5, 1e2)}, **kwargs)
    return search.fit(rows, labels)


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert leaving.value.code == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", [None, *POLICIES])
def test_all_who_take_names_and_numbers_come_to_the_same_policy(
    name: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        key: value
        for key, value in NUMBERS.items()
        if name is None or takes(name, key)  # a number that a policy does not take is refused
    }
    policy = describe(choose(name, given, seed=0).policy)
    assert search(constant, SPACE, policy=name, **given).policy == policy  # type: ignore[arg-type]
    arms = given.pop("arms")
    assert halving(policy=name, n_arms=arms, random_state=0, **given).result_.policy == policy

    named = [] if name is None else ["--policy", name]
    options = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
    plan = printed(capsys, "plan", "--json", *named, "--arms", arms, *options)
    assert plan["policy"] == policy["name"]
    assert {key: plan[key] for key in policy if key != "name"} == {
        key: value for key, value in policy.items() if key != "name"
    }
    np.savez(tmp_path / "t.npz", losses=np.ones((9, 5)))
    table = CurveTable(str(tmp_path / "t.npz"), None, 0)
    assert describe(table.policy(name, **given)) == policy
    program = ["--param", "x=uniform:0:1", "--journal", tmp_path / "j.jsonl", "--", "echo", "{x}"]
    printed(capsys, "tune", "--json", *named, "--arms", arms, *options, *program)
    (opened, *_) = read(tmp_path / "j.jsonl")
    assert isinstance(opened, Opened)
    assert opened.policy == policy


def test_what_is_known_besides_is_for_policies_that_take_it() -> None:
    assert describe(choose("exp3", {"arms": 4, "budget": 9}, seed=7).policy)["seed"] == 7
    suggested = {"max_pulls": 5, "look_cost": 3}
    chosen = choose(None, {"arms": 4, "budget": 90}, suggested=suggested).policy
    assert describe(chosen) == describe(SuccessiveHalving(4, 90)), "a hint does not choose"
    asha = choose("asha", {"arms": 4, "budget": 90, "max_pulls": None}, suggested=suggested)
    assert describe(asha.policy)["max_pulls"] == 5


def test_seconds_are_planned_for_or_stop_the_search() -> None:
    numbers = {"arms": 4, "budget": 90, "max_pulls": 9}
    timed = choose("timed-halving", numbers, seconds=7)
    assert (describe(timed.policy)["seconds"], timed.seconds) == (7.0, float("inf"))
    assert choose(None, numbers, seconds=7).seconds == 7
    assert choose(TimedHalving(4, 90, 9), {}, seconds=7).seconds == 7


def test_the_budget_of_hyperband_follows_from_its_brackets_and_its_arms_from_the_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = printed(capsys, "plan", "--json", "--policy", "hyperband", "--max-pulls", 9)
    result = search(constant, SPACE, policy="hyperband", max_pulls=9)
    assert (len(result.configs), result.policy["budget"]) == (17, 69)
    assert ("arms" in planned, planned["budget"]) == (False, 69)
    assert result.spent.pulls == planned["pulls"]


def one_round() -> Algorithm:
    yield [Pull(0, upto=1)]
    return 0


OWN = SuccessiveHalving(4, 64)


@pytest.mark.parametrize(
    ("argument", "given", "arguments"),
    [
        ("policy", "halving", {"policy": "halving"}),
        ("policy", 3, {"policy": 3}),
        ("policy", SuccessiveHalving, {"policy": SuccessiveHalving}),
        ("arms", 4, {"policy": OWN, "arms": 4}),
        ("budget", 64, {"policy": OWN, "budget": 64}),
        ("max_pulls", 9, {"policy": OWN, "max_pulls": 9}),
        ("arms", None, {"budget": 9}),
        ("max_pulls", None, {"policy": "asha", "arms": 9, "budget": 9}),
        ("max_pulls", 3, {"policy": "uniform", "arms": 9, "budget": 9, "max_pulls": 3}),
        ("seconds", 0, {"arms": 4, "budget": 64, "seconds": 0}),
    ],
)
def test_search_refuses_what_cannot_be_chosen(
    argument: str, given: object, arguments: dict[str, Any]
) -> None:
    with refused(argument, given):
        search(constant, SPACE, **arguments)


def test_rounds_alone_cannot_be_searched_by_since_it_does_not_know_its_arms() -> None:
    rounds = Rounds(one_round())
    with refused("policy", rounds):
        search(constant, SPACE, policy=rounds)  # type: ignore[arg-type]
    with refused("policy", rounds):
        halving(policy=rounds)


@pytest.mark.parametrize(
    ("argument", "given", "arguments"),
    [
        ("policy", "halving", {"policy": "halving"}),
        ("policy", SuccessiveHalving, {"policy": SuccessiveHalving}),
        ("budget", 5000, {"policy": OWN, "budget": 5000, "eta": 7}),
        ("eta", 7, {"policy": OWN, "eta": 7}),
        ("max_pulls", 9, {"policy": OWN, "max_pulls": 9}),
        ("n_arms", 8, {"policy": OWN, "n_arms": 8}),
        ("max_pulls", 9, {"policy": "uniform", "max_pulls": 9}),
        ("eta", 3, {"policy": "uniform", "eta": 3}),
        ("max_pulls", 0, {"max_pulls": 0}),
        ("n_arms", 0, {"n_arms": 0}),
        ("budget", 7.5, {"budget": 7.5}),
        ("eta", 1, {"eta": 1}),
    ],
)
def test_the_estimator_refuses_the_same(
    argument: str, given: object, arguments: dict[str, Any]
) -> None:
    with refused(argument, given):
        halving(**arguments)


def test_a_policy_that_is_named_keeps_its_own_eta() -> None:
    by_name = halving(policy="hyperband", n_arms=9, budget=81, max_pulls=9, random_state=0)
    assert by_name.result_.policy["eta"] == 3


@pytest.mark.parametrize(
    "space",
    [{"alpha": LogUniform(1e-5, 1e2)}, {"alpha": [1e-5, 1e-3, 1e-1]}],
    ids=["endless", "3"],
)
def test_with_arms_left_out_all_come_to_the_same_policy_and_the_same_sampler(
    space: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers: dict[str, Any] = {"budget": 90, "max_pulls": 9}
    policy = search(by_alpha, space, **numbers).policy
    assert (policy["name"], policy["sampler"][:15]) == ("brackets", "GaussianProcess")
    rows, labels = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    estimator = HalvingSearch(SGDClassifier(), space, random_state=0, **numbers)
    assert estimator.fit(rows, labels).result_.policy == policy
    domain = "log:1e-5:1e2" if isinstance(space["alpha"], LogUniform) else "choice:1e-5,1e-3,1e-1"
    options = ["--budget=90", "--max-pulls=9", "--param", f"alpha={domain}"]
    journal = tmp_path / "j.jsonl"
    printed(capsys, "tune", "--json", *options, "--journal", journal, "--", "echo", "{alpha}")
    (opened, *_) = read(journal)
    assert isinstance(opened, Opened)
    assert opened.policy == policy


def by_alpha(config: dict[str, Any]) -> Iterator[float]:
    while True:
        yield config["alpha"]


@pytest.mark.parametrize("kind", [Brackets, Hyperband])
def test_an_instance_without_arms_is_the_same_to_the_estimator_also_with_more_budget(
    kind: type[Brackets | Hyperband], tmp_path: Path
) -> None:
    found = {}
    for budget in (81, 162):
        policy = kind(budget=budget, max_pulls=9)
        found[budget] = halving(policy=policy, journal=tmp_path / "j.jsonl", random_state=0)
        assert found[budget].result_.policy == describe(kind(budget=81, max_pulls=9)) | {
            "budget": budget
        }
        assert found[budget].spent_.pulls == budget
    first, second = (len(one.cv_results_["params"]) for one in found.values())
    assert first < second, "with more budget there are more arms"
