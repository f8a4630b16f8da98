"""The report: what is told of a search, and that nothing of it is more than data."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import (
    ASHA,
    EnvelopeHalving,
    Hyperband,
    LogUniform,
    SuccessiveHalving,
    UniformAllocation,
    search,
)
from lastarm.cli import main
from lastarm.errors import InvalidArgument
from lastarm.events import Closed, Event, Failure, Loss, Opened, Pull, Work
from lastarm.journal import read
from lastarm.ledger.utilisation import Timeline
from lastarm.policies import POLICIES
from lastarm.report.axes import axis
from lastarm.report.hyperparameters import parameters
from lastarm.report.page.contents import MOST_ARMS, MOST_POINTS
from lastarm.report.page.html import rendered
from lastarm.trainers import RecordedCurves
from tests.refusals import refused
from tests.report_searches import (
    HOSTILE,
    ODD,
    chosen_events,
    contents_of,
    events_of,
    figures,
    hostile_events,
    large,
    made,
    page_of,
    table,
    told,
    write_journal,
)


def of(arm: int, page: dict[str, Any]) -> dict[str, Any]:
    (found,) = (one for one in page["arms"] if one["arm"] == arm)
    return dict(found)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(str(left.value.code)), said.out, said.err


# What is told ----------------------------------------------------------------------------------

FOUR_ARMS = {
    0: [(1, 0.9), (3, 0.2), (9, 0.1)],
    1: [(1, 0.8), (3, 0.25), (9, 0.15)],
    2: [(1, 0.95)],
    3: [(1, 5.0)],
    4: [(1, 0.85), (3, 0.4)],
}


def test_the_answer_comes_first_with_what_everything_would_have_cost() -> None:
    page = contents_of(told(FOUR_ARMS, Closed(0, 9, test_loss=0.125)), journal="a.jsonl")
    assert page["headline"] == "Arm 0 is recommended"
    assert page["answer"] | {"cost": None} == {
        "arm": 0,
        "loss": 0.1,
        "said": "0.1",
        "level": 9,
        "test_loss": 0.125,
        "runner_up": 1,
        "cost": None,
    }
    spent = 1 + 1 + 1 + 1 + 1 + 3 * 2 + 2 * 6
    cost = [figures(line) for line in page["answer"]["cost"]]
    assert [cost[0][:2], cost[1][:4]] == [[spent, 10], [5, 9, 45, round(45 / spent, 1)]]


def test_every_arm_is_told_why_it_lost() -> None:
    page = contents_of(told(FOUR_ARMS, Closed(0, 9)))
    told_of = {arm: [figures(line) for line in of(arm, page)["story"]] for arm in (0, 1, 4)}
    # Rung, pulls, loss and place of so many; the arm it lost to and its loss; what it lacked.
    assert told_of[1] == [[3, 9, 0.15, 2, 2], [0, 0.1], [0.05]]
    # The same; how many went on, the last of them and its loss; what it lacked, what others moved.
    assert told_of[4] == [[2, 3, 0.4, 3, 3], [2, 1, 0.25], [0.3, 0.1]]
    # Rungs, where it was the best, its lowest place; the next best, its loss and its pulls.
    assert told_of[0][1:] == [[3, 2, 3, 5, 1], [1, 0.15, 9]]
    assert [(arm["arm"], arm["fate"]) for arm in page["arms"]] == [
        (0, "recommended"),
        (1, "not chosen"),
        (4, "dropped"),
        (2, "dropped"),
        (3, "dropped"),
    ]


def test_a_close_call_is_called_one() -> None:
    curves = {0: [(1, 0.9), (4, 0.2)], 1: [(1, 0.8), (4, 0.3)], 2: [(1, 0.85)]}
    page = contents_of(told(curves, Closed(0, 4)))
    assert figures(page["audit"]["words"][0]) == [2, 1]
    assert [arm for arm, _, _, close in page["audit"]["points"] if close] == [2]


def test_a_tie_is_called_one_and_near_ties_are_told_apart() -> None:
    tied = contents_of(told({0: [(1, 0.5)], 1: [(1, 0.5)]}, Closed(0, 1)))
    assert "ties" in of(1, tied)["story"][1]
    near = contents_of(told({0: [(1, 0.123456781)], 1: [(1, 0.123456789)]}, Closed(0, 1)))
    assert figures(of(1, near)["story"][1]) == [0, 0.12345678]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_a_page(name: str) -> None:
    events = events_of(made(name, arms=8, budget=160))
    page = contents_of(events, journal="search.jsonl")
    arms = {event.arm for event in events if isinstance(event, Pull)}
    looks = sum(isinstance(event, Loss) for event in events)
    assert {arm["arm"] for arm in page["arms"]} == arms
    assert page["state"] == "complete"
    assert sum(len(arm["losses"]) for arm in page["arms"]) == looks
    rungs = page["narrowing"]["rungs"]
    assert sum(rung["pulls"] for rung in rungs) == int(page["spending"]["facts"][0][1])
    assert all(arm["story"] for arm in page["arms"])
    assert rendered(page)


def test_hyperbands_brackets_are_apart() -> None:
    policy = Hyperband(arms=17, budget=69, max_pulls=9)
    page = contents_of(events_of(policy))
    seen = [
        (r["bracket"], r["number"], r["arms"], r["level"], r["on"])
        for r in page["narrowing"]["rungs"]
    ]
    assert seen == [
        (1, 1, 9, 1, 3),
        (1, 2, 3, 3, 1),
        (1, 3, 1, 9, 0),
        (2, 1, 5, 3, 1),
        (2, 2, 1, 9, 0),
        (3, 1, 3, 9, 0),
    ]


def test_an_asynchronous_promotion_is_explained() -> None:
    events: list[Event] = [Opened(0, {"name": "asha"}, {}, {})]
    for arm, upto, loss in [(0, 1, 0.5), (0, 3, 0.4), (1, 1, 0.3)]:
        events += [Pull(arm, upto), Loss(Pull(arm, upto), loss)]
    page = contents_of([*events, Closed(1, 1)])
    assert of(0, page)["fate"] == "not chosen"
    page = contents_of([*events, Closed(0, 3)])
    assert figures(of(1, page)["story"][1]) == [1, 0, 0.5]
    assert ASHA.why_higher in of(1, page)["story"][1]


def test_an_arm_that_lost_to_a_steeper_curve_is_told_so() -> None:
    steep = [0.9, 0.9, 0.9, 0.7, 0.7, 0.7, 0.6, *[0.57] * 6, *[0.1] * 27]
    flat = [[0.5 + arm / 100] * 40 for arm in range(7)]
    poor = [[0.9] * 40 for _ in range(8)]
    page = contents_of(events_of(EnvelopeHalving(16, 160, 40), [steep, *flat, *poor]))
    assert EnvelopeHalving.who_goes_on in page["narrowing"]["words"]
    assert of(13, page)["fate"] == "recommended"  # the steep one
    place, why = of(5, page)["story"][:2]
    assert (figures(place), figures(why)) == ([2, 8, 0.53, 4, 8], [4, 13, 0.57])
    assert EnvelopeHalving.why_higher in why
    assert figures(of(0, page)["story"][1]) == [8, 13, 0.7]


@pytest.mark.parametrize("name", ["successive-halving", "hyperband", "asha", "lucb"])
def test_a_search_cut_anywhere_has_a_page(name: str) -> None:
    events = events_of(made(name, arms=6, budget=40), table(6))
    for length in range(len(events) + 1):
        page = contents_of(events[:length], journal="search.jsonl", running=bool(length % 2))
        complete = length == len(events)
        assert page["state"] == (
            "complete" if complete else "running" if length % 2 else "stopped"
        )
        assert json.dumps(page, allow_nan=False)


def test_what_is_not_decided_is_not_called_dropped() -> None:
    curves = {0: [(1, 0.9)], 1: [(1, 0.8), (3, 0.7)], 2: [(1, 0.7), (3, 0.6)], 3: [(1, 0.6)]}
    events = [*told(curves), Pull(3, 3)]
    page = contents_of(events)
    assert figures(page["headline"]) == [2]  # 0.6 as arm 3 has, and ties go to the lower number
    fates = {arm["arm"]: arm["fate"] for arm in page["arms"]}
    assert fates == {0: "not decided", 1: "not decided", 2: "leads", 3: "not decided"}
    running = contents_of([*events[:-3], Pull(2, 3)], running=True)
    assert of(2, running)["fate"] == "not decided"
    assert figures(of(2, running)["story"][1]) == [3]


@pytest.mark.parametrize("name", ODD)
def test_odd_searches_have_a_page(name: str) -> None:
    page = contents_of(ODD[name], journal="odd.jsonl")
    assert json.dumps(page, allow_nan=False)
    assert rendered(page)


losses = st.sampled_from([0.5, 0.25, -1.0, 0.0, 1e300, -1e300, 5e-324, inf, -inf, nan])


@settings(deadline=None)
@given(
    curves=st.dictionaries(
        st.integers(0, 9), st.lists(losses, min_size=1, max_size=4), min_size=1, max_size=6
    ),
    closed=st.booleans(),
)
def test_any_losses_can_be_told(curves: dict[int, list[float]], closed: bool) -> None:
    seen = {arm: list(enumerate(curve, start=1)) for arm, curve in curves.items()}
    arm = min(curves)
    page = contents_of(told(seen, Closed(arm, len(curves[arm])) if closed else None))
    assert len(page["arms"]) == len(curves)
    assert json.dumps(page, allow_nan=False)
    for one in page["axes"].values():
        low, high = one["domain"]
        assert low < high
        assert not one["log"] or low > 0


def test_failures_that_differ_in_numbers_are_one() -> None:
    events: list[Event] = [Opened(0, {"name": "uniform"}, {}, {})]
    for arm in range(3):
        error = "OSError: no space" if arm == 2 else f"ValueError: row {arm} is empty"
        events += [Pull(arm, 1), Failure(Pull(arm, 1), error, "Traceback:\n\tFile")]
    assert contents_of(events)["failures"] == [
        {
            "error": "ValueError: row 0 is empty",
            "count": 2,
            "arms": [0, 1],
            "traceback": "Traceback:\n\tFile",
        },
        {"error": "OSError: no space", "count": 1, "arms": [2], "traceback": "Traceback:\n\tFile"},
    ]
    assert of(2, contents_of(events))["fate"] == "failed"
    assert "OSError: no space" in of(2, contents_of(events))["story"][0]


def test_idle_workers_are_on_the_timeline() -> None:
    def result(arm: int, seconds: float, worker: str) -> Loss:
        return Loss(Pull(arm, 1), 0.5, Work(1, seconds, 0.0, worker))

    events: list[Event] = [Pull(0, 1), Pull(1, 1), result(0, 1, "a"), Pull(2, 1)]
    events.append(result(2, 1, "a"))
    timeline = Timeline([*events, result(1, 4, "b"), Pull(0, 2), result(0, 2, "b")])
    assert timeline.seconds == 6
    assert timeline.idle_seconds == 4  # a, from 2 on
    page = contents_of([*events, result(1, 4, "b")])
    assert page["spending"]["timeline"]["workers"] == ["a", "b"]
    assert figures(page["spending"]["words"][0]) == [2, 4, 25]  # workers, seconds, % of waiting


def test_a_search_of_many_pulls_draws_spells_of_work() -> None:
    events = large(arms=100, levels=60)
    drawn = contents_of(events)["spending"]["timeline"]
    assert len(drawn["stints"]) <= 4_000
    assert {stint[0] for stint in drawn["stints"]} == {0, 1, 2, 3}


def test_scales_are_those_of_the_space() -> None:
    configs = {
        0: {"a": 1.0, "b": 2.0, "c": 1, "d": 0.5},
        1: {"a": 2.0, "b": 3.0, "c": 9, "d": 2.0},
    }
    space = {
        "any of": [
            {"a": {"log-uniform": [1, 2]}, "b": {"uniform": [0, 5]}},
            {"c": {"integer": [1, 9], "log": True}},
            {"d": {"distribution": "loguniform", "args": [0.1, 2], "kwds": {}}},
        ]
    }
    kinds = {p.name: p.kind for p in parameters(configs, space)}
    assert kinds == {"a": "log", "b": "number", "c": "log", "d": "log"}
    kinds = {p.name: p.kind for p in parameters(configs, {"grid": [space], "samples": 3})}
    assert kinds == {"a": "log", "b": "number", "c": "log", "d": "log"}
    guessed = parameters({0: {"x": 1e-5, "y": 1}, 1: {"x": 0.1, "y": 4}}, {})
    assert [p.kind for p in guessed] == ["log", "number"]


def test_diverging_losses_do_not_flatten_the_others() -> None:
    most = [0.1 * k for k in range(1, 30)]
    drawn = axis([*most, 1e12, inf, nan])
    assert drawn["outside"] == 1
    assert drawn["domain"][1] < 20


def test_without_a_journal_the_same_is_told_but_for_the_time(tmp_path: Path) -> None:
    policy = SuccessiveHalving(16, 256)
    written = contents_of(events_of(policy), journal="a.jsonl")
    result = search(RecordedCurves(table(16)), {"row": range(16)}, policy=policy)
    page = result.report(tmp_path / "report.html").read_text()
    unwritten = json.loads(Tags(page).scripts[0])
    assert unwritten["headline"] == written["headline"]
    assert unwritten["parameters"] == written["parameters"]
    same = ("arm", "fate", "story", "pulls", "loss", "levels", "losses", "values")
    for one, other in zip(written["arms"], unwritten["arms"], strict=True):
        assert {name: one[name] for name in same} == {name: other[name] for name in same}
    assert unwritten["next"][0]["command"] == 'search(…, journal="search.jsonl")'


@pytest.mark.parametrize("name", ["successive-halving", "doubling", "hyperband", "lil-ucb"])
def test_without_a_journal_policy_and_space_are_known(tmp_path: Path, name: str) -> None:
    """So rungs and brackets are those of the policy, and axes those of the space."""

    def rising(config: Mapping[str, Any]) -> Iterator[float]:
        for pull in count(1):
            yield -config["x"] - 1 / pull ** config["x"]

    pages = []
    for journal in (tmp_path / "j.jsonl", None):
        policy, space = made(name, 8, 200), {"x": LogUniform(0.1, 1)}
        found = search(rising, space, policy=policy, journal=journal, maximize=True)
        page = found.report(tmp_path / "report.html").read_text()
        pages.append(json.loads(Tags(page).scripts[0]))
    written, unwritten = pages
    assert unwritten["parameters"] == written["parameters"]
    assert unwritten["parameters"][0]["kind"] == "log"
    assert unwritten["metric"] == written["metric"]
    assert [arm["story"] for arm in unwritten["arms"]] == [arm["story"] for arm in written["arms"]]
    for one, other in zip(*(page["narrowing"]["rungs"] for page in pages), strict=True):
        same = ("label", "level", "arms", "already", "on", "pulls")
        assert [one[name] for name in same] == [other[name] for name in same]
    assert written["search"].startswith(unwritten["search"])  # then comes the seed


def test_the_same_loss_has_the_same_digits_throughout() -> None:
    losses = {0: [(1, 0.5), (2, 1 / 3)], 1: [(1, 2 / 3), (2, 4 / 7)], 2: [(1, 8 / 9)]}
    page = contents_of(told(losses, Closed(0, 2)))
    said = " ".join(line for arm in page["arms"] for line in arm["story"])
    assert {"0.333333", "0.571429", "0.666667", "0.888889"} <= set(re.findall(r"\d\.\d+\d", said))
    assert not re.search(r"\b0\.(3333|5714|6667|8889)\b", said)


def test_what_to_do_next() -> None:
    def steps(state: str, *command: str) -> list[str]:
        opened = Opened(0, {"budget": 8}, {}, {}, command=command, folder="/home/me")
        seen: list[Event] = [opened, Pull(0, 1), Loss(Pull(0, 1), 0.5)]
        events = [*seen, Closed(0, 1)] if state == "complete" else seen
        page = contents_of(events, journal="my search.jsonl", running=state == "running")
        return [step["command"] or step["words"] for step in page["next"]]

    assert steps("running") == ["lastarm watch 'my search.jsonl'"]
    command = ("/usr/bin/lastarm", "tune", "train.py")
    assert steps("stopped", *command) == ["lastarm resume 'my search.jsonl'"]
    assert steps("complete", *command) == [
        "lastarm.load('my search.jsonl')",
        "lastarm resume 'my search.jsonl' --budget 16",
    ]
    winner, begun, further = steps("complete", "tune.py", "--fast")
    assert winner == "lastarm.load('my search.jsonl')"
    assert "tune.py --fast in /home/me" in begun
    assert figures(further) == [16]
    assert len(steps("stopped")) == 2  # how it was begun, and how to resume it


@pytest.mark.parametrize("maximize", [False, True])
def test_what_twice_the_budget_is_likely_to_bring_is_told_where_that_was_measured(
    maximize: bool,
) -> None:
    def said(name: str, looks: int) -> list[str]:
        policy = {"name": name, "arms": 2, "budget": 8}
        metric = {"name": "score", "maximize": maximize}
        events: list[Event] = [Opened(0, policy, {}, {}, metric=metric)]
        for look in range(looks):
            for arm in (0, 1):
                pull = Pull(arm, 2**look)
                events += [pull, Loss(pull, 0.5 + arm / 10 - look / 8)]
        events.append(Closed(0, 2 ** (looks - 1)))
        steps = contents_of(events, journal="j.jsonl")["next"]
        return [step["words"] for step in steps if "twice the budget, score" in step["words"]]

    (words,) = said("successive-halving", looks=2)
    assert words.endswith(f"it is {'-' * maximize}0.375 now.")
    assert said("successive-halving", looks=1) == []
    assert said("hyperband", looks=2) == []


def test_a_figure_that_is_maximised_is_told_as_it_is() -> None:
    """Its axis leaves out what is much worse, which is below."""
    curves = {arm: [(1, -0.5 - arm / 100), (2, -0.6 - arm / 100)] for arm in range(9)}
    first, *events = told(curves | {9: [(1, 1e6)]}, Closed(8, 2, test_loss=-0.25))
    assert isinstance(first, Opened)
    opened = replace(first, metric={"name": "recall", "maximize": True})
    page = contents_of([opened, *events])
    assert page["metric"] == {"name": "recall", "best": "highest recall", "improve": "rise"}
    assert (page["answer"]["loss"], page["answer"]["test_loss"]) == (0.68, 0.25)
    low, high = page["axes"]["loss"]["domain"]
    assert -1 < low < 0.5
    assert 0.68 < high < 1
    assert page["axes"]["loss"]["outside"] == 1
    assert page["narrowing"]["rungs"][0]["best"] == 0.58
    told_of = {arm["arm"]: arm for arm in page["arms"]}
    assert told_of[8]["losses"] == [0.58, 0.68]
    assert told_of[8]["story"][0] == "It is recommended. Its recall was 0.68 after 2 pulls."
    assert any("had to rise by" in line for line in told_of[0]["story"])
    said = " ".join(line for arm in page["arms"] for line in arm["story"])
    assert "loss" not in said
    assert " -0." not in said


def test_what_trainers_tell_beside_their_losses_has_curves_and_columns() -> None:
    events: list[Event] = [Opened(0, {"name": "successive-halving", "budget": 9}, {}, {})]
    for arm, level in ((0, 1), (1, 1), (0, 2)):
        metrics = {"f1": level / 4, "note": "<b>", "all": [1], "split0_test_f1": 0.5}
        metrics |= {"f1": "nan"} if arm == 1 else {}
        pull = Pull(arm, level, {"x": arm})
        events += [pull, Loss(pull, 1 / level + arm, metrics=metrics)]
    page = contents_of(events)
    assert [one["name"] for one in page["measures"]] == ["f1", "note"]
    assert page["measures"][0]["axis"]["domain"] == pytest.approx([0.2375, 0.5125])
    assert page["measures"][1]["axis"] is None
    assert [arm["beside"] for arm in page["arms"]] == [[0.5, "<b>"], ["nan", "<b>"]]
    assert [arm["series"][0] for arm in page["arms"]] == [[0.25, 0.5], [None]]


def test_the_answer_is_the_loss_at_its_own_level() -> None:
    """With recommend="best" it is not the latest one."""
    page = contents_of(told({0: [(1, 0.25), (2, 0.5)]}, Closed(0, 1)))
    assert (page["answer"]["said"], page["arms"][0]["said"]) == ("0.25", "0.5")


def test_thousands_of_arms_and_points_are_cut_to_what_a_page_can_hold() -> None:
    many = contents_of(large(arms=2_500, levels=1))
    assert len(many["arms"]) == MOST_ARMS
    assert figures(many["notes"][1]) == [2_500, 2_000]
    assert many["narrowing"]["rungs"][0]["arms"] == 2_500
    long = contents_of(large(arms=2, levels=31_000))
    assert sum(len(arm["losses"]) for arm in long["arms"]) <= MOST_POINTS
    assert long["arms"][0]["levels"][-1] == 31_000
    assert len(long["narrowing"]["rungs"]) <= 200
    assert sum(rung["pulls"] for rung in long["narrowing"]["rungs"]) == 62_000


def test_a_thousand_arms_at_fifty_levels_are_less_than_ten_megabytes() -> None:
    assert len(rendered(contents_of(large(arms=1_000, levels=50))).encode()) < 10e6


def test_no_search_takes_more_than_ten_megabytes() -> None:
    long = 10_000 * "x"
    events: list[Event] = [Opened(0, {"name": long}, {}, {}, command=(long,), folder=long)]
    names = [f"{setting} {long}" for setting in range(45)]
    for arm in range(2_000):
        config = dict.fromkeys(names, f"{arm} {long}")
        pull, work = Pull(arm, 1, config), Work(1, 0.5, 0.1, f"{arm} {long}")
        failed = Failure(pull, f"{arm} {long}", long, work)
        events += [pull, failed if arm % 2 else Loss(pull, float(arm), work)]
    page = contents_of(events, journal=long)
    assert len(rendered(page).encode()) < 10e6
    assert "Of 45 settings the 40 that explain most are shown." in page["notes"]


# What the page is made of ------------------------------------------------------------------------


class Tags(HTMLParser):
    """Counts the elements of a page and keeps its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.scripts: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen[tag] += 1
        self._inside = tag == "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts.append(data)
            self._inside = False


