"""Who performs pulls."""

from lastarm.runners.protocol import MakeRunner, Runner
from lastarm.runners.serial import Serial
from lastarm.runners.simulated import Simulated

__all__ = ["MakeRunner", "Runner", "Serial", "Simulated"]
