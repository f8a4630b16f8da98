"""Extending a search: more budget, every arm from where it is, and nothing paid for twice."""

import dataclasses
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.disk import in_memory
from faults.kills import killed
from faults.reference import ARMS, BUDGET, ROWS, TABLE, Reference, whole
from lastarm import (
    Batched,
    Closed,
    Extended,
    Failure,
    Loss,
    Policy,
    Pull,
    RecordedCurves,
    Result,
    SuccessiveHalving,
    UniformAllocation,
    search,
)
from lastarm.errors import AllArmsFailed, CheckpointReplaced, OtherSearch
from lastarm.events import Event, Told
from lastarm.journal import read
from lastarm.ledger import Ledger
from lastarm.ledger.utilisation import Timesheet
from lastarm.policies import ASHA, LUCB, POLICIES, Doubling
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policy import Extendable, go_on
from lastarm.report import progress
from lastarm.testing import policy_checks
from lastarm.testing.policies import CheckPolicy, MakePolicy
from lastarm.testing.runners import Drifting
from tests.refusals import raised, refused

Table = list[list[float]]
BY_VALUES = {
    "successive-elimination",
    "lucb",
    "lil-ucb",
    "exponential-gap",
    "exp3",
    "envelope-halving",
}
LIMITS = [{"limit": arm / 8} for arm in range(8)]


def made(name: str, arms: int, budget: int) -> Budgeted:
    kind = POLICIES[name]
    longest = (
        {"max_pulls": 27}
        if "max_pulls" in {field.name for field in dataclasses.fields(kind)}
        else {}
    )
    return kind(arms, budget, **longest)


# Policies ---------------------------------------------------------------------------------------


class InStretches:
    """A policy with the budgets that it is given on the way, as the loop goes on with them."""

    def __init__(self, policy: Policy, *budgets: int) -> None:
        self.policy, self._budgets = policy, deque(budgets)

    def ask(self, n: int = 1) -> list[Pull]:
        go_on(self.policy, self._budgets)
        return self.policy.ask(n)

    def tell(self, event: Told) -> None:
        self.policy.tell(event)
        go_on(self.policy, self._budgets)

    @property
    def finished(self) -> bool:
        return self.policy.finished

    @property
    def recommendation(self) -> int | None:
        return self.policy.recommendation


