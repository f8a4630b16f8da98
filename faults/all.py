"""All campaigns, in the order of their numbers, and the bugs that they must catch."""

from __future__ import annotations

from faults.campaign import Campaign
from faults.engine_workers import DASK_FAULTS, RAY_FAULTS
from faults.planted import Planted
from faults.planted_storage import PLANTED as PLANTED_STORAGE
from faults.planted_workers import PLANTED_WORKERS
from faults.storage_campaigns import STORAGE
from faults.worker_campaigns import WORKERS

ALL = [*STORAGE, *WORKERS, DASK_FAULTS, RAY_FAULTS]
CAMPAIGNS: tuple[Campaign, ...] = tuple(sorted(ALL, key=lambda one: int(one.name[1:])))
PLANTED: tuple[Planted, ...] = (*PLANTED_STORAGE, *PLANTED_WORKERS)
