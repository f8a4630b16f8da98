"""The campaigns of workers, schedules and inputs, in the order in which they are run."""

from __future__ import annotations

from faults.arguments import ARGUMENTS
from faults.campaign import Campaign
from faults.clocks import CLOCK
from faults.losses import LOSSES
from faults.runners_agree import RUNNERS_AGREE
from faults.schedules import SCHEDULES
from faults.stateful import STATEFUL
from faults.workers import WORKER_FAULTS

WORKERS: tuple[Campaign, ...] = (
    WORKER_FAULTS,
    SCHEDULES,
    STATEFUL,
    LOSSES,
    ARGUMENTS,
    CLOCK,
    RUNNERS_AGREE,
)
