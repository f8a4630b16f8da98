"""A training loop that reports: a function that is called once, and waits at each report.

Here are the trainer (`trainer`), its arms and how many of them wait in a process (`arms`), the
thread in which a loop runs and waits (`loops`), and the global generators of random numbers, which
belong to one arm at a time (`global_random`). The callbacks of frameworks report for their loops.
"""

from lastarm.trainers.reporting.loops import BadReport, Reporter
from lastarm.trainers.reporting.trainer import Reporting

__all__ = ["BadReport", "Reporter", "Reporting"]
