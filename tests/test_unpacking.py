"""Archives of states: unpacked as they were packed, and never outside their folder."""

import os
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from lastarm.trainers.programs import Program, UnsafeArchive, unpack

Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, kind: bytes, target: str = "", mode: int = 0o644) -> Entry:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info, b""


def plain(name: str, text: bytes = b"new", mode: int = 0o644) -> Entry:
    info, _ = entry(name, tarfile.REGTYPE, mode=mode)
    info.size = len(text)
    return info, text


def folder(name: str, mode: int = 0o755) -> Entry:
    return entry(name, tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> Entry:
    return entry(name, tarfile.SYMTYPE, target)


def second_name(name: str, target: str) -> Entry:
    return entry(name, tarfile.LNKTYPE, target)


def packed(path: Path, *entries: Entry) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for info, text in entries:
            tar.addfile(info, BytesIO(text))
    return path


def everything(place: Path) -> dict[str, object]:
    """All that is in a folder: kinds, modes, times and contents."""
    found: dict[str, object] = {}
    for path in [place, *place.rglob("*")]:
        stat = path.lstat()
        if path.is_symlink():
            known: object = os.readlink(path)
        else:
            known = (stat.st_mode, stat.st_mtime_ns, path.is_dir() or path.read_bytes())
        found[str(path.relative_to(place))] = known
    return found


OUTSIDE = "PLACE/outside"  # PLACE stands for the test's own folder
HOSTILE: dict[str, list[Entry]] = {
    "an absolute name": [plain(f"{OUTSIDE}/file")],
    "a new file beside": [plain("../new")],
    "a name that goes up": [plain("../outside/file")],
    "a name that goes up later": [folder("a"), plain("a/b/../../../outside/file")],
    "a folder outside": [folder("../outside/folder")],
    "the folder itself": [folder(".", mode=0o777)],
    "no name": [folder("", mode=0o777)],
    "through a link": [link("a", OUTSIDE), plain("a/file")],
    "through a relative link": [link("a", "../outside"), plain("a/file")],
    "through a link, given last": [plain("a/file"), link("a", OUTSIDE)],
    "a link through a link": [link("a", OUTSIDE), link("a/new", "/")],
    "a link through two links": [link("a", ".."), link("b", "a/outside"), link("b/new", "/")],
    "a folder through a link": [link("a", OUTSIDE), folder("a/new")],
    "over a link": [link("a", f"{OUTSIDE}/file"), plain("a")],
    "a link's mode": [link("a", OUTSIDE), folder("a", mode=0o777)],
    "a second name of a file outside": [second_name("a", "../outside/file")],
    "a second name, absolute": [second_name("a", f"{OUTSIDE}/file")],
    "a second name by a link": [link("a", f"{OUTSIDE}/file"), second_name("b", "a"), plain("b")],
    "a link over itself": [link("a", "a"), link("a", OUTSIDE)],
    "a name taken twice": [plain("a"), plain("a", b"other")],
    "a pipe": [entry("a", tarfile.FIFOTYPE)],
    "a character device": [entry("a", tarfile.CHRTYPE)],
    "a block device": [entry("a", tarfile.BLKTYPE)],
    "a kind that is not known": [entry("a", b"Z", mode=0o6755)],
}


def placed(entries: list[Entry], place: Path) -> list[Entry]:
    for info, _ in entries:
        info.name = info.name.replace("PLACE", str(place))
        info.linkname = info.linkname.replace("PLACE", str(place))
    return entries


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_changes_nothing_outside_its_folder(tmp_path: Path, case: str) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("old")
    inside.mkdir(mode=0o700)
    archive = packed(tmp_path / "archive", *placed(HOSTILE[case], tmp_path))
    before = everything(outside)
    with tarfile.open(archive, "r:") as tar, pytest.raises((UnsafeArchive, OSError)):
        unpack(tar, inside)
    assert everything(outside) == before
    assert set(os.listdir(tmp_path)) == {"inside", "outside", "archive"}
    assert inside.stat().st_mode & 0o777 == 0o700
    for path in inside.rglob("*"):
        assert path.is_symlink() or path.is_dir() or path.is_file()
        assert path.is_symlink() or path.lstat().st_nlink == 1 or path.is_dir()


@pytest.mark.parametrize(
    "entries",
    [
        [folder("state")],
        [plain("arm.json", b"{}"), folder("state")],
        [plain("arm.json", b'{"values": {}, "pulls": 1, "said": "0"}')],
        [plain("arm.json", b'{"values": {}, "pulls": 1, "said": "0"}'), link("state", "/")],
        [link("arm.json", f"{OUTSIDE}/arm.json"), folder("state")],
    ],
)
def test_what_is_no_arm_is_not_loaded(tmp_path: Path, entries: list[Entry]) -> None:
    (tmp_path / "outside").mkdir()
    arm = '{"values": {}, "pulls": 1, "said": "0"}'
    (tmp_path / "outside" / "arm.json").write_text(arm)
    archive = packed(tmp_path / "archive", *placed(entries, tmp_path))
    with pytest.raises((UnsafeArchive, OSError, KeyError)):
        Program([sys.executable]).load(archive)


def test_an_arm_cannot_name_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    said = b'{"values": {}, "pulls": 1, "said": "0", "path": "/", "scratch": "/"}'
    archive = packed(tmp_path / "archive", plain("arm.json", said), folder("state"))
    loaded = Program([sys.executable]).load(archive)
    assert loaded.path == loaded.scratch / "state"
    assert loaded.pulls == 1


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_no_file_runs_as_its_owner_and_nobody_else_may_write(tmp_path: Path) -> None:
    archive = packed(
        tmp_path / "archive",
        folder("open", mode=0o7777),
        plain("open/run", mode=0o6777),
        plain("open/own", mode=0o400),
    )
    inside = tmp_path / "inside"
    inside.mkdir()
    with tarfile.open(archive, "r:") as tar:
        unpack(tar, inside)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in inside.rglob("*")}
    assert modes == {"open": 0o755, "run": 0o755, "own": 0o400}


