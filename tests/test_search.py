"""The loop, the ledger and the result, through the front door."""

import math
import os
import pickle
import signal
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import (
    Configs,
    Failure,
    HorizonHalving,
    Loss,
    Pull,
    RecordedCurves,
    Serial,
    Simulated,
    SuccessiveHalving,
    UniformAllocation,
    search,
)
from lastarm.errors import (
    AllArmsFailed,
    BudgetTooSmall,
    CheckpointNotWritten,
    CheckpointReplaced,
    InvalidArgument,
    JournalNotWritten,
    LastarmError,
    NoTestLoss,
    OtherSearch,
    Stuck,
)
from lastarm.events import Closed, Event, Work
from lastarm.journal import read
from lastarm.ledger import Ledger, Utilisation
from lastarm.plain import fingerprint
from lastarm.policy import describe
from lastarm.result import Result
from lastarm.runners import Arms
from lastarm.theory.forecast import forecast
from lastarm.trainers import Config
from tests.refusals import raised, refused, warned


class Counting:
    """Counts its training steps; the loss is the config's, the state a list of steps."""

    def __init__(self, interrupt_after: float = math.inf) -> None:
        self.steps = 0
        self.tested: list[Any] = []
        self._interrupt_after = interrupt_after

    def start(self, config: Config, seed: int) -> list[int]:
        return [int(config["loss"] * 100)]

    def train(self, state: list[int], pulls: int) -> list[int]:
        if self.steps > self._interrupt_after:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        self.steps += pulls
        return [*state, pulls]

    def loss(self, state: list[int]) -> float:
        return state[0] / 100

    def test(self, state: list[int]) -> float:
        self.tested.append(state)
        return 0.125


CONFIGS = [{"loss": (7 * arm % 16) / 16} for arm in range(16)]


def test_what_is_trained_is_what_is_booked_and_nothing_is_trained_twice() -> None:
    trainer = Counting()
    result = search(trainer, CONFIGS, policy=SuccessiveHalving(16, 128))
    assert trainer.steps == result.spent.pulls == 128
    assert result.spent.repeated == 0
    assert result.spent.observations == 30
    assert result.config == CONFIGS[0]
    assert sum(result.state[1:]) == result.curves[0][-1][0] == 30
    assert result.test_loss == 0.125
    assert trainer.tested == [result.state], "TEST is touched once"


def test_the_default_policy_knows_the_horizon_where_it_is_told() -> None:
    def decided(**numbers: Any) -> Mapping[str, Any]:
        return search(Counting(), CONFIGS, arms=16, **numbers).policy

    assert decided(budget=128)["name"] == "successive-halving"
    horizon = decided(budget=12, max_pulls=9, seed=7)
    assert horizon == describe(HorizonHalving(16, 12, max_pulls=9, seed=7)), "the search's seed"
    literal = decided(budget=128, policy="successive-halving")
    assert literal == describe(SuccessiveHalving(16, 128))
    assert decided(budget=128, max_pulls=9, policy="asha")["max_pulls"] == 9


def test_a_policy_object_may_serve_two_searches() -> None:
    policy = SuccessiveHalving(16, 128)
    first = search(Counting(), CONFIGS, policy=policy)
    assert search(Counting(), CONFIGS, policy=policy).digest == first.digest


def test_after_a_crash_without_checkpoints_what_is_trained_again_is_told(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "search.jsonl"
    search(Counting(), CONFIGS, policy=SuccessiveHalving(16, 128), journal=whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines) - 1, 5):
        path.write_bytes(b"".join(lines[:kept]))
        before = Ledger(read(path))
        trained = sum(e.work.trained for e in read(path) if isinstance(e, Loss))
        trainer = Counting()
        result = search(
            trainer,
            CONFIGS,
            policy=SuccessiveHalving(16, 128),
            journal=path,
            checkpoints=False,
        )
        assert result.spent.pulls == 128
        in_flight = before.spent.pulls - trained  # nobody knows how much of it was done
        assert trainer.steps + trained + in_flight == 128 + result.spent.repeated


