"""Search spaces: what the config of an arm is drawn from.

`domains.py` has the values of one parameter, `spaces.py` their combinations, and `draw.py` the
functions that use them. The config of arm i is a function of the seed and i. Choosing configs by
the losses of earlier arms belongs to `lastarm.samplers`.
"""

from lastarm.space.domains import Choice, Integer, LogUniform, Uniform
from lastarm.space.draw import describe, domains, draw, recalled, size, spare
from lastarm.space.spaces import Configs, Grid, Space

__all__ = [
    "Choice",
    "Configs",
    "Grid",
    "Integer",
    "LogUniform",
    "Space",
    "Uniform",
    "describe",
    "domains",
    "draw",
    "recalled",
    "size",
    "spare",
]
