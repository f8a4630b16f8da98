"""F24: bugs planted for the campaigns of load, large states and long searches."""

from __future__ import annotations

from functools import partial

from faults.big_states import BIG_STATES
from faults.load import LOAD
from faults.planted import Planted, mutated
from faults.soak import SOAK
from lastarm.checkpoints import folder
from lastarm.checkpoints.index import Index
from lastarm.journal import Journal
from lastarm.ledger import Ledger

PLANTED_SCALE: tuple[Planted, ...] = (
    Planted(
        "the ledger keeps every event",
        partial(
            mutated,
            Ledger,
            "add",
            "self.events += 1",
            "self.events += 1; vars(self).setdefault('_all', []).append((event, [event] * 9))",
        ),
        LOAD,
        range(LOAD.short),
    ),
    Planted(
        "a state is in memory twice while it is loaded",
        partial(
            mutated,
            folder,
            "_buffer",
            "buffer = bytearray(size)",
            "return bytearray(file.read(size))",
        ),
        BIG_STATES,
        range(BIG_STATES.short),
    ),
    Planted(
        "states that are not needed any more stay on the disk",
        partial(mutated, Index, "_remove", "self.folder.remove(Pull(arm, level))", "pass"),
        BIG_STATES,
        range(BIG_STATES.short),
    ),
    Planted(
        "a descriptor stays open after every loss",
        partial(
            mutated,
            Journal,
            "sync",
            "os.fsync(self._file.fileno())",
            "os.fsync(os.dup(self._file.fileno()))",
        ),
        SOAK,
        range(SOAK.short),
    ),
    Planted(
        "a list grows with every event",
        partial(
            mutated,
            Journal,
            "append",
            "self._lines += 1",
            "self._lines += 1; vars(self).setdefault('_all', []).append(bytearray(b'x' * 10**5))",
        ),
        SOAK,
        range(SOAK.short),
    ),
)
