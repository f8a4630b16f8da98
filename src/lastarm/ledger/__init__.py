"""The ledger: pure folds of a search's events.

Here is what events add up to: spending, curves and failures (`ledger`), which arms were compared
and which of them survived (`survivors`), and how busy the workers were (`utilisation`). Nothing
here reads a file, draws or prints.
"""

from lastarm.ledger.ledger import CodeChange, Ledger, LevelCost, Spent, Stretch
from lastarm.ledger.utilisation import Utilisation

__all__ = ["CodeChange", "Ledger", "LevelCost", "Spent", "Stretch", "Utilisation"]
