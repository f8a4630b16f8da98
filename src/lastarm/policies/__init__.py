"""One algorithm a file. `POLICIES` holds them by the names that the command knows them by."""

from lastarm.policies.fixed_budget import FixedBudget
from lastarm.policies.successive_halving import SuccessiveHalving
from lastarm.policies.successive_rejects import SuccessiveRejects
from lastarm.policies.uniform_allocation import UniformAllocation

__all__ = ["POLICIES", "SuccessiveHalving", "SuccessiveRejects", "UniformAllocation"]

POLICIES: dict[str, type[FixedBudget]] = {
    policy.name: policy for policy in (UniformAllocation, SuccessiveHalving, SuccessiveRejects)
}
