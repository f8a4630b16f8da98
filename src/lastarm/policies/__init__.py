"""The policies: one algorithm a file, with all that is particular to it.

To add one, write a file here and import its class below: that line puts it into `POLICIES`, from
which the command, the report and all else know it. Also here are plans (`plan`), and what turns
names and numbers into a policy (`named`). What several policies share is in `parts`. Nothing here
trains, waits, reads a clock or a file.
"""

from lastarm.policies.parts.budgeted import Budgeted
from lastarm.policies.parts.budgeted import InRounds as InRounds

# In the order in which they are listed for people.
# isort: off
from lastarm.policies.uniform_allocation import UniformAllocation as UniformAllocation
from lastarm.policies.successive_halving import SuccessiveHalving as SuccessiveHalving
from lastarm.policies.successive_rejects import SuccessiveRejects as SuccessiveRejects
from lastarm.policies.successive_elimination import SuccessiveElimination as SuccessiveElimination
from lastarm.policies.lucb import LUCB as LUCB
from lastarm.policies.lil_ucb import LilUCB as LilUCB
from lastarm.policies.exp3 import EXP3 as EXP3
from lastarm.policies.exponential_gap import ExponentialGap as ExponentialGap
from lastarm.policies.doubling import Doubling as Doubling
from lastarm.policies.hyperband import Hyperband as Hyperband
from lastarm.policies.brackets import Brackets as Brackets
from lastarm.policies.asha import ASHA as ASHA
from lastarm.policies.horizon_halving import HorizonHalving as HorizonHalving
from lastarm.policies.envelope_halving import EnvelopeHalving as EnvelopeHalving
from lastarm.policies.priced_halving import PricedHalving as PricedHalving
from lastarm.policies.timed_halving import TimedHalving as TimedHalving
# isort: on

POLICIES: dict[str, type[Budgeted]] = {
    kind.name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Budgeted) and "name" in vars(kind)
}
