"""A program in any language as a trainer: run once for each pull, it prints its loss."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import IO, Any

from lastarm.errors import InvalidArgument, LastarmError
from lastarm.trainers.losses import observation
from lastarm.trainers.protocol import Config
from lastarm.trainers.unpacking import UnsafeArchive, unpack

RESERVED = {
    "upto": "pulls in all",
    "pulls": "how many more",
    "state": "the arm's own folder",
    "seed": "the arm's seed",
}
KEPT = 65536  # bytes of what a program prints that are looked at


class ProgramFailed(LastarmError, RuntimeError):
    """A program ended badly or printed no loss. That arm has failed."""


class ArmFolder:
    """An arm's own folder, there as long as this object is, and what its program said last.

    It is a path: `Path(folder)` and `open(os.path.join(folder, "weights"))` work.
    """

    def __init__(self, values: Mapping[str, str], pulls: int = 0, said: str = "") -> None:
        self.values, self.pulls, self.said = dict(values), pulls, said
        self.scratch = Path(tempfile.mkdtemp(prefix="lastarm-"))
        self.path = self.scratch / "state"
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"ArmFolder({str(self.path)!r}, pulls={self.pulls})"

    def __getstate__(self) -> object:
        raise TypeError("a folder cannot be pickled; `Program.save` writes what is in it")


class Program:
    """Arms trained by running a program, which goes on where it was and prints its loss.

    `{name}` stands for an arm's setting, `{upto}` for its pulls in all, `{pulls}` for how many
    more they are, `{seed}` for its seed, and `{state}` for a folder of its own, in which the
    program finds what it left there the last time; the folder's path may change. Braces that are
    meant literally are doubled. No shell is involved.

    >>> python = "import sys; print(float(sys.argv[1]) / int(sys.argv[2]))"
    >>> harmonic = Program([sys.executable, "-c", python, "{scale}", "{upto}"], names=["scale"])
    >>> harmonic.loss(harmonic.train(harmonic.start({"scale": 3.0}, seed=0), pulls=4))
    0.75

    The last line of standard output is the loss: a number, or a JSON object with `loss` and other
    metrics. A program that prints none, or does not exit with 0, leaves the folder as it was.
    Nothing that it started runs on when it has ended or we are interrupted. If we are killed
    outright, a worker process takes all of it along; on the serial runner, on Linux, the program
    itself.
    """

    restores = True
    starts_processes = True

    def __init__(
        self, argv: Sequence[str | os.PathLike[str]], names: Collection[str] | None = None
    ) -> None:
        if isinstance(argv, str) or not argv:
            raise InvalidArgument(
                f"argv={argv!r} will not do: give a program and its arguments as a list of "
                'strings, such as ["./train", "--rate", "{rate}"].'
            )
        try:
            self.argv = [os.fspath(argument) for argument in argv]
        except TypeError as error:
            raise InvalidArgument(f"argv={argv!r} will not do: {error}.") from None
        placeholders = [name for argument in self.argv for _, name in _pieces(argument)]
        self._names = [name for name in placeholders if name is not None]
        if names is not None:
            self._check(names)
        first = _pieces(self.argv[0])
        program = "".join(text for text, _ in first)
        if all(name is None for _, name in first) and shutil.which(program) is None:
            raise InvalidArgument(
                f"the program {program!r} cannot be found, or is not executable: give the path of "
                "an executable file, such as './train', or the name of one that is on the PATH."
            )

    def _check(self, names: Collection[str]) -> None:
        known = [*names, *RESERVED]
        if clashing := sorted(set(names) & set(RESERVED)):
            raise InvalidArgument(
                f"a parameter cannot be called {clashing[0]!r}: {{{clashing[0]}}} stands for "
                f"{RESERVED[clashing[0]]}. Give it another name."
            )
        if unknown := [name for name in self._names if name not in known]:
            raise InvalidArgument(
                f"nothing is known of {{{unknown[0]}}}, only of "
                f"{', '.join(f'{{{name}}}' for name in known)}. Write {{{{ and }}}} for braces "
                "that are meant literally."
            )

    def start(self, config: Config, seed: int) -> ArmFolder:
        """An arm with an empty folder."""
        self._check(config)
        values = {name: _written(value) for name, value in config.items()}
        folder = ArmFolder(values | {"seed": str(seed)})
        folder.path.mkdir()
        return folder

    def train(self, state: ArmFolder, pulls: int) -> ArmFolder:
        """Run the program on a copy of the folder."""
        after = ArmFolder(state.values, state.pulls + pulls)
        shutil.copytree(state.path, after.path, symlinks=True)
        now = {"pulls": str(pulls), "upto": str(after.pulls), "state": str(after.path)}
        values = after.values | now
        argv = [
            "".join(text if name is None else text + values[name] for text, name in _pieces(part))
            for part in self.argv
        ]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            code = _run(argv, output, errors)
            after.said, complaints = _last_line(_tail(output)), _tail(errors)
        try:
            if code:
                raise ProgramFailed(_ending(code, _last_line(complaints)))
            observation(_loss(after.said))
        except LastarmError as error:
            error.add_note(f"The command: {shlex.join(argv)}\nIts standard error:\n{complaints}")
            raise
        _make_links_relative(after.path)
        return after

    def loss(self, state: ArmFolder) -> Any:
        """What the program printed."""
        return _loss(state.said)

    def save(self, state: ArmFolder, path: Path) -> None:
        """Write the folder and what is known of the arm, as a tar; the same every time."""
        arm = {"values": state.values, "pulls": state.pulls, "said": state.said}
        text = json.dumps(arm).encode()
        about = tarfile.TarInfo("arm.json")
        about.size = len(text)
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            tar.addfile(about, BytesIO(text))
            tar.add(state.path, "state", filter=_portable)

    def load(self, path: Path) -> ArmFolder:
        """The arm that was saved, in a new folder."""
        folder = ArmFolder({})
        with tarfile.open(path, "r:") as tar:
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


def _make_links_relative(folder: Path) -> None:
    """Links from the folder into itself: it has another name in every pull."""
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
        raise InvalidArgument(
            f"the argument {argument!r} will not do: {error}. Write {{{{ and }}}} for braces that "
            "are meant literally."
        ) from None
    return [(text, name) for text, name, _, _ in pieces]


def _written(value: Any) -> str:
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar
    return repr(float(value)) if isinstance(value, float) else str(value)


@functools.cache
def _leash() -> list[str]:
    """What makes a program die with us, where there is such a thing."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None:
        return []
    usage = subprocess.run([setpriv, "--help"], capture_output=True, check=False)
    return [setpriv, "--pdeathsig", "KILL", "--"] if b"--pdeathsig" in usage.stdout else []


def _run(argv: list[str], output: IO[bytes], errors: IO[bytes]) -> int:
    """The exit code. Nothing that was started runs on, however this ends."""
    # A worker leads a session of its own, and whoever ends it ends all of that: the program stays
    # in it. Elsewhere it gets a session of its own. Ctrl-C at the terminal reaches it in neither.
    posix = os.name == "posix"
    apart = posix and os.getsid(0) != os.getpid()
    process = subprocess.Popen(
        [*_leash(), *argv],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=apart,
        process_group=0 if posix and not apart else None,
    )
    try:
        return process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            if posix:
                os.killpg(process.pid, signal.SIGKILL)
            else:
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
        f"the program's standard output {shown}: its last line is to be the loss, a number or a "
        'JSON object such as {"loss": 0.5, "accuracy": 0.9}'
    )


def _ending(code: int, complaint: str) -> str:
    how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
    with suppress(ValueError):  # no signal, or one without a name
        how = f"was killed by {signal.Signals(-code).name}"
    return f"the program {how}" + (f": {complaint[:500]}" if complaint else "")


def _portable(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What is saved of a file: not its owner, and nothing of a pipe that a program left."""
    if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
