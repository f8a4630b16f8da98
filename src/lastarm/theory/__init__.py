"""The paper's theory as code: what a budget guarantees, and what an elimination was worth.

The paper's words: ν_i is the limit of arm i's losses, with arms numbered so that
ν_1 < ν_2 ≤ … ≤ ν_n; γ_i(t) is the least non-increasing bound on |ℓ_{i,t} − ν_i|, and γ̄ the
greatest of them; γ⁻¹(α) is the time by which γ is below α. Jamieson & Talwalkar,
"Non-stochastic Best Arm Identification and Hyperparameter Optimization" (2015).

Here are envelopes of curves, the theorems as budgets and bounds, the audit of a search, and the
forecast of how long one takes. What a search has seen is added up in `lastarm.ledger`.

The paper is not taken on faith: docs/theory.md lists where it had to be corrected.
"""

from lastarm.theory.audit import Audit, Truth, audit, ends_lower
from lastarm.theory.envelopes import Envelopes, envelope, settling_time, told_apart
from lastarm.theory.theorems import (
    adversary,
    halving_budget,
    halving_budget_by_sum,
    halving_budget_of_example_2,
    halving_regret,
    hoeffding_envelope,
    horizon_budget,
    horizon_regret,
    inverse_of_example_1,
    sgd_envelope,
    tolerated_settling,
    uniform_budget,
    uniform_budget_of_example_2,
    uniform_regret,
)

__all__ = [
    "Audit",
    "Envelopes",
    "Truth",
    "adversary",
    "audit",
    "ends_lower",
    "envelope",
    "halving_budget",
    "halving_budget_by_sum",
    "halving_budget_of_example_2",
    "halving_regret",
    "hoeffding_envelope",
    "horizon_budget",
    "horizon_regret",
    "inverse_of_example_1",
    "settling_time",
    "sgd_envelope",
    "told_apart",
    "tolerated_settling",
    "uniform_budget",
    "uniform_budget_of_example_2",
    "uniform_regret",
]
