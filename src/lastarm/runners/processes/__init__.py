"""Pulls on worker processes of this machine."""

from lastarm.runners.processes.runner import Processes

__all__ = ["Processes"]
