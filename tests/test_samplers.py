"""Arms that are chosen by what became of others: the same on any runner, and after any crash."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as counted
from math import fsum, inf, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import scipy.stats

from lastarm import (
    ASHA,
    Brackets,
    Choice,
    Configs,
    Forest,
    Grid,
    Hyperband,
    Integer,
    LogUniform,
    Policy,
    Sampler,
    Simulated,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.errors import DrawnOtherwise, OtherSearch
from lastarm.events import Loss, Pull
from lastarm.journal import read
from lastarm.plain import readable
from lastarm.samplers import SampledPolicy, Seen
from lastarm.samplers.forest import features
from lastarm.space import draw, recalled, spare
from tests.refusals import refused

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "adaptive.py"
SPACE = {"x": Uniform(0, 1), "y": Uniform(0, 1)}
HYPERBAND = Hyperband(arms=49, budget=1500, max_pulls=27)
POLICIES = {
    "hyperband": HYPERBAND,
    "asha": ASHA(arms=40, budget=200, max_pulls=9),
    "halving": SuccessiveHalving(arms=32, budget=400),
}


@dataclass(frozen=True, kw_only=True)
class Closest(Sampler):
    """Those closest to the best at the highest level; remembers what it was shown, if asked to."""

    shown: Any = None

    def __repr__(self) -> str:
        return "Closest()"

    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> list[int]:
        if self.shown is not None:
            self.shown.append((list(seen), list(candidates), count, seed))
        best = min(seen, key=lambda one: (-one.level, one.loss)).config

        def distance(place: int) -> float:
            return fsum(abs(candidates[place][name] - best[name]) for name in best)

        return sorted(range(len(candidates)), key=distance)[:count]


class Farthest(Closest):
    """Another mind under the same name."""

    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> list[int]:
        return list(range(count))


class Valley:
    """The loss falls towards the distance from (0.3, 0.7); where x is small, training fails."""

    def start(self, config: Mapping[str, Any], seed: int) -> tuple[float, int]:
        return abs(config["x"] - 0.3) + abs(config["y"] - 0.7), 0

    def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
        if state[0] > 0.9:
            raise RuntimeError("too far away")
        return state[0], state[1] + pulls

    def loss(self, state: tuple[float, int]) -> float:
        return nan if state[0] > 0.8 else state[0] + 1 / state[1]


tuned = partial(search, Valley(), SPACE)


def falling(config: Mapping[str, Any]) -> Iterator[float]:
    """Never fails, and goes on for ever."""
    for pulls in counted(1):
        yield 1 / pulls + config.get("x", 0.5)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("sampler", [Closest(), Forest(trees=4)], ids=["closest", "forest"])
def test_the_same_call_gives_the_same_arms(policy: Policy, sampler: Sampler) -> None:
    once, again = (tuned(policy=policy, sampler=sampler, seed=3) for _ in range(2))
    assert once.configs == again.configs
    assert once.digest == again.digest
    assert once.complete
    assert once.digest != tuned(policy=policy, sampler=sampler, seed=4).digest
    assert once.digest != tuned(policy=policy, seed=3).digest


@pytest.mark.parametrize("name", ["hyperband", "halving"])
def test_every_runner_gives_one_digest(name: str) -> None:
    answer = tuned(policy=POLICIES[name], sampler=Closest())
    for workers in (2, 7, 30):
        random = np.random.default_rng(workers)
        simulated = partial(
            Simulated,
            workers=workers,
            seconds_per_pull=random.random(len(answer.configs)).tolist(),
        )
        found = tuned(policy=POLICIES[name], sampler=Closest(), runner=simulated)
        assert (found.digest, found.configs) == (answer.digest, answer.configs)


def test_worker_processes_give_the_digest_of_the_serial_runner() -> None:
    policy = Hyperband(arms=17, budget=69, max_pulls=9)
    answer = tuned(policy=policy, sampler=Forest(batch=4, trees=4))
    found = tuned(policy=policy, sampler=Forest(batch=4, trees=4), runner="processes", workers=2)
    assert (found.digest, found.configs) == (answer.digest, answer.configs)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_cut_off_anywhere_it_resumes_to_the_same_arms(policy: Policy, tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    answer = tuned(policy=policy, sampler=Closest(), journal=whole, checkpoints=False)
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines), 29):
        part = tmp_path / f"{kept}.jsonl"
        part.write_bytes(b"".join(lines[:kept]))
        found = tuned(policy=policy, sampler=Closest(), journal=part, checkpoints=False)
        assert (found.digest, found.configs) == (answer.digest, answer.configs)


def test_asha_on_many_workers_resumes_with_the_arms_that_its_journal_has(tmp_path: Path) -> None:
    journal = tmp_path / "asha.jsonl"
    policy = POLICIES["asha"]
    simulated = partial(Simulated, workers=5, seconds_per_pull=np.linspace(1, 2, 40).tolist())
    answer = tuned(policy=policy, sampler=Closest(), journal=journal, runner=simulated)
    assert tuned(policy=policy, sampler=Closest(), journal=journal).digest == answer.digest
    begun = [event for event in read(journal) if isinstance(event, Pull) and event.config]
    assert all(event.config == readable(answer.configs[event.arm]) for event in begun)


def test_a_search_can_be_extended(tmp_path: Path) -> None:
    def run(budget: int) -> Any:
        policy = replace(HYPERBAND, budget=budget)
        return tuned(policy=policy, sampler=Closest(), journal=tmp_path / "journal.jsonl")

    first = run(250)
    more = run(1500)
    assert first.spent.pulls <= 250 < more.spent.pulls <= 1500
    assert run(250).digest == more.digest


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("share", ["1/3", "1/2", 1])
def test_of_the_first_n_arms_the_share_is_random(
    policy: Policy, share: Any, tmp_path: Path
) -> None:
    sampler = Closest(random_share=share, batch=5)
    journal = tmp_path / "journal.jsonl"
    result = tuned(policy=policy, sampler=sampler, journal=journal, checkpoints=False)
    plain = draw(SPACE, policy.arms, 0)
    order = [event.arm for event in read(journal) if isinstance(event, Pull) and event.config]
    kept = 0
    for n, arm in enumerate(order, start=1):
        kept += result.configs[arm] == plain[arm]
        assert kept >= int(n * {"1/3": 1 / 3, "1/2": 1 / 2, 1: 1}[share])
    assert kept == len(order) if share == 1 else kept < len(order) * 0.8


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_budget_is_never_exceeded_whatever_fails(policy: Policy) -> None:
    results = [tuned(policy=policy, sampler=Closest(), seed=seed) for seed in range(5)]
    assert any(result.failures for result in results)
    assert all(result.spent.pulls <= policy.budget for result in results)


@pytest.mark.parametrize("name", ["hyperband", "halving"])
def test_choosing_arms_costs_no_pull_and_no_look(name: str) -> None:
    chosen = search(falling, SPACE, policy=POLICIES[name], sampler=Closest())
    plain = search(falling, SPACE, policy=POLICIES[name])
    assert chosen.spent.pulls == plain.spent.pulls
    assert chosen.spent.observations == plain.spent.observations


@pytest.mark.parametrize("arms", [10, 20, 30])
@pytest.mark.parametrize(
    "space",
    [
        {"x": Integer(1, 6), "y": Choice(0.1, 0.2, 0.3, 0.4, 0.5)},
        Grid({"x": Integer(1, 6), "y": Uniform(0, 1)}, samples=6),
        Configs([{"x": x, "y": 0.5} for x in range(30)]),
    ],
    ids=["finite", "grid", "configs"],
)
def test_in_a_finite_space_no_config_is_had_twice(space: Any, arms: int) -> None:
    policy = SuccessiveHalving(arms=arms, budget=1000)
    for sampler in (Closest(batch=3), Forest(batch=3, trees=2)):
        found = search(falling, space, policy=policy, sampler=sampler)
        assert len({tuple(config.items()) for config in found.configs}) == arms


def test_included_configs_come_first_as_they_are() -> None:
    include = [{"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.9}, {"x": 0.1, "y": 0.1}]
    for policy in POLICIES.values():
        configs = tuned(policy=policy, sampler=Closest(batch=1), include=include).configs
        assert configs[:2] == include[:2]


def test_a_sampler_is_shown_what_is_known_and_failures_as_the_worst() -> None:
    shown: list[Any] = []
    result = tuned(policy=HYPERBAND, sampler=Closest(shown=shown, batch=6))
    assert result.failures
    for seen, candidates, count, _ in shown:
        assert 0 < count <= 6
        assert len(candidates) >= 900
        assert all(
            one.loss == inf
            for one in seen
            if abs(one.config["x"] - 0.3) + abs(one.config["y"] - 0.7) > 0.8
        )
        assert all(config not in [one.config for one in seen] for config in candidates)
    assert [len(seen) for seen, *_ in shown][:3] == [6, 12, 18]
    assert len({seed for *_, seed in shown}) == len(shown)


def test_a_batch_waits_for_the_one_before_where_arms_go_round_by_round() -> None:
    configs = draw(SPACE, 8, 0)
    policy = SampledPolicy(SuccessiveHalving(8, 48), Closest(batch=3), SPACE, configs, 0)
    first = policy.ask(8)
    assert [pull.arm for pull in first] == [0, 1, 2]
    policy.tell(Loss(first[0], 0.5))
    policy.tell(Loss(first[2], 0.25))
    assert policy.ask(8) == []
    policy.tell(Loss(first[1], 0.75))
    assert [pull.arm for pull in policy.ask(2)] == [3, 4]
    assert [pull.arm for pull in policy.ask(8)] == [5]


def test_asha_never_waits_for_a_batch() -> None:
    configs = draw(SPACE, 40, 0)
    policy = SampledPolicy(POLICIES["asha"], Closest(batch=3), SPACE, configs, 0)
    assert len(policy.ask(20)) == 20


def test_another_sampler_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    tuned(policy=HYPERBAND, sampler=Closest(), journal=journal)
    with pytest.raises(OtherSearch) as info:
        tuned(policy=HYPERBAND, journal=journal)
    assert info.value.differences == [("sampler", str(Closest()), None)]
    with pytest.raises(OtherSearch) as info:
        tuned(policy=HYPERBAND, journal=journal, sampler=Forest())
    assert info.value.differences == [("sampler", str(Closest()), str(Forest()))]


def cut(journal: Path, whole: bytes, kept: int) -> dict[int, Any]:
    """Keep so many lines, and give back the configs in them."""
    shutil.rmtree(f"{journal}.states", ignore_errors=True)
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
    return {e.arm: e.config for e in read(journal) if isinstance(e, Pull) and e.config}


@pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_arms_that_have_begun_keep_their_configs_when_the_sampler_changes(
    policy: Policy, tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    first = tuned(policy=policy, sampler=Closest(), journal=journal)
    assert tuned(policy=policy, sampler=Farthest(), journal=journal).digest == first.digest
    whole = journal.read_bytes()
    for kept in range(2, whole.count(b"\n"), 17):
        written = cut(journal, whole, kept)
        found = tuned(policy=policy, sampler=Farthest(), journal=journal)
        assert {arm: found.configs[arm] for arm in written} == written
        assert found.complete
        assert len({tuple(config.values()) for config in found.configs}) == policy.arms


@pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_sampler_is_asked_again_only_for_what_the_journal_does_not_tell(
    policy: Policy, tmp_path: Path
) -> None:
    journal, shown = tmp_path / "journal.jsonl", list[Any]()
    first = tuned(policy=policy, sampler=Closest(shown=shown), journal=journal)
    whole, asked = journal.read_bytes(), len(shown)
    for kept in range(2, whole.count(b"\n"), 17):
        cut(journal, whole, kept)
        again = list[Any]()
        found = tuned(policy=policy, sampler=Closest(shown=again), journal=journal)
        assert (found.digest, found.configs) == (first.digest, first.configs)
        assert [question for question in again if question not in shown] == []
        assert len(again) < asked or kept < whole.count(b"\n") / 2


class Alike(Closest):
    """Proposes by what the journal cannot tell apart."""

    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> list[int]:
        places = range(len(candidates))
        return sorted(places, key=lambda k: (type(candidates[k]["of"]) is tuple, -k))[:count]


@pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")
@pytest.mark.parametrize(
    "policy", [SuccessiveHalving(24, 300), Brackets(budget=100, max_pulls=9)], ids=type
)
def test_values_that_are_written_alike_are_told_apart_by_the_sampler(
    policy: Policy, tmp_path: Path
) -> None:
    options: list[Any] = [(1, 2), [1, 2], (3,), [3], "builtins.max", max, 1, 1.0, True, "1"]
    space = {"of": Choice(*options), "y": Integer(0, 5)}

    class ByType(Valley):
        def start(self, config: Mapping[str, Any], seed: int) -> tuple[float, int]:
            return options.index(config["of"]) / 40 + config["y"] / 100, 0

    journal = tmp_path / "journal.jsonl"
    run = partial(search, ByType(), space, policy=policy, sampler=Alike(), journal=journal)
    first = run()
    whole = journal.read_bytes()
    for kept in range(3, whole.count(b"\n"), whole.count(b"\n") // 12):
        cut(journal, whole, kept)
        found = run()
        assert found.digest == first.digest
        assert list(map(repr, found.configs)) == list(map(repr, first.configs))


@pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")
def test_configs_that_are_not_among_the_candidates_are_values_of_the_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {
        "x": Uniform(0, 1),
        "y": LogUniform(0.1, 1),
        "n": Integer(1, 9),
        "of": Choice(max, min, (1, 2), None),
        "same": np.float32(0.5),
        "drawn": scipy.stats.norm(),
    }
    journal, policy = tmp_path / "journal.jsonl", POLICIES["halving"]
    run = partial(search, Valley(), space, policy=policy, journal=journal)
    first = run(sampler=Farthest())
    monkeypatch.setattr("lastarm.samplers.sampled_policy.CANDIDATES", 3)
    found = run(sampler=Farthest())
    assert (found.digest, found.configs) == (first.digest, first.configs)

    opaque = {"x": Uniform(0, 1), "y": 0.5, "of": Choice((1, 2), [1, 2])}
    monkeypatch.undo()
    run = partial(search, Valley(), opaque, policy=policy, journal=tmp_path / "opaque.jsonl")
    run(sampler=Farthest())
    monkeypatch.setattr("lastarm.samplers.sampled_policy.CANDIDATES", 3)
    with pytest.raises(DrawnOtherwise) as refusal:  # which of the two it was is not known
        run(sampler=Farthest())
    assert refusal.value.written["of"] == [1, 2]
    assert 0 <= refusal.value.arm < 32


@pytest.mark.parametrize(
    ("space", "written", "found"),
    [
        ({"x": Uniform(0, 1)}, {"x": 0.5}, {"x": 0.5}),
        ({"x": Uniform(0, 1)}, {"x": 1.5}, None),
        ({"x": Uniform(0, 1)}, {"x": 1}, None),
        ({"x": Uniform(0, 1)}, {"x": 0.5, "y": 1}, None),
        ({"x": Uniform(0, 1), "y": 1}, {"x": 0.5}, None),
        ({"x": Integer(1, 3)}, {"x": 2}, {"x": 2}),
        ({"x": Integer(1, 3)}, {"x": True}, None),
        ({"x": [1, 1.0, True]}, {"x": 1.0}, {"x": 1.0}),
        ({"x": [max, "builtins.max"]}, {"x": "builtins.max"}, None),
        ([{"x": [1]}, {"x": [2], "y": [max]}], {"x": 2, "y": "builtins.max"}, {"x": 2, "y": max}),
        (Configs([{"x": (1, 2)}, {"x": (3, 4)}]), {"x": [3, 4]}, {"x": (3, 4)}),
        (Grid({"x": Uniform(0, 1)}, samples=2), {"x": 0.25}, {"x": 0.25}),
    ],
)
def test_a_written_config_is_one_of_the_space_or_none(
    space: Any, written: dict[str, Any], found: dict[str, Any] | None
) -> None:
    assert repr(recalled(space, written)) == repr(found)


def test_the_header_says_which_sampler_and_whose_versions(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    tuned(policy=POLICIES["halving"], sampler=Forest(trees=2), journal=journal)
    opened: Any = read(journal)[0]
    assert opened.policy["sampler"] == "Forest(batch=8, random_share='1/3', trees=2)"
    assert {"lastarm", "python", "scikit-learn"} == opened.versions.keys()


@pytest.mark.parametrize("places", [[0, 0], [-1], [10**6], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
def test_proposals_that_are_none_are_refused(places: list[int]) -> None:
    class Wrong(Closest):
        def propose(self, *_: Any) -> list[int]:
            return places

    with refused("sampler"):
        tuned(policy=HYPERBAND, sampler=Wrong())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", 0),
        ("random_share", 0),
        ("random_share", 1.5),
        ("random_share", "a third"),
        ("trees", 0),
    ],
)
def test_numbers_that_are_not_valid_are_refused(name: str, value: Any) -> None:
    with refused(name, value):
        Forest(**{name: value})


def test_a_forest_says_that_it_will_be_removed_where_it_is_made() -> None:
    with pytest.warns(FutureWarning) as told:
        Forest()
    assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("sampler", [Forest, "forest", 3])
def test_what_is_not_a_sampler_is_refused(sampler: Any) -> None:
    with refused("sampler", sampler):
        tuned(policy=HYPERBAND, sampler=sampler)


def test_without_scikit_learn_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None; from lastarm import Forest; Forest()"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert "pip install 'lastarm[sklearn]'" in done.stderr


def test_features_are_ranks_and_options_whatever_the_values() -> None:
    strange: list[dict[str, Any]] = [
        {"n": 10**400, "o": None, "b": True, "f": inf},
        {"n": -5, "o": [1, 2], "b": False, "f": 1.0},
        {"n": -5, "c": max, "b": True, "f": np.float32(1)},
        {},
    ]
    rows = features(strange)
    assert rows[:, 0].tolist() == [2, 1, 1, 0]
    assert np.isfinite(rows).all()
    assert rows.shape == (4, 1 + 2 + 2 + 2 + 1)
    assert features([{}, {}]).shape == (2, 0)


def test_a_forest_takes_conditional_spaces_and_spaces_of_nothing() -> None:
    policy = POLICIES["halving"]
    kernels = [
        {"kernel": "rbf", "gamma": LogUniform(1e-3, 1e3)},
        {"kernel": "poly", "degree": Uniform(0, 9), "layers": [(1, 2), None, "auto"]},
    ]
    for space in (kernels, {"x": Uniform(0, 1), "same": 5}):
        found = search(falling, space, policy=policy, sampler=Forest(trees=2))
        assert found.complete


def test_what_is_spare_goes_on_where_the_arms_end() -> None:
    for space in (SPACE, [SPACE, {"z": Uniform(0, 1)}], Configs([{"x": x} for x in range(30)])):
        assert draw(space, 10, 7) + spare(space, draw(space, 10, 7), 20, 7) == draw(space, 30, 7)


def test_on_a_smooth_valley_chosen_arms_beat_random_ones() -> None:
    def found(seed: int, sampler: Sampler | None) -> float:
        loss = tuned(policy=replace(HYPERBAND, seed=seed), sampler=sampler, seed=seed).loss
        assert loss is not None
        return loss

    differences = [found(seed, Forest(trees=8)) - found(seed, None) for seed in range(8)]
    assert fmean(differences) < -0.01
    assert sum(difference < 0 for difference in differences) >= 6


def test_the_command_takes_a_sampler_by_its_name_and_resumes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = "def forever(config):\n    while True:\n        yield abs(config['x'] - 0.3)\n"
    Path("sampled_by_command.py").write_text(module)
    command = ["tune", "sampled_by_command:forever", "--param", "x=uniform:0:1", "--arms", "16"]
    command += ["--budget", "64", "--sampler", "forest", "--journal", "tune.jsonl", "--json"]
    answers = []
    for arguments in (command, ["resume", "tune.jsonl", "--json"]):
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        assert leaving.value.code == 0
        answers.append(json.loads(capsys.readouterr().out)["digest"])
    policy = SuccessiveHalving(arms=16, budget=64)
    space = {"x": Uniform(0, 1)}
    trainer = importlib.import_module("sampled_by_command").forever
    assert set(answers) == {search(trainer, space, policy=policy, sampler=Forest()).digest}


def test_the_benchmark_is_played_from_beginning_to_end(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.random((50, 2))
    names = np.array(["x", "y"])
    losses = values.sum(axis=1, keepdims=True) + 1 / np.arange(1, 4)
    for name in ("first_one", "second_one"):
        np.savez(tmp_path / f"{name}.npz", losses=losses, config=values, hp_names=names)
    np.savez(tmp_path / "bare.npz", losses=losses)
    results = BENCHMARK.with_name("RESULTS.md").read_bytes()
    command = [sys.executable, f"{BENCHMARK}", f"{tmp_path}", "--seeds", "2"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("bare has no configs, and is left out\n")
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert {line.get("table") for line in lines} >= {"All tables", "first", "second"}
    assert {line["what"] for line in lines} >= {"hyperband", "asha", "first_one"}
    assert BENCHMARK.with_name("RESULTS.md").read_bytes() == results
