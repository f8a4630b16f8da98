"""What the report, the figures and the command say of a search that was extended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from lastarm import Doubling, Hyperband, RecordedCurves, Result, SuccessiveHalving, search
from lastarm.cli import main
from lastarm.events import Event
from lastarm.journal import read
from lastarm.ledger.survivors import Survivors
from lastarm.policy import Algorithm
from lastarm.report.next_steps import nothing_left
from tests.report_searches import contents_of, figures, made, table

ROUNDS: list[tuple[int, list[int]]] = []  # level, and the arms that were compared there


def watched(algorithm: Algorithm) -> Algorithm:
    """The same, with its rounds noted down."""
    pulls = next(algorithm)
    try:
        while True:
            ROUNDS.append((pulls[0].upto, sorted(pull.arm for pull in pulls)))
            pulls = algorithm.send((yield pulls))
    except StopIteration as end:
        return int(end.value)


@dataclass(eq=False)
class WatchedHalving(SuccessiveHalving):
    """Successive Halving, as the header has it."""

    name: ClassVar[str] = "successive-halving"

    def algorithm(self) -> Algorithm:
        return watched(super().algorithm())


@dataclass(eq=False)
class WatchedDoubling(Doubling):
    """Doubling, as the header has it."""

    name: ClassVar[str] = "doubling"

    def algorithm(self, first: int = 0) -> Algorithm:
        return watched(super().algorithm(first))


@dataclass(eq=False)
class WatchedHyperband(Hyperband):
    """Hyperband, as the header has it; it draws arms again when all have been drawn."""

    name: ClassVar[str] = "hyperband"
    max_pulls: int = 27

    def algorithm(self) -> Algorithm:
        return watched(super().algorithm())


def extended(
    journal: Path, policy: str, budgets: Sequence[int], losses: Any = None, **more: Any
) -> tuple[Result, list[Event]]:
    """A search that was given these budgets, one after the other."""
    losses = table(16, 200) if losses is None else np.asarray(losses)
    for budget in budgets:
        result = search(
            RecordedCurves(losses),
            [{"row": row} for row in range(len(losses))],
            policy=made(policy, arms=len(losses), budget=budget),
            journal=journal,
            checkpoints=False,
            **more,
        )
    return result, read(journal)


def of(arm: int, page: dict[str, Any]) -> dict[str, Any]:
    (found,) = (one for one in page["arms"] if one["arm"] == arm)
    return dict(found)


# Rungs -----------------------------------------------------------------------------------------


def compared(kind: Any, journal: Path, budgets: Sequence[int], losses: Any) -> None:
    """Search, and hold the rungs against the rounds of the policy."""
    for budget in budgets:
        ROUNDS.clear()  # each goes through all of it again
        result = search(
            RecordedCurves(losses),
            [{"row": row} for row in range(len(losses))],
            policy=kind(len(losses), budget),
            journal=journal,
        )
    survivors = Survivors(read(journal))
    assert sum(rung.pulls for rung in survivors.rungs) == result.spent.pulls
    until = [*(stretch.before.pulls for stretch in result.stretches), result.spent.pulls]
    busy = {place for place, (a, b) in enumerate(pairwise(until), start=1) if b > a}
    assert {rung.stretch for rung in survivors.rungs} == busy
    for rung in survivors.rungs:
        levels = [level for level, arms in ROUNDS if arms == sorted(rung.arms)]
        cut = rung.stretch > 1 and max(levels, default=0) > rung.level  # to what was left
        assert rung.level in levels or cut, (rung, ROUNDS)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_rungs_hold_just_the_arms_that_the_policy_compared(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever the curves do: they tie, rise and cross. Some arms are past a rung already."""
    kind = data.draw(st.sampled_from([WatchedHalving, WatchedDoubling, WatchedHyperband]))
    arms = data.draw(st.integers(3, 9))
    least = SuccessiveHalving(arms, 1000).least_budget(arms)
    budgets = [data.draw(st.integers(least, 2 * least))]
    for _ in range(data.draw(st.integers(0, 2))):
        budgets.append(data.draw(st.integers(2 * budgets[-1], 4 * budgets[-1])))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    losses = random.integers(0, 6, (arms, 32 * least)) / 4
    journal = tmp_path_factory.mktemp("extended") / "j.jsonl"
    compared(kind, journal, budgets, losses)