def in_stretches(name: str) -> MakePolicy:
    def make(arms: int, budget: int) -> Any:
        least = made(name, arms, budget).least_budget(arms)
        budgets = sorted({max(least, budget // 4), max(least, 2 * budget // 3), budget})
        return InStretches(made(name, arms, budgets[0]), *budgets[1:])

    return make


def laws() -> Iterator[Any]:
    for name in sorted(POLICIES.keys() - {"uniform", "lil-ucb", "exponential-gap"}):
        for law in policy_checks(synchronous=name != "asha", only_ranks=name not in BY_VALUES):
            # With more budget its arms come to a higher level, and only those are compared then.
            if (name, law.__name__) == ("brackets", "check_ties_go_to_the_lower_arm_number"):
                continue
            yield pytest.param(name, law, id=f"{name}, {law.__name__}")


@pytest.mark.parametrize(("name", "law"), list(laws()))
def test_in_stretches_every_policy_obeys_the_laws(name: str, law: CheckPolicy) -> None:
    law(in_stretches(name))


def told(policy: Policy, table: Table, level: dict[int, int]) -> None:
    """Play to the end; the levels reached are noted, and no pull is asked for twice."""
    while pulls := policy.ask(1):
        (pull,) = pulls
        assert pull.upto > level.get(pull.arm, 0)
        level[pull.arm] = pull.upto
        row = table[pull.arm]
        policy.tell(Loss(pull, row[min(pull.upto, len(row)) - 1]))


@st.composite
def falling(draw: st.DrawFn) -> Table:
    """Curves that fall to limits of their own, some of them slowly, many of them tied."""
    arms = draw(st.integers(1, 12))
    limits = draw(st.lists(st.integers(0, 5), min_size=arms, max_size=arms))
    slow = draw(st.lists(st.integers(0, 9), min_size=arms, max_size=arms))
    return [
        [limit + wait / (1 + step // 2) for step in range(60)]
        for limit, wait in zip(limits, slow, strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(POLICIES)),
    table=falling(),
    budget=st.integers(1, 200),
    more=st.lists(st.sampled_from([(1, 1), (1, 7), (2, 0), (4, 0)]), min_size=1, max_size=3),
)
def test_where_training_helps_more_budget_beats_or_ties(
    name: str, table: Table, budget: int, more: list[tuple[int, int]]
) -> None:
    arms = len(table)
    budget = max(budget, made(name, 1, 1).least_budget(arms))
    policy, level = made(name, arms, budget), dict[int, int]()
    assert isinstance(policy, Extendable)
    best = float("inf")
    for factor, plus in [(1, 0), *more]:
        if (factor, plus) != (1, 0):
            budget = factor * budget + plus
            assert policy.finished
            policy.extend(budget)
        told(policy, table, level)
        assert sum(level.values()) <= budget
        arm = policy.recommendation
        assert arm is not None
        loss = table[arm][min(level[arm], 60) - 1]
        assert loss <= best
        best = loss


def test_a_search_from_b_to_4b_finds_the_arm_whose_curve_is_lowest_only_later() -> None:
    table = [[1.0 - arm / 100] * 1000 for arm in range(16)]
    table[5] = [2.0 if step < 10 else 0.0 for step in range(1000)]
    policy = SuccessiveHalving(16, 16 * 4 * 5)
    level = dict[int, int]()
    told(policy, table, level)
    assert policy.recommendation == 15
    policy.extend(4 * policy.budget)
    told(policy, table, level)
    assert policy.recommendation == 5
    assert sum(level.values()) == policy.budget == 4 * 16 * 4 * 5


def test_what_is_left_is_spent_where_a_round_no_longer_fits() -> None:
    # Of four arms two are trained to 12; then these fall behind, and two others need the rest.
    policy = SuccessiveHalving(4, 32)
    losses = {0: 0.0, 1: 0.0, 2: 1.0, 3: 1.0}
    levels: dict[int, int] = {}

    def play() -> list[Pull]:
        asked = []
        while pulls := policy.ask(4):
            for pull in pulls:
                levels[pull.arm] = pull.upto
                late = pull.upto >= 5 and pull.arm in (2, 3)
                policy.tell(Loss(pull, -1.0 if late else losses[pull.arm]))
            asked += pulls
        return asked

    assert play()[-2:] == [Pull(0, 12), Pull(1, 12)]
    policy.extend(48)  # all to 6, two of them to 18: but 12 pulls went to the others
    assert play() == [Pull(2, 6), Pull(3, 6), Pull(2, 12), Pull(3, 12)]
    assert sum(levels.values()) == 48
    assert policy.finished
    assert policy.recommendation == 2


def test_the_better_of_what_two_stretches_found_is_recommended() -> None:
    # What the second stretch turns to gets worse when it is trained further.
    later = [0.05] * 8 + [0.5] * 99
    table = [[0.1] * 99, [0.2] * 99, [9.0] * 4 + later, [9.0] * 4 + later]
    policy, level = SuccessiveHalving(4, 32), dict[int, int]()
    told(policy, table, level)
    assert (policy.recommendation, level) == (0, {0: 12, 1: 12, 2: 4, 3: 4})
    policy.extend(95)
    told(policy, table, level)
    assert level == {0: 12, 1: 12, 2: 34, 3: 34}, "it came to its own end"
    assert policy.recommendation == 0


def test_a_policy_that_was_sure_stays_so_and_spends_nothing() -> None:
    table = [[0.0] * 4000, [1.0] * 4000]
    policy, level = LUCB(2, 2000), dict[int, int]()
    told(policy, table, level)
    spent = sum(level.values())
    assert spent < 2000
    policy.extend(4000)
    assert policy.finished
    assert policy.recommendation == 0
    told(policy, table, level)
    assert sum(level.values()) == spent


def test_losses_are_scaled_by_all_that_was_ever_told() -> None:
    policy = LUCB(2, 4)
    for value in (100.0, 0.0):
        (pull,) = policy.ask(1)
        policy.tell(Loss(pull, value))
    told(policy, [[0.5] * 99, [0.25] * 99], {0: 1, 1: 1})
    policy.extend(99)
    assert policy._seen is not None
    assert policy._seen.scale == (0.0, 100.0)


def test_doubling_goes_on_with_the_budgets_that_follow() -> None:
    # Those that lead get worse, so a run with a budget of before would turn to the others.
    table = [[0.0] * 9 + [5.0] * 99, [1.0] * 9 + [5.0] * 99, [2.0] * 99, [3.0] * 99]
    policy, level = Doubling(4, 64), dict[int, int]()
    told(policy, table, level)
    assert level == {0: 12, 1: 12, 2: 8, 3: 8}
    policy.extend(256)
    assert policy.ask(4) == [Pull(arm, 16) for arm in range(4)], "which is that of 128"


def test_asha_goes_on_with_what_no_longer_fitted() -> None:
    table = [[float(arm)] * 99 for arm in range(27)]
    policy, whole = ASHA(27, 20, max_pulls=27), ASHA(27, 300, max_pulls=27)
    level, level_of_whole = dict[int, int](), dict[int, int]()
    told(policy, table, level)
    assert sum(level.values()) <= 20
    policy.extend(300)
    told(policy, table, level)
    told(whole, table, level_of_whole)
    assert level == level_of_whole
    alone, level = ASHA(1, 10, max_pulls=27), {}
    for budget in (10, 20, 40):
        if budget > 10:
            alone.extend(budget)
        told(alone, table, level)
        assert level == {0: min(27, budget)}


@pytest.mark.parametrize("budget", [128, 127, 0, -1, 1.5, True, "256", None, 10**30])
def test_a_budget_that_is_not_larger_is_refused(budget: Any) -> None:
    policy = SuccessiveHalving(2, 128)
    told(policy, [[1.0], [2.0]], {})
    with refused("budget", budget):
        policy.extend(budget)
    assert policy.budget == 128


# Searches ---------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as place:
        yield place


class Counting(Drifting):
    """Counts what is trained and tested, for a process of its own."""

    def __init__(self) -> None:
        self.trained = self.tested = 0

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        self.trained += pulls
        return super().train(state, pulls)

    def test(self, state: list[Any]) -> float:
        self.tested += 1
        return super().test(state)


def played(
    journal: Path, budget: int, *, trainer: Any = None, policy: str = "", **others: Any
) -> Result:
    chosen = made(policy or "successive-halving", 8, budget)
    return search(trainer or Drifting(), LIMITS, policy=chosen, journal=journal, **others)


@pytest.mark.parametrize("name", POLICIES)
def test_extended_from_b_to_4b_no_pull_is_performed_twice(place: Path, name: str) -> None:
    trainer, journal = Counting(), place / "j.jsonl"
    first = played(journal, 48, trainer=trainer, policy=name)
    assert (first.complete, first.budget) == (True, 48)
    result = played(journal, 192, trainer=trainer, policy=name)
    assert (result.complete, result.budget) == (True, 192)
    assert first.spent.pulls <= result.spent.pulls <= 192
    assert result.spent.repeated == 0
    assert trainer.trained == result.spent.pulls
    assert trainer.tested == 2, "once a stretch"
    asked = [event for event in read(journal) if isinstance(event, Pull)]
    assert len(asked) == len(set(asked))
    assert [s.budget for s in result.stretches] == [48, 192]
    assert [s.before.pulls for s in result.stretches] == [0, first.spent.pulls]
    assert [s.closed.test_loss for s in result.stretches if s.closed] == [
        first.test_loss,
        result.test_loss,
    ]


def test_the_record_is_in_the_journal_where_the_stretch_begins(place: Path) -> None:
    journal = place / "j.jsonl"
    first = played(journal, 48)
    result = played(journal, 96)
    events = read(journal)
    stretch = Ledger(events).stretches[1]
    assert events[stretch.event] == Extended(96)
    assert isinstance(events[stretch.event - 1], Closed)
    assert isinstance(events[-1], Closed)
    assert sum(isinstance(event, Extended) for event in events) == 1
    assert '{"event":"extended","budget":96,' in journal.read_text()
    assert {a: c[: len(first.curves[a])] for a, c in result.curves.items()} == first.curves


def test_extended_again_and_again_each_call_gives_the_answer_of_the_last(place: Path) -> None:
    journal = place / "j.jsonl"
    for budget in (48, 96, 192, 384):
        result = played(journal, budget)
        assert result.budget == budget
        assert result.spent.pulls <= budget
    size = journal.stat().st_size
    for budget in (48, 96, 192, 384):
        again = played(journal, budget)
        assert (again.digest, again.budget, again.complete) == (result.digest, 384, True)
        assert again.spent == result.spent
    assert journal.stat().st_size == size


def test_it_does_not_matter_when_it_is_extended(place: Path) -> None:
    expected = place / "whole.jsonl"
    played(expected, 48)
    digest = played(expected, 192).digest
    lines = expected.read_bytes().splitlines(keepends=True)
    ends = next(n for n, line in enumerate(lines) if b'"extended"' in line)
    for kept in range(1, ends + 1):
        journal = place / f"{kept}.jsonl"
        journal.write_bytes(b"".join(lines[:kept]))
        result = played(journal, 192, checkpoints=False)
        assert result.digest == digest
        assert result.spent.pulls <= 192
        events = read(journal)
        assert events[kept] == Extended(192)
        assert sum(isinstance(event, Closed) for event in events) == 1 + (kept == ends)


class Stopped(Exception):
    """Raised to end a search early."""


def test_stopped_in_the_middle_it_is_extended_with_what_is_in_flight(place: Path) -> None:
    trainer, journal = Counting(), place / "j.jsonl"

    def stop(event: Event) -> None:
        if isinstance(event, Loss) and event.pull == Pull(3, 4):
            raise Stopped

    with suppress(Stopped):
        played(journal, 96, trainer=trainer, on_event=stop)
    result = played(journal, 384, trainer=trainer)
    whole = place / "whole.jsonl"
    played(whole, 96)
    assert result.digest == played(whole, 384).digest
    assert result.spent.repeated == 0
    assert trainer.trained == result.spent.pulls
    assert [stretch.closed is not None for stretch in result.stretches] == [False, True]


def test_cut_after_every_record_every_call_resumes_to_the_same_digest(place: Path) -> None:
    whole, journal = place / "whole.jsonl", place / "j.jsonl"
    answers = {budget: played(whole, budget, checkpoints=False) for budget in (24, 48, 96)}
    events, lines = read(whole), whole.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines) + 1):
        was = [24, *(e.budget for e in events[:kept] if isinstance(e, Extended))]
        for budget in (24, 48, 96):
            if len(was) == 1 and budget == 96:
                continue  # without the stretch of 48 it is another search
            journal.write_bytes(b"".join(lines[:kept]))
            result = played(journal, budget, checkpoints=False)
            expected = max(budget, *was)
            assert result.budget == expected
            assert result.digest == answers[expected].digest
            assert result.spent.pulls == answers[expected].spent.pulls <= expected
            losses = [event.pull for event in read(journal) if isinstance(event, Loss)]
            assert len(losses) == len(set(losses)), "no loss is asked for again"


def test_killed_at_many_a_point_of_the_extension_it_comes_to_the_same_digest(
    place: Path,
) -> None:
    more: dict[str, Any] = {"policy": SuccessiveHalving(ARMS, 4 * BUDGET)}
    expected = place / "expected.jsonl"
    for budget in (BUDGET, 4 * BUDGET):
        policy = SuccessiveHalving(ARMS, budget)
        result = search(RecordedCurves(TABLE), ROWS, policy=policy, journal=expected)
    reference, by_the_first_call = Reference(place / "reference"), 0
    for nth in (0, 1, 2, 3, 5, 20, 71, 150):
        reference.clear()
        reference.play()
        assert killed(reference, nth, **more)
        before = reference.standing()
        assert not reference.lost(before.counted)
        was_extended = Extended(4 * BUDGET) in read(reference.journal)
        by_the_first_call += was_extended
        resumed = reference.play(**({} if was_extended else more))
        assert not reference.repeated(before)
        assert resumed.digest == result.digest
        assert resumed.spent.pulls == result.spent.pulls <= 4 * BUDGET
    assert 0 < by_the_first_call < 8
    assert result.digest != whole().digest


@pytest.mark.parametrize(
    "how", [{}, {"runner": "processes", "workers": 2}, {"runner": Batched}], ids=str
)
def test_on_every_runner_there_is_one_digest(place: Path, how: dict[str, Any]) -> None:
    here, there = place / "serial.jsonl", place / "other.jsonl"
    for budget in (48, 192):
        played(here, budget)
        result = played(there, budget, **how)
    assert result.digest == played(here, 192).digest
    assert result.spent.repeated == 0


def test_states_outlive_the_end_and_lost_ones_are_trained_again(place: Path) -> None:
    journal, trainer = place / "j.jsonl", Counting()
    played(journal, 48, trainer=Counting())
    states = sorted(Path(f"{journal}.states").iterdir())
    assert len(states) == 8, "of every arm the latest"
    for state in states[:4]:
        state.unlink()
    with pytest.warns(CheckpointReplaced):
        result = played(journal, 192, trainer=trainer)
    other = place / "other.jsonl"
    played(other, 48)
    assert result.digest == played(other, 192).digest
    assert result.spent.repeated > 0
    assert trainer.trained == result.spent.pulls - 48 + result.spent.repeated


def test_arms_that_are_out_stay_out(place: Path) -> None:
    class Failing(Drifting):
        def loss(self, state: list[Any]) -> float:
            if state[1] < 0.3:
                raise RuntimeError("out")
            return super().loss(state)

    journal = place / "j.jsonl"
    first = played(journal, 48, trainer=Failing())
    assert first.failures
    result = played(journal, 192, trainer=Failing())
    assert result.failures.items() >= first.failures.items()
    out = [event.pull.arm for event in read(journal) if isinstance(event, Failure)]
    assert len(out) == len(set(out))

    class Broken(Drifting):
        def loss(self, state: list[Any]) -> float:
            return float("nan")

    for budget in (48, 192):
        with pytest.raises(AllArmsFailed):
            played(place / "broken.jsonl", budget, trainer=Broken())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"budget": 47}, [("budget", 192, 47)]),
        ({"budget": 191}, [("budget", 192, 191)]),
        ({"budget": 400, "seed": 1}, [("seed", 0, 1)]),
        ({"budget": 47, "seed": 1}, [("seed", 0, 1), ("budget", 192, 47)]),
        (
            {"budget": 400, "policy": "uniform"},
            [("policy", "successive-halving", "uniform"), ("eta", 2, None)],
        ),
        ({"budget": 400, "recommend": "best"}, [("recommend", None, "best")]),
        (
            {"budget": 400, "maximize": True},
            [("trainer.kind", "Drifting", "Maximized"), ("trainer.maximized", None, "Drifting")],
        ),
        ({"budget": 400, "include": [{"limit": 0.5}]}, ["space.configs"]),
    ],
)
def test_any_other_change_is_refused_and_nothing_is_written(
    place: Path, changed: dict[str, Any], named: list[Any]
) -> None:
    journal = place / "j.jsonl"
    for budget in (48, 192):
        played(journal, budget)
    before = journal.read_bytes()
    with raised(OtherSearch, path=journal.resolve()) as refusal:
        played(journal, **changed)
    assert [one if one in named else one[0] for one in refusal.value.differences] == named
    assert journal.read_bytes() == before


