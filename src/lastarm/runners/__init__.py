"""Runners: they perform pulls.

All keep the contract in `protocol`, and the answer of a search is the same on every one. What they
share is here: how a pull is performed (`performer`), where states are in a process (`states`),
which pull is next and on which worker (`turns`), what is said of a pull besides its loss
(`asides`), and how a search gets into other processes (`remote`). A runner on this machine is a
file: `serial`, `batched`, `simulated`, `processes`. One on an engine of others is a folder:
`dask`, `ray`. `choose` finds the one that a caller asked for.

What to pull is not decided here: that is up to the policies.
"""

from lastarm.later import later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastarm.runners.batched import Batched
    from lastarm.runners.choose import AnyRunner, chosen_runner
    from lastarm.runners.processes import Processes
    from lastarm.runners.protocol import Arms, MakeRunner, Runner
    from lastarm.runners.serial import Serial
    from lastarm.runners.simulated import Simulated
    from lastarm.runners.turns import ATTEMPTS_OF_LOST, Turns

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
    "Turns",
    "chosen_runner",
]

__getattr__ = later(
    __name__,
    {
        "batched": "Batched",
        "choose": "AnyRunner chosen_runner",
        "processes": "Processes",
        "protocol": "Arms MakeRunner Runner",
        "serial": "Serial",
        "simulated": "Simulated",
        "turns": "ATTEMPTS_OF_LOST Turns",
    },
)