@pytest.mark.parametrize("budgets", [[256], [128, 512], [64, 128, 1024]])
@pytest.mark.parametrize("seed", range(3))
def test_rungs_of_doubling_hold_the_arms_that_are_past_them(
    tmp_path: Path, budgets: list[int], seed: int
) -> None:
    compared(WatchedDoubling, tmp_path / "j.jsonl", budgets, table(16, 300, seed))


def test_what_was_begun_is_finished_before_a_stretch_begins(tmp_path: Path) -> None:
    """A larger budget that is given at any moment changes no rung."""
    journal, losses = tmp_path / "j.jsonl", table(8, 200)
    extended(journal, "successive-halving", [48], losses)
    lines = journal.read_bytes().splitlines(keepends=True)
    names = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    seen = set()
    for cut in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:cut]))
        _, events = extended(journal, "successive-halving", [192], losses)
        rungs = Survivors(events).rungs
        assert [(rung.stretch, rung.number) for rung in rungs] == names
        seen.add(tuple((rung.level, tuple(sorted(rung.arms)), rung.pulls) for rung in rungs))
    assert len(seen) == 1


def test_stories_of_an_extended_search_tell_of_all_that_were_compared(tmp_path: Path) -> None:
    result, events = extended(tmp_path / "j.jsonl", "successive-halving", [128, 512])
    page = contents_of(events, journal="j.jsonl")
    rungs = page["narrowing"]["rungs"]
    assert [rung["label"] for rung in rungs] == [f"{s}.{k}" for s in (1, 2) for k in (1, 2, 3, 4)]
    assert [rung["arms"] for rung in rungs] == 2 * [16, 8, 4, 2]
    assert [rung["on"] for rung in rungs] == 2 * [8, 4, 2, 0]
    assert page["narrowing"]["came"] == [[2, 16], [14, 8], [30, 4], [120, 2]]
    assert not any(rung["already"] for rung in rungs[:4])
    assert any(rung["already"] for rung in rungs[4:])
    assert result.arm is not None
    assert figures(of(result.arm, page)["story"][1]) == [8, 8]  # rungs, and where it was the best
    for arm in page["arms"]:
        if arm["fate"] == "dropped":
            assert figures(arm["story"][0])[1] == 2, "its stretch"


def test_an_arm_that_was_past_a_rung_already_is_told_so(tmp_path: Path) -> None:
    """The first winner overfits, and is dropped at a rung that it is past."""
    losses = 2.0 + np.arange(4)[:, None] - np.linspace(0, 1, 64)
    losses[3, :] = np.where(np.arange(64) < 4, 0.5, 9.0)
    _, events = extended(tmp_path / "j.jsonl", "successive-halving", [16, 24], losses)
    page = contents_of(events)
    assert of(3, page)["fate"] == "dropped"
    assert [figures(line) for line in of(3, page)["story"][:3]] == [
        [1, 2, 6, 9, 4, 4],  # rung, stretch, pulls, loss, place of so many
        [0.5, 2],  # its loss had been lower, after so many pulls
        [2, 1, 2.96825],  # went on; the last of them, with its loss
    ]


# Remarks and advice -----------------------------------------------------------------------------


def overfitting(arms: int = 8) -> Any:
    """Curves that fall, and then rise for ever."""
    return np.arange(arms)[:, None] / 9 + np.abs(np.arange(400) - 12.5) / 10


