"""The campaigns of coordinator and storage, in the order in which they are run."""

from __future__ import annotations

from faults.campaign import Campaign
from faults.damage import DAMAGES
from faults.drift import DRIFTS
from faults.full_disks import FULL_DISKS
from faults.kills import KILLS_EVERYWHERE, RANDOM_KILLS
from faults.owners import OWNERS
from faults.power import POWER_CUTS
from faults.refusals import REFUSALS
from faults.signalled import SIGNALS

STORAGE: tuple[Campaign, ...] = (
    RANDOM_KILLS,
    KILLS_EVERYWHERE,
    REFUSALS,
    POWER_CUTS,
    FULL_DISKS,
    DAMAGES,
    OWNERS,
    SIGNALS,
    DRIFTS,
)
