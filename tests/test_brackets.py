"""Brackets that spend any budget, and arms that are chosen when they begin."""

import json
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import (
    Brackets,
    Choice,
    Configs,
    Forest,
    GaussianProcess,
    Hyperband,
    Integer,
    LogUniform,
    Loss,
    Pull,
    Sampler,
    Simulated,
    Uniform,
    search,
)
from lastarm.cli.replay import CurveTable
from lastarm.errors import OtherSearch, OtherVersion
from lastarm.events import Failure, Opened
from lastarm.journal import Journal, read
from lastarm.ledger.survivors import Survivors
from lastarm.plain import config_identity
from lastarm.policies.parts.as_many import AsMany
from lastarm.policy import describe, fresh
from lastarm.samplers import Chosen, Known
from lastarm.space import draw
from tests.refusals import refused

SPACE = {"x": Uniform(0, 1), "y": Uniform(0, 1)}
BUDGET, MOST = 95, 9  # a little more than ten full trainings


@dataclass(frozen=True, kw_only=True)
class Beside(Sampler):
    """Chooses configs beside the best one, which nobody has drawn; it is quick."""

    def choose(self, known: Known) -> list[Chosen]:
        best = min(known.seen, key=lambda one: (-one.level, one.loss))
        steps = [1 / (7 + known.seed % 1000 + k) for k in range(known.count)]
        configs = [{**best.config, "x": min(1.0, best.config["x"] + step)} for step in steps]
        taken = set(map(config_identity, known.begun))
        new = {config_identity(one): one for one in configs}
        return [
            Chosen(config, best.loss, 0.5) for name, config in new.items() if name not in taken
        ]


def valley(config: Mapping[str, Any]) -> Iterator[float]:
    """Lowest at (0.3, 0.7); where x is small, training fails after a while."""
    for pulls in count(1):
        if config["x"] < 0.1 and pulls > 2:
            raise RuntimeError("too small")
        yield abs(config["x"] - 0.3) + abs(config["y"] - 0.7) + 1 / pulls


tuned = partial(search, valley, SPACE, checkpoints=False)
chosen = partial(tuned, policy=Brackets(budget=BUDGET, max_pulls=MOST), sampler=Beside(), seed=3)


def played(
    policy: AsMany, losses: Sequence[float | None], more: int = 0
) -> dict[int, tuple[int, float]]:
    """Arm → its level and latest loss, where arm k has loss k (modulo how many there are)."""
    at: dict[int, tuple[int, float]] = {}
    while True:
        while pulls := policy.ask(5):
            for pull in pulls:
                loss = losses[(7 * pull.arm + pull.upto) % len(losses)]
                if loss is None:
                    policy.tell(Failure(pull, "it fails in this game"))
                    at[pull.arm] = pull.upto, math.nan
                else:
                    policy.tell(Loss(pull, loss))
                    at[pull.arm] = pull.upto, loss
        assert policy.finished
        if policy.budget >= more:
            return at
        policy.extend(more)


@pytest.mark.parametrize("kind", [Brackets, Hyperband])
@settings(max_examples=150, deadline=None)
@given(
    budget=st.integers(1, 700),
    more=st.integers(0, 900),
    most=st.integers(1, 60),
    eta=st.integers(2, 4),
    restarts=st.booleans(),
    losses=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None]), min_size=1, max_size=30),
)
def test_the_budget_is_spent_to_the_last_pull(
    kind: type[AsMany],
    budget: int,
    more: int,
    most: int,
    eta: int,
    restarts: bool,
    losses: list[float | None],
) -> None:
    policy: Any = kind(budget=budget, max_pulls=most, eta=eta, restarts=restarts)  # type: ignore[call-arg]
    planned = policy.plan()
    at = played(policy, losses, more)
    assert policy.booked <= policy.budget == max(budget, more)
    assert all(level <= most for level, _ in at.values())
    if not restarts:
        assert policy.booked == policy.budget == sum(level for level, _ in at.values())
    if None not in losses and more <= budget:
        assert (policy.booked, planned.exact) == (planned.pulls, True)
    assert sorted(at) == list(range(len(at))), "arms are numbered as they begin"
    assert len(at) <= policy.arms
    healthy = {arm: one for arm, one in at.items() if math.isfinite(one[1])}
    if kind is Brackets and healthy:
        highest = max(level for level, _ in healthy.values())
        best = min((loss, arm) for arm, (level, loss) in healthy.items() if level == highest)
        assert policy.recommendation == best[1]
    assert (policy.recommendation is None) == (not healthy)


