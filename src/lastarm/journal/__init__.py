"""The journal: a search's memory. One file of JSON lines, one writer, and the rules of its disk.

Here is all that knows the file: how a line is spelled (`lines`), who may write (`lock`), how a
write survives a power cut (`disk`), reading, writing and replaying (`file`), and which values a
journal may claim (`credible`). What its events add up to is in `lastarm.ledger`.
"""

from lastarm.journal.file import Journal, Unwritten, read, replay

__all__ = ["Journal", "Unwritten", "read", "replay"]
