"""Trainers that train every level from zero: what is trained is what is booked, on every way."""

import json
import math
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import astuple, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lastarm import (
    Batched,
    Brackets,
    Checkpoints,
    EnvelopeHalving,
    Forest,
    HorizonHalving,
    Hyperband,
    PricedHalving,
    Program,
    Pull,
    RecordedCurves,
    Result,
    Simulated,
    SuccessiveHalving,
    TimedHalving,
    Uniform,
    search,
)
from lastarm.batched import OneByOne
from lastarm.errors import BudgetTooSmall, OtherSearch
from lastarm.events import Event, Failure, Loss, Opened, Work
from lastarm.journal import read
from lastarm.ledger import Ledger
from lastarm.ledger.survivors import Survivors
from lastarm.policies import POLICIES
from lastarm.policies.hyperband import brackets
from lastarm.policies.named import choose, from_header, make_policy, takes
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policy import describe, fresh
from lastarm.report.loggers.logger import Logger
from lastarm.report.next_steps import next_steps
from lastarm.runners import Serial
from lastarm.testing import trainer_checks
from lastarm.testing.trainers import CheckTrainer
from lastarm.theory import Envelopes, halving_budget, halving_regret
from lastarm.theory.forecast import forecast
from lastarm.trainers import Config
from tests.refusals import raised, refused
from tests.test_command import asked, run
from tests.test_horizon import settling_tables

Table = list[list[float]]
TIES = [0.0, 0.25, 0.5, 1.0]
SPACE = {"x": Uniform(0, 1)}
ABLE = [name for name in POLICIES if takes(name, "restarts")]


class OneGo:
    """Arms that are trained in one go from zero. A file counts the pulls that are really made."""

    restarts = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.tally = folder / "tally"
        self.tally.touch()

    @property
    def trained(self) -> int:
        return self.tally.stat().st_size

    def start(self, config: Config, seed: int) -> tuple[float, int]:
        return config["x"], 0

    def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
        x, before = state
        with self.tally.open("ab", buffering=0) as file:
            file.write(b"x" * (before + pulls))
        return x, before + pulls

    def loss(self, state: tuple[float, int]) -> float:
        x, level = state
        return math.cos(20 * x) + 1 / level

    def test(self, state: tuple[float, int]) -> float:
        return self.loss(state) + 1


def numbers_of(name: str, **numbers: int) -> dict[str, int]:
    return {key: number for key, number in numbers.items() if takes(name, key)}


def play(policy: Budgeted, table: Table) -> tuple[int | None, list[Pull]]:
    """The answer and all pulls, told the losses of a table; past its end a loss stays."""
    made: list[Pull] = []
    while pulls := policy.ask(policy.arms):
        for pull in pulls:
            policy.tell(Loss(pull, table[pull.arm][min(pull.upto, len(table[0])) - 1]))
        made += pulls
    assert policy.finished
    return policy.recommendation, made


# Successive Halving, once more and naive -------------------------------------------------------


