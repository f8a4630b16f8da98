"""F27: trainers that have children: forked processes, threads, pools; and what arms may raise.

Whatever a pull starts, and however that ends, a search comes to the digest of a serial one whose
pulls have no children: on serial and on processes as a script whose functions are those of
`__main__`, on Dask and Ray with those of a module. Where an engine's workers may not have
children, the arm's error names the engine's setting. Scripts are also killed while the children
are at work, and resumed. Nothing is left behind.

What an arm raises is its own failure, with the same text on every runner, also if it is none of
Python's `Exception`s.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from time import sleep
from typing import Any, NamedTuple

import dask

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.children import CHILDREN, HARMLESS, LEFT, found
from faults.disk import in_memory
from faults.engines import Engine, dask_engine, ray_engine
from faults.processes import MARK, SHARED, came_true, in_shared_memory, orphans
from faults.strikes import BOTH, COORDINATOR, FROZEN, GOES_ON, WORKER, signalled, strike
from lastarm import Batched, Configs, Processes, Serial, Simulated, UniformAllocation, search
from lastarm.errors import AllArmsFailed
from lastarm.runners import MakeRunner
from lastarm.trainers import Config

SCRIPT = Path(__file__).with_name("children.py")
ARMS = 4
PAUSE = 0.5  # seconds at most between a loss and a strike
HANGS = 300.0  # seconds, which are too many whatever else the machine does
SETTING = "distributed.worker.daemon"  # by which Dask's workers may have children


# Pulls with children ---------------------------------------------------------------------------


class Place(NamedTuple):
    """A folder of our own, and a mark for all processes that are started."""

    folder: Path
    mark: str

    @property
    def temporary(self) -> Path:
        """Where they have their temporary files."""
        return self.folder / "tmp"

    @property
    def environment(self) -> dict[str, str]:
        """What they are started with."""
        own = {"TMPDIR": str(self.temporary), "JOBLIB_TEMP_FOLDER": str(self.temporary)}
        # Where there are planted bugs, they are on the path already.
        path = [str(SCRIPT.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**own, MARK: self.mark, "PYTHONPATH": os.pathsep.join(path)}

    def left(self) -> list[int]:
        """The processes that were started here and do not end; now they do."""
        left = orphans(self.mark)
        signalled(signal.SIGKILL, *left)
        return left

    def check_files(self) -> None:
        """Nor any temporary file."""
        files = list(self.temporary.iterdir())
        assert not files, f"left in the temporary folder: {files}"


class Started:
    """A process of ours. What it prints goes to files, because children would keep pipes open."""

    def __init__(self, place: Place, *words: str | Path) -> None:
        self._place = place
        self._said, self._complaint = place.folder / "said", place.folder / "complaint"
        with self._said.open("w") as said, self._complaint.open("w") as complaint:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=place.folder,
                env=os.environ | place.environment,
                stdout=said,
                stderr=complaint,
            )

    def strike(self, blow: str, random: Random) -> None:
        """Some time after its first loss, if there is one."""

        def has_come() -> bool:
            return self._process.poll() is not None or "Loss(" in self._said.read_text()

        assert came_true(has_come, HANGS), f"nothing within {HANGS:.0f} s"
        sleep(random.uniform(0, PAUSE))
        strike(blow, self._process.pid, random)

    def end(self, *, may_leave: bool = False) -> tuple[int, list[str], str]:
        """Wait for it; its exit code, what it has printed, and what it has complained of.

        It does not end if it says nothing more: engines take long on a busy machine. No process is
        left that it has started.
        """
        heard = -1
        while heard < (heard := self._said.stat().st_size):
            came_true(lambda: self._process.poll() is not None, HANGS)
        code = self._process.poll()
        self._process.kill()
        self._process.wait()
        said, complaint = self._said.read_text(), self._complaint.read_text(errors="replace")
        left = self._place.left()
        assert not left or may_leave, f"processes {left} were left behind"
        assert code is not None, f"it does not end; it said {said}, {complaint}"
        return code, said.splitlines(), complaint


def script(place: Place, words: Sequence[str], journal: str = "") -> Started:
    """A process with the trainer as its main script, which is not importable under any name."""
    copy = Path(shutil.copy(SCRIPT, place.folder / "script.py"))
    return Started(place, copy, str(ARMS), journal, *words)


def in_a_script(kinds: Sequence[str], place: Place, random: Random) -> None:
    """One after another, in any order: what a library keeps for one is there for the next."""
    runners = ("serial", "processes")
    words = [
        f"{r}: {kind}" for r in runners for kind in kinds if r != "serial" or kind not in LEFT
    ]
    random.shuffle(words)
    _, said, complaint = script(place, words).end()
    expected = [f"{word}: {without_children()}" for word in words]
    assert said == expected, f"{words} gave {said}: {complaint}"
    assert "Traceback" not in complaint, complaint
    place.check_files()


def killed(kind: str, place: Place, random: Random) -> None:
    """Twice at a random moment of its pulls; then it is left alone."""
    strikes = random.choices([COORDINATOR, WORKER, BOTH, FROZEN], k=2)
    words, journal = [f"processes: {kind}"], str(place.folder / "search.jsonl")
    for blow in (*strikes, ""):
        life = script(place, words, journal)
        if blow:
            life.strike(blow, random)
        code, said, complaint = life.end()
        expected = (0,) if not blow or blow in GOES_ON else (0, -signal.SIGKILL)
        assert code in expected, f"after {blow}: exit code {code}, {complaint}"
    digest = said[-1].removeprefix(f"{words[0]}: ")
    assert digest == without_children(), f"after {strikes}: {digest}: {complaint}"


def on_an_engine(where: str, kinds: Sequence[str], place: Place) -> None:
    """In a process of its own, because an engine keeps much in the process that starts it.

    What is left by workers that the engine has ended is not the affair of the search: Ray kills
    their children, also those that would clean up.
    """
    shared = in_shared_memory()
    call = f"in_this_process({where!r}, {kinds}, Place(Path({str(place.folder)!r}), ''))"
    code, said, complaint = Started(
        place, "-c", f"from pathlib import Path; from faults.offspring import *; {call}"
    ).end(may_leave=True)
    for name in in_shared_memory() - shared:
        if name.startswith("sem."):
            (SHARED / name).unlink(missing_ok=True)
    assert code == 0, f"exit code {code}: {said}, {complaint}"


def in_this_process(where: str, kinds: Sequence[str], place: Place) -> None:
    """Start the engine, and try all of them."""
    with engine_at(where) as engine:
        if RAISES in kinds:
            raised(engine.runner, place, apart=True)
        for kind in kinds:
            if kind != RAISES:
                print(kind, flush=True)
                with_functions_of_a_module(
                    kind, engine, forbidden=where == DAEMONS and kind in CHILDREN
                )


def with_functions_of_a_module(kind: str, engine: Engine, *, forbidden: bool) -> None:
    """One digest; where children are forbidden, the error of each arm names the setting."""
    causes: list[str] = []
    digest = ""
    try:
        digest = found(kind, ARMS, runner=engine.runner)
    except AllArmsFailed as error:
        causes = list(error.causes.values())
    if forbidden:
        assert causes, f"{kind}: there are children where they are forbidden"
        assert all(SETTING in cause for cause in causes), f"{kind}: {causes}"
    else:
        assert digest == without_children(), f"{kind}: another digest, or {causes}"


def without_children() -> str:
    """The digest of a serial search."""
    return found("none", ARMS)


# What arms raise -------------------------------------------------------------------------------


class Outcome(BaseException):
    """As those of test frameworks."""


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "an error": (lambda: ValueError("why"), "ValueError: why"),
    "a cancelled task": (lambda: CancelledError("why"), "CancelledError: why"),
    "a closed generator": (GeneratorExit, "GeneratorExit"),
    "a group": (
        lambda: BaseExceptionGroup("both", [SystemExit(1), KeyError(2)]),
        "BaseExceptionGroup: both (2 sub-exceptions)",
    ),
    "an exit": (lambda: SystemExit(0), "SystemExit: 0"),
    "an exit with words": (lambda: SystemExit("enough"), "SystemExit: enough"),
    "an outcome": (lambda: Outcome("skipped"), "Outcome: skipped"),
}
INTERRUPT = "an interrupt"
INTERRUPTED = (lambda: KeyboardInterrupt("its own"), "KeyboardInterrupt: its own")
METHODS = ("start", "train", "loss", "save")


class Raising:
    """An arm raises what its config names, in the method that it names."""

    def _raise(self, state: Config, method: str) -> None:
        if state.get("method") == method:
            raise {**RAISED, INTERRUPT: INTERRUPTED}[state["raised"]][0]()

    def start(self, config: Config, seed: int) -> Config:
        """The config is all there is."""
        self._raise(config, "start")
        return config

    def train(self, state: Config, pulls: int) -> Config:
        """There is nothing to learn."""
        self._raise(state, "train")
        return state

    def loss(self, state: Config) -> float:
        """The same for all."""
        self._raise(state, "loss")
        return 0.5

    def save(self, state: Config, path: Path) -> None:
        """In a way of its own."""
        self._raise(state, "save")
        path.write_bytes(pickle.dumps(state))

    def load(self, path: Path) -> Any:
        """What was saved."""
        return pickle.loads(path.read_bytes())


HERE: dict[str, MakeRunner] = {  # an arm that interrupts itself ends a search in its own process
    "serial": Serial,
    "batched": Batched,
    "simulated": partial(Simulated, workers=2),
}
LOCAL: dict[str, MakeRunner] = {**HERE, "processes": partial(Processes, workers=2)}


def raised(make: MakeRunner, place: Place, *, apart: bool) -> str:
    """Each arm that raises is out, with its own text and traceback; the digest."""
    expected = {**RAISED, INTERRUPT: INTERRUPTED} if apart else RAISED
    bad = [{"raised": name, "method": method} for name in expected for method in METHODS]
    journal = place.folder / "raised.jsonl"
    result = search(
        Raising(),
        Configs([*bad, {}, {}]),
        policy=UniformAllocation(len(bad) + 2, len(bad) + 2),
        runner=make,
        journal=journal,
    )
    for arm, config in enumerate(bad):
        failure = result.failures[arm]
        assert failure.error == expected[config["raised"]][1], f"{config}: {failure.error}"
        assert "Traceback" in failure.traceback, f"{config}: no traceback"
    assert result.arm == len(bad), f"arm {result.arm} and not {len(bad)}"
    assert len(result.failures) == len(bad), "innocent arms are out"
    for left in (journal, Path(f"{journal}.states")):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return result.digest


def raised_here(place: Place) -> None:
    """On every runner of this machine, with one digest."""
    digests = {name: raised(make, place, apart=False) for name, make in LOCAL.items()}
    assert len(set(digests.values())) == 1, f"{digests}"
    raised(LOCAL["processes"], place, apart=True)
    for name, make in HERE.items():
        try:
            search(
                Raising(),
                Configs([{"raised": INTERRUPT, "method": "train"}, {}]),
                policy=UniformAllocation(2, 2),
                runner=make,
            )
            raise AssertionError(f"{name}: an interrupt does not end the search")
        except KeyboardInterrupt:
            pass


# The campaign ----------------------------------------------------------------------------------

RAISES = "what arms raise"
SCRIPTS, KILLED, DAEMONS = "in a script", "in a script that is killed", "on Dask's daemons"
DASK, RAY = "on Dask", "on Ray"
TESTED = ("a fork on its own", "threads", "a forked pool", "a loader")  # first, in `make test`
KINDS = (*TESTED, *(kind for kind in (*HARMLESS, *CHILDREN, *LEFT) if kind not in TESTED))
CASES: list[tuple[str, str]] = [
    (SCRIPTS, RAISES),
    *((where, kind) for where in (SCRIPTS, KILLED) for kind in KINDS),
    *((where, kind) for where in (DASK, DAEMONS, RAY) for kind in (RAISES, *HARMLESS, *CHILDREN)),
]


@contextmanager
def engine_at(where: str) -> Iterator[Engine]:
    """A running engine."""
    if where == RAY:
        with ray_engine(lease=60.0) as engine:
            yield engine
        return
    with (
        dask.config.set({SETTING: where == DAEMONS}),
        dask_engine(lease=60.0) as engine,
    ):
        yield engine


def tried(where: str, kinds: Sequence[str], place: Place, random: Random) -> None:
    """Some of the kinds, at one place."""
    children = [kind for kind in kinds if kind != RAISES]
    if where in (SCRIPTS, KILLED):
        if RAISES in kinds:
            raised_here(place)
        if where == SCRIPTS and children:
            in_a_script(children, place, random)
        for kind in children if where == KILLED else ():
            own = Place(place.folder / str(KINDS.index(kind)), f"{place.mark} {kind}")
            own.temporary.mkdir(parents=True)
            killed(kind, own, random)
    else:
        on_an_engine(where, kinds, place)


def run(tries: range, folder: Path) -> Figures:
    """Case after case; those at one place one after another, because it takes time to start."""
    seen: Counter[str] = Counter()
    shared = in_shared_memory()
    cases = [(number // len(CASES), *CASES[number % len(CASES)]) for number in tries]
    with in_memory(folder) as memory:
        for (often, where), group in groupby(cases, key=lambda case: case[:2]):
            kinds = [kind for _, _, kind in group]
            # Not by their names: paths of sockets have to be short.
            place = Place(memory / str(len(seen)), f"children {os.getpid()} {often} {where}")
            place.temporary.mkdir(parents=True)
            seed = f"{often} {kinds}"
            again = f"faults.offspring.tried({where!r}, {kinds}, …, Random({seed!r}))"
            with replayable(again):
                tried(where, kinds, place, Random(seed))
            seen[where] += len(kinds)
            shutil.rmtree(place.folder)
    came_true(lambda: not in_shared_memory() - shared, 5)
    assert not (left := in_shared_memory() - shared), f"left in shared memory: {left}"
    return {
        **{f"cases {where}": number for where, number in seen.items()},
        "kinds of children": Most(len(KINDS)),
        "things raised": Most(len(RAISED) + 1),
        "other digests": 0,
        "other texts of errors": 0,
        "orphans after 5 s": 0,
    }


OFFSPRING = Campaign(
    "F27",
    "trainers with children, and what arms raise",
    run,
    full=5 * len(CASES),
    short=1 + len(TESTED),
    paths=(
        *SEARCHING,
        "src/lastarm/batched/protocol.py",
        "src/lastarm/runners/**/*.py",
        "faults/children.py",
        "faults/disk.py",
        "faults/engines.py",
        "faults/offspring.py",
        "faults/processes.py",
        "faults/strikes.py",
    ),
    parts=5,
)
