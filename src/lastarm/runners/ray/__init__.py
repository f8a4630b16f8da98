"""Pulls on the actors of a Ray cluster."""

from lastarm.runners.ray.runner import Ray

__all__ = ["Ray"]
