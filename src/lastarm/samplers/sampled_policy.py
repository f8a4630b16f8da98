"""A policy whose arms get their configs from a sampler when they begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from lastarm.errors import DrawnOtherwise, InvalidArgument
from lastarm.events import Event, Loss, Pull, Told
from lastarm.plain import config_identity, fingerprint, readable
from lastarm.policy import Extendable, Policy, Rounds, is_healthy
from lastarm.samplers.protocol import Sampler, Seen
from lastarm.space import Space, spare

CANDIDATES = 1000  # the number of configs that a sampler chooses from, if there are enough


@dataclass(eq=False)
class SampledPolicy(Policy):
    """A policy that lets a sampler choose configs, a batch of arms at a time, before they begin.

    - `policy`: it decides, as it would without a sampler; only the moments when arms begin differ.
    - `sampler`: chooses among up to a thousand spare configs of the same space.
    - `space`, `seed`: the spare configs are drawn from them.
    - `configs`: those that the arms would have without a sampler. They are changed in place.
    - `include`: those of them that stay as they are.

    If an arm gets another config, its old one becomes a spare one. So no two arms have the same
    config, unless the space gives it twice, and an arm that stays random has exactly the config
    that it has without a sampler.

    A policy that goes round by round begins a batch when nothing is in flight. So what the sampler
    knows, and with it the answer, does not depend on the runner. A policy that never waits does
    not wait for a batch either: its sampler knows the losses so far, in the order of the journal.
    """

    name: ClassVar[str] = "sampled"
    policy: Policy
    sampler: Sampler
    space: Space = field(repr=False)
    configs: list[dict[str, Any]] = field(repr=False)
    seed: int
    include: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        self.arms, self.budget = self.policy.arms, self.policy.budget
        self._spare = spare(self.space, self.configs, CANDIDATES, self.seed)
        self._included = len(set(map(config_identity, self.include)))  # they are the first arms
        self._waits = isinstance(self.policy, Rounds)
        self._held: list[Pull] = []  # asked of the policy, while a batch waits to begin
        self._in_flight: set[int] = set()
        self._begun: set[int] = set()
        self._seen: dict[tuple[int, int], float] = {}  # (arm, level) → loss
        self._room = 0  # arms that may still begin in this batch
        self._chosen: list[dict[str, Any]] = []  # what they get, the last first

    def ask(self, n: int = 1) -> list[Pull]:
        """What the policy asks for, unless a batch has to wait; new arms get their configs."""
        pulls: list[Pull] = []
        while len(pulls) < n:
            self._held = self._held or self.policy.ask(1)
            if not self._held:
                break
            (pull,) = self._held
            if pull.arm in self._begun:
                if self._waits:
                    self._room = 0  # the rung below is known, so the next arm begins a batch
            elif self._room or not (self._waits and self._in_flight):
                self._begin(pull.arm)
            else:
                break
            self._held = []
            self._in_flight.add(pull.arm)
            pulls.append(pull)
        return pulls

    def _begin(self, arm: int) -> None:
        if not self._room:
            self._room = self.sampler.batch
            self._chosen = self._choose()
        number = len(self._begun)
        self._room -= 1
        self._begun.add(arm)
        if arm >= self._included and not self.sampler.keeps(number) and self._chosen:
            self._spare.append(self.configs[arm])
            self.configs[arm] = self._chosen.pop()

    def _choose(self) -> list[dict[str, Any]]:
        """What the sampler proposes for this batch, the first one last. It is no longer spare."""
        self._spare += self._chosen  # the last batch had no arms for these
        begun = len(self._begun)
        count = sum(not self.sampler.keeps(begun + k) for k in range(self._room))
        if not (self._seen and self._spare and count):
            return []
        seen = [
            Seen(self.configs[arm], level, loss)
            for (arm, level), loss in sorted(self._seen.items())
        ]
        seed = int(fingerprint([self.seed, "propose", begun])[:8], 16)
        proposed = list(self.sampler.propose(seen, self._spare, count, seed))
        places = set(proposed)
        if not len(places) == len(proposed) <= count or not places <= set(range(len(self._spare))):
            raise InvalidArgument(
                f"the sampler {self.sampler} proposes {proposed}, but it was asked for at most "
                f"{count} of {len(self._spare)} candidates. Let `propose` return their places in "
                "the list, each at most once.",
                argument="sampler",
                given=self.sampler,
            )
        chosen = [self._spare[place] for place in proposed]
        for place in sorted(proposed, reverse=True):
            del self._spare[place]
        return chosen[::-1]

    def tell(self, event: Told) -> None:
        """Pass it on to the policy, and keep it for the sampler."""
        self.policy.tell(event)
        arm, upto = event.pull.arm, event.pull.upto
        self._in_flight.discard(arm)
        finite = isinstance(event, Loss) and is_healthy(event)
        self._seen[arm, upto] = event.value if isinstance(event, Loss) and finite else inf

    def confirm(self, event: Event) -> None:
        """Refuse an arm of the journal that has another config there."""
        if isinstance(event, Pull) and event.config is not None:
            said, drawn = readable(event.config), readable(self.configs[event.arm])
            if said != drawn:
                raise DrawnOtherwise(event.arm, said, drawn)

    @property
    def recommendation(self) -> int | None:
        """The policy's."""
        return self.policy.recommendation

    @property
    def finished(self) -> bool:
        """Whether the policy has."""
        return self.policy.finished

    def extend(self, budget: int) -> None:
        """Let the policy continue with a larger budget."""
        assert isinstance(self.policy, Extendable), "a search by any other is not extended"
        self.policy.extend(budget)
