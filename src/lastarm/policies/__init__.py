"""One algorithm a file. `POLICIES` holds them by the names that the command knows them by."""

from lastarm.policies.asha import ASHA
from lastarm.policies.doubling import Doubling
from lastarm.policies.envelope_halving import EnvelopeHalving
from lastarm.policies.exp3 import EXP3
from lastarm.policies.exponential_gap import ExponentialGap
from lastarm.policies.horizon_halving import HorizonHalving
from lastarm.policies.hyperband import Hyperband
from lastarm.policies.lil_ucb import LilUCB
from lastarm.policies.lucb import LUCB
from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policies.priced_halving import PricedHalving
from lastarm.policies.successive_elimination import SuccessiveElimination
from lastarm.policies.successive_halving import SuccessiveHalving
from lastarm.policies.successive_rejects import SuccessiveRejects
from lastarm.policies.timed_halving import TimedHalving
from lastarm.policies.uniform_allocation import UniformAllocation

__all__ = [
    "ASHA",
    "EXP3",
    "LUCB",
    "POLICIES",
    "Doubling",
    "EnvelopeHalving",
    "ExponentialGap",
    "HorizonHalving",
    "Hyperband",
    "LilUCB",
    "PricedHalving",
    "SuccessiveElimination",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "TimedHalving",
    "UniformAllocation",
]

POLICIES: dict[str, type[Budgeted]] = {
    policy.name: policy
    for policy in (
        UniformAllocation,
        SuccessiveHalving,
        SuccessiveRejects,
        SuccessiveElimination,
        LUCB,
        LilUCB,
        EXP3,
        ExponentialGap,
        Doubling,
        Hyperband,
        ASHA,
        HorizonHalving,
        EnvelopeHalving,
        PricedHalving,
        TimedHalving,
    )
}
