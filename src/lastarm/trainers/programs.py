"""A program in any language as a trainer: it trains an arm further and prints its loss."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import tempfile
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import IO, Any

from lastarm.arguments import did_you_mean
from lastarm.errors import CheckpointLost, InvalidArgument, LastarmError
from lastarm.masking import masked_words
from lastarm.system.offspring import Guard
from lastarm.system.temporary import needing_room, persistently, require_room, shared_scratch
from lastarm.trainers.losses import loss_in
from lastarm.trainers.protocol import Config

RESERVED = {
    "upto": "pulls in all",
    "pulls": "how many more",
    "state": "the arm's own folder",
    "seed": "the arm's seed",
}
KEPT = 65536  # the last bytes of what a program prints, which are read


class ProgramFailed(LastarmError, RuntimeError):
    """A program failed, or did not print a loss. That arm has failed.

    `code` is its exit code, the negative number of the signal that killed it, or 0 if it did not
    print a loss.
    """

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


class UnsafeArchive(LastarmError, ValueError):
    """An archive holds something that is not unpacked. Nothing outside its folder was changed."""


class ArmFolder:
    """An arm's own folder, and the last line that its program printed.

    It is a path: `Path(folder)` and `open(os.path.join(folder, "weights"))` work. The folder is
    removed when this object is.
    """

    def __init__(self, values: Mapping[str, str], pulls: int = 0, said: str = "") -> None:
        self.values, self.pulls, self.said = dict(values), pulls, said
        self._shared = shared_scratch()  # removed with the last that has it
        self.scratch, self._mark = persistently(self._made, self._shared.path)
        self.path = self.scratch / "state"
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)

    def _made(self) -> tuple[Path, Path]:
        scratch = Path(tempfile.mkdtemp(dir=self._shared.path))
        mark = scratch / "whole"
        mark.touch()
        return scratch, mark

    @property
    def is_lost(self) -> bool:
        """Whether it, or all files in it, were removed, as by an arm that clears TMPDIR."""
        return not (self._mark.exists() and self.path.is_dir())

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"ArmFolder({str(self.path)!r}, pulls={self.pulls})"

    def __getstate__(self) -> object:
        raise TypeError("a folder cannot be pickled. Use `Program.save`, which writes its content")


class Program:
    """Arms that are trained by a program, which continues where it ended and prints its loss.

    - `argv`: the program and its arguments. In them, `{name}` stands for a value of the arm's
      config, `{upto}` for its pulls in all, `{pulls}` for how many of them are new, `{seed}` for
      its seed, and `{state}` for its own folder, in which the program finds what it left there;
      the folder's path may change. Write `{{` and `}}` for literal braces. No shell is involved.
      An argument with `{name?}` is left out for an arm whose config has no such value, and so is
      an option of that name before it: `--rate {rate?}`.
    - `names`: the names of the parameters, to check the placeholders at once. Left out, they are
      checked when an arm begins.
    - `restarts`: whether the program trains every level from zero, and leaves nothing to continue
      from. It then gets an empty folder and all pulls each time, and the budget counts them all.

    >>> import sys
    >>> python = "import sys; print(float(sys.argv[1]) / int(sys.argv[2]))"
    >>> harmonic = Program([sys.executable, "-c", python, "{scale}", "{upto}"], names=["scale"])
    >>> harmonic.loss(harmonic.train(harmonic.start({"scale": 3.0}, seed=0), pulls=4))
    0.75

    The last line of standard output is the loss: a number, or a JSON object with `loss` and other
    metrics. If a program prints no loss, or its exit code is not 0, the folder is left as it was.
    When a program ends, or the search is interrupted or killed, all processes that it started in
    its process group end too.
    """

    restores = True
    starts_processes = True

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        names: Collection[str] | None = None,
        *,
        restarts: bool = False,
    ) -> None:
        self.restarts = restarts
        if isinstance(argv, str) or not argv:
            way_out = 'Use a list of strings, such as ["./train", "--rate", "{rate}"]'
            raise InvalidArgument.of("argv", argv, "it is a program and its arguments", way_out)
        try:
            self.argv = [os.fspath(argument) for argument in argv]
        except TypeError as error:
            raise InvalidArgument.of("argv", argv, str(error), "Use a list of strings") from None
        placeholders = [name for argument in self.argv for _, name in _pieces(argument)]
        self._names = [name.removesuffix("?") for name in placeholders if name is not None]
        self._needed = [name for name in placeholders if name is not None and name[-1:] != "?"]
        if names is not None:
            self._refuse_unknown(self._names, names)
        first = _pieces(self.argv[0])
        if any(name and name.endswith("?") for _, name in first):
            rule = "the program itself cannot be left out"
            raise InvalidArgument.of("argv", argv, rule, "Use ? only in its arguments")
        program = "".join(text for text, _ in first)
        if all(name is None for _, name in first) and shutil.which(program) is None:
            rule = f"the program {program!r} cannot be found, or is not executable"
            way_out = "Use the path of an executable file, such as './train', or one on the PATH"
            raise InvalidArgument.of("argv", argv, rule, way_out)

    def check(self, names: Collection[str]) -> None:
        """Refuse the command if a config with these names lacks one that the command needs.

        :param names: the names of the parameters of such a config.
        """
        self._refuse_unknown(self._needed, names, some_have_it=True)

    def _refuse_unknown(
        self, used: Iterable[str], names: Collection[str], *, some_have_it: bool = False
    ) -> None:
        if clashing := sorted(set(names) & set(RESERVED)):
            name = clashing[0]
            rule = f"{{{name}}} stands for {RESERVED[name]}"
            raise InvalidArgument.of(name, names, rule, "Use another name for the parameter")
        known = [*names, *RESERVED]
        if unknown := [name for name in used if name not in known]:
            name = unknown[0]
            left_out = f" {{{name}?}} if only some configs have it," if some_have_it else ""
            use = (
                f"Use {', '.join(known)} in braces,{left_out} or {{{{ and }}}} for literal braces"
            )
            way_out = did_you_mean(name, known) + use
            raise InvalidArgument.of("argv", self.argv, f"{{{name}}} is not known", way_out)

    def start(self, config: Config, seed: int) -> ArmFolder:
        """A new arm, with an empty folder."""
        self.check(config)
        values = {name: _written(value) for name, value in config.items()}
        folder = ArmFolder(values | {"seed": str(seed)})
        with needing_room(folder.scratch):
            folder.path.mkdir(parents=True)
        return folder

    def train(self, state: ArmFolder, pulls: int) -> ArmFolder:
        """Run the program on a copy of the folder."""
        after = ArmFolder(state.values, state.pulls + pulls)
        try:
            return self._trained(state, after, pulls)
        except Exception as error:
            if state.is_lost or after.is_lost:
                raise CheckpointLost(f"its folder was removed: {error}") from error
            raise

    def _trained(self, state: ArmFolder, after: ArmFolder, pulls: int) -> ArmFolder:
        with needing_room(after.scratch):
            shutil.copytree(state.path, after.path, symlinks=True)
        if state.is_lost:  # so the copy may be a part of it
            raise CheckpointLost("its folder was removed")
        now = {"pulls": str(pulls), "upto": str(after.pulls), "state": str(after.path)}
        argv = self._filled(after.values | now)
        with (
            tempfile.TemporaryFile(dir=after.scratch) as output,
            tempfile.TemporaryFile(dir=after.scratch) as errors,
        ):
            code = _run(argv, output, errors)
            after.said, complaints = _last_line(_tail(output)), _tail(errors)
        try:
            if code:
                raise ProgramFailed(_ending(code, _last_line(complaints)), code)
            loss_in(_loss(after.said))
        except LastarmError as error:
            require_room(after.scratch)
            shown = shlex.join(masked_words(argv, hashes=False))
            error.add_note(f"The command: {shown}\nIts standard error:\n{complaints}")
            raise
        _make_links_relative(after.path)
        return after

    def _filled(self, values: Mapping[str, str]) -> list[str]:
        """The command with these values, without what is left out where one is missing."""
        argv: list[str] = []
        for part in self.argv:
            pieces = [(text, name and name.removesuffix("?")) for text, name in _pieces(part)]
            names = [name for _, name in pieces if name]
            if all(name in values for name in names):
                argv.append(
                    "".join(text + values[name] if name else text for text, name in pieces)
                )
            elif part == f"{{{names[0]}?}}" and re.sub("^--?", "", argv[-1]) in (
                names[0],
                names[0].replace("_", "-"),
            ):
                argv.pop()
        return argv

    def loss(self, state: ArmFolder) -> Any:
        """The loss that the program printed."""
        return _loss(state.said)

    def save(self, state: ArmFolder, path: Path) -> None:
        """Write the folder and the arm's values as a tar; the same bytes every time."""
        arm = {"values": state.values, "pulls": state.pulls, "said": state.said}
        if state.is_lost:
            raise CheckpointLost("its folder was removed")
        text = json.dumps(arm).encode()
        about = tarfile.TarInfo("arm.json")
        about.size = len(text)
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            tar.addfile(about, BytesIO(text))
            tar.add(state.path, "state", filter=_portable)

    @staticmethod
    def load(path: Path) -> ArmFolder:
        """The arm that was saved, in a new folder."""
        folder = ArmFolder({})
        with tarfile.open(path, "r:") as tar, needing_room(folder.scratch):
            unpack(tar, folder.scratch)
        about = folder.scratch / "arm.json"
        if about.is_symlink() or folder.path.is_symlink() or not folder.path.is_dir():
            raise UnsafeArchive("it does not hold arm.json, a file, and state, a folder")
        arm = json.loads(about.read_bytes())
        folder.values, folder.pulls, folder.said = arm["values"], arm["pulls"], arm["said"]
        return folder

    def fingerprint(self) -> dict[str, Any]:
        """The command."""
        return {"argv": self.argv}

    def code_files(self) -> list[Path]:
        """The files that the command names, such as `train.py`, also in `--settings=file`."""
        fixed = [_pieces(argument) for argument in self.argv]
        words = ["".join(text for text, _ in one) for one in fixed if not any(n for _, n in one)]
        named = [word for text in words for word in (text, text.partition("=")[2]) if word]
        return [path for path in map(Path, dict.fromkeys(named)) if os.path.isfile(path)]