def naive(table: Table, B: int, eta: int) -> tuple[int | None, list[Pull]]:
    """The paper's figure, symbol for symbol, but with R_k = ⌊B / (|S_k|·⌈log n⌉)⌋."""
    n = len(table)
    log_n = 0
    while eta**log_n < n:
        log_n += 1
    log_n = max(1, log_n)  # a single arm gets the budget
    S, out, made = list(range(n)), set[int](), list[Pull]()
    latest: dict[int, float] = {}
    level = dict.fromkeys(S, 0)
    for _k in range(log_n):
        R = math.floor(Fraction(B, len(S) * log_n))
        for i in S:
            if level[i] < R:
                made.append(Pull(i, R))
                level[i], latest[i] = R, table[i][min(R, len(table[0])) - 1]
                if not math.isfinite(latest[i]):
                    out.add(i)
        healthy = sorted((i for i in S if i not in out), key=lambda i: (latest[i], i))
        S = sorted(healthy[: max(1, len(S) // eta)])
        if not S:
            break
    left = S or [i for i in latest if i not in out]
    return min(left, key=lambda i: (latest[i], i), default=None), made


@st.composite
def tables(draw: st.DrawFn, values: list[float]) -> Table:
    arms, steps = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    row = st.lists(st.sampled_from(values), min_size=steps, max_size=steps)
    return draw(st.lists(row, min_size=arms, max_size=arms))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), eta=st.sampled_from([2, 3, 4, 7, 10]))
def test_every_answer_and_pull_of_halving_is_that_of_naive_code(
    data: st.DataObject, eta: int
) -> None:
    table = data.draw(tables(data.draw(st.sampled_from([TIES, [*TIES, math.inf, math.nan]]))))
    least = SuccessiveHalving(len(table), 10**9, eta).least_budget(len(table))
    budget = data.draw(st.integers(least, 30 * least))
    policy = SuccessiveHalving(len(table), budget, eta, restarts=True)
    assert play(policy, table) == naive(table, budget, eta)
    assert policy.booked == sum(pull.upto for pull in naive(table, budget, eta)[1]) <= budget


@pytest.mark.parametrize("eta", [2, 3, 10])
@pytest.mark.parametrize(
    "arms", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 242, 243, 244, 999, 1000, 1001, 1023, 1024, 1025]
)
def test_the_rungs_of_halving_are_exact_at_powers(arms: int, eta: int) -> None:
    rounds = max(1, next(k for k in range(20) if eta**k >= arms))
    least = arms * rounds
    with raised(BudgetTooSmall, least=least) if least > 1 else refused("budget", 0):
        SuccessiveHalving(arms, least - 1, eta, restarts=True)
    for budget in (least, least + 1, 3 * least + 2):
        plan = SuccessiveHalving(arms, budget, eta, restarts=True).plan()
        sizes = [arms // eta**k for k in range(rounds)]
        assert [(rung.arms, rung.upto, rung.pulls) for rung in plan.rungs] == [
            (size, budget // (size * rounds), budget // (size * rounds)) for size in sizes
        ]
        assert plan.pulls == sum(size * (budget // (size * rounds)) for size in sizes) <= budget


def test_one_two_and_three_arms() -> None:
    def rungs(policy: Budgeted) -> list[Any]:
        return [astuple(rung) for rung in policy.plan().rungs]

    assert rungs(SuccessiveHalving(1, 7, restarts=True)) == [(1, 7, 7)]
    assert rungs(SuccessiveHalving(2, 7, restarts=True)) == [(2, 3, 3)]
    assert rungs(SuccessiveHalving(3, 12, restarts=True)) == [(3, 2, 2), (1, 6, 6)]
    assert rungs(HorizonHalving(1, 7, 5, restarts=True)) == [(1, 5, 5)]
    assert rungs(HorizonHalving(1, 3, 5, restarts=True)) == [(1, 3, 3)]
    assert rungs(HorizonHalving(2, 7, 5, restarts=True)) == [(2, 3, 3)]
    assert rungs(HorizonHalving(4, 60, 20, restarts=True)) == [(4, 7, 7), (2, 16, 16)]
    assert rungs(HorizonHalving(4, 80, 20, restarts=True)) == [(4, 20, 20)]
    assert rungs(Hyperband(1, 20, 9, restarts=True)) == [(1, 1, 1), (1, 3, 3), (1, 9, 9)]


def test_brackets_cost_all_their_levels_and_are_opened_while_they_fit() -> None:
    """By hand: algorithm 1 of Hyperband counts in this way, n_i · r_i for each rung."""
    for R, every in ((9, 78), (27, 423), (81, 1902)):
        assert sum(bracket.pulls_from_zero for bracket in brackets(R, 3)) == every
        chosen = make_policy("hyperband", {"max_pulls": R, "restarts": True})
        assert (chosen.budget, chosen.plan().pulls) == (every, every)
    daring = brackets(243, 3)[0]
    assert daring.pulls_from_zero == 6 * 243, "as many arms times pulls in each of six rungs"
    assert brackets(1000, 10)[0].pulls_from_zero == 4 * 1000
    for budget in range(1, 90):
        policy = Hyperband(17, budget, 9, restarts=True)
        _, made = play(policy, [[arm / 17] for arm in range(17)])
        assert sum(pull.upto for pull in made) == policy.plan().pulls <= budget
    few = Hyperband(5, 78, 9, restarts=True)  # arms are drawn again
    _, made = play(few, [[arm / 5] for arm in range(5)])
    assert sum(pull.upto for pull in made) <= few.plan().pulls <= 78


@settings(max_examples=150, deadline=None)
@given(table=settling_tables(), more=st.integers(1, 50))
def test_theorems_1_and_4_hold_as_they_are(table: NDArray[np.float64], more: int) -> None:
    n = len(table)
    envelopes = Envelopes(table)
    budget = max(int(halving_budget(envelopes.gaps_settle)) + more, n * 5)
    policy = SuccessiveHalving(n, budget, restarts=True)
    assert policy.theorem_1_holds
    best, _ = play(policy, table.tolist())
    assert best == int(np.argmin(table[:, -1]))
    small = SuccessiveHalving(n, policy.least_budget(n) + more, restarts=True)
    found, _ = play(small, table.tolist())
    assert found is not None
    behind = table[found, -1] - table[:, -1].min()
    assert behind <= halving_regret(envelopes.joint, n, small.budget) + 1e-12


# More budget ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from([name for name in ABLE if name != "timed-halving"]))
def test_an_extended_search_stays_within_its_larger_budget(data: st.DataObject, name: str) -> None:
    table = data.draw(tables([*TIES * 3, math.nan]))
    known = numbers_of(name, arms=len(table), budget=10**6, max_pulls=27)
    policy: Any = make_policy(name, known | {"restarts": True})
    least = policy.least_budget(len(table))
    policy = fresh(policy, budget=data.draw(st.integers(least, 9 * least)))
    level: dict[int, int] = {}
    trained = 0
    for _ in range(3):
        _, made = play(policy, table)
        for pull in made:
            assert pull.upto > level.get(pull.arm, 0)
            level[pull.arm] = pull.upto
            trained += pull.upto
        assert trained == policy.booked <= policy.budget
        policy.extend(policy.budget + data.draw(st.integers(1, 9 * least)))


def test_one_arm_is_trained_again_only_if_it_comes_further_than_before() -> None:
    policy = SuccessiveHalving(1, 10, restarts=True)
    assert play(policy, [[0.5]])[1] == [Pull(0, 10)]
    policy.extend(20)
    assert policy.finished, "ten more bring it no further than ten from zero"
    policy.extend(21)
    assert play(policy, [[0.5]])[1] == [Pull(0, 11)]
    assert policy.booked == 21


# Which policies, and how they know ---------------------------------------------------------------


def test_the_policies_that_plan_for_it() -> None:
    kinds = (SuccessiveHalving, HorizonHalving, Hyperband, Brackets, TimedHalving)
    halving = {kind.name for kind in kinds}
    assert set(ABLE) == halving | {EnvelopeHalving.name, PricedHalving.name}


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ABLE])
def test_other_policies_are_refused_by_name(tmp_path: Path, name: str) -> None:
    numbers = numbers_of(name, arms=4, budget=100, max_pulls=9)
    forms: list[tuple[Any, Any]] = [(name, numbers), (make_policy(name, numbers), {})]
    for policy, own in forms:
        with refused("policy", name) as refusal:
            search(OneGo(tmp_path), SPACE, policy=policy, **own)
        assert all(able in str(refusal.value) for able in ABLE)
    with refused("restarts", True):
        make_policy(name, numbers | {"restarts": True})


@pytest.mark.parametrize("name", ABLE)
def test_a_policy_gets_it_from_the_trainer(tmp_path: Path, name: str) -> None:
    numbers = numbers_of(name, arms=9, budget=90, max_pulls=9)
    forms: list[tuple[Any, Any]] = [(name, numbers), (make_policy(name, numbers), {})]
    results: list[Result] = []
    for policy, own in forms:
        trainer = OneGo(tmp_path / str(len(results)))
        result = search(trainer, SPACE, policy=policy, runner=Simulated, **own)
        assert result.policy["restarts"] is True
        assert trainer.trained == result.spent.pulls <= 90
        results.append(result)
    assert results[0].digest == results[1].digest
    assert results[0].spent.pulls == results[1].spent.pulls


def test_a_policy_for_it_is_refused_with_a_trainer_that_goes_on() -> None:
    curves, rows = RecordedCurves([[0.5, 0.4], [0.6, 0.3]]), [{"row": 0}, {"row": 1}]
    policy = SuccessiveHalving(2, 4, restarts=True)
    with refused("policy", policy):
        search(curves, rows, policy=policy)
    with refused("restarts", "yes"):
        SuccessiveHalving(2, 4, restarts="yes")  # type: ignore[arg-type]
    with refused("open_ended", 1):
        TimedHalving(2, 4, 2, open_ended=1)  # type: ignore[arg-type]


def test_left_out_it_changes_no_header_and_no_text() -> None:
    for name in ABLE:
        plain = make_policy(name, numbers_of(name, arms=4, budget=50, max_pulls=9))
        changed = fresh(plain, restarts=True)
        assert "restarts" not in describe(plain)
        assert "restarts" not in repr(plain)
        assert describe(changed) == describe(plain) | {"restarts": True}
        assert "restarts=True" in repr(changed)
        assert repr(pickle.loads(pickle.dumps(changed))) == repr(changed)
        known = from_header(json.loads(json.dumps(describe(changed))))
        assert repr(known) == repr(changed)
    assert from_header(describe(plain) | {"restarts": "yes"}) is None


def test_the_chooser_asks_for_the_price_where_it_follows_from_brackets() -> None:
    chosen = choose("hyperband", {"max_pulls": 9}, restarts=True)
    assert repr(chosen.policy) == (
        "Hyperband(budget=78, max_pulls=9, eta=3, seed=0, restarts=True)"
    )


# What is trained is what is booked ---------------------------------------------------------------


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "serial": lambda folder: {},
    "serial, with a journal": lambda folder: {"journal": folder / "j.jsonl"},
    "serial, little memory": lambda folder: {
        "checkpoints": Checkpoints(folder / "states", memory=0),
        "recommend": "best",
    },
    "batched": lambda folder: {"runner": Batched},
    "processes": lambda folder: {"workers": 2},
    "processes, with a journal": lambda folder: {"workers": 2, "journal": folder / "j.jsonl"},
    "with a sampler": lambda folder: {"sampler": Forest()},
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_trained_is_what_is_booked(tmp_path: Path, way: str) -> None:
    trainer = OneGo(tmp_path)
    losses: list[Loss] = []
    result = search(
        trainer,
        SPACE,
        arms=16,
        budget=256,
        max_pulls=30,
        on_event=lambda event: losses.append(event) if isinstance(event, Loss) else None,
        **WAYS[way](tmp_path),
    )
    assert trainer.trained == result.spent.pulls == sum(loss.pull.upto for loss in losses) <= 256
    assert [loss.work.trained for loss in losses] == [loss.pull.upto for loss in losses]
    assert result.spent.repeated == result.spent.moves == 0
    assert result.config is not None
    assert result.state == (result.config["x"], result.level)
    assert result.test_loss is not None
    assert sum(cost.pulls for cost in result.rungs.values()) == result.spent.pulls
    if result.journal:
        events = list(read(result.journal))
        told = Result.of(events)
        assert told.spent.pulls == Ledger(events).spent.pulls == result.spent.pulls
        assert told.digest == result.digest
        assert sum(rung.pulls for rung in Survivors(events).rungs) == result.spent.pulls


class Settling(OneGo):
    """Some arms settle at level 9."""

    def loss(self, state: tuple[float, int]) -> float:
        return super().loss((state[0], min(9, state[1])) if state[0] < 0.5 else state)


class Settled(Settling):
    """They also say so."""

    def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
        return state if self.finished(state) else super().train(state, pulls)

    def finished(self, state: tuple[float, int]) -> bool:
        return state[0] < 0.5 and state[1] >= 9


@pytest.mark.parametrize("runner", ["serial", "processes"])
def test_a_state_that_no_pull_would_change_is_used_again_at_the_same_price(
    tmp_path: Path, runner: str
) -> None:
    found = partial(search, space=SPACE, arms=8, budget=240)
    anew, again = Settling(tmp_path / "anew"), Settled(tmp_path / "again")
    plain, result = found(anew), found(again, runner=runner)
    assert result.digest == plain.digest
    assert result.spent.pulls == plain.spent.pulls == anew.trained
    assert result.spent.repeated == plain.spent.repeated == 0
    assert again.trained < anew.trained or runner == "processes"


def test_an_error_in_saying_that_an_arm_is_finished_decides_nothing(tmp_path: Path) -> None:
    class Raises(Settling):
        def finished(self, state: tuple[float, int]) -> bool:
            raise ValueError(state)

    found = [
        search(make(tmp_path / make.__name__), SPACE, arms=8, budget=240, retries=0)
        for make in (Settling, Raises)
    ]
    assert found[0].digest == found[1].digest
    assert not found[1].failures


def test_wrapped_trainers_restart_as_well(tmp_path: Path) -> None:
    trainer = OneGo(tmp_path)

    def train(config: Config, state: Any, pulls: int) -> tuple[float, int]:
        assert state is None, "each level is trained from zero"
        return trainer.train((config["x"], 0), pulls)

    train.restarts = True  # type: ignore[attr-defined]
    found = [
        search(trainer, SPACE, arms=8, budget=96),
        search(OneByOne(trainer), SPACE, arms=8, budget=96),
        search((train, trainer.loss), SPACE, arms=8, budget=96),
        search(trainer, SPACE, arms=8, budget=96, maximize=True),
    ]
    assert len({result.digest for result in found[:3]}) == 1
    assert trainer.trained == sum(result.spent.pulls for result in found) == 4 * 96


def test_a_look_that_failed_is_tried_again_without_training_again(tmp_path: Path) -> None:
    class Stumbling(OneGo):
        def loss(self, state: tuple[float, int]) -> float:
            mark = tmp_path / f"{state}"
            if not mark.exists():
                mark.touch()
                raise RuntimeError("stumbled")
            return super().loss(state)

    for workers in (None, 2):
        trainer = Stumbling(tmp_path / str(workers))
        result = search(trainer, SPACE, arms=8, budget=96, retries=1, workers=workers, seed=9)
        assert trainer.trained == result.spent.pulls == 96
        assert result.spent.repeated == 0
        assert result.failures == {}
        for mark in tmp_path.glob("(*"):
            mark.unlink()


def test_a_failed_pull_is_booked_as_a_whole_and_its_other_attempts_are_repeated(
    tmp_path: Path,
) -> None:
    class Failing(OneGo):
        def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
            trained = super().train(state, pulls)
            if trained[1] > 4 and state[0] < 0.5:
                raise RuntimeError("it fails")
            return trained

    trainer = Failing(tmp_path)
    events: list[Event] = []
    result = search(trainer, SPACE, arms=8, budget=96, retries=1, on_event=events.append)
    failed = [event.pull for event in events if isinstance(event, Failure) and not event.retried]
    assert failed
    told = [event.pull for event in events if isinstance(event, Loss)]
    assert result.spent.pulls == sum(pull.upto for pull in told + failed) <= 96
    assert result.spent.repeated == sum(pull.upto for pull in failed)
    assert trainer.trained == result.spent.pulls + result.spent.repeated


class Cut(Exception):
    """Ends a search as a crash would."""


@pytest.mark.parametrize("workers", [None, 2])
def test_cut_at_every_record_it_resumes_to_the_same_digest_and_never_books_more(
    tmp_path: Path, workers: int | None
) -> None:
    policy = SuccessiveHalving(5, 61)
    whole = search(OneGo(tmp_path), SPACE, policy=policy)
    records = 2 * whole.spent.observations
    for record in range(records) if workers is None else (records // 2,):
        folder = tmp_path / f"{record}"
        trainer, left = OneGo(folder), [record]

        def cut(event: Event, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0 and not isinstance(event, Opened):
                raise Cut

        def begun(on_event: Any, trainer: OneGo = trainer, folder: Path = folder) -> Result:
            return search(
                trainer,
                SPACE,
                policy=policy,
                journal=folder / "j.jsonl",
                workers=workers,
                on_event=on_event,
            )

        with pytest.raises(Cut):
            begun(cut)
        before = Ledger(read(folder / "j.jsonl")).spent
        result = begun(None)
        spent = result.spent
        assert result.digest == whole.digest
        assert result.state == whole.state
        assert before.pulls <= spent.pulls == whole.spent.pulls <= policy.budget
        assert spent.pulls <= trainer.trained <= spent.pulls + spent.repeated, record
        assert Ledger(read(folder / "j.jsonl")).spent.pulls == spent.pulls


class Deadly(OneGo):
    """Its process is killed at three pulls, after they are trained and before they are told."""

    def loss(self, state: tuple[float, int]) -> float:
        marks = self.tally.parent
        mark = marks / f"killed at {state[1]}"
        if len(list(marks.glob("killed *"))) < 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().loss(state)


@pytest.mark.parametrize("apart", [True, False])
def test_killed_in_the_middle_of_pulls_what_was_lost_is_booked_as_repeated(
    tmp_path: Path, apart: bool
) -> None:
    trainer, journal = Deadly(tmp_path / "killed"), tmp_path / "j.jsonl"
    policy = SuccessiveHalving(8, 97)
    # Each loss is synced by itself, so that one pull is in flight.
    how: dict[str, Any] = {"workers": 2} if apart else {"runner": partial(Serial, group=1)}
    if not apart:  # the whole search is killed, not only a worker
        for _ in range(3):
            child = multiprocessing.get_context("spawn").Process(
                target=partial(search, trainer, SPACE, policy=policy, journal=journal, **how)
            )
            child.start()
            child.join()
            assert child.exitcode == -signal.SIGKILL
    result = search(trainer, SPACE, policy=policy, journal=journal, **how)
    whole = search(OneGo(tmp_path), SPACE, policy=policy)
    levels = [int(mark.name.split()[-1]) for mark in trainer.tally.parent.glob("killed *")]
    assert len(levels) == 3
    assert (result.digest, result.spent.pulls) == (whole.digest, whole.spent.pulls)
    assert result.spent.repeated == sum(levels)
    assert trainer.trained == result.spent.pulls + sum(levels)


def test_a_crash_in_a_pull_repeats_all_of_its_level() -> None:
    header = Opened(0, describe(SuccessiveHalving(2, 100, restarts=True)), {}, {})
    first, second = (Loss(Pull(0, level), 0.5, Work(trained=level)) for level in (4, 10))
    events: list[Event] = [header, first.pull, first, second.pull, second.pull, second]
    ledger = Ledger(events)
    assert (ledger.spent.pulls, ledger.spent.repeated) == (14, 10)
    assert {level: cost.pulls for level, cost in ledger.rungs.items()} == {4: 4, 10: 10}


def test_a_search_that_restarts_is_not_one_that_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    search(OneGo(tmp_path), SPACE, arms=8, budget=96, journal=journal)
    going_on = OneGo(tmp_path)
    going_on.restarts = False
    with pytest.raises(OtherSearch) as refusal:
        search(going_on, SPACE, arms=8, budget=96, journal=journal)
    assert [name for name, *_ in refusal.value.differences] == ["restarts"]


def test_extended_it_counts_what_was_trained_before(tmp_path: Path) -> None:
    trainer, journal = OneGo(tmp_path), tmp_path / "j.jsonl"
    for budget in (96, 200, 201, 500):
        result = search(trainer, SPACE, arms=8, budget=budget, journal=journal)
        assert trainer.trained == result.spent.pulls <= budget
        assert result.spent.repeated == 0
    assert result.spent.pulls > 201


def test_the_budget_that_is_advised_brings_arms_further(tmp_path: Path) -> None:
    for arms in (1, 2, 16):
        trainer, journal = OneGo(tmp_path), tmp_path / f"{arms}.jsonl"
        first = search(trainer, SPACE, arms=arms, budget=96, journal=journal)
        header = next(event for event in read(journal) if isinstance(event, Opened))
        steps = next_steps(first, replace(header, command=("lastarm", "tune")), "complete")
        command = next(step["command"] for step in steps if "--budget" in step["command"])
        more = search(trainer, SPACE, arms=arms, budget=int(command.split()[-1]), journal=journal)
        assert more.level is not None
        assert first.level is not None
        assert more.level > first.level


@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
def test_the_laws_of_trainers(tmp_path: Path, check: CheckTrainer) -> None:
    check(lambda: OneGo(tmp_path), {"x": 0.25})


def test_a_trainer_that_goes_on_from_something_else_breaks_the_law(tmp_path: Path) -> None:
    class Forgetful(OneGo):
        def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
            return state[0], max(state[1], pulls)

    laws = {check.__name__: check for check in trainer_checks()}
    with pytest.raises(AssertionError, match="one go"):
        laws["check_a_level_is_that_of_one_go_if_it_restarts"](
            lambda: Forgetful(tmp_path), {"x": 0.25}
        )


# Who reads it ------------------------------------------------------------------------------------


def test_a_logger_without_a_journal_counts_as_the_search_does(tmp_path: Path) -> None:
    class Counting(Logger):
        seen: list[int]

        def improve(self, pulls: int, values: Any) -> None:
            self.seen.append(pulls)

        def begin(self, about: Any) -> None:
            self.seen = []

        def begin_arm(self, arm: int, config: Any) -> None: ...
        def observe(self, arm: int, level: int, values: Any) -> None: ...
        def extend(self, budget: int) -> None: ...
        def end_arm(self, arm: int, error: Any) -> None: ...
        def end(self, answer: Any) -> None: ...

    logger = Counting()
    result = search(OneGo(tmp_path), SPACE, arms=8, budget=96, on_event=logger)
    assert logger.seen == [pulls for pulls, _ in result.best_so_far]


def test_the_area_of_the_figure_of_spending_is_what_was_spent(tmp_path: Path) -> None:
    axes = search(OneGo(tmp_path), SPACE, arms=8, budget=96).plot.spending()
    filled = axes.patches[0].get_data()  # type: ignore[attr-defined]
    assert float(np.sum(filled.values * np.diff(filled.edges))) == 96


def test_one_worker_takes_as_many_seconds_as_pulls_are_planned() -> None:
    policy = SuccessiveHalving(16, 256, restarts=True)
    assert forecast(policy, workers=1).seconds == policy.plan().pulls == 256


def test_plan_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    plan = asked(capsys, "plan", "--arms", 10, "--budget", 1000, "--restarts")
    assert plan["restarts"] is True
    assert plan["rungs"] == [
        {"arms": 10, "pulls": 25, "upto": 25},
        {"arms": 5, "pulls": 50, "upto": 50},
        {"arms": 2, "pulls": 125, "upto": 125},
        {"arms": 1, "pulls": 250, "upto": 250},
    ]
    assert plan["pulls"] == 1000
    going_on = asked(capsys, "plan", "--arms", 10, "--budget", 1000)
    assert "restarts" not in going_on
    assert plan["settling"] == going_on["settling"]
    hyperband = asked(capsys, "plan", "--policy", "hyperband", "--max-pulls", 9, "--restarts")
    assert [bracket["pulls"] for bracket in hyperband["brackets"]] == [27, 24, 27]
    assert run("plan", "--arms", 9, "--budget", 99, "--policy", "lucb", "--restarts") == 2


def test_curves_are_replayed_as_if_they_were_trained_from_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.npz"
    np.savez(table, losses=np.random.default_rng(0).random((16, 20)))
    options = ("replay", table, "--budget", 160, "--restarts")
    answer = asked(capsys, *options, "--journal", tmp_path / "j.jsonl")
    assert answer["pulls"] <= 160
    again = asked(capsys, "show", tmp_path / "j.jsonl")
    assert (again["pulls"], again["policy"]["restarts"]) == (answer["pulls"], True)
    found = asked(capsys, *options, "--compare")["policies"]
    assert {row["policy"] for row in found if "error" not in row} == set(ABLE)
    assert all(row["pulls"] <= 160 for row in found if "error" not in row)


def test_a_program_that_starts_over_each_time_is_tuned_at_its_true_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = 'printf %s "$1" >> "$2"; ls "$3" | wc -l'
    command = ("sh", "-c", script, "sh", "{pulls},", tmp_path / "log", "{state}", "{x}")
    options = ("--param", "x=uniform:0:1", "--arms", 4, "--budget", 32, "--restarts", "--json")
    assert run("tune", *options, "--", *command) == 0
    answer = json.loads(capsys.readouterr().out)
    counts = [int(count) for count in (tmp_path / "log").read_text().split(",")[:-1]]
    assert sum(counts) == answer["pulls"] == 32
    assert answer["loss"] == 0, "its folder is empty each time"
    assert Program(["sh"], restarts=True).restarts
