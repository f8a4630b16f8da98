"""How the policies are named and drawn, the same everywhere."""

from __future__ import annotations

from typing import Any, NamedTuple


class Look(NamedTuple):
    """A name, and how its line is drawn."""

    label: str
    colour: str  # of Okabe & Ito: told apart by the colour-blind too
    dashes: Any = "-"
    marker: str = ""
    width: float = 1.8  # the wider is drawn beneath, so that no line hides another


LOOKS = {
    "successive-halving": Look("Successive Halving", "#D55E00", "-", "s", 2.0),
    "successive-rejects": Look("Successive Rejects", "#0072B2", (0, (6, 2)), "D"),
    "uniform": Look("uniform", "#000000", "-", "^", 3.0),
    "successive-elimination": Look("Successive Elimination", "#E69F00", (0, (3, 3)), "X"),
    "exp3": Look("EXP3", "#56B4E9", (3, (3, 3)), "v", 2.4),
    "lucb": Look("LUCB", "#009E73", "-", "p", 2.6),
    "lil-ucb": Look("lil'UCB", "#CC79A7", (0, (5, 1.5, 1, 1.5)), ">"),
}
# The arm that is recommended, the others, what they left behind, and whatever is beside the point.
ACCENT, PLAIN, PALE, DIM = "#D55E00", "#0072B2", "#A6CBE3", "#777777"
GREY = Look("", DIM)  # for any other policy
COLOURS = {policy: look.colour for policy, look in LOOKS.items()}
LABELS = {policy: look.label for policy, look in LOOKS.items()}
