"""Checkpoints: trained states survive, and whatever befalls them changes no answer."""

import errno
import itertools
import os
import pickle
import shutil
import stat
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from faults.disk import as_state
from lastarm import Checkpoints, Configs, Result, SuccessiveHalving, UniformAllocation, search
from lastarm.checkpoints import StateFolder, folder
from lastarm.checkpoints.index import Index
from lastarm.errors import CheckpointLost, CheckpointNotWritten, CheckpointReplaced
from lastarm.events import Closed, Event, Failure, Loss, Pull, Saved
from lastarm.journal import disk, read
from lastarm.runners import Serial
from lastarm.testing.runners import Drifting, Rooted
from lastarm.trainers import Config
from tests.refusals import refused

LIMITS = Configs([{"limit": k / 10} for k in range(16)])
HALVING = SuccessiveHalving(16, 320)


class Counting(Drifting):
    """Counts its steps, and carries some weight."""

    steps = 0

    def __init__(self, weight: int = 0) -> None:
        self.weight = weight

    def start(self, config: Config, seed: int) -> list[Any]:
        return [*super().start(config, seed), np.zeros(self.weight // 8)]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        self.steps += pulls
        return super().train(state, pulls)


class Stopped(Exception):
    """What a test raises to end a search as a crash would."""


def stop_after(losses: int) -> Any:
    left = [losses]

    def on_event(event: Event) -> None:
        left[0] -= isinstance(event, Loss)
        if left[0] == 0:
            raise Stopped

    return on_event


def crashed(path: Path, losses: int = 24, **arguments: Any) -> None:
    with pytest.raises(Stopped):
        search(
            Counting(),
            LIMITS,
            policy=HALVING,
            journal=path,
            on_event=stop_after(losses),
            **arguments,
        )


def resumed(path: Path, **arguments: Any) -> tuple[Result, Counting]:
    trainer = Counting()
    return search(trainer, LIMITS, policy=HALVING, journal=path, **arguments), trainer


WHOLE = search(Counting(), LIMITS, policy=HALVING)


def states(path: Path) -> Path:
    return path.with_name(path.name + ".states")


def test_after_a_crash_nothing_that_counted_is_trained_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    crashed(path)
    done = sum(e.work.trained for e in read(path) if isinstance(e, Loss | Failure))
    result, trainer = resumed(path)
    assert result.digest == WHOLE.digest
    assert result.spent.repeated == 0
    assert trainer.steps == WHOLE.spent.pulls - done
    assert result.test_loss == WHOLE.test_loss


class Planting(Counting, Rooted):
    """Counts the steps of arms whose copies cannot be trained, and says how large they are."""

    def size(self, state: list[Any]) -> int:
        return 1000


def test_a_copy_that_does_not_continue_is_there_for_the_winner_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j.jsonl"
    with pytest.raises(Stopped):
        search(Planting(), LIMITS, policy=HALVING, journal=path, on_event=stop_after(24))
    before = losses(path)
    assert all(loss.saved and not loss.saved.continues for loss in before)
    assert path.read_bytes().count(b'"continues":false') == len(before) >= 24
    trainer = Planting()
    found = partial(search, trainer, LIMITS, policy=HALVING, journal=path)
    result = found()  # no warning: nothing was lost that could be used
    assert result.digest == WHOLE.digest
    levels = {loss.pull.arm: loss.pull.upto for loss in before}
    later = {loss.pull.arm for loss in losses(path)[len(before) :]}
    assert result.spent.repeated == sum(levels[arm] for arm in later) > 0
    steps = trainer.steps
    again = found()
    assert trainer.steps == steps, "the winner's copy is good to be tested and used"
    assert again.state[1] == result.state[1] == result.loss


def losses(path: Path) -> list[Loss]:
    return [event for event in read(path) if isinstance(event, Loss)]


@pytest.mark.parametrize("journal", [True, False])
def test_a_state_that_does_not_continue_leaves_memory_as_the_furthest_behind(
    tmp_path: Path, journal: bool
) -> None:
    trainer = Planting()
    result = search(
        trainer,
        LIMITS,
        policy=HALVING,
        checkpoints=Checkpoints(tmp_path / "states", memory=8_500),
        journal=tmp_path / "j.jsonl" if journal else None,
    )
    # Of 16 arms, 8 fit. They are the better ones, so that all that go on are there.
    assert result.digest == WHOLE.digest
    assert result.spent.repeated == 0
    assert trainer.steps == result.spent.pulls
    few = Planting()
    kept = Checkpoints(tmp_path / "few", memory=2_500)
    result = search(few, LIMITS, policy=HALVING, checkpoints=kept)
    assert result.digest == WHOLE.digest
    assert few.steps == result.spent.pulls + result.spent.repeated > result.spent.pulls


def test_the_size_that_a_trainer_tells_is_believed(tmp_path: Path) -> None:
    class Heavy(Counting):
        def size(self, state: list[Any]) -> int:
            return 10**9

    files: set[Path] = set()
    kept = Checkpoints(tmp_path, memory=4 * 10**9)
    result = search(
        Heavy(),
        LIMITS,
        policy=HALVING,
        checkpoints=kept,
        on_event=lambda _: files.update(tmp_path.glob("*/*.state")),
    )
    assert result.digest == WHOLE.digest
    assert files


class Weighed:
    """Counts how often it is pickled."""

    times = 0

    def __reduce__(self) -> Any:
        Weighed.times += 1
        return Weighed, ()


@pytest.mark.parametrize(
    ("checkpoints", "pickled"),
    [
        (False, False),
        (True, False),
        (Checkpoints(memory=2**50), False),
        (Checkpoints(memory=1), True),
    ],
    ids=str,
)
def test_no_state_is_pickled_for_its_size_unless_memory_could_be_full(
    checkpoints: Any, pickled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Heavier(Counting):
        def start(self, config: Config, seed: int) -> list[Any]:
            return [*super().start(config, seed), Weighed()]

    monkeypatch.setattr("lastarm.runners.states.most_resident", lambda: 2.0**20)
    monkeypatch.setattr(Weighed, "times", 0)
    result = search(Heavier(), LIMITS, policy=HALVING, checkpoints=checkpoints)
    assert result.digest == WHOLE.digest
    assert (Weighed.times > 0) == pickled


def vanish(file: Path) -> None:
    file.unlink()


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def swap(file: Path) -> None:
    other = next(f for f in file.parent.iterdir() if f != file)
    file.write_bytes(other.read_bytes())


def open_to_others(file: Path) -> None:
    file.chmod(0o666)


def point_elsewhere(file: Path) -> None:
    moved = file.rename(file.with_name("moved"))
    file.symlink_to(moved)


@pytest.mark.parametrize("harm", [vanish, tear, flip, swap, open_to_others, point_elsewhere])
def test_a_checkpoint_that_is_not_as_it_was_is_trained_again_to_the_same_answer(
    tmp_path: Path, harm: Any
) -> None:
    path = tmp_path / "j.jsonl"
    crashed(path)
    for file in sorted(states(path).iterdir()):
        harm(file)
    with pytest.warns(CheckpointReplaced) as warned:
        result, _ = resumed(path)
    for warning in warned:
        assert isinstance(warning.message, CheckpointReplaced)
        assert warning.message.path.name.startswith(f"arm-{warning.message.arm}-at-")
    assert result.digest == WHOLE.digest
    assert result.spent.repeated > 0
    assert result.test_loss == WHOLE.test_loss


class Bomb:
    """A state that does harm when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("exploded"),)


def test_a_state_that_somebody_slipped_in_is_never_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "j.jsonl"
    crashed(path)
    for file in states(path).iterdir():
        file.write_bytes(as_state(Bomb()))
    with pytest.warns(CheckpointReplaced):
        result, _ = resumed(path)
    assert result.digest == WHOLE.digest
    assert not (tmp_path / "exploded").exists()


def test_states_can_be_thrown_away_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    crashed(path)
    shutil.rmtree(states(path))
    with pytest.warns(CheckpointReplaced):
        result, _ = resumed(path)
    assert result.digest == WHOLE.digest


def test_only_we_can_read_them_and_each_arm_has_one(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    result = resumed(path)[0]
    files = list(states(path).iterdir())
    assert {file.name.split("-at-")[0] for file in files} == {
        f"arm-{arm}" for arm in result.curves if arm not in result.failures
    }
    assert len(files) == len(result.curves.keys() - result.failures.keys())
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(states(path).stat().st_mode) == 0o700


def test_what_a_crash_left_half_written_is_swept_away(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    crashed(path)
    (states(path) / "arm-3-at-999.state").write_bytes(b"never counted")
    (states(path) / "arm-3-at-999.123.new").write_bytes(b"half")
    resumed(path)
    assert not list(states(path).glob("*999*"))


def test_within_its_disk_limit_the_furthest_behind_go_first(tmp_path: Path) -> None:
    limit = 6 * 20_000
    largest = 0
    seen: list[set[str]] = []

    def watch(event: Event) -> None:
        nonlocal largest
        if states(path).exists():
            files = list(states(path).glob("*.state"))
            largest = max(largest, sum(file.stat().st_size for file in files))
            seen.append({file.name for file in files})

    path = tmp_path / "j.jsonl"
    trainer = Counting(weight=18_000)
    result = search(
        trainer,
        LIMITS,
        policy=HALVING,
        journal=path,
        runner=partial(Serial, group=1),
        checkpoints=Checkpoints(disk=limit),
        on_event=watch,
    )
    assert result.digest == search(Counting(weight=18_000), LIMITS, policy=HALVING).digest
    assert largest <= limit + 20_000  # the newest counts only when its loss does
    assert trainer.steps == result.spent.pulls, "those in memory are not trained again"
    assert any(f"arm-{result.arm}-at-" in name for name in seen[-1])
    assert not any("-at-5." in name for name in seen[-1]), "those dropped first went first"


@pytest.mark.parametrize("memory", [0, 50_000])
def test_states_that_do_not_fit_into_memory_go_to_the_folder(tmp_path: Path, memory: int) -> None:
    files: set[Path] = set()
    trainer = Counting(weight=18_000)
    result = search(
        trainer,
        LIMITS,
        policy=HALVING,
        checkpoints=Checkpoints(tmp_path, memory=memory),
        on_event=lambda _: files.update(tmp_path.glob("*/*.state")),
    )
    assert result.digest == WHOLE.digest
    assert trainer.steps == result.spent.pulls
    assert len(files) == 30 - len(result.failures) if memory == 0 else 0 < len(files) < 28
    assert len(result.state[2]) == 18_000 // 8
    assert not list(tmp_path.iterdir()), "nobody could use them without a journal"


def test_what_memory_has_no_room_for_stays_within_the_disk_limit(tmp_path: Path) -> None:
    sizes: list[int] = []

    def watch(_: Event) -> None:
        sizes.append(sum(file.stat().st_size for file in tmp_path.glob("*/*.state")))

    kept = Checkpoints(tmp_path, memory=0, disk=100_000)
    trainer = Counting(weight=18_000)
    result = search(trainer, LIMITS, policy=HALVING, checkpoints=kept, on_event=watch)
    assert result.digest == WHOLE.digest
    assert 0 < max(sizes) <= 100_000
    assert trainer.steps == result.spent.pulls + result.spent.repeated


def test_searches_with_journals_of_one_name_can_share_a_folder(tmp_path: Path) -> None:
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
    crashed(tmp_path / "a" / "j", checkpoints=tmp_path / "states")
    resumed(tmp_path / "b" / "j", checkpoints=tmp_path / "states")
    result, _ = resumed(tmp_path / "a" / "j", checkpoints=tmp_path / "states")
    assert result.spent.repeated == 0


def test_a_trainer_that_changes_the_folder_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wandering(Counting):
        def train(self, state: list[Any], pulls: int) -> list[Any]:
            os.chdir("/")
            return super().train(state, pulls)

    monkeypatch.chdir(tmp_path)
    found = partial(search, Wandering(), LIMITS, policy=HALVING, checkpoints="states")
    with pytest.raises(Stopped):
        found(journal=tmp_path / "j", on_event=stop_after(20))
    monkeypatch.chdir(tmp_path)
    assert found(journal=tmp_path / "j").spent.repeated == 0


def test_without_checkpoints_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    result, _ = resumed(path, checkpoints=False)
    assert result.state is not None
    assert [file.name for file in tmp_path.iterdir()] == ["j.jsonl"]


def test_a_full_disk_stops_the_search_with_its_path_and_it_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    saves = iter(range(10**6))
    save = StateFolder.save

    def full(self: StateFolder, pull: Pull, state: Any) -> Saved | None:
        if next(saves) >= 20:
            raise CheckpointNotWritten(self.file(pull), OSError(errno.ENOSPC, "No space left"))
        return save(self, pull, state)

    with monkeypatch.context() as patch:
        patch.setattr(StateFolder, "save", full)
        with pytest.raises(CheckpointNotWritten) as stopped:
            resumed(path)
    assert stopped.value.path.name == "arm-7-at-15.state"
    result, _ = resumed(path)
    assert result.digest == WHOLE.digest


@pytest.mark.parametrize("runner", ["serial", "processes", "batched"])
def test_only_the_winners_state_is_synced_and_before_the_search_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    synced: list[str] = []
    by_then: dict[type, list[str]] = {}
    sync = disk.sync_file

    def noted(path: Path) -> None:
        synced.append(path.name)
        sync(path)

    monkeypatch.setattr(folder, "sync_file", noted)
    path = tmp_path / "j.jsonl"
    result, _ = resumed(
        path,
        runner=runner,
        workers=2 if runner == "processes" else None,
        on_event=lambda event: by_then.update({type(event): list(synced)}),
    )
    assert result.digest == WHOLE.digest
    assert by_then[Loss] == []
    assert by_then[Closed] == synced == [f"arm-{result.arm}-at-{result.level}.state"]
    resumed(path)
    assert len(synced) == 1, "a search that is closed has synced it"


@pytest.mark.parametrize("workers", [None, 2])
def test_with_sync_each_state_is_on_the_disk_before_its_loss_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int | None
) -> None:
    synced: set[str] = set()
    sync = disk.sync_file

    def noted(path: Path) -> None:
        sync(path)
        synced.add(path.name)

    def look(event: Event) -> None:
        if isinstance(event, Loss):
            assert f"arm-{event.pull.arm}-at-{event.pull.upto}.state" in synced

    monkeypatch.setattr(folder, "sync_file", noted)
    kept = Checkpoints(sync=True)
    path = tmp_path / "j.jsonl"
    assert resumed(path, checkpoints=kept, workers=workers, on_event=look)[0].complete


def test_the_batched_runner_syncs_the_states_of_a_group_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: Counter[str] = Counter()

    def counted(name: str, sync: Any) -> Any:
        def count(path: Path) -> None:
            synced[name] += 1
            sync(path)

        return count

    for name in ("sync_file", "sync_folder"):
        monkeypatch.setattr(folder, name, counted(name, getattr(folder, name)))
    arms, path = Configs([{"limit": k / 100} for k in range(64)]), tmp_path / "j.jsonl"
    found = partial(search, Counting(), arms, policy=UniformAllocation(64, 64))
    result = found(runner="batched", journal=path, checkpoints=Checkpoints(sync=True))
    assert result.digest == found().digest
    assert synced == {"sync_file": 64, "sync_folder": 2}, "the folder, and once the one it is in"
    assert len(list(states(path).iterdir())) == 64


@pytest.mark.parametrize("seed", range(5))
def test_the_states_that_are_furthest_behind_leave_the_disk_first(
    tmp_path: Path, seed: int
) -> None:
    index = Index(StateFolder(tmp_path, Counting(), durable=False), disk=5)
    random = np.random.default_rng(seed)
    reached: dict[int, int] = {}
    kept: dict[int, tuple[int, float]] = {}  # by arm, as the rule says it
    for _ in range(60):
        arm, value = int(random.integers(9)), float(random.choice([0.0, 0.5, 1.0, np.nan]))
        level = reached[arm] = reached.get(arm, 0) + int(random.integers(1, 4))
        index.add(Loss(Pull(arm, level), value, saved=Saved("", 1)))
        kept[arm] = level, np.inf if np.isnan(value) else value
        if len(kept) > 5:
            del kept[max(kept, key=lambda arm: (-kept[arm][0], kept[arm][1], arm))]
        assert {arm: found[0] for arm in range(9) if (found := index.latest(arm))} == {
            arm: level for arm, (level, _) in kept.items()
        }


def test_making_room_on_the_disk_takes_no_longer_with_many_states(tmp_path: Path) -> None:
    def calls(arms: int) -> int:
        made = itertools.count()
        index = Index(StateFolder(tmp_path, Counting(), durable=False), disk=arms // 2)
        sys.setprofile(lambda *_: next(made) and None)
        try:
            for arm in range(arms):
                index.add(Loss(Pull(arm, 1), 0.5, saved=Saved("", 1)))
        finally:
            sys.setprofile(None)
        return next(made)

    assert calls(800) < 6 * calls(200)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointNotWritten) as stopped:
        resumed(tmp_path / "j.jsonl", checkpoints=tmp_path / "file" / "states")
    assert (tmp_path / "file" / "states") in stopped.value.path.parents
    with refused("memory", -1):
        Checkpoints(memory=-1)


class Overfitting:
    """Arms whose losses fall until their turning point and rise after it."""

    def start(self, config: Config, seed: int) -> list[Any]:
        return [config["turn"], 0]

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        state[1] += pulls
        return state

    def loss(self, state: list[Any]) -> float:
        turn, level = state
        return float(1 + abs(level - turn) / 100 + turn / 1000)

    def test(self, state: list[Any]) -> float:
        return self.loss(state) + 10


@pytest.mark.parametrize("journal", [None, "j.jsonl"])
@pytest.mark.parametrize("workers", [None, 2])
def test_the_best_state_that_was_observed_can_be_recommended(
    tmp_path: Path, journal: str | None, workers: int | None
) -> None:
    turns = [{"turn": 8 + 4 * k} for k in range(8)]
    found = partial(
        search,
        Overfitting(),
        Configs(turns),
        policy=SuccessiveHalving(8, 480),
        journal=journal and tmp_path / journal,
        workers=workers,
    )
    best = found(recommend="best")
    points = [(loss, arm, upto) for arm, curve in best.curves.items() for upto, loss in curve]
    loss, arm, upto = min(points)
    assert (best.loss, best.arm) == (loss, arm)
    assert best.state == [turns[arm]["turn"], upto], "as it was then"
    assert best.test_loss == loss + 10
    assert upto < max(level for level, _ in best.curves[arm])
    assert best.spent.repeated == 0
    again = found(recommend="best")
    assert (again.loss, again.arm, again.state) == (best.loss, best.arm, best.state)


def test_a_trainer_may_save_its_states_its_own_way(tmp_path: Path) -> None:
    class Own(Counting):
        def save(self, state: list[Any], path: Path) -> None:
            path.write_bytes(b"own" + pickle.dumps(state))

        def load(self, path: Path) -> list[Any]:
            content = path.read_bytes()
            assert content[:3] == b"own"
            state: list[Any] = pickle.loads(content[3:])
            return state

    path = tmp_path / "j.jsonl"
    found = partial(search, policy=HALVING, journal=path)
    with pytest.raises(Stopped):
        found(Own(), LIMITS, on_event=stop_after(20))
    result = found(Own(), LIMITS)
    assert result.digest == WHOLE.digest
    assert result.spent.repeated == 0


def test_a_state_that_cannot_be_read_is_its_arms_failure() -> None:
    class Unreadable(Counting):
        def save(self, state: list[Any], path: Path) -> None:
            if state[1] < -0.1:
                raise PermissionError(errno.EACCES, "cannot look into it")
            path.write_bytes(pickle.dumps(state))

        def load(self, path: Path) -> Any:
            return pickle.loads(path.read_bytes())

    result = search(Unreadable(), LIMITS, policy=HALVING, recommend="best")
    errors = {failure.error for failure in result.failures.values()}
    assert errors == {"RuntimeError: drifted off", "StateNotRead: cannot look into it"}


def test_workers_that_save_first_at_the_same_time_make_one_folder(tmp_path: Path) -> None:
    folders = [
        StateFolder(tmp_path / f"{k}" / "states", Counting(), durable=True) for k in range(40)
    ]
    with ThreadPoolExecutor(8) as pool:
        for folder in folders:
            saves = pool.map(lambda arm, folder=folder: folder.save(Pull(arm, 1), arm), range(8))
            assert all(saves)


def test_what_a_trainer_left_half_saved_is_cleared_away(tmp_path: Path) -> None:
    class Failing(Counting):
        def save(self, state: Any, path: Path) -> None:
            path.write_bytes(b"half")
            raise RuntimeError("no more ink")

    folder = StateFolder(tmp_path, Failing(), durable=True)
    with pytest.raises(RuntimeError, match="ink"):
        folder.save(Pull(0, 1), [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("renamed", ["class", "module"])
def test_a_state_whose_class_has_another_name_by_now_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: str
) -> None:
    module = ModuleType("of_an_older_version")
    exec("class State: pass", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    folder = StateFolder(tmp_path, Counting(), durable=True)
    saved = folder.save(Pull(0, 1), module.State())
    assert saved
    assert isinstance(folder.load(Pull(0, 1), saved), module.State)
    if renamed == "class":
        del module.State
    else:
        monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(CheckpointLost):
        folder.load(Pull(0, 1), saved)


def test_a_file_that_is_none_is_lost(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path, Counting(), durable=False)
    pull = Pull(0, 1)
    folder.file(pull).mkdir()
    with pytest.raises(CheckpointLost):
        folder.load(pull, Saved("", 0))


@pytest.mark.parametrize("durable", [False, True])
def test_arrays_come_back_as_they_were(tmp_path: Path, durable: bool) -> None:
    weights = np.arange(6.0).reshape(2, 3)
    fixed = np.arange(3)
    fixed.flags.writeable = False
    kept = {
        "weights": weights,
        "the same": weights,
        "columns": np.asfortranarray(weights),
        "every other": np.arange(10)[::2],
        "none": np.zeros((0, 4)),
        "objects": np.array([{"x": 1}, None], dtype=object),
        "fixed": fixed,
        "bytes": bytearray(b"abc"),
    }
    folder = StateFolder(tmp_path, object(), durable=durable)
    saved = folder.save(Pull(0, 1), kept)
    assert saved
    found = folder.load(Pull(0, 1), saved)
    for name, value in kept.items():
        np.testing.assert_array_equal(found[name], value)
        assert type(found[name]) is type(value)
    assert found["the same"] is found["weights"]
    assert found["columns"].flags.f_contiguous
    assert not found["fixed"].flags.writeable
    found["weights"] += 1  # training goes on in place
    with folder.file(Pull(0, 1)).open("ab") as file:
        file.write(b"!")
    with pytest.raises(CheckpointLost):
        folder.load(Pull(0, 1), saved)
