"""What a sampler is: it chooses the configs of later arms by the losses of earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from lastarm.arguments import Number, plain_fraction, rational, whole_number
from lastarm.errors import InvalidArgument


class Seen(NamedTuple):
    """The loss of a config after `level` pulls; inf if the arm failed or diverged."""

    config: Mapping[str, Any]
    level: int
    loss: float


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """Chooses configs for arms, one batch at a time, by all losses that are known at its start.

    - `batch`: how many arms are chosen at a time.
    - `random_share`: the share of all arms that keep the config they would have without a sampler.

    To write a sampler, derive from this class and add a method `propose`. It chooses among
    candidates that are drawn from the space, so every config that it proposes is in the space.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Smallest(Sampler):
    ...     def propose(self, seen, candidates, count, seed):
    ...         return sorted(range(len(candidates)), key=lambda k: candidates[k]["x"])[:count]
    >>> Smallest(batch=4)
    Smallest(batch=4, random_share='1/3')

    A small batch learns sooner, and a large one keeps more workers busy: policies that go round by
    round wait for each batch to end.
    """

    packages: ClassVar[tuple[str, ...]] = ()  # their versions decide what it proposes
    batch: int = 8
    random_share: Number = "1/3"

    def __post_init__(self) -> None:
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

    @abstractmethod
    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> Sequence[int]:
        """The places in the list `candidates` of those to try, at most `count`, the best first.

        - `seen`: every loss so far. It is never empty.
        - `candidates`: configs that no arm has.
        - `count`: how many arms need a config.
        - `seed`: all randomness must come from it.

        The answer must be a function of the arguments alone, so that every run of a search has the
        same arms.
        """
