"""A policy whose arms get their configs from a sampler when they begin."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, ClassVar, cast, overload

from lastarm.errors import DrawnOtherwise, InvalidArgument
from lastarm.events import Beginning, Loss, Origin, Pull, Told
from lastarm.plain import config_identity, fingerprint, readable
from lastarm.policy import Extendable, Policy, Rounds, is_healthy
from lastarm.samplers.protocol import Chosen, Known, Sampler, Seen
from lastarm.space import Space, holds, others, recalled, spare
from lastarm.space.drawn import Replaceable

CANDIDATES = 1000  # the number of configs that a sampler chooses from, if there are enough
NEW_CANDIDATES = 400  # where they are drawn for each batch


@dataclass(eq=False)
class SampledPolicy(Policy):
    """A policy that lets a sampler choose configs, a batch of arms at a time, before they begin.

    - `policy`: it decides, as it would without a sampler; only the moments when arms begin differ.
    - `sampler`: chooses among spare configs of the same space, or any others of it.
    - `space`, `seed`: the spare configs are drawn from them.
    - `configs`: those that the arms would have without a sampler. They are changed in place.
    - `include`: those of them that stay as they are.
    - `written`: the configs of arms that have begun, as a journal has them. These arms get them
      again, so that a sampler that has changed since does not change what was begun.

    If an arm gets another config, its old one becomes a spare one. So no two arms have the same
    config, unless the space gives it twice, and an arm that stays random has exactly the config
    that it has without a sampler. Where the sampler chose that config for an earlier arm, it has
    the old one of such an arm.

    The candidates are what more arms would have drawn. A policy whose number of arms follows from
    its budget, and that begins them in the order of their numbers, has other candidates drawn for
    each batch, because what is chosen must not depend on a budget that it may be given later. Its
    batches are its own: all arms that begin in one rung.

    A policy that goes round by round begins a batch when nothing is in flight. So what the sampler
    knows, and with it the answer, does not depend on the runner. A policy that never waits does
    not wait for a batch either: its sampler knows the losses so far, in the order of the journal.
    """

    name: ClassVar[str] = "sampled"
    policy: Policy
    sampler: Sampler
    space: Space = field(repr=False)
    configs: Replaceable | list[dict[str, Any]] = field(repr=False)
    seed: int
    include: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    written: Mapping[int, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.arms, self.budget = self.policy.arms, self.policy.budget
        self._as_it_goes = bool(getattr(self.policy, "in_order", False))
        self._spare: list[dict[str, Any]] = []
        if not self._as_it_goes:
            self._spare = spare(self.space, self.configs, CANDIDATES, self.seed)
        self._included = len(set(map(config_identity, self.include)))  # they are the first arms
        self._waits = isinstance(self.policy, Rounds)
        self._held: list[Pull] = []  # asked of the policy, while a batch waits to begin
        self._in_flight: set[int] = set()
        self._begun: dict[int, Origin] = {}  # arm → where its config is from
        self._seen: dict[tuple[int, int], float] = {}  # (arm, level) → loss
        self._room = 0  # arms that may still begin in this batch
        self._question: Known | None = None  # for the sampler, as the batch began
        self._chosen: list[Chosen] = []  # its answer, as far as it is left: the last first
        self._given: list[dict[str, Any]] = []  # what arms of this batch have got
        self._foreign: set[Hashable] = set()  # what arms have got that was not spare before
        self._outside: list[Mapping[str, Any]] = []  # what was chosen and is not spare
        self._written_like: dict[str, list[dict[str, Any]]] = {}  # configs by how they are written
        if self.written and not self._as_it_goes:
            for config in [*self.configs, *self._spare]:
                like_it = self._written_like.setdefault(fingerprint(readable(config)), [])
                like_it.append(config)

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
            self._begin_batch(arm)
        number = len(self._begun)
        self._room -= 1
        changes = self._changes(arm, number)
        self._begun[arm] = Origin("random" if arm >= self._included else "included")
        if arm in self.written:
            if self._as_it_goes:
                self._restore_as_it_went(arm)
            else:
                self._restore(arm, changes)
            return
        self._propose()
        if changes and self._chosen:
            self._give(arm, self._chosen[-1])
        else:
            self._stay(arm)

    def _changes(self, arm: int, number: int) -> bool:
        """Whether the sampler chooses the config of an arm that begins as that number."""
        return arm >= self._included and not self.sampler.keeps(number)

    def _begin_batch(self, first: int) -> None:
        """Know what the sampler is to be asked. It is asked when an arm needs its answer."""
        if not self._as_it_goes:
            if self._question and len(self._given) < self._question.count:
                self._propose()  # it may have proposed more than the last batch had arms for
            unused = [cast(dict[str, Any], one.config) for one in self._chosen]
            self._spare += [config for config in unused if not _is_among(config, self._outside)]
        self._question, self._given, self._chosen, self._outside = None, [], [], []
        begun, taken = len(self._begun), [self.configs[arm] for arm in sorted(self._begun)]
        seed = int(fingerprint([self.seed, "propose", begun])[:8], 16)
        if self._as_it_goes:
            self._room = getattr(self.policy, "batch", 1)
            for k in range(self._room):
                if not self._changes(first + k, begun + k):
                    self._stay(first + k)
                    taken.append(self.configs[first + k])
            count = begun + self._room - len(taken)
        else:
            self._room = self.sampler.batch
            count = sum(not self.sampler.keeps(begun + k) for k in range(self._room))
        if not self._seen or not count:
            return
        if self._as_it_goes:
            identities = set(map(config_identity, taken))
            candidates = others(self.space, identities, NEW_CANDIDATES, seed)
        else:
            candidates = [c for c in self._spare if not self._is_foreign(c)]
        if not candidates:
            return
        seen = [
            Seen(self.configs[arm], level, loss)
            for (arm, level), loss in sorted(self._seen.items())
        ]
        level = getattr(self.policy, "max_pulls", None)
        self._question = Known(self.space, seen, taken, candidates, count, seed, level)

    def _propose(self) -> None:
        """Ask the sampler, once a batch. What it chose is no longer spare."""
        if self._question is None:
            return
        question, self._question = self._question, None
        chosen = [
            one
            for one in self._answer(question)
            if not _is_among(one.config, self._given) and not self._is_foreign(one.config)
        ]
        self._chosen = chosen[: question.count - len(self._given)][::-1]
        configs = [one.config for one in self._chosen]
        spare = () if self._as_it_goes else question.candidates
        self._outside = [config for config in configs if not _is_among(config, spare)]
        self._spare = [config for config in self._spare if not _is_among(config, configs)]

    def _answer(self, question: Known) -> list[Chosen]:
        """What the sampler chooses, if it is what it may choose."""
        given = self.sampler.choose(question)
        answer = [Chosen(one) if isinstance(one, Mapping) else Chosen(*one) for one in given]
        said = f"it was asked for at most {question.count} configs"
        if len(answer) > question.count:
            said += f" and chose {len(answer)}"
            raise self._refused(said, "Let `choose` return at most `known.count`")
        candidates = {id(config) for config in question.candidates}
        taken: set[Hashable] = set()
        if any(id(one.config) not in candidates for one in answer):
            taken = set(map(config_identity, question.begun))
        checked: list[Chosen] = []
        for config, mean, deviation in answer:
            if id(config) not in candidates:
                identity = config_identity(config)
                if identity in taken or not holds(self.space, config):
                    why = "an arm has" if identity in taken else "the space does not have"
                    said = f"it chose {config!r}, which {why}"
                    raise self._refused(said, "Choose configs of the space that no arm has")
                taken.add(identity)
            numbers = [mean, deviation]
            known = all(number is not None and isfinite(number) for number in numbers)
            expected = [float(number or 0) for number in numbers] if known else [None, None]
            checked.append(Chosen(config, *expected))
        return checked

    def _refused(self, rule: str, way_out: str) -> InvalidArgument:
        return InvalidArgument.of("sampler", self.sampler, rule, way_out)

    def _is_foreign(self, config: Mapping[str, Any]) -> bool:
        """Whether an arm has got it, though it was not a spare one before."""
        return bool(self._foreign) and config_identity(config) in self._foreign

    def _restore_as_it_went(self, arm: int) -> None:
        """Give an arm the config that it has in the journal, where that says which are chosen."""
        written = self.written[arm]
        if getattr(written, "origin", Origin("random")).how != "chosen":
            self._stay(arm)
            if not _is_written(self.configs[arm], written):
                raise DrawnOtherwise(arm, written)
            return
        found = recalled(self.space, written)
        if found is None:  # or there are several, of which the sampler knows which it chose
            self._propose()
        for one in self._chosen[::-1]:
            if _is_written(one.config, written):
                found = cast(dict[str, Any], one.config)
                break
        if found is None:
            raise DrawnOtherwise(arm, written)
        self._outside.append(found)
        self._give(arm, Chosen(found))

    def _restore(self, arm: int, changes: bool) -> None:
        """Give an arm the config that it has in the journal, with the values of the space."""
        written = self.written[arm]
        like_it = self._written_like.get(fingerprint(written), [])
        if changes and len(like_it) > 1:
            self._propose()  # the journal does not tell them apart, so the sampler has to
        next_one = [one.config for one in self._chosen[-1:]] if changes else []
        mine = [*next_one, self.configs[arm], *(one.config for one in self._chosen), *self._spare]
        found = next((config for config in mine if _is_among(config, like_it)), None)
        if found is None:
            found = recalled(self.space, written)
        if found is None:
            raise DrawnOtherwise(arm, written)
        if found is not self.configs[arm]:
            if not _is_among(found, [*self._spare, *like_it]):
                self._outside.append(found)
            self._give(arm, Chosen(found))

    def _give(self, arm: int, chosen: Chosen) -> None:
        """Let an arm begin with this config, and not with its own, which is spare now."""
        config, mean, deviation = cast(dict[str, Any], chosen.config), *chosen[1:]
        if _is_among(config, self._outside):
            self._foreign.add(config_identity(config))
        self._chosen = [one for one in self._chosen if one.config is not config]
        self._spare = [one for one in self._spare if one is not config]
        self._spare.append(self.configs[arm])
        self._given.append(config)
        self.configs[arm] = config
        self._begun[arm] = Origin("chosen", mean, deviation)

    def _stay(self, arm: int) -> None:
        """Let an arm have its own config; or a spare one, if an earlier arm was given that."""
        if self._is_foreign(self.configs[arm]):
            free = next(config for config in self._spare if not self._is_foreign(config))
            self._spare = [one for one in self._spare if one is not free]
            self.configs[arm] = free

    @property
    def beginnings(self) -> Sequence[Beginning]:
        """The configs of arms as the journal has them when an arm begins, with their origins."""
        return _Beginnings(self.configs, self._begun)

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


class _Beginnings(Sequence[Beginning]):
    """The configs of arms, with their origins; those of arms that have not begun are random."""

    def __init__(
        self, configs: Sequence[Mapping[str, Any]], origins: Mapping[int, Origin]
    ) -> None:
        self._configs, self._origins = configs, origins

    @overload
    def __getitem__(self, arm: int) -> Beginning: ...
    @overload
    def __getitem__(self, arm: slice) -> list[Beginning]: ...
    def __getitem__(self, arm: int | slice) -> Beginning | list[Beginning]:
        if isinstance(arm, slice):
            return [self[each] for each in range(*arm.indices(len(self)))]
        return Beginning(self._configs[arm], self._origins.get(arm, Origin("random")))

    def __len__(self) -> int:
        return len(self._configs)


def _is_among(config: Mapping[str, Any], several: Sequence[Mapping[str, Any]]) -> bool:
    """Whether it is one of them, and not only equal to one."""
    return any(config is one for one in several)


def _is_written(config: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    return fingerprint(readable(config)) == fingerprint(written)
