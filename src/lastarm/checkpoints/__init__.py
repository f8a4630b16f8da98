"""Checkpoints: the trained states of arms as files. An optimisation, never the truth.

A state is saved whole or not at all, before the loss that it belongs to counts, and the journal
holds its digest. It is loaded only if it is what was saved, and only if it is ours: loading one
may run code. Whatever cannot be loaded is trained again, to the same answer.
"""

from lastarm.checkpoints.folder import Folder
from lastarm.checkpoints.index import Index
from lastarm.checkpoints.settings import Checkpoints

__all__ = ["Checkpoints", "Folder", "Index"]