def test_the_state_of_a_search_that_was_finished_before_is_not_trained_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "search.jsonl"
    first = search(Counting(), CONFIGS, policy=SuccessiveHalving(16, 128), journal=path)
    trainer = Counting()
    again = search(trainer, CONFIGS, policy=SuccessiveHalving(16, 128), journal=path)
    assert trainer.steps == 0
    assert again.state == first.state
    assert again.test_loss == 0.125
    assert trainer.tested == []


def test_the_state_is_trained_again_where_only_the_closing_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    search(Counting(), CONFIGS, policy=SuccessiveHalving(16, 128), journal=path, checkpoints=False)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    again = search(Counting(), CONFIGS, policy=SuccessiveHalving(16, 128), journal=path)
    assert again.test_loss == 0.125
    assert sum(again.state[1:]) == 30
    assert read(path)[-1] == Closed(0, 30, 0.125, trained=30)
    assert again.spent.repeated == 30


class Misbehaving(Counting):
    """An arm whose loss in the config is no number does something else."""

    def start(self, config: Config, seed: int) -> Any:
        return [config["loss"]]

    def train(self, state: Any, pulls: int) -> Any:
        if state[0] == "exit":
            raise SystemExit(0)
        if state[0] == "raise":
            raise RuntimeError("boom")
        return super().train(state, pulls)

    def loss(self, state: Any) -> Any:
        return state[0]


def test_one_bad_arm_is_its_own_failure_and_the_search_goes_on(tmp_path: Path) -> None:
    bad = ["exit", "raise", "half", None, math.nan, -math.inf, [1]]
    configs = Configs([{"loss": loss} for loss in [*bad, 0.5, 0.25]])
    result = search(
        Misbehaving(), configs, policy=UniformAllocation(9, 27), journal=tmp_path / "j.jsonl"
    )
    assert result.arm == 8
    assert {arm: failure.error for arm, failure in result.failures.items()} == {
        0: "SystemExit: 0",
        1: "RuntimeError: boom",
        2: "BadLoss: the loss 'half' is a str, not a real number",
        3: "BadLoss: the loss None is a NoneType, not a real number",
        6: "BadLoss: the loss [1] is a list, not a real number",
    }
    assert 'raise RuntimeError("boom")' in result.failures[1].traceback
    assert result.spent.pulls == 27, "a failed pull is booked"
    failures = [event for event in read(tmp_path / "j.jsonl") if isinstance(event, Failure)]
    assert [failure.pull.arm for failure in failures] == [0, 1, 2, 3, 6]


def test_all_arms_failing_is_an_error_that_lists_the_causes(tmp_path: Path) -> None:
    configs = Configs([{"loss": loss} for loss in ["raise", "raise", math.nan]])
    policy, path = SuccessiveHalving(3, 30), tmp_path / "j.jsonl"
    for _ in range(2):  # the second time it is found in the journal
        with pytest.raises(AllArmsFailed) as failed:
            search(Misbehaving(), configs, policy=policy, journal=path)
        causes = {0: "RuntimeError: boom", 1: "RuntimeError: boom", 2: "its loss became nan"}
        assert failed.value.causes == causes
        assert "2 of 3: RuntimeError: boom; 1 of 3: its loss became nan" in str(failed.value)
        assert len(read(path)) == 7


def test_failed_attempts_are_repeated_as_often_as_asked() -> None:
    class Flaky(Counting):
        def train(self, state: list[int], pulls: int) -> list[int]:
            failures[state[0]] = failures.get(state[0], 0) + 1
            if failures[state[0]] % 3:
                raise ConnectionError("try again")
            return super().train(state, pulls)

    failures: dict[int, int] = {}
    events: list[Event] = []
    policy = SuccessiveHalving(16, 128)
    result = search(Flaky(), CONFIGS, policy=policy, retries=2, on_event=events.append)
    assert result.digest == search(Counting(), CONFIGS, policy=policy).digest
    assert result.failures == {}
    assert {event.work.attempt for event in events if isinstance(event, Loss)} == {3}
    assert result.spent.repeated > 0
    failures.clear()
    with pytest.raises(AllArmsFailed) as failed:
        search(Flaky(), CONFIGS, policy=policy, retries=1)
    assert set(failed.value.causes) == set(range(16))


