"""Checkpoints: the trained states of arms as files. An optimisation, never the truth.

A state is saved whole or not at all, before the loss that it belongs to counts, and the journal
holds its digest and this user's seal. It is loaded only if it is what was saved, has this seal,
and its file is this user's: loading may run code. What is not loaded is trained again, to the same
answer.

Here are the files (`folder`), and which of them are kept, with what a caller can set (`index`).
When a state is saved, and what stays in memory, is up to the runners.
"""

from lastarm.checkpoints.folder import StateFolder
from lastarm.checkpoints.index import Checkpoints

__all__ = ["Checkpoints", "StateFolder"]
