"""Samplers: which configs later arms get, by what became of earlier ones.

`SAMPLERS` holds them by the names that the command knows them by.
"""

from lastarm.samplers.forest import Forest
from lastarm.samplers.protocol import Sampler, Seen
from lastarm.samplers.sampled_policy import SampledPolicy

__all__ = ["SAMPLERS", "Forest", "SampledPolicy", "Sampler", "Seen"]

SAMPLERS: dict[str, type[Sampler]] = {"forest": Forest}
