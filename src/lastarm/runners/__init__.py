"""Who performs pulls."""

from lastarm.runners.batched import Batched
from lastarm.runners.chosen import AnyRunner, chosen_runner
from lastarm.runners.processes import Processes
from lastarm.runners.protocol import Arms, MakeRunner, Runner
from lastarm.runners.serial import Serial
from lastarm.runners.simulated import Simulated

__all__ = [
    "AnyRunner",
    "Arms",
    "Batched",
    "MakeRunner",
    "Processes",
    "Runner",
    "Serial",
    "Simulated",
    "chosen_runner",
]
