"""Search spaces: what the config of an arm is drawn from."""

from lastarm.space.domains import Choice, Integer, LogUniform, Uniform
from lastarm.space.draw import describe, domains, draw, size, spare
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
    "size",
    "spare",
]
