"""Who performs pulls."""

from lastarm.runners.batched import Batched
from lastarm.runners.choose import AnyRunner, chosen_runner
from lastarm.runners.processes import Processes
from lastarm.runners.protocol import ATTEMPTS_OF_LOST, Arms, MakeRunner, Runner
from lastarm.runners.serial import Serial
from lastarm.runners.simulated import Simulated
from lastarm.runners.turns import Waiting

__all__ = [
    "ATTEMPTS_OF_LOST",
    "AnyRunner",
    "Arms",
    "Batched",
    "MakeRunner",
    "Processes",
    "Runner",
    "Serial",
    "Simulated",
    "Waiting",
    "chosen_runner",
]
