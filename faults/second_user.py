"""F29: another user plants files beside a journal, or exchanges it, and sends one with its states.

Nothing of theirs is executed, no file of ours is overwritten or removed, nothing blocks, and the
search ends with its digest, or with an error of ours and then, when what was planted is gone, with
its digest. Where the campaign is root, the second user is a real one; elsewhere it is ourselves.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import sleep
from typing import Any, NamedTuple
from unittest.mock import patch

from faults.campaign import COMMAND, REFERENCE, SEARCHING, Campaign, Figures, replayable
from faults.disk import as_state, in_memory
from faults.processes import commanded, forked, outcome
from faults.reference import ARMS, BUDGET, Reference, whole
from faults.vanishing import harmed
from lastarm.errors import JournalError
from lastarm.events import Event, Loss, Opened
from lastarm.journal import Journal, read
from lastarm.journal.lines import encode
from lastarm.policies import SuccessiveHalving
from lastarm.policy import describe

ANOTHER = 65534  # a user that every system has, and that no campaign runs as
KEY = "LASTARM_KEY_FILE"
LOSSES = 30
REFUSED = (2, 3)  # exit codes
# What others can do to a file of ours in their folder: they can neither read nor write to it.
HARMS = (
    "deleted",
    "renamed",
    "replaced by another",
    "replaced by nothing",
    "made a link to itself",
    "begun by a second search",
)


class Exploded(NamedTuple):
    """A state or a module of theirs that touches a file when it is loaded."""

    marker: Path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.marker,)


class Place:
    """A folder that all can write to, with our journal in it, and what must stay as it is."""

    def __init__(self, folder: Path, *, sticky: bool) -> None:
        folder.mkdir(mode=0o711)
        self.shared, self.theirs, self.vault = (folder / n for n in ("shared", "theirs", "vault"))
        self.precious, self.marker = folder / "precious", folder / "theirs" / "executed"
        self.reference = Reference(folder / "ours", disk=self.shared)
        self.journal = self.reference.journal
        self.shared.chmod(0o1777 if sticky else 0o777)
        self.vault.mkdir(mode=0o700)
        self.precious.write_bytes(b"precious")
        for name in ("arm-0-at-2.state", "arm-notes", "notes"):
            (self.vault / name).write_bytes(b"ours")
        self.theirs.mkdir()
        (self.theirs / "evil.py").write_text(
            f"import pathlib\npathlib.Path({str(self.marker)!r}).touch()\ntrainer = None\n"
        )
        (self.theirs / "key").write_bytes(b"a secret of another user, as long as it need be")
        (self.theirs / "key").chmod(0o600)
        if os.geteuid() == 0:
            for path in (self.theirs, *self.theirs.iterdir()):
                os.chown(path, ANOTHER, ANOTHER)
        self._before = self._ours()

    def beside(self, suffix: str) -> Path:
        """A name beside the journal."""
        return self.journal.with_name(self.journal.name + suffix)

    def check(self) -> None:
        """Nothing of theirs was executed, and nothing of ours was changed."""
        assert not self.marker.exists(), "something of theirs was executed"
        assert self._ours() == self._before, "a file of ours was changed"

    def _ours(self) -> dict[str, bytes]:
        files = [self.precious, *self.vault.iterdir()]
        return {path.name: path.read_bytes() for path in files}


def by_another(act: Callable[[], object]) -> None:
    """Do it as the second user, if we can act as one."""

    def live() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(ANOTHER)
            os.setuid(ANOTHER)
        os.umask(0)
        act()

    _, status = os.waitpid(forked(live), 0)
    assert not status, "the second user could not do it"


def played(place: Place, **changed: Any) -> str:
    """The digest of the reference search, or the error of ours that it ended with."""

    def play() -> str:
        try:
            return place.reference.play(**changed).digest
        except JournalError as error:
            return f"{type(error).__name__}: {error}"

    return outcome(play)


# What is planted before the search begins ------------------------------------------

Plant = Callable[[Path, Place], object]
"""What a second user puts where this path is."""


def _open_to_all(path: Path, place: Place) -> None:
    path.write_bytes(b"theirs")
    path.chmod(0o666)


def _states(path: Path, place: Place, each: Plant) -> None:
    """A folder of theirs, with something in place of every state that the first rung saves."""
    path.mkdir(mode=0o777)
    for arm in range(ARMS):
        each(path / f"arm-{arm}-at-2.state", place)


def _bomb(path: Path, place: Place) -> None:
    path.write_bytes(as_state(Exploded(place.marker)))
    path.chmod(0o666)


def _link(path: Path, place: Place) -> None:
    path.symlink_to(place.precious)


def _dangling(path: Path, place: Place) -> None:
    path.symlink_to(place.vault / "new")


def _pipe(path: Path, place: Place) -> None:
    os.mkfifo(path, 0o666)


PLANTS: dict[str, tuple[str, Plant]] = {
    **{
        f"{what} for {suffix}": (suffix, plant)
        for suffix in (".lock", ".new")
        for what, plant in {
            "a link": _link,
            "a link to nothing": _dangling,
            "a pipe": _pipe,
            "a file open to all": _open_to_all,
        }.items()
    },
    "a link for the journal": ("", _link),
    "a pipe for the journal": ("", _pipe),
    "a link for .states": (".states", lambda path, place: path.symlink_to(place.vault)),
    "links for states": (".states", lambda path, place: _states(path, place, _link)),
    "pipes for states": (".states", lambda path, place: _states(path, place, _pipe)),
    "states": (".states", lambda path, place: _states(path, place, _bomb)),
}


def planted(number: int, place: Place, name: str) -> None:
    """A search that begins when something is planted, ends well, or does so once it is removed."""
    suffix, plant = PLANTS[name]
    path = place.beside(suffix)
    by_another(lambda: plant(path, place))
    said = played(place)
    place.check()
    if said != whole().digest:
        with suppress(FileNotFoundError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        said = played(place)
        place.check()
    assert said == whole().digest, f"it ended with {said}"
    _check_journal(place)


def _check_journal(place: Place) -> None:
    status = place.journal.lstat()
    assert stat.S_ISREG(status.st_mode), "the journal is not a file"
    assert status.st_uid == os.geteuid(), "the journal is not ours"
    assert not status.st_mode & 0o077, f"the journal has mode {stat.S_IMODE(status.st_mode):o}"


# What happens while it runs, or comes from elsewhere ------------------------------------------


def journal_harmed(number: int, place: Place, name: str) -> None:
    """Midway, they remove or exchange the journal, and at times its lock."""
    harm = name.removeprefix("a journal ")

    def play() -> str:
        harmed(number, place.reference, harm, by_another)
        return ""

    outcome(play)
    place.check()


def states_exchanged(number: int, place: Place, name: str) -> None:
    """Midway, the folder of states is moved away, and one of theirs has its name."""
    random = Random(number)
    left = [random.randint(1, LOSSES - 1)]
    states = place.beside(".states")

    def strike(event: Event) -> None:
        left[0] -= isinstance(event, Loss)
        if left[0] == 0 and isinstance(event, Loss):
            by_another(exchange)

    def exchange() -> None:
        states.rename(states.with_suffix(".moved"))
        states.mkdir(mode=0o777)
        for arm in range(ARMS):
            for level in (2, 6, 14, 30):
                _bomb(states / f"arm-{arm}-at-{level}.state", place)

    said = played(place, on_event=strike)
    place.check()
    if said != whole().digest:
        shutil.rmtree(states)
        said = played(place)
        place.check()
    assert said == whole().digest, f"it ended with {said}"


def states_from_elsewhere(number: int, place: Place, name: str) -> None:
    """A journal comes with its states, which are what it says; they are not ours, and do harm.

    It has their seals; or it is ours, and they have exchanged states and what it says of these.
    """
    key = {KEY: str(_own_key(place))} if name == "states from elsewhere" else {}

    def stop() -> str:
        left = [Random(number).randint(2, LOSSES - 2)]

        def strike(event: Event) -> None:
            left[0] -= isinstance(event, Loss)
            if not left[0]:
                raise StopSearch

        with patch.dict(os.environ, key), suppress(StopSearch):
            place.reference.play(on_event=strike)
        return "stopped"

    outcome(stop)
    bomb = as_state(Exploded(place.marker))
    digest = hashlib.sha256(bomb).hexdigest()
    written, after = b"", ""
    for event in read(place.journal):
        told = event
        if isinstance(told, Loss) and told.saved:
            told = told._replace(saved=told.saved._replace(digest=digest, size=len(bomb)))
            state = place.beside(".states") / f"arm-{told.pull.arm}-at-{told.pull.upto}.state"
            state.write_bytes(bomb)
            state.chmod(0o600)
        line, after = encode(told, 0, after)
        written += line
    place.journal.write_bytes(written)
    said = played(place)
    place.check()
    assert said == whole().digest, f"it ended with {said}"


class StopSearch(Exception):
    """Raised to end a search early."""


def _own_key(place: Place) -> Path:
    """Their secret, in a file of this user: we play them here."""
    key = place.theirs.with_name("their-key")
    if not key.exists():
        key.write_bytes((place.theirs / "key").read_bytes())
        key.chmod(0o600)
    return key


def _their_journal(place: Place, path: Path, *, our_seal: bool = False) -> None:
    """A journal whose command imports their module, as they would write it."""
    key = {} if our_seal else {KEY: str(_own_key(place))}
    words = ["tune", "evil:trainer", "--arms", "2", "--budget", "4", "--param", "x=0:1"]
    policy = SuccessiveHalving(ARMS, BUDGET)
    opened = Opened(
        0, describe(policy), {}, {}, command=("lastarm", *words), folder=str(place.theirs)
    )

    def write() -> str:
        with patch.dict(os.environ, key), Journal(path, opened):
            return "written"

    outcome(write)


def _resume(place: Place, path: Path, first: Callable[[], None] = lambda: None) -> None:
    """`lastarm resume`, without a terminal: refused, and nothing of theirs is executed."""
    code, said = commanded(["resume", str(path)], first)
    place.check()
    assert code in REFUSED, f"exit code {code}: {said}"
    assert "Traceback" not in said, said


def foreign_journal(number: int, place: Place, name: str) -> None:
    """We resume their journal, which is known by its owner or its mode, whatever its seal is."""
    path = place.theirs / "search.jsonl"
    _their_journal(place, path, our_seal=True)
    if os.geteuid() == 0 and number % 2 == 0:
        os.chown(path, ANOTHER, ANOTHER)
    else:
        path.chmod(0o666)
    _unchanged(place, path)


def downloaded(number: int, place: Place, name: str) -> None:
    """We resume their journal, which came from elsewhere: a file of ours, without our seal."""
    own = place.theirs.with_name("downloaded")
    own.mkdir(mode=0o700)
    _their_journal(place, own / "search.jsonl")
    _unchanged(place, own / "search.jsonl")


def _unchanged(place: Place, path: Path) -> None:
    before = path.read_bytes()
    _resume(place, path)
    assert path.read_bytes() == before, "their journal was changed"


def swapped(number: int, place: Place, name: str) -> None:
    """Their journal is exchanged for a link to ours, between reading and asking whose it is."""
    path = place.theirs / "search.jsonl"
    _their_journal(place, path)
    if os.geteuid() == 0:
        os.chown(path, ANOTHER, ANOTHER)
    outcome(lambda: place.reference.play().digest)  # ours, which they may name

    def swap() -> None:
        link = place.theirs / "link"
        link.symlink_to(place.journal)
        link.replace(path)

    if number % 2:  # at the very moment

        def between() -> None:
            resume = importlib.import_module("lastarm.cli.resume")
            ledger = vars(resume)["Ledger"]

            def swap_first(events: Any) -> Any:
                swap()
                return ledger(events)

            vars(resume)["Ledger"] = swap_first

        _resume(place, path, between)
        return

    def race() -> None:  # again and again, at any moment
        good = place.theirs / "good"
        shutil.copy(path, place.theirs / "evil")
        for _ in range(200):
            good.symlink_to(place.journal)
            good.replace(path)
            sleep(0.001)
            shutil.copy(place.theirs / "evil", place.theirs / "again")
            (place.theirs / "again").replace(path)
            sleep(0.001)

    racer = forked(lambda: by_another(race))
    try:
        for _ in range(3):
            code, said = commanded(["resume", str(path)])
            place.check()
            # What is read may be our own search, which has ended.
            assert code in (0, *REFUSED), f"exit code {code}: {said}"
            assert "Traceback" not in said, said
    finally:
        os.waitpid(racer, 0)


KINDS: dict[str, Callable[[int, Place, str], None]] = {
    **dict.fromkeys(PLANTS, planted),
    **{f"a journal {harm}": journal_harmed for harm in HARMS},
    "states exchanged midway": states_exchanged,
    "their journal resumed": foreign_journal,
    "their journal swapped for a link": swapped,
    "their journal downloaded": downloaded,
    "states from elsewhere": states_from_elsewhere,
    "states exchanged with their digests": states_from_elsewhere,
}


def attack(number: int, folder: Path) -> str:
    """One attack, in a folder where files are as in /tmp or can be replaced by all; its kind."""
    name = list(KINDS)[number % len(KINDS)]
    moved = KINDS[name] in (journal_harmed, states_exchanged)  # which a sticky folder forbids
    sticky = number // len(KINDS) % 2 == 1 and not moved
    place = Place(folder, sticky=sticky)
    KINDS[name](number // len(KINDS), place, name)
    return name


def run(tries: range, folder: Path) -> Figures:
    """That many attacks, each of the next kind."""
    seen: Counter[str] = Counter()
    with in_memory(folder) as place:
        place.chmod(0o711)
        for number in tries:
            with replayable(f"faults.second_user.attack({number}, FOLDER)"):
                seen[attack(number, place / str(number))] += 1
            shutil.rmtree(place / str(number))
    return {
        "attacks": seen.total(),
        "of them by a real second user": seen.total() if os.geteuid() == 0 else 0,
        "things of theirs executed": 0,
        "files of ours overwritten or removed": 0,
        "of theirs believed": 0,
        "other digests": 0,
        "untyped errors": 0,
    }


SECOND_USER = Campaign(
    "F29",
    "a second user plants and exchanges files",
    run,
    full=500,
    short=len(KINDS),
    paths=(
        *SEARCHING,
        *COMMAND,
        *REFERENCE,
        "src/lastarm/cli/resume.py",
        "src/lastarm/cli/words/resume.py",
        "src/lastarm/report/next_steps.py",
        "faults/processes.py",
        "faults/second_user.py",
        "faults/vanishing.py",
    ),
)
