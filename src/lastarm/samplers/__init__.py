"""Samplers: which configs later arms get, by what became of earlier ones.

`SAMPLERS` holds them by the names that the command knows them by.
"""

from lastarm.samplers.choosing import Choosing
from lastarm.samplers.forest import Forest
from lastarm.samplers.protocol import Sampler, Seen

__all__ = ["SAMPLERS", "Choosing", "Forest", "Sampler", "Seen"]

SAMPLERS: dict[str, type[Sampler]] = {"forest": Forest}
