"""Samplers: which configs later arms get, by what became of earlier ones."""

from lastarm.samplers.choosing import Choosing
from lastarm.samplers.forest import Forest
from lastarm.samplers.protocol import Sampler, Seen

__all__ = ["Choosing", "Forest", "Sampler", "Seen"]