def _make_links_relative(folder: Path) -> None:
    """Links from the folder into itself: the folder has another name in every pull."""
    for link in folder.rglob("*"):
        if link.is_symlink() and (target := Path(os.readlink(link))).is_relative_to(folder):
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))


def _pieces(argument: str) -> list[tuple[str, str | None]]:
    """Pieces of text, each with the name of the placeholder after it, if there is one.

    >>> _pieces("--rate={rate}"), _pieces("{{}}")
    ([('--rate=', 'rate')], [('{', None), ('}', None)])
    """
    try:
        pieces = list(Formatter().parse(argument))
        if any(form or conversion for _, _, form, conversion in pieces):
            raise ValueError("a placeholder is a name in braces and nothing else")
    except ValueError as error:
        way_out = "Write {{ and }} for literal braces"
        raise InvalidArgument.of("argv", argument, str(error), way_out) from None
    return [(text, name) for text, name, _, _ in pieces]


def _written(value: Any) -> str:
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar
    return repr(float(value)) if isinstance(value, float) else str(value)


def _run(argv: list[str], output: IO[bytes], errors: IO[bytes]) -> int:
    """The exit code. All that was started in its process group ends, however this ends."""
    # Ctrl-C at the terminal does not reach the guard's process group.
    guard = Guard() if os.name == "posix" else None
    process = None
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            process_group=guard.group if guard else None,
        )
        return process.wait()
    finally:
        if guard:
            guard.close()
        if process:
            process.kill()
            process.wait()


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - KEPT))
    return file.read().decode(errors="replace")