def test_a_test_loss_that_cannot_be_had_does_not_cost_the_answer() -> None:
    class Untested(Counting):
        def test(self, state: list[int]) -> float:
            raise RuntimeError("no test data")

    with warned(NoTestLoss, cause="RuntimeError: no test data"):
        result = search(Untested(), CONFIGS, policy=SuccessiveHalving(16, 128))
    assert result.arm == 0
    assert result.test_loss is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_in_good_order_and_the_same_line_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    policy, path = SuccessiveHalving(16, 128), tmp_path / "j.jsonl"
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    seen: list[Event] = []

    def interrupt(event: Event) -> None:
        seen.append(event)
        if len(seen) == 12:
            os.kill(os.getpid(), number)

    stopped = search(Counting(), CONFIGS, policy=policy, journal=path, on_event=interrupt)
    assert not stopped.complete
    assert stopped.stopped_by == number
    assert stopped.arm == min(stopped.curves, key=lambda arm: stopped.curves[arm][-1][1])
    assert sum(stopped.state[1:]) == stopped.curves[stopped.arm][-1][0]
    assert stopped.test_loss is None
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    resumed = search(Counting(), CONFIGS, policy=policy, journal=path)
    assert resumed.complete
    assert resumed.digest == search(Counting(), CONFIGS, policy=policy).digest


def test_a_second_ctrl_c_leaves_at_once_and_the_same_line_goes_on(tmp_path: Path) -> None:
    policy, path = SuccessiveHalving(16, 128), tmp_path / "j.jsonl"
    with pytest.raises(KeyboardInterrupt):
        search(Counting(interrupt_after=20), CONFIGS, policy=policy, journal=path)
    resumed = search(Counting(), CONFIGS, policy=policy, journal=path)
    assert resumed.digest == search(Counting(), CONFIGS, policy=policy).digest


def test_it_runs_outside_the_main_thread() -> None:
    results = []
    policy = SuccessiveHalving(16, 128)
    thread = threading.Thread(
        target=lambda: results.append(search(Counting(), CONFIGS, policy=policy))
    )
    thread.start()
    thread.join()
    assert results[0].complete