def test_a_policy_of_another_make_that_cannot_go_on_says_so(place: Path) -> None:
    @dataclasses.dataclass(eq=False)
    class Own:
        """As little as a policy can be."""

        name: ClassVar[str] = "own"
        arms: int
        budget: int

        def __post_init__(self) -> None:
            self._of = UniformAllocation(self.arms, self.budget)
            self.ask, self.tell = self._of.ask, self._of.tell

        @property
        def recommendation(self) -> int | None:
            return self._of.recommendation

        @property
        def finished(self) -> bool:
            return self._of.finished

    def play(budget: int) -> Result:
        policy: Any = Own(8, budget)
        return search(Drifting(), LIMITS, policy=policy, journal=place / "j.jsonl")

    first = play(48)
    with refused("budget", 96):
        play(96)
    assert play(48).digest == first.digest


@pytest.mark.parametrize("budget", [0, -5])
def test_no_event_of_an_extension_to_nothing(budget: int) -> None:
    with refused("budget", budget):
        Extended(budget)


def test_the_best_ever_seen_is_recommended_across_stretches(place: Path) -> None:
    journal = place / "j.jsonl"
    results = [played(journal, budget, recommend="best") for budget in (48, 96, 192)]
    losses = [result.loss for result in results]
    assert losses == sorted(losses, key=lambda loss: -(loss or 0))
    assert results[-1].loss == min(
        loss
        for arm, curve in results[-1].curves.items()
        if arm not in results[-1].failures
        for _, loss in curve
    )


def test_progress_is_of_the_larger_budget(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    drawn: list[progress.Told] = []
    watch = progress._Watch(SuccessiveHalving(8, 48), LIMITS, Timesheet(1), drawn.append)
    for budget in (48, 192):
        result = played(place / "j.jsonl", budget)
    for event in read(place / "j.jsonl"):
        watch(event)
    assert (drawn[0].budget, drawn[-1].budget) == (48, 192)
    assert drawn[-1].pulls == result.spent.pulls
