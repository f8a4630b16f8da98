"""F24: bugs planted for the campaigns at the edges of a search: its files and its processes."""

from __future__ import annotations

from functools import partial

from faults.offspring import CASES, OFFSPRING, SCRIPTS
from faults.planted import Planted, everywhere, mutated
from faults.real_arms import REAL_ARMS
from faults.second_user import KINDS, SECOND_USER
from faults.slow_loading import SLOW_LOADING
from faults.vanishing import HARMS, VANISHING
from lastarm.checkpoints.index import Index
from lastarm.cli import resume
from lastarm.journal import Journal, file
from lastarm.journal.disk import Folder
from lastarm.journal.rescue import WrittenLines
from lastarm.journal.seals import Seals
from lastarm.runners.processes import Processes, TrainerFile, WorkerProcess
from lastarm.system import temporary


def one(attack: str) -> range:
    """The number of an attack by a second user."""
    number = list(KINDS).index(attack)
    return range(number, number + 1)


def in_a_script(kind: str) -> range:
    """The number of a case of trainers with children."""
    number = CASES.index((SCRIPTS, kind))
    return range(number, number + 1)


PLANTED_EDGES: tuple[Planted, ...] = (
    Planted(
        "the file of a journal is not compared with its name",
        partial(
            mutated, WrittenLines, "difference", "if lost := self.name_lost():", "if lost := '':"
        ),
        VANISHING,
        range(len(HARMS)),
    ),
    Planted(
        "what is rescued comes from the file",
        partial(mutated, WrittenLines, "_save_in", "self._blocks()", "[self._path.read_bytes()]"),
        VANISHING,
        range(5, len(HARMS)),
    ),
    Planted(
        "a journal that was changed is rescued, and the search goes on",
        partial(mutated, Journal, "_require_same", "raise self._rescued(what)", "pass"),
        VANISHING,
        range(len(HARMS)),
    ),
    Planted(
        "a new file is created where a link leads to",
        partial(mutated, Folder, "create", " | os.O_EXCL | _CAREFULLY", ""),
        SECOND_USER,
        one("a link for .new"),
    ),
    Planted(
        "a command is run whoever wrote it",
        partial(mutated, file, "find", "is_ours(status) and closed", "True"),
        SECOND_USER,
        one("their journal resumed"),
    ),
    Planted(
        "any seal of a journal is believed",
        partial(
            mutated, Seals, "__init__", "SealRule.OWN if own else SealRule.FOREIGN", "SealRule.OWN"
        ),
        SECOND_USER,
        one("their journal downloaded"),
    ),
    Planted(
        "a command that is not vouched for is run",
        partial(mutated, resume, "_require_trust", "if not display.asked", "if not bool"),
        SECOND_USER,
        one("their journal downloaded"),
    ),
    Planted(
        "a state is loaded whatever its seal is",
        partial(mutated, Index, "_may_load", "self._seals is None or", "True or"),
        SECOND_USER,
        one("states from elsewhere"),
    ),
    Planted(
        "a seal says nothing of what the state is",
        partial(mutated, Seals, "_seal_of", "{saved.digest} {saved.size}", ""),
        SECOND_USER,
        one("states exchanged with their digests"),
    ),
    Planted(
        "what workers have started outlives a killed search",
        partial(
            mutated,
            WorkerProcess,
            "__init__",
            'Guard(leads=False) if os.name == "posix" else None',
            "None",
        ),
        SLOW_LOADING,
        range(0, 31, 15),  # three loaders with a child, which one kill may come too early for
    ),
    Planted(
        "the trainer is in a file with a name",
        partial(mutated, TrainerFile, "__init__", "path.unlink()", "pass"),
        SLOW_LOADING,
        range(1),
    ),
    Planted(
        "temporary files of killed searches stay",
        partial(mutated, temporary, "sweep", "_remove_left(place / name)", "pass"),
        SLOW_LOADING,
        range(1),
    ),
    Planted(
        "a state stays on the disk when a later one has replaced it",
        partial(mutated, Index, "add", "levels.keys() - needed", "()"),
        REAL_ARMS,
        range(1),
    ),
    Planted(
        "a search leaves a descriptor open",
        partial(mutated, Processes, "close", "self._trainer.close()", "os.dup(0)"),
        REAL_ARMS,
        range(1),
    ),
    Planted(
        "a forked child speaks for its worker",
        partial(
            everywhere,
            "from lastarm.system.offspring import ThisProcess; "
            "ThisProcess.__exit__ = lambda *_: None",
        ),
        OFFSPRING,
        in_a_script("a fork on its own"),
    ),
    Planted(
        "a pool does not know the functions of a script",
        partial(
            everywhere,
            "import lastarm.runners.remote; lastarm.runners.remote.Script.keep = lambda _: None",
        ),
        OFFSPRING,
        in_a_script("a forked pool"),
    ),
)