def test_stopped_before_any_loss_there_is_no_recommendation() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Pull):
            os.kill(os.getpid(), signal.SIGINT)

    configs = Configs([{"loss": math.nan}, {"loss": 0.5}])
    stopped = search(Misbehaving(), configs, policy=UniformAllocation(2, 2), on_event=interrupt)
    assert (stopped.arm, stopped.config, stopped.loss, stopped.state) == (None, None, None, None)
    assert not stopped.complete


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"retries": -1}, "retries"),
        ({"policy": SuccessiveHalving(32, 1024)}, "arms"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_trained(
    arguments: dict[str, Any], named: str
) -> None:
    trainer = Counting()
    with refused(named):
        search(trainer, CONFIGS, **{"policy": SuccessiveHalving(16, 128), **arguments})
    assert trainer.steps == 0


def test_the_digest_is_blind_to_order_workers_and_times() -> None:
    curves = RecordedCurves([[0.5, 0.25], [0.75, 0.125], [1.0, 0.5]])
    rows = [{"row": 0}, {"row": 1}, {"row": 2}]
    policy = SuccessiveHalving(3, 12)
    digests = {
        search(curves, rows, policy=policy, runner=runner).digest
        for runner in (Serial, partial(Serial, group=3), partial(Simulated, workers=2))
    }
    assert len(digests) == 1
    other = search(curves, rows, policy=UniformAllocation(3, 12))
    assert other.digest not in digests


def test_spending_is_folded_from_events() -> None:
    work = Work(trained=4, train_seconds=2.0, loss_seconds=0.5, worker="a")
    ledger = Ledger(
        [
            Pull(0, 4),
            Loss(Pull(0, 4), 0.5, work),
            Pull(1, 4),
            Pull(1, 4),  # started again
            Loss(Pull(1, 4), 0.25, work),
            Pull(1, 6),
            Loss(Pull(1, 6), math.nan, Work(trained=6, worker="a")),  # from zero
            Pull(0, 6),
            Failure(Pull(0, 6), "it raised", work=Work(worker="b")),
            Closed(1, 6, 0.75),
        ]
    )
    spent = ledger.spent
    assert (spent.pulls, spent.repeated, spent.observations) == (12, 8, 3)
    assert (spent.train_seconds, spent.loss_seconds, spent.switches) == (4.0, 1.0, 1)
    assert ledger.causes() == {1: "its loss became nan", 0: "it raised"}


def test_every_error_that_is_meant_has_one_root() -> None:
    assert issubclass(AllArmsFailed, LastarmError)
    assert issubclass(InvalidArgument, ValueError)


def test_what_a_simulated_cluster_cannot_be_is_refused() -> None:
    bad = {
        "failing": 1.5,
        "workers": 0,
        "slowdown": math.inf,
        "seconds_per_look": -1.0,
        "lease": 0.0,
    }
    for name, value in bad.items():
        with refused(name, value):
            Simulated(Arms(Counting(), CONFIGS), **{name: value})  # type: ignore[arg-type]


def test_more_simulated_workers_take_less_virtual_time() -> None:
    clusters: list[Simulated] = []

    def cluster(arms: Arms, workers: int) -> Simulated:
        clusters.append(Simulated(arms, workers=workers, seconds_per_look=1.0))
        return clusters[-1]

    for workers in (1, 2, 4, 16):
        runner = partial(cluster, workers=workers)
        search(Counting(), CONFIGS, policy=UniformAllocation(16, 64), runner=runner)
    assert [simulated.now for simulated in clusters] == [80.0, 40.0, 20.0, 5.0]


def test_workers_are_busy_in_this_stretch_only(tmp_path: Path) -> None:
    path, four = tmp_path / "search.jsonl", partial(Simulated, workers=4)

    def go() -> Result:
        policy = SuccessiveHalving(16, 128)
        return search(
            Counting(), CONFIGS, policy=policy, runner=four, journal=path, checkpoints=False
        )

    whole = go()
    assert whole.utilisation == Utilisation(4, seconds=8 + 8 + 8 + 16, busy_seconds=128)
    assert whole.utilisation == forecast(SuccessiveHalving(16, 128), workers=4)
    assert go().utilisation is None, "it was complete, and nothing was done"
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines) - 1, 5):
        path.write_bytes(b"".join(lines[:kept]))
        again = go()
        assert again.digest == whole.digest
        losses = [event for event in read(path)[kept:] if isinstance(event, Loss)]
        here = sum(loss.work.train_seconds for loss in losses)
        assert (again.utilisation.busy_seconds if again.utilisation else 0.0) == here


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = search(Counting(interrupt_after=20), CONFIGS, policy=SuccessiveHalving(16, 128))
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.complete


def test_an_error_that_cannot_even_be_shown_is_still_only_that_arms() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    class Raising(Counting):
        def loss(self, state: list[int]) -> float:
            if state[0] == 0:
                raise Unspeakable
            return super().loss(state)

    result = search(Raising(), CONFIGS, policy=UniformAllocation(16, 16))
    assert result.failures[0].error == "Unspeakable: its message cannot be read"


def test_a_policy_that_breaks_its_contract_is_named() -> None:
    class Silent(UniformAllocation):
        def ask(self, n: int = 1) -> list[Pull]:
            return []

    with pytest.raises(Stuck, match="Silent"):
        search(Counting(), CONFIGS, policy=Silent(16, 16))
    with refused("group", 0):
        Serial(Arms(Counting(), CONFIGS), group=0)


def test_what_a_journal_remembers_of_configs_and_data(tmp_path: Path) -> None:
    class Fingerprinted(Counting):
        def __init__(self, data: str) -> None:
            super().__init__()
            self.data = data

        def fingerprint(self) -> dict[str, str]:
            return {"name": self.data, "budget": self.data}

    policy, path = UniformAllocation(2, 4), tmp_path / "j.jsonl"

    def go(data: str, extra: Any) -> Any:
        configs = Configs([{"loss": 0.25, "extra": extra}, {"loss": 0.5, "extra": np.arange(3)}])
        return search(Fingerprinted(data), configs, policy=policy, journal=path)

    first = go("mnist", {"b", "a", "c"})
    assert go("mnist", {"c", "b", "a"}).digest == first.digest
    both = [(name, "mnist", "cifar") for name in ("trainer.name", "trainer.budget")]
    with raised(OtherSearch, differences=both):
        go("cifar", {"b", "a", "c"})
    with raised(OtherSearch) as refusal:
        go("mnist", {"b", "a"})
    named = {name for name, *_ in refusal.value.differences}
    assert named == {"space.sha256", "space.configs"}
    for unsure in (object(), lambda: None):
        with refused("config", unsure):
            go("mnist", unsure)