@pytest.mark.parametrize("kind", [Brackets, Hyperband])
@settings(max_examples=100, deadline=None)
@given(
    arms=st.integers(1, 15),
    budget=st.integers(1, 400),
    more=st.integers(0, 600),
    most=st.integers(1, 30),
    restarts=st.booleans(),
    losses=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None]), min_size=1, max_size=30),
)
def test_where_arms_run_out_it_ends_when_all_are_trained_or_all_is_spent(
    kind: type[AsMany],
    arms: int,
    budget: int,
    more: int,
    most: int,
    restarts: bool,
    losses: list[float | None],
) -> None:
    policy: Any = kind(arms, budget, most, restarts=restarts)  # type: ignore[call-arg]
    at = played(policy, losses, more)
    assert policy.booked <= policy.budget
    assert all(arm < arms and level <= most for arm, (level, _) in at.items())
    trained = all(level == most for level, loss in at.values() if math.isfinite(loss))
    assert restarts or trained or policy.booked == policy.budget


def test_a_budget_of_ten_trainings_is_divided_evenly() -> None:
    policy = Brackets(budget=810, max_pulls=81)
    planned = policy.plan_details()["brackets"]
    assert [one["arms"] for one in planned] == [32, 33, 33]
    assert {one["levels"] for one in planned} == {(3, 9, 27, 81)}
    assert policy.plan().pulls == 810
    levels = {most: Brackets(budget=100 * most, max_pulls=most) for most in (1, 2, 8, 243)}
    first = {most: policy.plan_details()["brackets"][0] for most, policy in levels.items()}
    assert {most: one["levels"] for most, one in first.items()} == {
        1: (1,),
        2: (2,),
        8: (3, 8),
        243: (9, 27, 81, 243),
    }
    assert {most: one["arms"] for most, one in first.items()} == {1: 4, 2: 4, 8: 6, 243: 27}


def test_after_eight_trainings_brackets_are_smaller_and_a_larger_budget_has_the_same_first() -> (
    None
):
    at_20, at_50 = (
        Brackets(budget=52 * trainings, max_pulls=52).plan_details()["brackets"]
        for trainings in (20, 50)
    )
    for planned in (at_20, at_50):
        assert [one["levels"] for one in planned[:3]] == [(2, 6, 18, 52)] * 3
        assert {one["levels"] for one in planned[3:]} == {(6, 18, 52)}
        assert {27 <= one["arms"] <= 32 for one in planned[:3]} == {True}
        assert {9 <= one["arms"] <= 10 for one in planned[3:]} == {True}


def test_more_at_once_is_a_wider_bracket_and_a_huge_budget_has_wider_ones() -> None:
    wide = Brackets(budget=2000, max_pulls=27, at_once=4).plan_details()["brackets"]
    assert [one["arms"] >= 4 * few for one, few in zip(wide, [27, *[9] * 6], strict=True)] == [
        True
    ] * 7
    many = Brackets(budget=10**6, max_pulls=27).plan_details()["brackets"]
    assert 100 < len(many) <= 128


def test_what_it_was_made_with_is_what_a_header_says() -> None:
    policy = Brackets(budget=95, max_pulls=9)
    assert describe(policy) == {"name": "brackets", "budget": 95, "max_pulls": 9, "eta": 3}
    assert fresh(policy, budget=950).arms > policy.arms == 96
    assert pickle.loads(pickle.dumps(policy)).arms == 96
    assert describe(Brackets(20, 95, 9, at_once=2))["arms"] == 20
    for argument, value in (("at_once", 0), ("eta", 1), ("budget", None), ("max_pulls", 0)):
        with refused(argument, value):
            Brackets(**{"budget": 95, "max_pulls": 9, argument: value})  # type: ignore[arg-type]


# Arms that are chosen ---------------------------------------------------------------------------


def test_every_runner_gives_one_digest() -> None:
    answer = chosen()
    for workers in (2, 7):
        pace = [1.0 + (7 * arm) % 5 for arm in range(Brackets(budget=BUDGET, max_pulls=MOST).arms)]
        found = chosen(runner=partial(Simulated, workers=workers, seconds_per_pull=pace))
        assert (found.digest, found.configs) == (answer.digest, answer.configs)
    assert answer.complete
    assert answer.spent.pulls == BUDGET
    assert answer.digest != tuned(policy=Brackets(budget=BUDGET, max_pulls=MOST), seed=3).digest


