"""Halving up to a horizon: how many arms, how often to look, and what curves have shown."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import (
    EnvelopeHalving,
    Failure,
    HorizonHalving,
    Loss,
    PricedHalving,
    Pull,
    RecordedCurves,
    Simulated,
    TimedHalving,
    search,
)
from lastarm.errors import BudgetTooSmall, InvalidArgument
from lastarm.events import Event, Work
from lastarm.ledger.utilisation import Timesheet
from lastarm.policies.envelope_halving import Falls
from lastarm.policies.parts.expectation import CHOSEN, expected_rank, variance_left
from lastarm.policies.parts.rungs import cost, levels
from lastarm.report import progress


@pytest.mark.parametrize(
    "rungs",
    [
        {64: 4, 32: 7, 16: 13, 8: 26, 4: 51},
        {64: 2, 56: 3, 38: 4, 25: 6, 16: 9, 10: 14, 6: 22, 4: 33, 2: 40},
        {64: 2, 16: 8, 4: 31},
        {24: 3, 12: 5, 6: 9, 3: 15},
        {45: 6, 5: 51},
        {16: 10},
    ],
)
def test_the_expected_rank_is_that_of_its_own_model_played_many_times(
    rungs: Mapping[int, int],
) -> None:
    M, games, sizes, reached = 51, 4000, list(rungs), list(rungs.values())
    random = np.random.default_rng(0)
    variances = [variance_left(t, M) for t in reached]
    final = random.normal(size=(games, sizes[0]))
    seen, losses = [], final
    for v, later in zip(variances[::-1], [0.0, *variances[:0:-1]], strict=True):
        losses = losses + math.sqrt(v - later) * random.normal(size=losses.shape)
        seen.append(losses)  # a random walk, from the end backwards
    alive = np.ones_like(final, dtype=bool)
    for size, losses in zip([*sizes[1:], 1], seen[::-1], strict=True):
        ranks = np.argsort(np.argsort(np.where(alive, losses, np.inf), axis=1), axis=1)
        alive &= ranks < size
    rank = np.mean([0.5 * math.erfc(-x / math.sqrt(2)) for x in final[alive]])
    assert expected_rank(sizes, reached, M) == pytest.approx(float(rank), rel=0.2)


@pytest.mark.parametrize("budget", [100, 300, 1000, 3000])
def test_the_dearer_a_look_the_fewer_there_are(budget: int) -> None:
    def looks(look_cost: float) -> int:
        return PricedHalving(64, budget, 51, look_cost=look_cost).plan().observations

    seen = [looks(price) for price in (0, 0.1, 1, 10, 50)]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > 2 * seen[-1]


@given(
    arms=st.integers(1, 100),
    max_pulls=st.integers(1, 100),
    share=st.floats(0.01, 1.2),
    look_cost=st.fractions(0, 120, max_denominator=7),
)
@settings(max_examples=60, deadline=None)
def test_pulls_and_looks_together_are_never_more_than_the_budget(
    arms: int, max_pulls: int, share: float, look_cost: Fraction
) -> None:
    budget = int(share * arms * (max_pulls + look_cost))
    make: Callable[..., Any] = partial(PricedHalving, arms, budget, max_pulls)
    if budget < 1 + look_cost:
        if budget:
            with pytest.raises(BudgetTooSmall):
                make(look_cost=look_cost)
        return
    for eta in (CHOSEN, 2):
        plan = make(look_cost=look_cost, eta=eta).plan()
        assert plan.pulls + look_cost * plan.observations <= budget


@given(
    losses=st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=9, max_size=9), min_size=1
    ),
    look_cost=st.sampled_from(["1/3", 1, 4]),
    more=st.lists(st.integers(1, 60), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_looks_are_paid_for_also_where_a_search_is_extended(
    losses: list[list[float]], look_cost: Any, more: list[int]
) -> None:
    policy = PricedHalving(len(losses), 20, max_pulls=9, look_cost=look_cost)
    level, looks = dict[int, int](), 0
    for further in [0, *more]:
        if further:
            policy.extend(policy.budget + further)
        while pulls := policy.ask():
            (pull,) = pulls
            level[pull.arm], looks = pull.upto, looks + 1
            assert sum(level.values()) + Fraction(look_cost) * looks <= policy.budget
            policy.tell(Loss(pull, losses[pull.arm][pull.upto - 1]))
        assert policy.finished


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6, unique=True),
    budget=st.integers(0, 3000),
    at=st.integers(0, 20),
    look_cost=st.sampled_from([0, Fraction(1, 3), 4]),
)
def test_levels_rise_within_the_budget_to_the_horizon(
    sizes: list[int], budget: int, at: int, look_cost: Fraction
) -> None:
    falling = tuple(sorted(sizes, reverse=True))
    found = levels(falling, budget, 20, at=at, look_cost=look_cost)
    assert [at, *found, 20] == sorted([at, *found, 20])
    risen = cost(falling, found, 20, at=at, look_cost=look_cost) <= budget
    assert risen or set(found) == {at}


# Each arm's own curve ---------------------------------------------------------------------------


@given(
    seen=st.lists(
        st.dictionaries(st.integers(0, 9), st.floats(-1e308, 1e308), min_size=4, max_size=10),
        min_size=1,
        max_size=4,
    ),
    n=st.integers(1, 4),
)
def test_the_lowest_loss_always_goes_on(seen: list[dict[int, float]], n: int) -> None:
    falls = Falls()
    for losses in seen:
        kept = falls.choice(losses, n)
        assert kept[0] == min(losses, key=lambda arm: (losses[arm], arm))
        assert len(set(kept)) == n
        assert set(kept) <= losses.keys()


def test_a_slow_starter_with_a_steep_curve_is_kept_and_a_flat_one_dropped() -> None:
    steep = np.interp(range(1, 41), [4, 8, 16, 32], [0.7, 0.57, 0.3, 0.1]).tolist()
    flat = [[0.5 + arm / 100] * 40 for arm in range(7)]
    poor = [[0.9] * 40 for _ in range(8)]
    rows = [{"row": row} for row in range(16)]

    def found(policy: HorizonHalving) -> int | None:
        assert [rung.upto for rung in policy.plan().rungs] == [4, 8, 16, 32]
        return search(RecordedCurves([steep, *flat, *poor]), rows, policy=policy).arm

    assert found(PricedHalving(16, 160, 40, eta=2)) == 1, "it goes by losses alone"
    assert found(EnvelopeHalving(16, 160, 40)) == 0
    assert found(HorizonHalving(16, 160, 40)) == 0


def test_where_curves_stop_falling_nothing_more_is_expected_of_them() -> None:
    falls = Falls()
    falls.choice({0: 1.0, 1: 0.9, 2: 0.8, 3: 0.7}, 4)
    falls.choice({0: 0.5, 1: 0.6, 2: 0.7, 3: 0.65}, 4)
    assert falls.choice({0: 0.5, 1: 0.6, 2: 0.7, 3: 0.51}, 2) == [0, 3], "the median fell by none"


# What is measured -------------------------------------------------------------------------------


def timed(seconds_per_look: float, policy: Any, **options: Any) -> Any:
    """A search on simulated workers, whose pulls take two seconds each."""
    table = np.random.default_rng(0).random((40, 30)).cumsum(axis=1)[:, ::-1]
    runner = partial(Simulated, workers=3, seconds_per_pull=2.0, seconds_per_look=seconds_per_look)
    rows = [{"row": row} for row in range(40)]
    return search(RecordedCurves(table), rows, policy=policy, runner=runner, **options)


@pytest.mark.parametrize("look_cost", [0, 1, 10])
def test_a_price_that_is_measured_is_paid_like_one_that_is_told(look_cost: int) -> None:
    told = timed(2.0 * look_cost, PricedHalving(40, 500, 30, look_cost=look_cost)).spent
    found = timed(2.0 * look_cost, TimedHalving(40, 500, 30)).spent
    assert 450 < found.pulls + look_cost * found.observations <= 500
    assert told.observations / 2 < found.observations < 2 * told.observations


@pytest.mark.parametrize("seconds_per_look", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("seconds", [50.0, 150.0, 1000.0])
def test_seconds_are_spent_and_not_exceeded(seconds: float, seconds_per_look: float) -> None:
    spent = timed(seconds_per_look, TimedHalving(40, 10**6, 30, seconds=seconds)).spent
    assert 0.8 * seconds < spent.train_seconds + spent.loss_seconds <= seconds


def test_seconds_buy_no_more_pulls_than_the_budget() -> None:
    assert 190 < timed(1.0, TimedHalving(40, 200, 30, seconds=10**6)).spent.pulls <= 200


@pytest.mark.parametrize(
    "policy", [TimedHalving(40, 500, 30), TimedHalving(40, seconds=200)], ids=["pulls", "seconds"]
)
def test_a_timed_search_goes_on_from_its_journal(policy: TimedHalving, tmp_path: Path) -> None:
    whole = timed(7.0, policy)
    for cut in (1, 2, 3, 20, 30):
        count = 0

        def leave(event: Event, cut: int = cut) -> None:
            nonlocal count
            count += 1
            if count == cut:
                raise KeyError

        with pytest.raises(KeyError):
            timed(7.0, policy, journal=tmp_path / f"{cut}.jsonl", on_event=leave)
        again = timed(7.0, policy, journal=tmp_path / f"{cut}.jsonl")
        assert (again.complete, again.digest) == (True, whole.digest)


def test_the_arm_that_is_pulled_first_may_fail() -> None:
    policy = TimedHalving(4, 40, 9)
    (first,) = policy.ask(4)
    policy.tell(Failure(first, "it fails"))
    others = policy.ask(4)
    assert first.arm not in {pull.arm for pull in others}
    assert len(others) > 1
    alone = TimedHalving(1, 40, 9)
    alone.tell(Failure(alone.ask()[0], "it fails"))
    assert (alone.finished, alone.recommendation) == (True, None)


def test_the_pull_of_an_arm_that_failed_first_is_not_spent_again() -> None:
    policy = TimedHalving(2, 4, 4)
    (first,) = policy.ask()
    policy.tell(Failure(first, "it fails"))
    (second,) = policy.ask(2)
    assert second == Pull(1 - first.arm, upto=3)  # of 4 pulls, one is gone
    policy.tell(Loss(second, 0.5))
    assert (policy.finished, policy.recommendation) == (True, second.arm)


def test_by_its_name_a_timed_search_takes_the_seconds_for_its_budget() -> None:
    rows = [{"row": row} for row in range(8)]
    table = RecordedCurves([[0.5 + row / 100] * 9 for row in range(8)])
    found = search(
        table,
        rows,
        policy="timed-halving",
        arms=8,
        budget=60,
        max_pulls=9,
        seconds=40,
        runner=partial(Simulated, seconds_per_look=1.0),
    )
    assert found.policy["seconds"] == 40
    assert found.complete
    assert 30 < found.spent.train_seconds + found.spent.loss_seconds <= 40


# Only seconds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds_per_look", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("seconds", [60.0, 150.0, 1000.0])
def test_without_a_budget_the_seconds_are_spent_and_not_exceeded(
    seconds: float, seconds_per_look: float
) -> None:
    seen: list[Loss] = []
    spent = timed(
        seconds_per_look,
        TimedHalving(40, seconds=seconds),
        on_event=lambda event: seen.append(event) if isinstance(event, Loss) else None,
    ).spent
    assert 0.7 * seconds < spent.train_seconds + spent.loss_seconds <= seconds
    first = [loss.work for loss in seen if loss.pull.upto == 1]
    assert sum(work.train_seconds + work.loss_seconds for work in first) <= max(
        seconds / 3, 2.0 + seconds_per_look
    )


def test_as_many_arms_are_drawn_as_fit_into_a_third_of_the_time() -> None:
    tried = {
        seconds: len(timed(1.0, TimedHalving(40, seconds=seconds)).curves)
        for seconds in (9.0, 27.0, 90.0, 10**4)
    }
    assert tried == {9.0: 1, 27.0: 3, 90.0: 10, 10**4: 40}


def test_a_search_that_has_only_seconds_needs_neither_arms_nor_a_budget() -> None:
    table = RecordedCurves([[0.5 + row / 100] * 9 for row in range(8)])
    rows = [{"row": row} for row in range(8)]
    cluster = partial(Simulated, workers=2, seconds_per_look=1.0)
    found = search(table, rows, seconds=60, runner=cluster)
    assert (found.policy["name"], found.policy["arms"]) == ("timed-halving", 8)
    assert not {"budget", "max_pulls"} & found.policy.keys(), "they were left out"
    assert (found.complete, found.stopped_by, found.budget) == (True, "seconds", None)
    assert (found.arm, found.never_tried) == (0, 0)


def test_if_every_arm_has_had_its_pulls_it_was_not_the_time_that_ended_it() -> None:
    found = timed(1.0, TimedHalving(40, max_pulls=3, seconds=10**6))
    assert {curve[-1][0] for curve in found.curves.values()} == {3}
    assert (found.complete, found.stopped_by) == (True, None)


def test_workers_have_the_seconds_each() -> None:
    one, three = (timed(1.0, TimedHalving(40, seconds=90, at_once=n)).spent for n in (1, 3))
    assert 2.5 * one.train_seconds < three.train_seconds


def test_another_number_of_workers_may_continue(tmp_path: Path) -> None:
    table, rows = RecordedCurves([[0.5]] * 4), [{"row": row} for row in range(4)]
    first, again = (
        search(
            table, rows, seconds=1000, max_pulls=3, workers=workers, journal=tmp_path / "j.jsonl"
        )
        for workers in (2, 1)
    )
    assert (again.nothing_trained, again.digest) == (True, first.digest)
    assert again.policy["at_once"] == 2


def test_progress_of_a_search_that_has_only_seconds_is_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    drawn: list[progress.Told] = []
    policy = TimedHalving(4, seconds=120, at_once=2)
    watch = progress._Watch(policy, [{"x": 1}] * 4, Timesheet(1), drawn.append)
    monkeypatch.setattr(progress, "monotonic", lambda: watch.began)
    pull = Pull(0, upto=9)
    for event in (pull, Loss(pull, 0.5, Work(trained=9, train_seconds=50.0, loss_seconds=10.0))):
        watch(event)
    assert (drawn[-1].used, drawn[-1].counted) == (0.25, "9 pulls, 0:01:30 of 0:02:00 left")
    monkeypatch.setattr(progress, "monotonic", lambda: watch.began + 90)
    watch(pull)
    assert (drawn[-1].used, drawn[-1].counted) == (0.75, "9 pulls, 0:00:30 of 0:02:00 left")


def test_arms_that_fail_leave_room_for_others_until_all_have_failed() -> None:
    policy = TimedHalving(6, seconds=100)
    while pulls := policy.ask(6):
        for pull in pulls:
            policy.tell(Failure(pull, "it fails"))
    assert (policy.finished, policy.recommendation) == (True, None)


@pytest.mark.parametrize(
    ("numbers", "missing"), [({}, "budget"), ({"budget": 9, "seconds": 9}, "max_pulls")]
)
def test_what_timed_halving_cannot_do_without_is_named(
    numbers: dict[str, Any], missing: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        TimedHalving(4, **numbers)
    assert refusal.value.argument == missing


def test_a_limit_of_time_is_told_with_the_arms_that_were_never_tried() -> None:
    found = timed(1.0, HorizonHalving(40, 10**6, 30), seconds=1e-9)
    assert (found.complete, found.stopped_by) == (False, "seconds")
    assert found.never_tried == 40
