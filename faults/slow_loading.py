"""F26: a trainer that takes long to load, programs with children, and a TMPDIR cleared or full.

When a search is killed, even with its workers or while these are frozen, all that it started ends
within seconds, whatever keeps a worker busy. The training data is never in a file with a name. A
killed search leaves only its folder in TMPDIR, and the next one removes it. An arm that clears
TMPDIR changes no digest. If TMPDIR is full, there is one typed error that names it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EFBIG, ENOSPC
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from faults.campaign import COMMAND, SEARCHING, Campaign, Figures, replayable
from faults.disk import in_memory
from faults.full_disks import ballast, longest_file, mounted
from faults.processes import (
    SECONDS_TO_HANG,
    commanded,
    forked,
    orphans,
    outcome,
    settle_in,
    tune,
)
from lastarm import Configs, SuccessiveHalving, UniformAllocation, search
from lastarm.errors import CheckpointReplaced, TemporaryNotWritten
from lastarm.result import Result
from lastarm.testing.runners import Drifting
from lastarm.trainers import RecordedCurves
from lastarm.trainers.programs import Program

LOADS = 30  # seconds
DATA = b"the training data" * 4096
BAD_INPUT = 2


def _with_a_child() -> None:
    if os.fork() == 0:
        time.sleep(10 * LOADS)
        os._exit(0)
    time.sleep(LOADS)


LOADING: tuple[Callable[[], object], ...] = (
    _with_a_child,
    lambda: ctypes.PyDLL(None).sleep(LOADS),  # which lets no other thread run
    partial(time.sleep, LOADS),
)


class SlowToLoad(Drifting):
    """Takes long to load, in one of these ways, and first says so in a folder."""

    def __init__(self, folder: Path, way: int) -> None:
        self._folder, self._way, self._data = folder, way, DATA

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In the worker."""
        vars(self).update(state)
        (self._folder / str(os.getpid())).touch()
        LOADING[self._way]()


def loading(begun: Path, number: int) -> None:
    """Search while the workers load."""
    search(SlowToLoad(begun, number % len(LOADING)), LIMITS, policy=HALVING, workers=2)


# Starts others, and waits for them.
PROGRAM = 'sleep 300 & (sleep 300; echo) & echo > "$1/$PPID"; wait'


def program(begun: Path, number: int) -> None:
    """Search while programs run, in worker processes or in the process that searches."""
    trainer = Program(["/bin/sh", "-c", PROGRAM, "sh", f"{begun}"])
    policy = UniformAllocation(2, 2)
    if number % 3:
        search(trainer, {"x": [1, 2]}, policy=policy, workers=2)
    else:
        search(trainer, {"x": [1, 2]}, policy=policy, runner="serial")


def kill_while(act: Callable[[Path, int], None], number: int, folder: Path) -> float:
    """Kill a search, in one of several ways, when its workers have begun; how long these lived."""
    random, temporary = Random(number), folder / "tmp"
    begun, said = folder / f"begun-{number}", folder / "said"
    begun.mkdir()
    mark = f"{act.__name__} {number} of {os.getpid()}"

    def live() -> None:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        settle_in(temporary, mark)
        act(begun, number // len(KINDS))

    child = forked(live)
    wanted = 1 if act is program and number // len(KINDS) % 3 == 0 else 2
    until = time.monotonic() + SECONDS_TO_HANG
    while len(list(begun.iterdir())) < wanted:
        assert time.monotonic() < until, f"workers did not begin, and it said {said.read_text()}"
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.2))
    workers = {int(file.name) for file in begun.iterdir()} - {child}
    way = random.choice(("alone", "all at once", "workers frozen", "after Ctrl-C"))
    if way == "workers frozen":
        _signal(workers, signal.SIGSTOP)
    if way == "after Ctrl-C":
        _signal({child}, signal.SIGINT)
        time.sleep(random.uniform(0, 0.05))
    before = time.monotonic()
    _signal([child, *(workers if way == "all at once" else ())], signal.SIGKILL)
    os.waitpid(child, 0)
    left = orphans(mark)
    seconds = time.monotonic() - before
    _signal(left, signal.SIGKILL)
    assert not left, f"killed {way}, it left {left} behind"
    assert not said.read_bytes(), f"killed {way}, it said {said.read_text()}"
    for file in temporary.rglob("*"):
        assert not file.is_file() or DATA[:17] not in file.read_bytes(), f"{file} has the data"
    return seconds


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def clean_up(folder: Path) -> None:
    """Another search begins where others were killed; then nothing of theirs is left."""

    def live() -> None:
        settle_in(folder / "tmp", "clean")
        search(Drifting(), LIMITS, policy=UniformAllocation(16, 16), workers=2)

    _, status = os.waitpid(forked(live), 0)
    assert status == 0, "a search where others were killed does not work"
    left = [path.name for path in (folder / "tmp").iterdir()]
    assert not left, f"{left} is left in TMPDIR"


