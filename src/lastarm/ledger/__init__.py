"""The ledger: pure folds of a search's events.

Here is what events add up to: spending, curves and failures (`ledger`), and how busy the workers
were (`utilisation`). Nothing here reads a file, draws or prints.
"""

from lastarm.ledger.ledger import Ledger, Rung, Spent, Stretch
from lastarm.ledger.utilisation import Timesheet, Utilisation

__all__ = ["Ledger", "Rung", "Spent", "Stretch", "Timesheet", "Utilisation"]