def _last_line(text: str) -> str:
    lines = text.replace("\r", "\n").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _loss(line: str) -> float | dict[str, Any]:
    with suppress(ValueError):
        return float(line)
    with suppress(ValueError, RecursionError):
        said = json.loads(line)
        if isinstance(said, dict):
            return said
    shown = f"ended with the line {line[:200]!r}" if line else "is empty"
    raise ProgramFailed(
        f"the program's standard output {shown}: its last line must be the loss, a number or a "
        'JSON object such as {"loss": 0.5, "accuracy": 0.9}',
        code=0,
    )


def _ending(code: int, complaint: str) -> str:
    how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
    with suppress(ValueError):  # not a signal, or one without a name
        how = f"was killed by {signal.Signals(-code).name}"
    return f"the program {how}" + (f": {complaint[:500]}" if complaint else "")


def _portable(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What is saved of a file: not its owner, and nothing of a pipe that a program left."""
    if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack `tar` into `folder`, which is empty and ours alone.

    It does what `extractall(filter="tar")` does, which Python has only since 3.11.4, and is
    stricter:

    - A name leads into the folder: it is not absolute and has no "..".
    - There are plain files, folders, symbolic links, and second names of files of this archive.
      A device, a pipe or anything else is refused.
    - A symbolic link may lead anywhere, such as to the user's own data, but nothing is written
      through one: links are made when all else is there. No name is taken twice.
    - Nobody else may write to a file, whatever its mode was, and no file runs as its owner.
    """
    links: list[tuple[Path, str]] = []
    entries: list[tuple[Path, tarfile.TarInfo]] = []
    for entry in tar:
        path = folder / _inside(entry.name)
        if entry.isdir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if entry.issym():
            links.append((path, entry.linkname))
            continue
        if entry.islnk():
            os.link(folder / _inside(entry.linkname), path)
            continue
        if source := tar.extractfile(entry) if entry.isreg() else None:
            with source, path.open("xb") as file:
                shutil.copyfileobj(source, file)
        elif not entry.isdir():
            raise UnsafeArchive(f"{entry.name!r} is neither a file, a folder nor a link")
        entries.append((path, entry))
    for path, target in links:
        path.symlink_to(target)
    for path, entry in reversed(entries):  # a folder after what is in it
        path.chmod(entry.mode & 0o755)
        os.utime(path, (entry.mtime, entry.mtime))


def _inside(name: str) -> PurePosixPath:
    """The name of an entry, if it leads into the folder.

    >>> _inside("state/weights")
    PurePosixPath('state/weights')
    >>> _inside("state/../../weights")
    Traceback (most recent call last):
    lastarm.trainers.programs.UnsafeArchive: 'state/../../weights' does not lead into the folder
    """
    path = PurePosixPath(name)
    foreign = os.name == "nt" and set(name) & set("\\:")
    if path.is_absolute() or not path.parts or ".." in path.parts or foreign:
        raise UnsafeArchive(f"{name!r} does not lead into the folder")
    return path
