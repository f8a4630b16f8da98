"""Moving states: as few as can be, counted, and of no consequence for the answer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastarm import (
    Configs,
    Doubling,
    Hyperband,
    Result,
    SuccessiveHalving,
    SuccessiveRejects,
    UniformAllocation,
    search,
)
from lastarm.checkpoints import Checkpoints
from lastarm.cli import main
from lastarm.errors import AllArmsFailed, InvalidArgument
from lastarm.events import Loss, Pull, Work
from lastarm.journal import read
from lastarm.journal.lines import event_of, fields_of
from lastarm.policy import Policy
from lastarm.runners import Simulated, Turns
from lastarm.runners.states import size_of
from lastarm.testing import runner_checks
from lastarm.testing.runners import CheckRunner
from lastarm.trainers import Config, RecordedCurves
from tests.refusals import refused

TIES = [0.0, 0.25, 0.5, 1.0, math.nan]
tables = st.lists(
    st.lists(st.sampled_from(TIES), min_size=12, max_size=12), min_size=2, max_size=7
).filter(lambda table: any(not math.isnan(loss) for row in table for loss in row))
POLICIES: list[Callable[[int], Policy]] = [
    lambda arms: SuccessiveHalving(arms, 24 * arms),
    lambda arms: SuccessiveRejects(arms, 24 * arms),
    lambda arms: UniformAllocation(arms, 4 * arms),
    lambda arms: Hyperband(arms, 81 * arms, max_pulls=9),
    lambda arms: Doubling(arms, 24 * arms),
]


def rows(number: int) -> Configs:
    return Configs([{"row": row} for row in range(number)])


def played(table: list[list[float]], policy: Policy, **given: Any) -> Result:
    runner = partial(Simulated, **({"seconds_per_move": 5.0} | given))
    return search(RecordedCurves(table), rows(len(table)), policy=policy, runner=runner)


def curves(arms: int, seed: int = 0) -> list[list[float]]:
    final = np.random.default_rng(seed).random((arms, 1))
    falling: list[list[float]] = (final + 1 / np.arange(1, 100)).tolist()
    return falling


def rounds_of(policy: Policy, table: list[list[float]]) -> list[list[int]]:
    """The arms of every round, in the order in which the policy asks for them."""
    rounds = []
    while pulls := policy.ask(policy.arms):
        rounds.append([pull.arm for pull in pulls])
        for pull in pulls:
            row = table[pull.arm]
            policy.tell(Loss(pull, row[min(pull.upto, len(row)) - 1]))
    return rounds


def least_loads(rounds: list[list[int]], memory: int) -> int:
    """By trying every order and every choice of what to forget, with the future known."""
    first = frozenset(rounds[0])
    order = count()
    to_try = [(0, next(order), 0, first, frozenset[int]())]
    seen = set()
    while True:
        loads, _, number, left, held = heappop(to_try)
        while not left:
            number += 1
            if number == len(rounds):
                return loads
            left = frozenset(rounds[number])
        if (number, left, held) in seen:
            continue
        seen.add((number, left, held))
        for arm in left:
            cost = loads + (number > 0 and arm not in held)
            there = held | {arm}
            for kept in [there] if len(there) <= memory else [there - {one} for one in there]:
                heappush(to_try, (cost, next(order), number, left - {arm}, kept))


@settings(max_examples=40, deadline=None)
@given(table=tables, memory=st.integers(1, 3))
def test_no_order_and_no_foresight_would_move_fewer_states(
    table: list[list[float]], memory: int
) -> None:
    policy = SuccessiveHalving(len(table), 24 * len(table))
    rounds = rounds_of(SuccessiveHalving(len(table), 24 * len(table)), table)
    found = search_or_none(table, policy, states_in_memory=memory)
    if found:
        assert found.spent.moves == least_loads(rounds, memory)


def search_or_none(table: list[list[float]], policy: Policy, **given: Any) -> Result | None:
    try:
        return played(table, policy, **given)
    except AllArmsFailed:
        return None


@pytest.mark.parametrize(("arms", "memory"), [(64, 1), (64, 8), (64, 40), (243, 7)])
def test_every_rung_moves_those_that_do_not_fit_and_no_others(arms: int, memory: int) -> None:
    policy = SuccessiveHalving(arms, 24 * arms)
    rungs = [rung.arms for rung in policy.plan().rungs]
    found = played(curves(arms), policy, states_in_memory=memory)
    assert found.spent.moves == sum(max(0, rung - memory) for rung in rungs[1:])
    assert found.spent.move_seconds == 5.0 * found.spent.moves


@settings(max_examples=60, deadline=None)
@given(
    table=tables,
    workers=st.integers(1, 4),
    memory=st.integers(1, 4),
    seconds=st.sampled_from([0.0, 1.0, 100.0]),
    make=st.sampled_from(POLICIES),
)
def test_where_states_are_changes_neither_the_answer_nor_what_is_booked(
    table: list[list[float]],
    workers: int,
    memory: int,
    seconds: float,
    make: Callable[[int], Policy],
) -> None:
    places = {"workers": workers, "states_in_memory": memory, "seconds_per_move": seconds}
    found = search_or_none(table, make(len(table)), **places)
    if found:
        plain = search(RecordedCurves(table), rows(len(table)), policy=make(len(table)))
        assert found.digest == plain.digest
        assert found.spent.pulls == plain.spent.pulls <= make(len(table)).budget


@pytest.mark.parametrize("check", runner_checks(seeds=2), ids=lambda check: check.__name__)
def test_the_laws_of_runners_with_states_that_have_places(check: CheckRunner) -> None:
    check(partial(Simulated, workers=3, seconds_per_move=5.0, states_in_memory=2))


def test_a_search_cut_anywhere_goes_on_to_the_same_answer(tmp_path: Path) -> None:
    table, policy = curves(16), SuccessiveHalving(16, 128)
    whole = tmp_path / "whole.jsonl"
    runner = partial(Simulated, workers=2, seconds_per_move=5.0, states_in_memory=2)
    find = partial(search, RecordedCurves(table), rows(16), policy=policy, checkpoints=False)
    found = find(runner=runner, journal=whole)
    started = [event.arm for event in read(whole) if isinstance(event, Pull)]
    assert started != [
        arm for arms in rounds_of(SuccessiveHalving(16, 128), table) for arm in arms
    ]
    lines = whole.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        part = tmp_path / f"{cut}.jsonl"
        part.write_bytes(b"".join(lines[:cut]))
        resumed = find(journal=part, runner=runner if cut % 2 else None)
        assert (resumed.digest, resumed.spent.pulls) == (found.digest, found.spent.pulls)


def test_a_state_stays_with_its_worker_if_moving_it_takes_longer_than_all() -> None:
    policy = SuccessiveHalving(64, 768)
    moves = [
        played(curves(64), policy, workers=4, seconds_per_move=seconds).spent.moves
        for seconds in (0.0, 5.0, 1e6)
    ]
    assert moves[0] > moves[1] > moves[2] == 0


def test_an_idle_worker_takes_the_last_of_the_longest_queue_when_that_is_worth_it() -> None:
    homes = {0: "a", 1: "a", 2: "b"}

    def waiting(switch_seconds: float | None) -> Turns[str]:
        line = Turns(home=homes.get, slots=lambda: {"c": 1}, switch_seconds=switch_seconds)
        for arm in range(3):
            line.learn(Loss(Pull(arm, 1), 0.5, Work(1, 2.0)))
        line.add([Pull(arm, 3) for arm in range(3)])  # 4 s each
        return line

    assert waiting(7.0).next(patient=True) is None
    assert waiting(7.0).next() == (Pull(1, 3), 1), "if nothing is under way, waiting is no use"
    assert waiting(5.0).next(patient=True) == (Pull(1, 3), 1)
    measured = waiting(None)
    measured.learn(Loss(Pull(3, 1), 0.5, Work(1, 9.0, moves=1, move_seconds=7.0)))
    assert measured.next(patient=True) is None
    homes.clear()
    assert measured.next(patient=True), "what nobody has any more need not wait"


class Heavy:
    """An arm is an array, its loss a constant plus what is left to train."""

    def start(self, config: Config, seed: int) -> Any:
        return np.full(1000, config["limit"])

    def train(self, state: Any, pulls: int) -> Any:
        state[1] += pulls
        return state

    def loss(self, state: Any) -> float:
        return float(state[0])


LIMITS = Configs([{"limit": k * 7 % 16 / 16} for k in range(16)])
ROOM = 3 * size_of(np.zeros(1000)) + 100
HALVING = SuccessiveHalving(16, 128)


@pytest.mark.parametrize("journal", [False, True])
def test_the_serial_runner_loads_what_does_not_fit_and_says_what_that_took(
    tmp_path: Path, journal: bool
) -> None:
    path = tmp_path / "search.jsonl" if journal else None
    tight = search(
        Heavy(), LIMITS, policy=HALVING, checkpoints=Checkpoints(memory=ROOM), journal=path
    )
    roomy = search(Heavy(), LIMITS, policy=HALVING)
    assert tight.digest == roomy.digest
    assert (roomy.spent.moves, roomy.spent.moving) == (0, "")
    assert tight.spent.moves == (8 - 3) + (4 - 3)
    assert 0 < tight.spent.move_seconds < tight.spent.train_seconds
    assert tight.spent.repeated == 0
    assert tight.spent.moving in str(tight)


def homes(path: Path) -> dict[int, set[str]]:
    found = defaultdict(set)
    for event in read(path):
        if isinstance(event, Loss):
            found[event.pull.arm].add(event.work.worker)
    return found


def test_processes_leave_arms_where_they_are_if_moving_is_declared_to_be_dear(
    tmp_path: Path,
) -> None:
    dear, tight = tmp_path / "dear.jsonl", tmp_path / "tight.jsonl"
    find = partial(search, Heavy(), LIMITS, policy=HALVING, workers=2)
    stayed = find(journal=dear, switch_seconds=1e6)
    assert stayed.spent.moves == 0
    assert all(len(workers) == 1 for workers in homes(dear).values())
    moved = find(journal=tight, checkpoints=Checkpoints(memory=2 * ROOM // 3))
    assert moved.spent.moves >= 8 - 2, "two states fit: one with each worker"
    assert moved.spent.move_seconds > 0
    assert moved.digest == stayed.digest
    assert moved.spent.repeated == 0


def test_the_command_and_the_report_say_what_was_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "search.jsonl"
    kept = Checkpoints(memory=ROOM)
    found = search(Heavy(), LIMITS, policy=HALVING, checkpoints=kept, journal=path)
    with pytest.raises(SystemExit):
        main(["show", str(path)])
    assert found.spent.moving in " ".join(capsys.readouterr().out.split())
    assert found.spent.moving.startswith("6 states moved, in ")
    again = Result.of(read(path))
    assert again.spent == found.spent
    assert again.as_dict()["moves"] == 6
    page = found.report(tmp_path / "report.html").read_text()
    assert "states moved" in page


def test_a_line_says_nothing_of_moves_where_there_are_none() -> None:
    loss = Loss(Pull(0, 1), 0.5, Work(1, 2.0, moves=1, move_seconds=0.5))
    assert event_of(fields_of(loss)) == loss
    plain = fields_of(Loss(Pull(0, 1), 0.5))
    assert not {"moves", "move_seconds"} & set(plain)


def test_what_an_older_journal_says_of_the_plain_order_is_ignored() -> None:
    loss = Loss(Pull(0, 1), 0.5, Work(1, 2.0, moves=1, move_seconds=0.5))
    assert event_of(fields_of(loss) | {"plain_moves": 2}) == loss


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, "soon"])
def test_a_cost_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(InvalidArgument):
        search(Heavy(), LIMITS, policy=HALVING, switch_seconds=seconds)
    with refused("seconds_per_move", seconds):
        played(curves(4), SuccessiveHalving(4, 16), seconds_per_move=seconds)
    with refused("states_in_memory", 0):
        played(curves(4), SuccessiveHalving(4, 16), states_in_memory=0)
