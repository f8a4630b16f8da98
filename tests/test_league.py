"""The league of policies on recorded curves: its draws, its scores, and the whole of it once."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import Hyperband, SuccessiveHalving, UniformAllocation
from lastarm.errors import InvalidArgument
from lastarm.policies import POLICIES
from league import SLOW, contenders, random_few, registered
from league_curves import (
    PERCENTS,
    Draw,
    Found,
    Scores,
    Table,
    cut,
    normalised_ranks,
    play,
    rungs,
    tables,
)

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def table(name: str = "made_up", rows: int = 100, columns: int = 50) -> Table:
    """Curves that fall towards limits of their own at speeds of their own; some diverge."""
    random = np.random.default_rng(rows)
    limits, speeds = random.random((2, rows, 1))
    losses = limits + speeds / np.arange(1, columns + 1)
    losses[::10, columns // 5 :] = nan
    return Table(name, losses)


def budgets(draw: Draw) -> list[int]:
    return [draw.budget(percent) for percent in PERCENTS]


def test_ties_share_their_rank_and_diverged_arms_come_last() -> None:
    assert normalised_ranks(np.array([0.5, 0.25, 1.0])).tolist() == [0.5, 0.0, 1.0]
    assert normalised_ranks(np.array([0.5, 0.5, 1.0])).tolist() == [0.25, 0.25, 1.0]
    assert normalised_ranks(np.array([nan, 0.5, -inf])).tolist() == [0.75, 0.0, 0.75]


def test_a_draw_is_a_function_of_its_table_and_number() -> None:
    def first_losses(name: str, number: int) -> list[float]:
        draw = Draw(table(name), number)
        return [draw.loss(arm, 1) for arm in range(draw.arms)]

    one = first_losses("one", 3)
    assert len(set(one)) == 64
    assert one == first_losses("one", 3)
    assert one != sorted(one)
    assert set(one) != set(first_losses("one", 4))
    assert set(one) != set(first_losses("other", 3))


def test_a_small_table_is_drawn_whole() -> None:
    draw = Draw(table(rows=30), 0)
    assert (draw.arms, draw.columns, draw.budget(10)) == (30, 50, 150)


def test_past_the_end_of_its_curve_a_loss_stays_as_it_is() -> None:
    draw = Draw(table(), 1)
    assert draw.loss(5, 1000) == draw.loss(5, 50) != draw.loss(5, 49)


def test_to_recommend_none_is_as_bad_as_the_worst() -> None:
    draw = Draw(table(), 0)
    assert draw.rank(None) == max(map(draw.rank, range(draw.arms))) > 0.9


def test_a_policy_that_exceeds_the_budget_is_caught() -> None:
    draw = Draw(table(), 0)
    assert play(UniformAllocation(64, 128), draw, budget=256).spent == 0.5
    with pytest.raises(AssertionError, match=r"128\D+127"):
        play(UniformAllocation(64, 128), draw, budget=127)


def test_where_a_budget_does_not_reach_all_arms_as_many_play_as_it_reaches() -> None:
    draw = Draw(table(), 0)
    two = registered(SuccessiveHalving, {}, draw, budgets(draw))[0]
    assert draw.budget(2) == 16 * 4  # n·⌈log₂ n⌉, of 16 arms
    assert two.looks <= 16 + 8 + 4 + 2  # less those that diverged
    assert two.spent > 0.8


def test_a_random_few_are_trained_to_the_end() -> None:
    draw = Draw(table(), 0)
    played = random_few(draw, budgets(draw))
    assert [row.looks for row in played] == [1, 3, 6, 12, 25]
    assert played[3].rank == min(map(draw.rank, range(12)))


@pytest.mark.parametrize("name", contenders(alone=True))
def test_everybody_plays_at_every_budget(name: str) -> None:
    draw = Draw(table(columns=11), 0)
    played = contenders(alone=True)[name](draw, budgets(draw))
    assert len(played) == len(PERCENTS)
    for row in played:
        assert 0 <= row.rank <= 1
        assert row.looks >= 1
        assert 0 < row.spent <= 1


def test_a_policy_that_is_registered_enters_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newcomer(Hyperband):  # it takes max_pulls and a seed
        name = "newcomer"

    monkeypatch.setitem(POLICIES, Newcomer.name, Newcomer)
    draw = Draw(table(), 7)
    played = contenders(alone=True)["newcomer"](draw, [320])
    assert played == [play(Hyperband(64, 320, max_pulls=50, seed=7), draw, 320)]


def test_what_knows_no_budget_is_stopped_before_the_step_that_does_not_fit() -> None:
    losses = np.array([[0.9, 0.8, 0.7, 0.6], [nan] * 4, [0.5, 0.4, 0.3, 0.9]])
    draw = Draw(Table("three", losses), 0)
    best, second, diverged = map(draw.ranks.tolist().index, [0.0, 0.5, 1.0])

    def run(_: Draw) -> Iterator[tuple[int, int]]:
        yield from [(diverged, 1), (best, 1), (best, 4), (second, 1)]

    played = cut(run, draw, [1, 4, 5, 6])
    assert [row.rank for row in played] == [1.0, 0.0, 0.0, 0.5]
    assert [row.looks for row in played] == [1, 2, 3, 4]
    assert [row.spent for row in played] == [1.0, 0.5, 1.0, 1.0]


def test_rungs_end_with_the_curve() -> None:
    assert list(rungs(1, 4, 52)) == [1, 4, 16, 52]
    assert list(rungs(1, 3, 27)) == [1, 3, 9, 27]
    assert list(rungs(2, 4, 1)) == [1]


def scores(*ranks: dict[str, list[float]], looks: int = 10) -> Scores:
    """Tables with these ranks, draw by draw, at every budget."""
    found: Found = {name: [] for name in ranks[0]}
    for cells in ranks:
        for name, row in cells.items():
            cell = [[[rank, looks, 1.0]] * len(PERCENTS) for rank in row]
            found[name].append(np.array(cell))
    return Scores([table(f"family{k}_x") for k in range(len(ranks))], found)


def test_an_interval_is_of_paired_differences_stratified_by_file() -> None:
    league = scores(
        {"a": [0.1, 0.3, 0.2], "b": [0.0, 0.1, 0.3]}, {"a": [0.5, 0.9], "b": [0.5, 0.7]}
    )
    mean, half = league.difference("a", "b", 0)
    one, other = np.array([0.1, 0.2, -0.1]), np.array([0.0, 0.2])
    assert mean == pytest.approx((one.mean() + other.mean()) / 2)
    variance = one.var(ddof=1) / 3 + other.var(ddof=1) / 2
    assert half == pytest.approx(1.96 * np.sqrt(variance) / 2)
    assert league.difference("b", "a", 0) == (-mean, half)
    assert league.difference("a", "a", 0) == (0, 0)
    assert league.mean("a", 0) == pytest.approx((0.2 + 0.7) / 2)
    assert league.mean("a", 0, family="family1") == pytest.approx(0.7)
    mean, half = league.difference("a", "b", 0, "family0")
    assert mean == pytest.approx(one.mean())
    assert half == pytest.approx(1.96 * np.sqrt(one.var(ddof=1) / 3))


def test_who_has_fewer_draws_is_compared_on_those() -> None:
    league = scores({"a": [0.5, 0.5], "b": [0.25, 0.5, 1.0, 1.0]})
    assert league.difference("a", "b", 0)[0] == 0.125
    assert league.best(0, ["a", "b"]) == "a"


def test_who_ever_looked_more_than_3n_times_is_not_frugal() -> None:
    league = scores({"a": [0.5, 0.5], "b": [0.5, 0.5]}, looks=192)
    assert league.frugal == ["a", "b"]
    league.found["b"][0][1, 3, 1] = 193
    assert league.frugal == ["a"]


def test_a_folder_without_tables_and_a_table_without_arms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(str(tmp_path))):
        tables(tmp_path)
    np.savez(tmp_path / "one.npz", losses=np.ones((1, 1000)))
    with pytest.raises(InvalidArgument, match=r"\bone\b.*\b1\b.*\b1000\b"):
        tables(tmp_path)


def test_the_league_is_played_from_beginning_to_end(tmp_path: Path) -> None:
    for name in ("first_one", "first_two", "second_one"):
        np.savez(tmp_path / f"{name}.npz", losses=table(name, columns=12).losses)
    results = (BENCHMARKS / "RESULTS.md").read_bytes()
    figure = tmp_path / "league.png"
    command = [sys.executable, f"{BENCHMARKS / 'league.py'}", f"{tmp_path}", "--quick", "--alone"]
    command += ["--figure", f"{figure}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    by_table: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines[:-1]:
        by_table.setdefault(line["table"], {})[line["what"]] = line
    everything = by_table["Mean normalised rank, all 3 files"]
    assert set(POLICIES) < set(everything)
    assert everything["asha"]["draws a file"] == 10
    assert everything["exp3"]["draws a file"] == 2
    assert {"Mean normalised rank, first", "Mean normalised rank, second"} < set(by_table)
    winners = by_table["The winners"]
    assert len(winners) == 2 * len(PERCENTS)
    for percent in PERCENTS:
        [title] = [title for title in by_table if title.startswith(f"{percent} %")]
        assert f"the best is {winners[f'{percent} %']['winner']};" in title
        assert by_table[title]["successive-halving"]["− halving"] == [0, 0]
    compared = by_table["horizon-halving, the default, compared with successive-halving"]
    assert list(compared) == ["first (2)", "second (1)", "all (3)"]
    ranks = [everything[name]["10 %"] for name in ("horizon-halving", "successive-halving")]
    assert compared["all (3)"]["10 %, −"][0] == pytest.approx(ranks[0] - ranks[1])
    draws = 3 * sum(2 if name in SLOW else 10 for name in everything)
    assert lines[-1]["what"].startswith(f"all {len(PERCENTS) * draws:,} searches")
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert (BENCHMARKS / "RESULTS.md").read_bytes() == results