def test_forty_hostile_strings_are_data_and_nothing_else() -> None:
    harmless = Tags(rendered(contents_of(hostile_events(f"text {k}" for k in range(40)))))
    page = rendered(contents_of(hostile_events(HOSTILE), journal=HOSTILE[0]))
    assert Tags(page).seen == harmless.seen
    data = Tags(page).scripts[0]
    assert "<" not in data
    assert json.loads(data)["headline"] == "Arm 39 is recommended"
    for sign in "\x00\x1b\x07\x9b\u202e\u2028\ud800\r":
        assert sign not in page
    assert len(page) < 3e6


def test_only_the_pages_own_scripts_may_run_and_nothing_may_be_fetched() -> None:
    page = rendered(contents_of(ODD["one arm"]))
    (rules,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    ours = dict(rule.strip().split(" ", 1) for rule in rules.split(";"))
    assert ours["default-src"] == "'none'"
    assert ours["img-src"] == "data:"
    sums = [
        f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in Tags(page).scripts[1:]
    ]
    assert ours["script-src"].split() == sums
    assert "unsafe-eval" not in rules


def test_the_same_journal_gives_the_same_page() -> None:
    events = events_of(SuccessiveHalving(8, 64))
    assert rendered(contents_of(events)) == rendered(contents_of(events))


# Writing it --------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "search.jsonl", events_of(SuccessiveHalving(8, 64)))


def test_the_command_writes_the_page_and_says_so(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in journal.parent.iterdir()}
    page = journal.with_name("report.html")
    code, said, _ = run(capsys, "report", journal, "-o", page)
    assert code == 0
    assert "report.html" in said
    assert page.read_text().startswith("<!doctype html>")
    after = {path: path.read_bytes() for path in journal.parent.iterdir() if path != page}
    assert after == before  # nothing is locked, repaired or left behind


def test_a_report_is_replaced_and_nothing_else_is(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, other = journal.with_name("report.html"), journal.with_name("notes.html")
    page.write_text(rendered(contents_of([])))
    other.write_text("<html>mine</html>")
    assert run(capsys, "report", journal, "-o", page)[0] == 0
    assert "is recommended" in page.read_text()
    before = {path: path.read_bytes() for path in journal.parent.iterdir()}
    for taken in (other, journal, journal.parent):
        code, _, said = run(capsys, "report", journal, "-o", taken)
        assert code == 2
        assert taken.name in said
        assert {path: path.read_bytes() for path in journal.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.jsonl", None),
        ("empty.jsonl", b""),
        ("other.jsonl", b'{"a": 1}\n'),
        ("binary.jsonl", bytes(range(256))),
    ],
)
def test_what_is_not_a_journal_is_refused(
    name: str, content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    code, _, message = run(capsys, "report", path, "-o", tmp_path / "report.html")
    assert code == (3 if content is None else 2)
    assert name in message
    assert not (tmp_path / "report.html").exists()


def test_a_folder_that_is_not_there_is_refused(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = journal.parent / "no" / "report.html"
    assert run(capsys, "report", journal, "-o", output)[0] == 2
    with refused("output", output):
        page_of(output, [])


def test_a_torn_end_is_no_obstacle(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = journal.read_bytes()[:-20]
    journal.write_bytes(torn)
    code, _, _ = run(capsys, "report", journal, "-o", journal.with_name("report.html"))
    assert code == 0
    assert journal.read_bytes() == torn


def test_control_characters_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b\x07\u202e"
    journal = write_journal(tmp_path / f"{evil}.jsonl", hostile_events(HOSTILE))
    said = [
        run(capsys, "report", journal, "-o", tmp_path / f"{evil}.html"),
        run(capsys, "report", tmp_path / f"no {evil}", "-o", tmp_path / "a.html"),
        run(capsys, "report", journal, "-o", journal),
    ]
    assert [code for code, _, _ in said] == [0, 3, 2]
    for _, out, err in said:
        assert not set(out + err) & set(evil)


def test_nothing_in_a_journal_is_executed(tmp_path: Path) -> None:
    """It is read in a Python in which importing, opening and starting anything else is told."""
    journal = write_journal(tmp_path / "a.jsonl", hostile_events(HOSTILE))
    watched = (
        "import sys\n"
        "from lastarm.cli import main\n"
        "import lastarm.cli.report, vl_convert\n"
        "def hook(event, given):\n"
        "    if event in ('exec', 'compile', 'pickle.find_class', 'os.system', 'os.exec',\n"
        "                 'subprocess.Popen', 'socket.connect', 'import'):\n"
        "        names = [str(part) for part in given]\n"
        "        print('DID', event, names[:2], file=sys.stderr)\n"
        "sys.addaudithook(hook)\n"
        "main(['report', sys.argv[1], '-o', sys.argv[2]])\n"
    )
    command = [sys.executable, "-c", watched, str(journal), str(tmp_path / "report.html")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    did = [line for line in ran.stderr.splitlines() if line.startswith("DID")]
    assert not [line for line in did if "window" in line or "hit" in line or "pickle" in line]
    assert not [line for line in did if line.split()[1] not in ("import", "exec", "compile")]


def test_without_the_library_of_charts_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InvalidArgument, match=r"lastarm\[report\]"):
        rendered(contents_of([]))


def test_a_result_writes_the_page_of_its_journal(tmp_path: Path) -> None:
    policy, journal = UniformAllocation(8, 64), tmp_path / "a.jsonl"
    result = search(RecordedCurves(table(8)), {"row": range(8)}, policy=policy, journal=journal)
    page = result.report(tmp_path / "a.html").read_text()
    told = json.loads(Tags(page).scripts[0])
    assert result.utilisation
    assert str(result.utilisation) in told["spending"]["words"][0]
    assert told["journal"] == str(journal)
    assert told["spending"]["timeline"]["stints"]


def test_a_search_that_was_extended_tells_of_both_stretches(tmp_path: Path) -> None:
    def root(config: Any) -> Iterator[float]:
        x = 1.0
        while True:
            x -= config["step"] * (x * x - 2)
            yield abs(x * x - 2)

    journal = tmp_path / "root.jsonl"
    for budget in (64, 256):
        policy = SuccessiveHalving(arms=8, budget=budget)
        result = search(root, {"step": LogUniform(0.001, 0.1)}, policy=policy, journal=journal)
    page = contents_of(read(journal), journal=str(journal))
    first, second = result.stretches
    assert "budget 64 → 256" in page["search"]
    assert page["spending"]["facts"][0][2].startswith("of a budget of 256")
    spent = [second.before.pulls, result.spent.pulls - second.before.pulls]
    said = [figures(line) for line in page["answer"]["cost"][-2:]]
    assert [line[:2] for line in said] == [[64, spent[0]], [256, spent[1]]]
    assert first.closed
    assert said[0][3:5] == [first.closed.arm, first.closed.upto]
    assert [figures(step["words"]) for step in page["next"]][-2] == [512]


def test_writing_a_report_touches_no_other_file(tmp_path: Path) -> None:
    beside = tmp_path / "report.html.new"
    beside.write_text("precious")
    page_of(tmp_path / "report.html", [])
    assert beside.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "report.html.new"]


def test_a_report_that_cannot_be_written_names_its_file_and_leaves_nothing(tmp_path: Path) -> None:
    with refused("output", tmp_path / ("a" * 300)):
        page_of(tmp_path / ("a" * 300), [])
    assert not list(tmp_path.iterdir())


def test_it_tells_which_arms_were_chosen_what_was_expected_of_them_and_what_came() -> None:
    page = contents_of(chosen_events())
    choosing = page["choosing"]
    assert choosing["level"] == 9
    points = {point["arm"]: point for point in choosing["points"]}
    assert [points[arm]["how"] for arm in range(6)] == [
        "included",
        "random",
        *["chosen"] * 4,
    ]
    assert {name: points[2][name] for name in ("mean", "low", "high", "loss")} == pytest.approx(
        {"mean": 0.8, "low": 0.75, "high": 0.85, "loss": 0.75}
    )
    assert (points[0]["loss"], "mean" in points[0]) == (0.7, False)
    assert (points[4]["at"], points[4]["last"], "loss" in points[4]) == (1, 0.3, False)
    assert points[5].keys() == {"arm", "order", "how"}, "it diverged, and nothing was expected"
    every, medians, near = map(figures, choosing["words"])
    assert every == [6, 4, 1, 1]  # arms, chosen, random, included
    assert " 1 was drawn" in choosing["words"][0]
    assert medians == [9, 2, 0.725, 1, 0.65]
    assert near[:3] == [2, 1, 2]  # arms, how many of them within that many deviations
    stories = {arm["arm"]: arm["story"] for arm in page["arms"]}
    assert any(figures(sentence)[:3] == [9, 0.8, 0.05] for sentence in stories[2])
    origins = {arm["arm"]: arm["origin"] for arm in page["arms"]}
    assert origins[2]["expected"] == pytest.approx(0.8)
    assert origins[1] == {"how": "random", "expected": None, "said": ""}


def test_without_a_sampler_it_says_nothing_of_choosing() -> None:
    page = contents_of(events_of(made("brackets", 16, 200)))
    assert page["choosing"] is None
    assert all(arm["origin"] is None for arm in page["arms"])
