"""What people read in place of a loss: its name, its sign and its digits. This is the one place.

Policies, journals, digests and exports have losses, of which lower is better. Whatever is shown
goes through a `Metric`, which knows what the trainer calls its figure and how it was turned into a
loss.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lastarm.plain import number, renamed
from lastarm.texts import apart, clean

UNNAMED = "value"  # of a figure that is maximized and has no name
LONGEST_NAME = 60  # characters of a name that are shown


@dataclass(frozen=True, slots=True)
class Metric:
    """The figure that arms are compared by, as people know it.

    :param name: what it is called.
    :param maximize: whether higher is better. The loss is then the negative of the figure.

    >>> auc = Metric("roc_auc", maximize=True)
    >>> auc.said(-0.9289), auc.best, auc.in_words(-0.9289)
    ('roc_auc 0.9289', 'highest roc_auc', 'roc_auc 0.9289')
    >>> LOSS.said(0.25), LOSS.best, LOSS.in_words(0.25)
    ('loss 0.25', 'lowest loss', 'a loss of 0.25')
    """

    name: str = "loss"
    maximize: bool = False

    @property
    def label(self) -> str:
        """Its name as it can be shown. A terminal or a page has signs of its own to escape."""
        return clean(self.name, LONGEST_NAME)

    @property
    def best(self) -> str:
        """What the best of several figures is called."""
        return f"{'highest' if self.maximize else 'lowest'} {self.label}"

    @property
    def better(self) -> str:
        """How a better figure compares with another."""
        return "higher" if self.maximize else "lower"

    @property
    def worse(self) -> str:
        """How a worse figure compares with another."""
        return "lower" if self.maximize else "higher"

    @property
    def improve(self) -> str:
        """What a figure has to do to become better."""
        return "rise" if self.maximize else "fall"

    @property
    def worsened(self) -> str:
        """What a figure did that became worse."""
        return "fell" if self.maximize else "rose"

    def value(self, loss: float) -> float:
        """The figure of a loss."""
        return 0.0 - loss if self.maximize else loss  # 0 - 0 has no sign, and -0 would be shown

    def figure(self, loss: float) -> str:
        """The figure of a loss, with the digits that figures have everywhere."""
        return f"{self.value(loss):.6g}"

    def apart(self, *losses: float) -> list[str]:
        """The figures of losses, with as many digits as tell them apart."""
        return apart(*map(self.value, losses))

    def said(self, loss: float) -> str:
        """The name and the figure."""
        return f"{self.label} {self.figure(loss)}"

    def in_words(self, loss: float) -> str:
        """The same within a sentence, after "with"."""
        return f"a loss of {self.figure(loss)}" if self.name == "loss" else self.said(loss)

    def beside(
        self, losses: Mapping[str, float | None], taken: Collection[str]
    ) -> dict[str, float | None]:
        """What an export has beside losses, so that `loss` stays what it is: figures by name.

        >>> Metric("roc_auc", maximize=True).beside({"loss": -0.9, "test_loss": None}, taken=[])
        {'roc_auc': 0.9, 'test_roc_auc': None}
        >>> Metric("arm").beside({"loss": 0.5}, taken=["arm"]), LOSS.beside({"loss": 0.5}, [])
        ({'metric_arm': 0.5}, {})
        """
        if self == LOSS:
            return {}
        figures = {
            name.replace("loss", self.name): None if loss is None else self.value(loss)
            for name, loss in losses.items()
        }
        return renamed("metric", figures, taken)

    def without_itself(self, metrics: Mapping[str, Any], loss: float) -> dict[str, Any]:
        """What a trainer told beside a loss, without the figure if that is among it."""
        figure = number(self.value(loss))
        return {
            name: value for name, value in metrics.items() if name != self.name or value != figure
        }


LOSS = Metric()

_OF_A_FOLD = re.compile(r"split\d+_(test|train)_")  # as scikit-learn names the score of one fold


def for_people(told: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """The names of metrics that have a column where people look: at most `most`.

    Lists and dicts have none, and neither have the scores of single folds. Exports have all.

    >>> for_people([{"f1": 0.5, "split0_test_f1": 0.4}, {"note": "ok", "all": [1, 2]}], most=9)
    ['f1', 'note']
    """
    nested, names = set(), dict[str, None]()
    for one in told:
        names |= dict.fromkeys(one)
        nested |= {name for name, value in one.items() if isinstance(value, Mapping | list)}
    shown = (name for name in names if name not in nested and not _OF_A_FOLD.match(name))
    return list(islice(shown, most))
