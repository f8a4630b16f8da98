"""Successive Halving: Karnin, Koren & Somekh (2013), as in Jamieson & Talwalkar (2015)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lastarm.arguments import whole_number
from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.integers import ceil_log
from lastarm.policy import Algorithm, added_later, ranking


def successive_halving(
    arms: Iterable[int], budget: int, eta: int = 2, *, restarts: bool = False
) -> Algorithm:
    """The paper's figure "Successive Halving Algorithm", with any integer eta in place of 2."""
    S, R = list(arms), 0  # S_0 = [n]
    rounds = ceil_log(len(S), eta)
    for _ in range(rounds):
        r = budget // (len(S) * rounds)
        R = r if restarts else R + r  # R_k = R_{k-1} + r_k
        losses = yield [Pull(arm, upto=R) for arm in S]
        S = sorted(ranking(losses)[: max(1, len(S) // eta)])  # S_{k+1}
    return S[0]


@dataclass(eq=False, repr=False)
class SuccessiveHalving(InRounds):
    """Pull all arms a little, drop the worse half, and give what was saved to the rest.

    There are ⌈log₂ n⌉ rungs. Rung k gives each of its |S_k| arms r_k = ⌊B / (|S_k|·⌈log₂ n⌉)⌋
    more pulls, so a rung costs at most B / ⌈log₂ n⌉ and the budget B is never exceeded; it keeps
    the best max(1, ⌊|S_k| / 2⌋), so there are at most 2n + 1 observations. With another `eta`,
    the best 1/eta are kept and there are ⌈log_eta n⌉ rungs.

    >>> print(SuccessiveHalving(arms=10, budget=1000).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      10          25          25           250
       2       5          50          75           500
       3       2         125         200           750
       4       1         250         450          1000

    Ties go to the lower arm number. An arm that fails or diverges is dropped and never
    recommended; the next rung's share of the budget then goes to fewer arms.

    If the trainer `restarts`, every level is trained from zero, and rung k brings its arms to
    R_k = ⌊B / (|S_k|·⌈log₂ n⌉)⌋ pulls in all. It costs |S_k|·R_k, so the budget is still what is
    trained. Theorems 1 and 4 hold as they are: their proofs use only the last summand of R_k.

    >>> print(SuccessiveHalving(arms=10, budget=1000, restarts=True).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      10          25          25           250
       2       5          50          50           500
       3       2         125         125           750
       4       1         250         250          1000

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `eta`: the best 1/eta of a rung go on; a whole number of at least 2.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization" (2015), figure "Successive Halving Algorithm"; the algorithm is of Karnin, Koren
    & Somekh, "Almost Optimal Exploration in Multi-Armed Bandits" (ICML 2013).
    """

    name: ClassVar[str] = "successive-halving"
    eta: int = 2
    restarts: bool = added_later(False, kw_only=True)

    def __post_init__(self) -> None:
        self.eta = whole_number("eta", self.eta, 2, "the part of a rung that is kept, as 1/eta")
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """The figure."""
        arms = range(self.arms)
        return successive_halving(arms, self.budget, self.eta, restarts=self.restarts)

    @property
    def theorem_1_holds(self) -> bool:
        """The figure keeps the better half; it holds for trainers that restart, too."""
        return self.eta == 2

    def least_budget(self, arms: int) -> int:
        """n·⌈log n⌉, where r_0 becomes 1."""
        return arms * max(1, ceil_log(arms, self.eta))
