"""Temporary files: none outlives its process for long, and a folder that is full is named."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faults.full_disks import longest_file, mounted
from faults.processes import forked, outcome
from lastarm import Configs, SuccessiveHalving, UniformAllocation, search
from lastarm.cli import main
from lastarm.errors import TemporaryNotWritten
from lastarm.system.temporary import OWNER, Scratch, needing_room
from lastarm.testing.runners import Drifting
from lastarm.trainers.programs import Program

LIMITS = Configs([{"limit": k / 10} for k in range(8)])
HALVING = SuccessiveHalving(8, 80)


@contextmanager
def killed_in(place: Path) -> Iterator[Path]:
    """The folder of a process that lives within, and is killed afterwards."""
    heard, says = os.pipe()

    def live() -> None:
        with Scratch(place) as scratch:
            os.write(says, str(scratch.path).encode())
            signal.pause()

    child = forked(live)
    try:
        yield Path(os.read(heard, 1000).decode())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(heard)
        os.close(says)


def test_a_folder_is_removed_by_the_next_process_if_its_own_was_killed(tmp_path: Path) -> None:
    with killed_in(tmp_path) as left:
        (left / "deep").mkdir()
        (left / "deep" / "data").write_text("data")
        (left / "file").write_text("data")
        Scratch(tmp_path).close()
        assert sorted(path.name for path in left.iterdir()) == ["deep", "file", OWNER]
    Scratch(tmp_path).close()
    assert not list(tmp_path.iterdir())


def test_any_search_removes_what_a_killed_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with killed_in(tmp_path / "tmp") as left:
        search(Drifting(), LIMITS, policy=HALVING, journal=tmp_path / "first.jsonl")
        assert left.exists()
    search(Drifting(), LIMITS, policy=HALVING, journal=tmp_path / "second.jsonl")
    assert not left.exists()


def test_nothing_else_is_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    place = tmp_path / "place"
    place.mkdir()
    with killed_in(place) as left, killed_in(place) as open_to_others, killed_in(place) as moved:
        (left / "link").symlink_to(outside)
        (left / "file link").symlink_to(outside / "mine")
    open_to_others.chmod(0o777)
    moved.rename(tmp_path / "moved")
    (place / moved.name).symlink_to(tmp_path / "moved")
    (place / "lastarm-without-an-owner").mkdir()
    (place / "lastarm-a-file").write_text("")
    linked = place / "lastarm-whose-owner-is-a-link"
    linked.mkdir(mode=0o700)
    (linked / OWNER).symlink_to(outside / "mine")
    before = set(place.iterdir()) - {left}
    Scratch(place).close()
    assert set(place.iterdir()) == before
    assert (outside / "mine").read_text() == "mine"
    assert (tmp_path / "moved" / OWNER).exists()


def test_the_folder_of_another_user_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    with killed_in(tmp_path) as left:
        pass
    os.chown(left, 12345, 12345)
    Scratch(tmp_path).close()
    assert left.exists()


def test_a_folder_is_this_users_alone_and_outlives_a_forked_child(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        assert stat.S_IMODE(scratch.path.stat().st_mode) == 0o700
        os.waitpid(forked(scratch.close), 0)
        assert scratch.path.exists()
    assert not scratch.path.exists()


def test_what_a_disk_refuses_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(TemporaryNotWritten) as full, needing_room(tmp_path), longest_file(10):
        (tmp_path / "large").write_bytes(bytes(1000))
    assert full.value.path == tmp_path
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(TemporaryNotWritten) as refused:
        Scratch(file)
    assert refused.value.path == file


def test_a_program_that_fills_tmpdir_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    monkeypatch.setattr("tempfile.tempdir", str(small))
    fill = Program(["sh", "-c", "cat /dev/zero > {state}/all; echo {limit} >&2; exit 1"])
    with mounted(small) as there_is:
        if not there_is:
            pytest.skip("only root can mount a small disk")
        with pytest.raises(TemporaryNotWritten) as full:
            search(fill, LIMITS, policy=HALVING)
        assert full.value.path.is_relative_to(small)
        assert not list(small.iterdir())


class Large(Drifting):
    """Does not fit."""

    def __init__(self) -> None:
        self.data = os.urandom(100_000)


def test_a_trainer_that_does_not_fit_into_tmpdir_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(TemporaryNotWritten) as full, longest_file(10_000):
        search(Large(), LIMITS, policy=HALVING, workers=2)
    assert full.value.path == tmp_path
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_program_that_does_not_fit_is_no_failure_of_its_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = Program(["/bin/sh", "-c", 'head -c 5000 /dev/zero > "$1/f"; echo 1', "", "{state}"])
    state = program.train(program.start({}, 0), 1)
    with pytest.raises(TemporaryNotWritten), longest_file(1000):
        program.train(state, 1)
    del state


def test_the_command_ends_with_code_2_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large.py").write_text(
        "from tests.test_temporary import Large\nTRAINER = Large()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = "tune large:TRAINER --arms 4 --budget 16 --param limit=uniform:0:1 --workers 2"
    with pytest.raises(SystemExit) as ended, longest_file(10_000):
        main(words.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"lastarm: temporary files cannot be written to {tmp_path}")
    assert said.count("\n") == 1


def test_programs_that_clear_tmpdir_lose_no_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Without its folder it would count from 0.
    counts = 'n=$(cat "$1/n" 2>/dev/null); n=$((n + $2)); echo $n > "$1/n"; '
    clears = f'rm -rf "{tmp_path}"/*; '
    for runner in ("serial", "processes"):
        for then in ("", clears):
            argv = [f"{counts}{then}echo $3.$n", "", "{state}", "{pulls}", "{x}"]
            result = search(
                Program(["/bin/sh", "-c", *argv]),
                Configs([{"x": x} for x in range(4)]),
                policy=SuccessiveHalving(4, 16),
                runner=runner,
                workers=1,
            )
            assert result.curves[0] == [(2, 0.2), (6, 0.6)]
            assert not result.failures
            assert (result.spent.repeated > 0) == bool(then)


def test_an_arm_whose_program_cannot_keep_its_folder_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = f'if [ $2 = 0 ]; then rm -rf "{tmp_path}"/*; fi; echo 1 > "$1/n" || exit 1; echo $2'
    program = Program(["/bin/sh", "-c", script, "", "{state}", "{x}"])
    configs = Configs([{"x": x} for x in range(2)])
    result = search(program, configs, policy=UniformAllocation(2, 2), runner="serial")
    assert list(result.failures) == [0]
    assert "its folder was removed" in result.failures[0].error
    assert result.arm == 1


def test_arms_that_clear_tmpdir_and_end_their_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class Clearing(Drifting):
        def train(self, state: Any, pulls: int) -> Any:
            subprocess.run(f"rm -rf '{tmp_path}'/*", shell=True, check=True)
            if not (ended := tmp_path.parent / "ended").exists():
                ended.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().train(state, pulls)

    (tmp_path.parent / "ended").unlink(missing_ok=True)
    result = search(Clearing(), LIMITS, policy=HALVING, runner="processes", workers=1)
    assert result.digest == search(Drifting(), LIMITS, policy=HALVING).digest
    assert not list(tmp_path.iterdir())


def test_the_last_of_what_shares_a_folder_removes_it(tmp_path: Path) -> None:
    def act() -> str:
        os.environ["TMPDIR"] = str(tmp_path)
        script = (
            "from lastarm.trainers.programs import Program; import os\n"
            "program = Program(['true'])\n"
            "first, second = program.start({}, 0), program.start({}, 1)\n"
            "del first; print(len(os.listdir(os.environ['TMPDIR'])), end=' ')\n"
            "del second; print(len(os.listdir(os.environ['TMPDIR'])), end='')\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        return (ran.stdout + ran.stderr).decode()

    assert outcome(act) == "1 0"


class Disturbed:
    """Its first pull fails as if another arm had cleared TMPDIR, and a third one used it since."""

    def __init__(self, once: Path) -> None:
        self._once = once

    def start(self, config: Any, seed: int) -> float:
        return float(config["loss"])

    def train(self, state: float, pulls: int) -> float:
        if not self._once.exists():
            self._once.touch()
            shutil.rmtree(tempfile.gettempdir())
            os.makedirs(tempfile.gettempdir())
            raise FileNotFoundError("my file")
        return state

    def loss(self, state: float) -> float:
        return state


def test_no_arm_is_blamed_for_files_that_another_has_removed(tmp_path: Path) -> None:
    configs = Configs([{"loss": 0.5}, {"loss": 0.25}])
    result = search(
        Disturbed(tmp_path / "once"),
        configs,
        policy=SuccessiveHalving(2, 2),
        workers=1,
        runner="processes",
    )
    assert (result.arm, result.failures) == (1, {})
