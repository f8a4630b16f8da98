"""A policy whose arms get their configs from a sampler when they begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from lastarm.errors import DrawnOtherwise, InvalidArgument
from lastarm.events import Loss, Pull, Told
from lastarm.plain import config_identity, fingerprint, readable
from lastarm.policy import Extendable, Policy, Rounds, is_healthy
from lastarm.samplers.protocol import Known, Sampler, Seen
from lastarm.space import Space, recalled, spare

CANDIDATES = 1000  # the number of configs that a sampler chooses from, if there are enough


@dataclass(eq=False)
class SampledPolicy(Policy):
    """A policy that lets a sampler choose configs, a batch of arms at a time, before they begin.

    - `policy`: it decides, as it would without a sampler; only the moments when arms begin differ.
    - `sampler`: chooses among up to a thousand spare configs of the same space.
    - `space`, `seed`: the spare configs are drawn from them.
    - `configs`: those that the arms would have without a sampler. They are changed in place.
    - `include`: those of them that stay as they are.
    - `written`: the configs of arms that have begun, as a journal has them. These arms get them
      again, so that a sampler that has changed since does not change what was begun.

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
    written: Mapping[int, Mapping[str, Any]] = field(default_factory=dict, repr=False)

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
        self._question: Known | None = None  # for the sampler, as the batch began
        self._chosen: list[dict[str, Any]] = []  # its answer, as far as it is left: the last first
        self._given: list[dict[str, Any]] = []  # what arms of this batch have got
        self._written_like: dict[str, list[dict[str, Any]]] = {}  # configs by how they are written
        for config in [*self.configs, *self._spare] if self.written else ():
            self._written_like.setdefault(fingerprint(readable(config)), []).append(config)

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
            self._begin_batch()
        number = len(self._begun)
        self._room -= 1
        self._begun.add(arm)
        changes = arm >= self._included and not self.sampler.keeps(number)
        if arm in self.written:
            self._restore(arm, changes)
            return
        self._propose()
        if changes and self._chosen:
            self._give(arm, self._chosen[-1])

    def _begin_batch(self) -> None:
        """Know what the sampler is to be asked. It is asked when an arm needs its answer."""
        if self._question and len(self._given) < self._question.count:
            self._propose()  # it may have proposed more than the last batch had arms for
        self._spare += self._chosen
        self._room, begun = self.sampler.batch, len(self._begun)
        self._question, self._given, self._chosen = None, [], []
        count = sum(not self.sampler.keeps(begun + k) for k in range(self._room))
        if self._seen and self._spare and count:
            seen = [
                Seen(self.configs[arm], level, loss)
                for (arm, level), loss in sorted(self._seen.items())
            ]
            seed = int(fingerprint([self.seed, "propose", begun])[:8], 16)
            level = getattr(self.policy, "max_pulls", None)
            taken = [self.configs[arm] for arm in sorted(self._begun)]
            self._question = Known(self.space, seen, taken, list(self._spare), count, seed, level)

    def _propose(self) -> None:
        """Ask the sampler, once a batch. What it chose is no longer spare."""
        if self._question is None:
            return
        count = self._question.count
        chosen = [one.config for one in self.sampler.choose(self._question)]
        self._question = None
        chosen = [config for config in chosen if not _is_among(config, self._given)]
        self._chosen = chosen[: count - len(self._given)][::-1]
        self._spare = [config for config in self._spare if not _is_among(config, self._chosen)]

    def _restore(self, arm: int, changes: bool) -> None:
        """Give an arm the config that it has in the journal, with the values of the space."""
        written = self.written[arm]
        like_it = self._written_like.get(fingerprint(written), [])
        if changes and len(like_it) > 1:
            self._propose()  # the journal does not tell them apart, so the sampler has to
        next_one = self._chosen[-1:] if changes else []
        order = [*next_one, self.configs[arm], *self._chosen, *self._spare]
        found = next((config for config in order if _is_among(config, like_it)), None)
        if found is None:
            found = recalled(self.space, written)
        if found is None:
            raise DrawnOtherwise(arm, written)
        if found is not self.configs[arm]:
            self._give(arm, found)

    def _give(self, arm: int, config: dict[str, Any]) -> None:
        """Let an arm begin with this config, and not with its own, which is spare now."""
        self._chosen = [one for one in self._chosen if one is not config]
        self._spare = [one for one in self._spare if one is not config]
        self._spare.append(self.configs[arm])
        self._given.append(config)
        self.configs[arm] = config

    def tell(self, event: Told) -> None:
        """Pass it on to the policy, and keep it for the sampler."""
        self.policy.tell(event)
        arm, upto = event.pull.arm, event.pull.upto
        self._in_flight.discard(arm)
        finite = isinstance(event, Loss) and is_healthy(event)
        self._seen[arm, upto] = event.value if isinstance(event, Loss) and finite else inf

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


def _is_among(config: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether it is one of them, and not only equal to one."""
    return any(config is other for other in others)
