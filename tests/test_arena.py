"""The arena: that budgets are equal, incumbents chosen and scored as it says, and runs go on."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import inf, isnan, nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from arena.contenders.contender import Contender
from arena.contenders.entered import ENTERED
from arena.contenders.plain import random_search
from arena.desk import Desk, Look, Spent, incumbent
from arena.page import interval, write_page
from arena.playing import Search, missing, played
from arena.problems.forests import Forest
from arena.problems.found import Folders, families, free_of_noise
from arena.problems.models import Model, rows
from arena.problems.noisy import Noisy
from arena.problems.problem import Config, Curves, cleaned
from arena.problems.surrogates import EPOCHS, Surrogate
from arena.results import BUDGETS, Played, file_of, known, tidy, write
from arena.scales import Effort, Scale, measured
from lastarm import Choice, Integer, LogUniform, Uniform
from lastarm.space import draw

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


SPACE = {"x": Uniform(0, 1), "y": LogUniform(1e-4, 1), "z": Choice("a", "b"), "n": Integer(1, 9)}


class Bowl(Curves):
    """The best is x = 0.3, y = 0.01 and z = "b"; what a config lacks after t epochs is 1/t."""

    space = SPACE
    max_pulls = 9

    def __init__(self) -> None:
        super().__init__("bowl", "made up")

    def curves(self, configs: Sequence[Config]) -> NDArray[np.float64]:
        ends = [
            abs(c["x"] - 0.3) + abs(np.log10(c["y"]) + 2) / 4 + (c["z"] == "a") / 10
            for c in configs
        ]
        falls = 1 / np.arange(1, 10)
        return np.array(ends)[:, None] + falls


def config(x: float) -> Config:
    return {"x": x, "y": 0.01, "z": "b", "n": 3}


def test_to_go_on_costs_what_is_missing_and_a_level_that_was_passed_nothing() -> None:
    desk = Desk(Bowl(), budget=14, seed=0)
    desk.look(config(0.5), 3)
    end = desk.look(config(0.5), 9)
    assert desk.spent == 9
    assert desk.look(config(0.5), 4) == end
    assert desk.look(config(0.5), 1000) == end
    assert desk.spent == 9
    desk.look(config(0.6), 5)
    assert (desk.spent, len(desk.looks), desk.refused) == (14, 3, False)
    with pytest.raises(Spent):
        desk.look(config(0.6), 6)
    assert (desk.spent, len(desk.looks), desk.refused) == (14, 3, True)


def test_a_config_is_known_by_its_values_whoever_writes_them() -> None:
    desk = Desk(Bowl(), budget=9, seed=0)
    desk.look({"n": 3.0, "z": np.str_("b"), "y": np.float64(0.01), "x": np.float64(0.5)}, 9)
    desk.look(config(0.5), 9)
    assert desk.configs == [config(0.5)]
    assert [type(value) for value in desk.configs[0].values()] == [float, float, str, int]
    assert cleaned(Bowl.space, config(1.0000001))["x"] == 1


def test_the_incumbent_is_the_best_of_those_trained_furthest() -> None:
    looks = [Look(0, 9, 0.5, 9, 0), Look(1, 1, 0.1, 10, 0), Look(2, 9, 0.4, 19, 0)]
    assert [incumbent(looks, spent) for spent in (8, 9, 18, 19)] == [None, 0, 0, 2]
    assert incumbent([Look(0, 9, 0.5, 9, 0), Look(1, 9, 0.5, 18, 0)], 18) == 0
    assert incumbent([Look(0, 1, 0.5, 1, 0), Look(0, 2, 0.9, 2, 0), Look(1, 2, 0.6, 4, 0)], 4) == 1


def test_the_choice_is_by_what_was_seen_and_the_score_by_what_is_true() -> None:
    noisy = Noisy(Bowl(), deviation=10.0)
    found = played(noisy, Contender("random", random_search), seed=4, most=20)
    arms = draw(Bowl.space, 20, seed=4)
    seen = [noisy.arm(one, 4).loss(9) for one in arms]
    ends = [end.loss for end in Bowl().final(arms, 4)]
    assert found.final[20] == ends[int(np.argmin(seen))] != min(ends)


def test_noise_is_the_same_for_all_who_have_the_seed() -> None:
    one, other = (Noisy(Bowl(), 0.1).arm(config(0.5), 1) for _ in range(2))
    losses = [one.loss(level) for level in range(1, 10)]
    assert losses == [other.loss(level) for level in range(1, 10)]
    true = [Bowl().arm(config(0.5), 1).loss(level) for level in range(1, 10)]
    assert len({round(a - b, 9) for a, b in zip(losses, true, strict=True)}) == 9
    assert losses[0] != Noisy(Bowl(), 0.1).arm(config(0.5), 2).loss(1)
    assert losses[0] != Noisy(Bowl(), 0.1).arm(config(0.4), 1).loss(1)


@pytest.mark.parametrize("contender", ENTERED, ids=lambda one: one.name)
@pytest.mark.filterwarnings("ignore:")  # of peers
def test_no_contender_spends_more_than_there_is(contender: Contender) -> None:
    for package in contender.packages:
        pytest.importorskip(
            {"syne-tune": "syne_tune", "neural-pipeline-search": "neps"}.get(package, package)
        )
    desk = Desk(Bowl(), budget=36, seed=1)
    try:
        contender.play(desk)
    except Spent:
        assert not contender.knows_budget
    assert desk.spent == sum({look.arm: look.level for look in desk.looks}.values()) <= 36
    assert desk.spent > 18
    again = Desk(Bowl(), budget=36, seed=1)
    with suppress(Spent):
        contender.play(again)
    assert [look[:4] for look in again.looks] == [look[:4] for look in desk.looks]


@pytest.mark.parametrize("contender", ENTERED, ids=lambda one: one.name)
def test_a_contender_is_installed_in_one_environment(contender: Contender) -> None:
    if contender.packages:
        here, elsewhere = "requirements.txt", "requirements-dehb.txt"
        if contender.apart:
            here, elsewhere = elsewhere, here
        assert f"\n{contender.packages[0]}" in (BENCHMARKS / here).read_text()
        assert f"\n{contender.packages[0]}" not in (BENCHMARKS / elsewhere).read_text()


def test_one_search_that_is_cut_is_what_a_search_for_each_budget_would_be() -> None:
    cut = played(Bowl(), Contender("random", random_search), 0, most=50)
    each = played(Bowl(), Contender("random", random_search, knows_budget=True), 0, most=50)
    assert cut.final == each.final
    assert list(cut.final) == [5, 10, 20, 50]
    assert list(cut.final.values()) == sorted(cut.final.values(), reverse=True)
    assert all(isnan(value) for value in cut.test.values())
    assert list(played(Bowl(), Contender("r", random_search, until=10), 0).final) == [5, 10]


def test_regret_is_0_for_the_best_known_and_1_for_the_median() -> None:
    scale = measured(Bowl(), Effort(200, 40, 5, 5))
    assert scale.best == pytest.approx(1 / 9, abs=0.01)
    ends = [end.loss for end in Bowl().final(draw(Bowl.space, 200, seed=2026), 0)]
    assert scale.median == np.median(ends)
    assert [scale.regret(loss) for loss in (scale.best, scale.median)] == [0, 1]
    assert Scale(0.1, 0.5, 0.2, 0.4).test_regret(0.3) == pytest.approx(0.5)


def line(contender: str, seed: int, loss: float = 0.25, task: str = "bowl") -> Played:
    losses = {budget: loss / budget for budget in BUDGETS}
    return Played(task, contender, seed, 7, 9, losses, dict.fromkeys(BUDGETS, nan), losses)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = file_of(tmp_path, "made up")
    contenders = [Contender("one", random_search), Contender("other", random_search, seeds=1)]
    every = list(missing({"made up": ["bowl"]}, contenders, 2, 200, tmp_path))
    assert every == [
        Search("made up", "bowl", "one", 0),
        Search("made up", "bowl", "other", 0),
        Search("made up", "bowl", "one", 1),
    ]
    for search in every:
        write(file, line(search.contender, search.seed))
    whole = file.read_bytes()
    assert list(missing({"made up": ["bowl"]}, contenders, 2, 200, tmp_path)) == []
    file.write_bytes(whole[:-10])  # stopped as it wrote
    assert list(missing({"made up": ["bowl"]}, contenders, 2, 200, tmp_path)) == every[2:]
    write(file, line("one", 1))
    assert file.read_bytes() == whole
    tidy(file, forgotten=["other"])
    assert [one.key for one in known(file)] == [("bowl", "one", 0), ("bowl", "one", 1)]


def test_a_search_that_ended_at_a_smaller_budget_is_played_again(tmp_path: Path) -> None:
    file, until = file_of(tmp_path, "made up"), Contender("one", random_search, until=50)
    short = Played("bowl", "one", 0, 3, 4, {5: 0.5, 10: 0.25}, {5: nan, 10: nan}, {5: 1, 10: 2})
    write(file, short)
    assert not [*missing({"made up": ["bowl"]}, [until], 1, 10, tmp_path)]
    assert [*missing({"made up": ["bowl"]}, [until], 1, 20, tmp_path)]
    write(file, line("one", 0))
    assert [max(one.final) for one in known(file)] == [200]
    assert not [*missing({"made up": ["bowl"]}, [until], 1, 200, tmp_path)]
    tidy(file)
    assert len(file.read_text().splitlines()) == 2


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    slow = Played("bowl", "slow", 0, 3, 4, {5: 0.5, 10: inf}, {5: 0.25, 10: 1.0}, {5: 1, 10: 2})
    write(file := file_of(tmp_path, "made up"), slow)
    assert known(file) == [slow]


def test_an_interval_is_over_tasks_if_they_are_eight_and_over_seeds_otherwise() -> None:
    many = np.arange(8.0)[:, None] + np.array([0.0, 1.0, 2.0])
    found = interval(many)
    assert found is not None
    assert found == pytest.approx((4.5, 2.365 * np.arange(8).std(ddof=1) / np.sqrt(8)))
    found = interval(many[:7])
    assert found is not None
    assert found == pytest.approx((4.0, 4.303 / np.sqrt(3)))
    many[0] = nan
    found = interval(many)
    assert found is not None
    assert found[0] == 5.0
    assert interval(many[:1]) is None


def table(folder: Path, name: str = "made_up") -> Path:
    random = np.random.default_rng(0)
    config = random.random((40, 2))
    losses = config[:, :1] + 1 / np.arange(1, 10)
    losses[0] = nan
    np.savez(folder / f"{name}.npz", losses=losses, config=config, hp_names=["a", "b"])
    return folder / f"{name}.npz"


def test_trees_answer_as_scikit_learn_does_and_never_beyond_the_table(tmp_path: Path) -> None:
    forest = Forest(table(tmp_path))
    with np.load(tmp_path / "made_up.npz") as arrays:
        losses, config = arrays["losses"][1:], arrays["config"]
    places = config.argsort(axis=0).argsort(axis=0) / 39
    at_rows = forest.curves([{"a": a, "b": b} for a, b in places])
    grown_to_the_end = np.minimum(losses, at_rows[0])
    assert np.allclose(at_rows[1:], grown_to_the_end)
    assert at_rows[0] == pytest.approx(2 * np.median(losses, axis=0) - losses.min(axis=0))
    between = forest.curves(draw(forest.space, 500, seed=0))
    assert losses[:, -1].min() <= between[:, -1].min() < between[:, -1].max()


def test_a_surrogate_is_asked_for_its_task_and_each_epoch() -> None:
    surrogate = Surrogate(Path("none"), "3945", 7)

    def run(_: None, asked: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        assert asked["x_cat"].tolist() == [[7]] * len(asked["x_cont"])
        found = np.zeros((len(asked["x_cont"]), 6), np.float32)
        found[:, 3] = asked["x_cont"][:, 0] / 100 + asked["x_cont"][:, 7] / 1000
        return [found]

    vars(surrogate)["_session"] = SimpleNamespace(run=run)
    configs = draw(surrogate.space, 3, seed=0)
    curves = surrogate.curves(configs)
    ends = [1 - EPOCHS / 100 - one["max_dropout"] / 1000 for one in configs]
    assert curves[:, -1] == pytest.approx(ends)
    assert [end.loss for end in surrogate.final(configs, 0)] == pytest.approx(ends)
    assert curves[0] == pytest.approx(curves[0, 0] - np.arange(EPOCHS) / 100)


def test_a_model_is_trained_once_for_all_who_have_the_seed() -> None:
    pytest.importorskip("lightgbm")
    model = Model("SGD", "digits", None)
    split = rows(None).split
    assert [len(part) for part in (split.train, split.validation, split.test)] == [599] * 3
    one = draw(model.space, 1, seed=0)[0]
    arm = model.arm(one, seed=0)
    first = arm.loss(1)
    (end,) = model.final([one], seed=0)
    assert model.arm(dict(one), seed=0) is arm
    assert (arm.loss(1), arm.loss(27)) == (first, end.loss)
    assert 0 < end.test < 0.5
    fresh = Model("SGD", "digits", None)
    assert fresh.final([one], seed=0) == [end]
    assert fresh.final([one], seed=1) != [end]


def test_the_arena_is_played_from_beginning_to_end(tmp_path: Path) -> None:
    table(tmp_path)
    assert list(families(free_of_noise(Folders(tmp_path, curves=tmp_path)))) == [
        "made trees",
        "made trees, noisy",
    ]
    (tmp_path / "scales.json").write_text('{"trees made_up": [0.1, 0.6]}')
    page = tmp_path / "README.md"
    page.write_text("# The protocol\n")
    command = [sys.executable, "-m", "arena", "--curves", f"{tmp_path}", "--arena", f"{tmp_path}"]
    command += ["--seeds", "2", "--most", "10", "--workers", "1", "--contenders", "random search"]
    run = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "4 of 4" in run.stderr
    text = page.read_text()
    assert text.startswith("# The protocol\n")
    assert text.count("made trees noisy, 1 tasks: mean regret") == 1
    assert {one.seed for one in known(file_of(tmp_path, "made trees, noisy"))} == {0, 1}
    assert (tmp_path / "arena.png").read_bytes().startswith(b"\x89PNG")
    folders = Folders(tmp_path, curves=tmp_path)
    names = {"made trees": ["trees made_up"]}
    assert not [*missing(names, ENTERED[:1], 2, 10, folders.arena)]
    write_page(tmp_path)
    assert page.read_text() == text