def test_cut_off_at_every_record_it_resumes_to_the_same_arms(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    two = partial(chosen, policy=Brackets(budget=45, max_pulls=MOST))
    answer = two(journal=whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines) + 1):
        part.write_bytes(b"".join(lines[:kept]))
        found = two(journal=part)
        assert (found.digest, list(found.configs)) == (answer.digest, list(answer.configs)), kept
    assert [event.origin for event in read(whole) if isinstance(event, Pull)] == [
        event.origin for event in read(part) if isinstance(event, Pull)
    ]


def test_the_moment_of_a_larger_budget_changes_nothing(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    chosen(journal=whole)
    more = partial(chosen, policy=Brackets(budget=2 * BUDGET, max_pulls=MOST))
    answer = more(journal=whole)
    assert answer.spent.pulls == 2 * BUDGET
    assert len(answer.configs) > 25
    assert chosen(journal=whole).digest == answer.digest, "the smaller budget resumes it, too"
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(2, len(lines), 41):
        part.write_bytes(b"".join(lines[:kept]))
        assert more(journal=part).digest == answer.digest, kept


def test_the_journal_says_where_configs_are_from(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    first = {"x": 0.5, "y": 0.5}
    result = chosen(journal=path, include=[first])
    begun = [event for event in read(path) if isinstance(event, Pull) and event.config]
    origins = {event.arm: event.origin for event in begun}
    assert list(origins) == list(range(len(result.configs)))
    hows = [origin.how for origin in origins.values() if origin]
    assert hows[0] == "included"
    assert set(hows[1:9]) == {"random"}, "nothing is known before the first bracket"
    n = len(hows)
    assert hows.count("random") + 1 >= n // 3
    assert hows.count("chosen") >= n // 3
    for origin in origins.values():
        assert origin is not None
        expected = (0.5, True) if origin.how == "chosen" else (None, False)
        assert (origin.deviation, origin.mean is not None) == expected
    line = json.loads(path.read_text().splitlines()[1])
    assert (line["config"], line["origin"]) == (first, "included")
    rungs = Survivors(read(path)).rungs
    assert [rung.number for rung in rungs[:3]] == [1, 2, 3]
    assert rungs[3].bracket == 2


def test_the_digest_does_not_depend_on_what_was_expected() -> None:
    class Silent(Beside):
        def choose(self, known: Known) -> list[Chosen]:
            return [Chosen(one.config) for one in super().choose(known)]

    assert chosen(sampler=Silent()).digest == chosen().digest


def test_a_space_that_runs_out_of_configs_ends_the_search(tmp_path: Path) -> None:
    space = {"x": Integer(1, 4), "y": Choice("a", "b", "c")}

    def steady(config: Mapping[str, Any]) -> Iterator[float]:
        while True:
            yield config["x"] + (config["y"] == "b")

    for sampler in (GaussianProcess(), Forest(trees=2), None):
        policy = Brackets(budget=10**4, max_pulls=9)
        result = search(steady, space, policy=policy, sampler=sampler, seed=1)
        assert result.complete
        assert len(set(map(config_identity, result.configs))) == len(result.configs) == 12
        assert (result.spent.pulls, result.never_tried) == (12 * 9, 0)
        assert result.config is not None
        assert result.config["x"] == 1
    path = tmp_path / "few.jsonl"
    few = partial(search, steady, space, max_pulls=9, journal=path, checkpoints=False)
    few(budget=95)
    more = few(budget=10**4)
    assert (more.spent.pulls, more.complete) == (12 * 9, True)


class Counted(Uniform):
    """It counts how often a value is drawn."""

    draws = 0

    def sample(self, random: Any) -> float:
        Counted.draws += 1
        return super().sample(random)


@pytest.mark.parametrize("sampler", [None, Beside()], ids=["random", "chosen"])
def test_configs_are_drawn_as_far_as_arms_begin(sampler: Sampler | None, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(event: Any) -> None:
        if isinstance(event, Loss) and event.pull.arm == 400:
            raise Enough

    Counted.draws = 0
    million, path = Brackets(budget=10**6, max_pulls=27), tmp_path / "million.jsonl"
    large = partial(
        search, valley, {"x": Counted(0, 1), "y": Uniform(0, 1)}, seed=3, checkpoints=False
    )
    with pytest.raises(Enough):
        large(policy=million, sampler=sampler, journal=path, on_event=stop)
    assert million.arms > 300_000
    assert Counted.draws < 3_000
    if sampler is None:
        begun = [dict(e.config) for e in read(path) if isinstance(e, Pull) and e.config]
        assert begun == draw(SPACE, len(begun), seed=3)


def test_a_sampler_may_choose_only_new_configs_of_the_space() -> None:
    class Answers(Beside):
        answer: Any = None

        def choose(self, known: Known) -> list[Chosen]:
            answer: list[Chosen] = type(self).answer(known)
            return answer

    outside = [Chosen({"x": 7.0, "y": 0.5})]
    for answer in (
        lambda known: outside,
        lambda known: [Chosen({"x": 0.5})],
        lambda known: [Chosen(dict(known.begun[0]))],
        lambda known: [Chosen({"x": 0.5, "y": 0.5})] * 2,
        lambda known: [Chosen(one) for one in known.candidates[: known.count + 1]],
    ):
        Answers.answer = staticmethod(answer)
        with refused("sampler", Answers()):
            chosen(sampler=Answers())
    Answers.answer = staticmethod(lambda known: known.candidates[:1])  # a config will do
    assert chosen(sampler=Answers()).complete
    with pytest.raises(TypeError, match="neither `propose` nor `choose`"):
        Sampler()


def test_a_thousand_arms_and_twenty_hyperparameters_half_of_them_conditional() -> None:
    common = {f"c{k}": LogUniform(1e-4, 1.0) if k % 2 else Integer(1, 50) for k in range(10)}
    space = [
        {**common, "kind": kind, **{f"{kind}{k}": Uniform(0, 1) for k in range(5)}}
        for kind in ("a", "b")
    ]

    def steady(config: Mapping[str, Any]) -> Iterator[float]:
        for pulls in count(1):
            yield config["c0"] / 50 + config.get("a0", 0.5) + 1 / pulls

    policy = Brackets(1000, budget=2600, max_pulls=9, at_once=56)
    result = search(steady, space, policy=policy, sampler=GaussianProcess(), seed=0)
    assert (len(result.configs), result.spent.pulls, result.complete) == (1000, 2600, True)
    assert all("a0" in config or "b0" in config for config in result.configs)


# What is chosen where it is left out -------------------------------------------------------------


def test_the_default_follows_from_the_budget(tmp_path: Path) -> None:
    def policy(space: Any = SPACE, **numbers: Any) -> Mapping[str, Any]:
        return search(valley, space, max_pulls=9, seed=1, **numbers).policy

    large = policy(budget=90)
    assert (large["name"], large["sampler"][:15]) == ("brackets", "GaussianProcess")
    assert "arms" not in large
    assert policy(budget=90, sampler=Beside())["sampler"][:6] == "Beside"
    small = policy(budget=89)
    assert (small["name"], "sampler" in small) == ("horizon-halving", False)
    assert 2 < small["arms"] <= 89
    assert policy(budget=90, arms=5)["name"] == "horizon-halving"
    assert "sampler" not in policy(budget=90, policy="brackets")
    with refused("arms"):
        policy(Configs([{"x": 0.5, "y": k / 20} for k in range(20)]), budget=90)
    with refused("budget"):
        policy()

    for first in (60, 95):  # a larger budget extends a search, and is not one by another policy
        path = tmp_path / f"{first}.jsonl"
        begun = tuned(budget=first, max_pulls=9, journal=path)
        more = tuned(budget=200, max_pulls=9, journal=path)
        assert begun.policy["name"] == more.policy["name"]
        assert more.spent.pulls <= 200


def test_a_journal_of_hyperband_as_it_was_is_shown_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    policy = Hyperband(arms=17, budget=69, max_pulls=9)
    tuned(policy=policy, journal=path)
    old, *others = read(path)
    assert isinstance(old, Opened)
    assert old.policy["version"] == 2
    described = {name: value for name, value in old.policy.items() if name != "version"}
    path.unlink()
    before = Opened(old.seed, described, old.space, old.trainer, versions={"lastarm": "0.1.0"})
    with Journal(path, before) as journal:
        for event in others:
            journal.append(event)
        journal.sync()
    assert read(path)[0] == before
    with pytest.raises(OtherVersion, match="hyperband"):
        tuned(policy=policy, journal=path)


def test_another_number_at_once_is_another_search(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    chosen(journal=path)
    with pytest.raises(OtherSearch, match="at_once"):
        chosen(journal=path, policy=Brackets(budget=BUDGET, max_pulls=MOST, at_once=2))


def test_in_a_replay_the_order_of_the_file_does_not_say_which_rows_begin(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n".join(f"{64 - row},{64 - row}" for row in range(64)))
    table = CurveTable(str(tmp_path / "t.csv"), None, seed=0)
    played = table.play(Brackets(arms=64, budget=12, max_pulls=2))
    begun = {played.rows[arm]: curve[-1][1] for arm, curve in played.result.curves.items()}
    assert begun == {row: 64 - row for row in begun}
    assert len(begun) < 20
    assert max(begun) > 40, "the first rows are the worst"
