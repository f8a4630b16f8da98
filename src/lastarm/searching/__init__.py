"""Searching: what a user calls to search, and to load what a search has found.

`front_door.py` has the arguments of `search` and what they mean. `performing.py` prepares,
performs and finishes the search. `loading.py` reads a journal and the winner's state in another
process. What a search consists of belongs to the rooms below: here it is only put together.
"""

from lastarm.later import later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastarm.searching.front_door import search
    from lastarm.searching.loading import load

__all__ = ["load", "search"]

__getattr__ = later(__name__, {"front_door": "search", "loading": "load"})