def test_what_is_a_configuration_in_one_string() -> None:
    values: list[Any] = [1, 1.0, True, "1", None, [1], {"1": 1}, {1: 1}, np.arange(3), {1, 2}]
    values += [np.arange(3.0), np.zeros((3, 1)), math.nan, len, Counting, {"a": {"b": 2}}]
    prints = [fingerprint(value) for value in values]
    assert len(set(prints)) == len(prints)
    values = [{"a": 1}, ["map", [['"a"', 1]]], 0.5, (0.5).hex(), ["float", (0.5).hex()]]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(np.array(["a", None])) == fingerprint(np.array(["a", None], dtype=object))
    assert fingerprint(np.float64(0.5)) == fingerprint(0.5)
    assert fingerprint({"a": 1, 2: "b"}) == fingerprint({2: "b", "a": np.int32(1)})


def test_errors_survive_being_sent_to_another_process() -> None:
    disk = OSError(28, "No space left on device")
    for error in (
        CheckpointNotWritten(Path("some/path"), disk),
        JournalNotWritten(Path("some/path"), disk),
        BudgetTooSmall(budget=1, arms=2, least=3, most_arms=1),
        AllArmsFailed({0: "boom"}),
        OtherSearch(Path("some/path"), [("seed", 0, 1)]),
        CheckpointReplaced(Path("some/path"), arm=3),
        InvalidArgument.of("space", {"lr": [0.1]}, "it is a space", "Use another"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
    unsure = InvalidArgument.of("scoring", lambda: 0, "it is sent to workers", "Use another")
    again = pickle.loads(pickle.dumps(unsure))
    assert (str(again), again.argument) == (str(unsure), "scoring")
    assert "lambda" in again.given


def test_system_exit_is_nobodys_but_that_arms() -> None:
    def arms(config: Config, resume: Any = None) -> Any:
        for level in range(1, 10**6):
            yield (lambda: sys.exit(3)) if config["loss"] == 0 else config["loss"], level

    result = search(arms, CONFIGS, policy=SuccessiveHalving(16, 128))
    assert result.failures[0].error == "SystemExit: 3"
    assert result.config == {"loss": 1 / 16}

    class Leaving(Counting):
        def test(self, state: list[int]) -> float:
            sys.exit(4)

    with warned(NoTestLoss, cause="SystemExit: 4"):
        left = search(Leaving(), CONFIGS, policy=SuccessiveHalving(16, 128))
    assert left.arm == 0


def test_attempts_are_counted_across_a_crash(tmp_path: Path) -> None:
    class Failing(Counting):
        def train(self, state: list[int], pulls: int) -> list[int]:
            if state[0] == 0:
                raise ConnectionError("try again")
            return super().train(state, pulls)

    class Stopped(Exception):
        pass

    def stop(event: Event) -> None:
        if isinstance(event, Failure) and event.work.attempt == 2:
            raise Stopped

    found = partial(
        search,
        Failing(),
        CONFIGS,
        policy=UniformAllocation(16, 16),
        retries=2,
        journal=tmp_path / "j.jsonl",
    )
    with pytest.raises(Stopped):
        found(on_event=stop)
    found()
    attempts = [e.work.attempt for e in read(tmp_path / "j.jsonl") if isinstance(e, Failure)]
    assert attempts == [1, 2, 3]


def test_without_standard_error_it_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert search(Counting(), CONFIGS, policy=SuccessiveHalving(16, 128)).complete


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", "3"),
        ("seconds", 0),
        ("seconds", math.nan),
        ("seconds", True),
        ("pull_seconds", "2"),
        ("journal", 5),
        ("checkpoints", 5),
        ("runner", 5),
        ("recommend", "first"),
    ],
)
def test_arguments_that_are_not_valid_are_named(name: str, value: Any) -> None:
    with refused(name, value):
        search(
            RecordedCurves([[0.5]]),
            Configs([{"row": 0}]),
            policy=UniformAllocation(1, 1),
            **{name: value},
        )
