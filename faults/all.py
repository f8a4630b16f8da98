"""All campaigns, in the order of their numbers, and the bugs that they must catch."""

from __future__ import annotations

from faults.arguments import ARGUMENTS
from faults.campaign import Campaign
from faults.clocks import CLOCK
from faults.damage import DAMAGES
from faults.drift import DRIFTS
from faults.engines import DASK_FAULTS, RAY_FAULTS
from faults.full_disks import FULL_DISKS
from faults.kills import KILLS_EVERYWHERE, RANDOM_KILLS
from faults.losses import LOSSES
from faults.owners import OWNERS
from faults.planted import Planted
from faults.planted_storage import PLANTED as PLANTED_STORAGE
from faults.planted_workers import PLANTED_WORKERS
from faults.power import POWER_CUTS
from faults.refusals import REFUSALS
from faults.runners_agree import RUNNERS_AGREE
from faults.schedules import SCHEDULES
from faults.signalled import SIGNALS
from faults.stateful import STATEFUL
from faults.workers import WORKER_FAULTS

CAMPAIGNS: tuple[Campaign, ...] = (
    RANDOM_KILLS,  # F1
    KILLS_EVERYWHERE,
    REFUSALS,
    POWER_CUTS,
    FULL_DISKS,
    DAMAGES,
    WORKER_FAULTS,  # F7
    DASK_FAULTS,
    RAY_FAULTS,
    SCHEDULES,  # F11
    STATEFUL,
    LOSSES,
    ARGUMENTS,
    OWNERS,
    SIGNALS,  # F16
    CLOCK,
    DRIFTS,
    RUNNERS_AGREE,
)
PLANTED: tuple[Planted, ...] = (*PLANTED_STORAGE, *PLANTED_WORKERS)
