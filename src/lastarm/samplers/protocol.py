"""What a sampler is: who chooses the configs of later arms by what became of earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from lastarm.arguments import Number, plain_fraction, rational, whole_number
from lastarm.errors import InvalidArgument


class Seen(NamedTuple):
    """The loss of a config after so many pulls; that of an arm that failed or diverged is inf."""

    config: Mapping[str, Any]
    level: int
    loss: float


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """Chooses configs for arms, a `batch` of them at a time, by what is known when it begins.

    A `random_share` of all arms keep the config that they would have had without a sampler. To
    write one of your own, derive from this class and give it a method `propose`: it ranks
    candidates, which are drawn from the space, so that whatever it proposes is in there.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Smallest(Sampler):
    ...     def propose(self, seen, candidates, count, seed):
    ...         return sorted(range(len(candidates)), key=lambda k: candidates[k]["x"])[:count]
    >>> Smallest(batch=4)
    Smallest(batch=4, random_share='1/3')

    A batch that is small learns sooner, and one that is large keeps more workers busy: policies
    that go round by round wait for each.
    """

    packages: ClassVar[tuple[str, ...]] = ()  # whose versions decide what it proposes
    batch: int = 8
    random_share: Number = "1/3"

    def __post_init__(self) -> None:
        batch = whole_number("batch", self.batch, 1, "how many arms are drawn at a time")
        meaning = "the part of all arms that are drawn at random"
        share = rational("random_share", self.random_share, 0, meaning, more=True)
        if share > 1:
            raise InvalidArgument(
                f"random_share={self.random_share!r} will not do: random_share is {meaning}. Give "
                'a number of at most 1, such as "1/3".'
            )
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "random_share", plain_fraction(share))

    def keeps(self, number: int) -> bool:
        """Whether the arm of that number, in the order in which they begin, is a random one.

        Of the first n arms at least ⌊n · random_share⌋ are, whatever their losses.
        """
        share = Fraction(str(self.random_share))
        return int((number + 1) * share) > int(number * share)

    @abstractmethod
    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> Sequence[int]:
        """Which of the `candidates` to try, at most `count` of them: their places in the list.

        `seen` is never empty. The answer is to be a function of the arguments alone: a search that
        is resumed asks again.
        """
