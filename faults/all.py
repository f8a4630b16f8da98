"""All campaigns, in the order of their numbers, and the bugs that they must catch."""

from __future__ import annotations

from faults.arguments import ARGUMENTS
from faults.big_states import BIG_STATES
from faults.campaign import Campaign
from faults.clocks import CLOCK
from faults.damage import DAMAGES
from faults.drift import DRIFTS
from faults.engines import DASK_FAULTS, RAY_FAULTS
from faults.full_disks import FULL_DISKS
from faults.kills import KILLS_EVERYWHERE, RANDOM_KILLS
from faults.load import LOAD
from faults.losses import LOSSES
from faults.offspring import OFFSPRING
from faults.owners import OWNERS
from faults.planted import Planted
from faults.planted_edges import PLANTED_EDGES
from faults.planted_scale import PLANTED_SCALE
from faults.planted_storage import PLANTED as PLANTED_STORAGE
from faults.planted_workers import PLANTED_WORKERS
from faults.power import POWER_CUTS
from faults.real_arms import REAL_ARMS
from faults.refusals import REFUSALS
from faults.runners_agree import RUNNERS_AGREE
from faults.schedules import SCHEDULES
from faults.second_user import SECOND_USER
from faults.signalled import SIGNALS
from faults.slow_loading import SLOW_LOADING
from faults.soak import SOAK
from faults.stateful import STATEFUL
from faults.vanishing import VANISHING
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
    RUNNERS_AGREE,  # F20
    LOAD,
    BIG_STATES,  # F22
    SOAK,
    REAL_ARMS,  # F25
    SLOW_LOADING,
    OFFSPRING,
    VANISHING,  # F28
    SECOND_USER,
)
PLANTED: tuple[Planted, ...] = (
    *PLANTED_STORAGE,
    *PLANTED_WORKERS,
    *PLANTED_SCALE,
    *PLANTED_EDGES,
)