class Clearing(Drifting):
    """Uses a temporary file in each pull. Some arms clear TMPDIR, and one ends its worker once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, config: Any, seed: int) -> Any:
        """A new arm."""
        return config, super().start(config, seed)

    def train(self, state: Any, pulls: int) -> Any:
        """Train, and do as the config says."""
        config, inner = state
        with tempfile.TemporaryFile() as file:
            file.write(b"something")
        if config.get("clears"):
            for place in (tempfile.gettempdir(), os.environ["TMPDIR"]):
                _clear(Path(place))
        once = self._folder / "ended"
        if config.get("ends") and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return config, super().train(inner, pulls)

    def loss(self, state: Any) -> Any:
        """As ever."""
        return super().loss(state[1])

    def test(self, state: Any) -> Any:
        """As ever."""
        return super().test(state[1])


def _clear(folder: Path) -> None:
    for path in folder.iterdir() if folder.exists() else ():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


LIMITS = Configs(
    [{"limit": arm / 16, "clears": arm % 4 == 2, "ends": arm == 1} for arm in range(16)]
)
HALVING = SuccessiveHalving(16, 160)
# It counts its steps in a file, so its loss is right only if its folder is what it left there.
COUNTS = """
n=$(cat "$1/n" 2>/dev/null || echo 0); n=$((n + $2)); echo $n > "$1/n" || exit 1
if [ $3 = 2 ] && [ "$4" ]; then rm -rf "$4"/*; fi
echo "$3.$n"
"""


def cleared(number: int, folder: Path, *, by_program: bool) -> None:
    """A search in which arms clear TMPDIR comes to the digest of one in which none does."""

    def played(folder: Path, **how: Any) -> Result:
        if not by_program:
            trainer = Clearing(folder) if how else Drifting()
            return search(trainer, LIMITS, policy=HALVING, seed=number, **how)
        argv = ["{state}", "{pulls}", "{x}", os.environ["TMPDIR"] if how else ""]
        counts = Program(["/bin/sh", "-c", COUNTS, "sh", *argv], names=["x"])
        policy = SuccessiveHalving(4, 16)
        how = how or {"runner": "serial"}
        return search(counts, Configs([{"x": x} for x in range(4)]), policy=policy, **how)

    def act() -> str:
        warnings.simplefilter("ignore", CheckpointReplaced)  # as it should be
        settle_in(folder / "cleared", "cleared")
        own = folder / f"clearing-{number}"
        own.mkdir()
        expected = played(own)
        journal = own / "search.jsonl" if number // len(KINDS) % 2 else None
        result = played(own, workers=2, journal=journal)
        out = {arm: f.error for arm, f in result.failures.items() if arm not in expected.failures}
        if out:
            return f"arms are out: {out}"
        return "" if result.digest == expected.digest else "another digest"

    assert not (said := outcome(act)), said
    left = [path.name for path in (folder / "cleared").iterdir()]
    assert not left, f"{left} is left in TMPDIR"


LARGE = RecordedCurves([[float(arm)] * 2000 for arm in range(16)])


def full(number: int, folder: Path) -> None:
    """TMPDIR has room for a few bytes only: an error names it, by `search` or by the command."""
    small = folder / f"small-{number}"
    with mounted(small) as there_is:
        # With no room at all Python uses another folder, by itself.
        filled, why = (ballast(small, 1), ENOSPC) if there_is else (longest_file(1000), EFBIG)

        def begin() -> None:
            settle_in(small, "full")

        def act() -> str:
            begin()
            rows = Configs([{"row": row} for row in range(16)])
            try:
                search(LARGE, rows, policy=UniformAllocation(16, 16), workers=2)
            except TemporaryNotWritten as error:
                return str(error)
            return "no error"

        with filled:
            if number // len(KINDS) % 2:
                said = outcome(act)
            else:
                words = [*tune(folder / "none")[:-2], "--workers", "2"]
                words[1] = f"{__name__}:LARGE"
                code, said = commanded(words, begin)
                assert code == BAD_INPUT, f"exit code {code}: {said}"
                assert "Traceback" not in said, said
            assert str(small) in said, f"{said!r} does not name {small}"
            assert os.strerror(why) in said, f"{said!r} does not say {os.strerror(why)}"
            left = [path.name for path in small.iterdir() if path.name != "ballast"]
            assert not left, f"{left} is left in TMPDIR"


KINDS: dict[str, Callable[[int, Path], float | None]] = {
    "kills while workers load": partial(kill_while, loading),
    "kills while programs run": partial(kill_while, program),
    "searches whose arms clear TMPDIR": partial(cleared, by_program=False),
    "searches whose programs clear it": partial(cleared, by_program=True),
    "searches with a full TMPDIR": full,
}


def run(tries: range, folder: Path) -> Figures:
    """All kinds in turn."""
    seen: Counter[str] = Counter()
    slowest = 0.0
    with in_memory(folder) as place:
        (place / "tmp").mkdir()
        for number in tries:
            name = list(KINDS)[number % len(KINDS)]
            again = f"faults.slow_loading.KINDS[{name!r}]({number}, FOLDER)"
            with replayable(again):
                slowest = max(slowest, KINDS[name](number, place) or 0.0)
            seen[name] += 1
        with replayable("faults.slow_loading.clean_up, after kills"):
            clean_up(place)
    return {
        **seen,
        "orphans after 5 s": 0,
        "tracebacks": 0,
        "files with training data": 0,
        "left in TMPDIR": 0,
        "other digests": 0,
        "untyped errors": 0,
        "s was the longest that something lived on": slowest,
    }


SLOW_LOADING = Campaign(
    "F26",
    "trainers that take long to load, programs with children, a TMPDIR cleared or full",
    run,
    full=200,
    short=len(KINDS),
    paths=(
        *SEARCHING,
        *COMMAND,
        "src/lastarm/testing/runners.py",
        "src/lastarm/trainers/programs.py",
        "faults/disk.py",
        "faults/full_disks.py",
        "faults/processes.py",
        "faults/slow_loading.py",
    ),
)