def in_a_folder(fill: Callable[[Path], None]) -> Program:
    """A program that leaves in its folder what `fill` puts there."""

    class Filling(Program):
        def train(self, state, pulls):  # type: ignore[no-untyped-def]
            after = super().train(state, pulls)
            fill(after.path)
            return after

    return Filling([sys.executable, "-c", "print(0.5)"])


def fill(place: Path) -> None:
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er" / "weights").write_bytes(bytes(range(256)) * 1000)
    (place / "empty").write_bytes(b"")
    (place / "run").write_text("#!/bin/sh\n")
    (place / "run").chmod(0o755)
    (place / "again").hardlink_to(place / "run")
    (place / "data").symlink_to("/usr/share")  # the user's own
    (place / "nowhere").symlink_to("../../not/there")
    (place / "latest").symlink_to("deep/er/weights")
    (place / "d\u00e9j\u00e0 vu").write_text("vu")
    (place / ("long" * 60)).write_text("a name that needs a header of its own")
    (place / "deep" / "er").chmod(0o555)
    os.utime(place / "empty", ns=(10**18 + 1, 10**18 + 123456789))
    os.utime(place / "deep", ns=(10**18 + 1, 10**18 + 500000000))


@pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX's")
def test_what_a_program_leaves_is_there_again_when_it_is_loaded(tmp_path: Path) -> None:
    trainer = in_a_folder(fill)
    state = trainer.train(trainer.start({}, 0), 1)
    trainer.save(state, tmp_path / "saved")
    loaded = trainer.load(tmp_path / "saved")
    before, after = everything(state.path), everything(loaded.path)
    assert before.keys() == after.keys()
    for name, known in before.items():
        if not isinstance(known, tuple):
            assert after[name] == known, "links lead where they led"
            continue
        mode, time, content = known
        kept = after[name]
        assert isinstance(kept, tuple)
        assert kept[::2] == (mode, content), name
        assert abs(kept[1] - time) < 1000, name  # nanoseconds: times are floats in an archive
    assert (loaded.path / "again").samefile(loaded.path / "run")
    for place in (state.path, loaded.path):
        (place / "deep" / "er").chmod(0o755)  # or it could not be removed


@pytest.mark.skipif(not hasattr(tarfile, "tar_filter"), reason="Python has it since 3.11.4")
def test_it_unpacks_as_python_does(tmp_path: Path) -> None:
    place = tmp_path / "filled"
    place.mkdir()
    fill(place)
    with tarfile.open(tmp_path / "archive", "w") as tar:
        tar.add(place, "state")
    (tmp_path / "ours").mkdir()
    (tmp_path / "pythons").mkdir()
    with tarfile.open(tmp_path / "archive", "r:") as tar:
        unpack(tar, tmp_path / "ours")
        tar.extractall(tmp_path / "pythons", filter="tar")
    assert everything(tmp_path / "ours" / "state") == everything(tmp_path / "pythons" / "state")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
def test_a_pipe_that_a_program_left_is_not_saved(tmp_path: Path) -> None:
    trainer = in_a_folder(lambda place: os.mkfifo(place / "pipe"))
    state = trainer.train(trainer.start({}, 0), 1)
    trainer.save(state, tmp_path / "saved")
    assert os.listdir(trainer.load(tmp_path / "saved")) == []
