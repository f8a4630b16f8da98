"""What a sampler is: it chooses the configs of later arms by the losses of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from lastarm.arguments import Number, plain_fraction, rational, whole_number
from lastarm.errors import InvalidArgument
from lastarm.space import Space

Config = Mapping[str, Any]


class Seen(NamedTuple):
    """The loss of a config after `level` pulls; inf if the arm failed or diverged."""

    config: Config
    level: int
    loss: float


class Known(NamedTuple):
    """All that a sampler may choose by.

    - `space`: what configs are drawn from, as the user gave it.
    - `seen`: every loss so far, sorted by arm and level. It is never empty. The rows of one arm
      have the very same config object, which is also the one in `begun`.
    - `begun`: the config of each arm that has begun, in the order of their numbers: also of those
      that have no loss yet.
    - `candidates`: random configs of the space that no arm has.
    - `count`: how many arms need a config.
    - `seed`: all randomness must come from it.
    - `level`: the number of pulls at which arms are compared in the end, such as `max_pulls`; None
      if it is not known.
    """

    space: Space
    seen: Sequence[Seen]
    begun: Sequence[Config]
    candidates: Sequence[Config]
    count: int
    seed: int
    level: int | None


class Chosen(NamedTuple):
    """A config to try, and what the sampler expects of its loss.

    - `config`: one of the candidates, or any other config of the space that no arm has.
    - `mean`, `deviation`: what is expected of its loss at the level at which arms are compared,
      and how sure that is; None if the sampler does not say.
    """

    config: Config
    mean: float | None = None
    deviation: float | None = None


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Chooses configs for arms, one batch at a time, by all losses that are known at its start.

    - `batch`: how many arms are chosen at a time. A policy that begins its arms in brackets of its
      own has each bracket chosen as a whole.
    - `random_share`: the share of all arms that keep the config they would have without a sampler.

    To write a sampler, derive from this class and add a method `propose`. It chooses among
    candidates that are drawn from the space, so every config that it proposes is in the space.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Smallest(Sampler):
    ...     def propose(self, seen, candidates, count, seed):
    ...         return sorted(range(len(candidates)), key=lambda k: candidates[k]["x"])[:count]
    >>> Smallest(batch=4)
    Smallest(batch=4, random_share='1/3')

    One that knows configs of its own, or what to expect of them, has a method `choose` instead.

    A small batch learns sooner, and a large one keeps more workers busy: policies that go round by
    round wait for each batch to end.
    """

    packages: ClassVar[tuple[str, ...]] = ()  # their versions decide what it proposes
    batch: int = 8
    random_share: Number = "1/3"

    def __post_init__(self) -> None:
        kind = type(self)
        if kind.choose is Sampler.choose and kind.propose is Sampler.propose:
            raise TypeError(
                f"{kind.__name__} has neither `propose` nor `choose`, and a sampler chooses by "
                "one of them. Add a method propose(self, seen, candidates, count, seed)."
            )
        batch = whole_number("batch", self.batch, 1, "how many arms are chosen at a time")
        meaning = "the share of all arms that are drawn at random"
        share = rational("random_share", self.random_share, 0, meaning, more=True)
        if share > 1:
            rule, way_out = (
                f"random_share is {meaning}",
                'Use a number of at most 1, such as "1/3"',
            )
            raise InvalidArgument.of("random_share", self.random_share, rule, way_out)
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "random_share", plain_fraction(share))

    def keeps(self, number: int) -> bool:
        """Whether an arm keeps its random config; arms are numbered in the order they begin.

        At least ⌊n · random_share⌋ of the first n arms do, whatever their losses.
        """
        share = Fraction(str(self.random_share))
        return int((number + 1) * share) > int(number * share)

    def choose(self, known: Known) -> Sequence[Chosen]:
        """At most `known.count` configs to try, the best first.

        Each is a config of the space, differs from the others and from all in `known.begun`. It is
        one of `known.candidates`, or any other. If it says what to expect of a loss, the journal
        keeps that. The answer must be a function of what is known alone, so that every run of a
        search has the same arms.

        Unless a sampler has its own, this is what it proposes of the candidates.
        """
        candidates, count = known.candidates, known.count
        proposed = list(self.propose(known.seen, candidates, count, known.seed))
        places = set(proposed)
        if not len(places) == len(proposed) <= count or not places <= set(range(len(candidates))):
            asked = f"at most {count} of {len(candidates)} candidates"
            rule = f"it proposes {proposed}, but it was asked for {asked}"
            way_out = "Let `propose` return their places in the list, each at most once"
            raise InvalidArgument.of("sampler", self, rule, way_out)
        return [Chosen(candidates[place]) for place in proposed]

    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Config], count: int, seed: int
    ) -> Sequence[int]:
        """The places in the list `candidates` of those to try, at most `count`, the best first.

        - `seen`: every loss so far. It is never empty.
        - `candidates`: configs that no arm has.
        - `count`: how many arms need a config.
        - `seed`: all randomness must come from it.

        The answer must be a function of the arguments alone, so that every run of a search has the
        same arms. A sampler with a `choose` of its own needs no `propose`.
        """
        raise NotImplementedError(f"{type(self).__name__} chooses by `choose`")