def test_a_stretch_that_came_to_worse_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "j.jsonl"
    result, events = extended(journal, "successive-halving", [96, 800], overfitting())
    (warning,) = result.remarks()
    assert figures(warning)[:2] == [800, 96]
    assert 'recommend="best"' in warning
    assert warning in contents_of(events)["notes"]
    assert warning in str(result)
    with pytest.raises(SystemExit):
        main(["show", str(journal)])
    assert warning in " ".join(capsys.readouterr().out.split())
    assert result.arm is not None
    lowest, level = min((loss, level) for level, loss in result.curves[result.arm])
    rose = of(result.arm, contents_of(events))["story"][1]
    assert figures(rose) == pytest.approx([lowest, level], rel=1e-5)

    best = tmp_path / "best.jsonl"
    _, events = extended(best, "successive-halving", [96, 800], overfitting(), recommend="best")
    page = contents_of(events)
    assert Result.of(events).remarks() == []
    assert len(page["notes"]) == 1  # that it has no journal
    best_arm = Result.of(events).curves[page["answer"]["arm"]]
    further = of(page["answer"]["arm"], page)["story"][1]
    assert figures(further) == pytest.approx([best_arm[-1][1], best_arm[-1][0]], rel=1e-5)


@pytest.mark.parametrize(
    ("policy", "budgets", "reason"),
    [
        ("asha", [400, 900], "no arm is left to begin or to promote"),
        ("asha", [68, 900], "no arm is left to begin or to promote"),
        ("hyperband", [2000, 5000], "every arm has had its 27 pulls"),
        ("horizon-halving", [600, 1500], "every arm has had its 27 pulls"),
        ("successive-elimination", [10**7, 10**8], "it ended by itself, before its budget did"),
        ("asha", [40], None),
        ("hyperband", [60], None),
        ("horizon-halving", [100], None),
        ("successive-halving", [128, 129], None),
    ],
)
def test_more_is_advised_only_where_it_would_do_something(
    tmp_path: Path, policy: str, budgets: list[int], reason: str | None
) -> None:
    journal = tmp_path / "j.jsonl"
    for place in range(1, len(budgets) + 1):
        result, events = extended(journal, policy, budgets[:place])
        assert nothing_left(Result.of(events)) == reason
        said = [step["words"] for step in contents_of(events, journal="j.jsonl")["next"]]
        advised = any(figures(words)[-1:] == [2 * budgets[place - 1]] for words in said)
        assert advised == (reason is None)
    changed = result.spent.pulls - result.stretches[-1].before.pulls
    assert bool(result.remarks()) == (not changed)


# Figures and exports ----------------------------------------------------------------------------


def test_figures_of_an_extended_search_count_who_went_past(tmp_path: Path) -> None:
    result, _ = extended(tmp_path / "j.jsonl", "successive-halving", [128, 512])
    axes = result.plot.rungs(Figure().subplots())
    widths = {bars.get_label(): [b.get_width() for b in bars] for bars in axes.containers}
    assert widths["went on"] == [16, 16, 8, 8, 4, 4, 2, 0]
    assert widths["left behind"] == [0, 0, 8, 0, 4, 0, 2, 1]
    assert max(axes.get_xticks()) == 16, "there are no more arms than that"
    axes = result.plot.curves(Figure().subplots())
    assert {"8", "24", "56", "120"} <= {tick.get_text() for tick in axes.get_xticklabels()}
    assert [text.get_text() for text in axes.texts][-3:] == ["8", "4", "2"]


def test_policies_are_compared_by_what_they_recommend(tmp_path: Path) -> None:
    result, _ = extended(tmp_path / "j.jsonl", "successive-halving", [96, 800], overfitting())
    assert result.loss is not None
    assert result.loss > result.best_so_far[-1][1]
    axes = result.plot.policies({}, ax=Figure().subplots())
    assert np.ravel(axes.lines[-1].get_ydata())[-1] == result.loss
    assert axes.get_ylim()[1] > result.loss


def test_no_arm_that_came_to_a_level_is_pruned_there(tmp_path: Path) -> None:
    result, _ = extended(tmp_path / "j.jsonl", "successive-halving", [128, 512])
    trials = result.to_optuna(level=8).trials
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    past = {t.number: t.user_attrs["compared_at"] for t in trials if "compared_at" in t.user_attrs}
    assert len(past) == 4
    for arm, level in past.items():
        assert trials[arm].value == dict(result.curves[arm])[level]
        assert level == 14
    assert {t.state.name for t in result.to_optuna(level=56).trials} == {"COMPLETE", "PRUNED"}
