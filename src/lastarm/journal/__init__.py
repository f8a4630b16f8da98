"""The journal: the memory of a search. One file of JSON lines, one writer, one order of events.

Here is all that knows the file: reading, writing and repairing it (`file`), how a line is spelled
(`lines`), what the first line holds and whether it is of the same search (`header`), walking a
policy through the rest (`replay`), who may write (`lock`), how a write survives a power cut
(`disk`), what is saved when the file disappears (`rescue`), how an old journal makes room for
another (`fresh`), how a reader follows it while it grows (`following`), what this user's searches
have written (`seals`, made with a `secret`), and which values a journal may claim before they are
shown (`sanity`).
What the events add up to is in `lastarm.ledger`, trained states are in `lastarm.checkpoints`.
"""

from lastarm.journal.file import Journal, Unwritten, read
from lastarm.journal.fresh import set_aside
from lastarm.journal.header import changed_code, described_policy, header
from lastarm.journal.replay import replay

__all__ = [
    "Journal",
    "Unwritten",
    "changed_code",
    "described_policy",
    "header",
    "read",
    "replay",
    "set_aside",
]
