"""The paper's theory as code: what a budget guarantees, and what an elimination was worth.

The paper's words: ν_i is the limit of arm i's losses, with arms numbered so that
ν_1 < ν_2 ≤ … ≤ ν_n; γ_i(t) is the least non-increasing bound on |ℓ_{i,t} − ν_i|, and γ̄ the
greatest of them; γ⁻¹(α) is the time by which γ is below α. Jamieson & Talwalkar,
"Non-stochastic Best Arm Identification and Hyperparameter Optimization" (2015).

Here are envelopes of curves, the theorems as budgets and bounds, the audit of a search, and the
forecast of how long one takes. What a search has seen is added up in `lastarm.ledger`.

The paper is not taken on faith: docs/theory.md lists where it had to be corrected.
"""

from lastarm.theory.audit import Audit as Audit
from lastarm.theory.audit import Truth as Truth
from lastarm.theory.audit import audit as audit
from lastarm.theory.audit import ends_lower as ends_lower
from lastarm.theory.envelopes import Envelopes as Envelopes
from lastarm.theory.envelopes import envelope as envelope
from lastarm.theory.envelopes import settling_time as settling_time
from lastarm.theory.envelopes import told_apart as told_apart
from lastarm.theory.safe_rungs import SafeRung as SafeRung
from lastarm.theory.safe_rungs import halving_budget_by_rung as halving_budget_by_rung
from lastarm.theory.safe_rungs import safe_rungs as safe_rungs
from lastarm.theory.theorems import adversary as adversary
from lastarm.theory.theorems import halving_budget as halving_budget
from lastarm.theory.theorems import halving_budget_by_sum as halving_budget_by_sum
from lastarm.theory.theorems import halving_budget_of_example_2 as halving_budget_of_example_2
from lastarm.theory.theorems import halving_regret as halving_regret
from lastarm.theory.theorems import hoeffding_envelope as hoeffding_envelope
from lastarm.theory.theorems import horizon_budget as horizon_budget
from lastarm.theory.theorems import horizon_regret as horizon_regret
from lastarm.theory.theorems import inverse_of_example_1 as inverse_of_example_1
from lastarm.theory.theorems import sgd_envelope as sgd_envelope
from lastarm.theory.theorems import tolerated_settling as tolerated_settling
from lastarm.theory.theorems import uniform_budget as uniform_budget
from lastarm.theory.theorems import uniform_budget_of_example_2 as uniform_budget_of_example_2
from lastarm.theory.theorems import uniform_regret as uniform_regret
