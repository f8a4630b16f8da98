"""Events: all that is asked, told and written down.

A policy asks for a `Pull` and is told a `Loss` or a `Failure`. The journal holds these, in the
order in which they happened, after one `Opened` and up to one `Closed`; an `Extended` opens the
search again, and a `Changed` says that the user's code is another from there on. Events are
values: they never change, and mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lastarm.errors import InvalidArgument


class Origin(NamedTuple):
    """Where the config of an arm is from, in a search with a sampler.

    - `how`: "chosen" by the sampler, "random", or "included" by the user.
    - `mean`, `deviation`: what the sampler expected of its loss at the level at which arms are
      compared, and how sure it was of that; None if it did not say.
    """

    how: str
    mean: float | None = None
    deviation: float | None = None


class Beginning(dict[str, Any]):
    """The config of an arm that begins, which knows its `origin`."""

    __slots__ = ("origin",)

    def __init__(self, config: Mapping[str, Any], origin: Origin) -> None:
        super().__init__(config)
        self.origin = origin


@dataclass(frozen=True, slots=True, init=False)
class Pull:
    """Bring `arm` to `upto` pulls in all, then look at its loss once.

    Absolute rather than "r more", so that repeating it is harmless. In the journal, the pull that
    begins an arm also says what the arm's `config` is, and with a sampler what its `origin` is.
    """

    arm: int
    upto: int
    config: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    # Written out, because that of a frozen dataclass takes twice as long: a fifth of a decision.
    def __init__(self, arm: int, upto: int, config: Mapping[str, Any] | None = None) -> None:
        if arm < 0 or upto < 1:
            name, given = ("arm", arm) if arm < 0 else ("upto", upto)
            rule = "arms are numbered from 0, and a pull brings its arm to a level of at least 1"
            raise InvalidArgument.of(name, given, rule, "Use a whole number in that range")
        _set_arm(self, arm)
        _set_upto(self, upto)
        _set_config(self, config)

    @property
    def origin(self) -> Origin | None:
        """Where the config is from, if this pull begins an arm of a search with a sampler."""
        return getattr(self.config, "origin", None)


_set_arm, _set_upto, _set_config = (vars(Pull)[name].__set__ for name in ("arm", "upto", "config"))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Started(Pull):
    """A pull that was given to a worker: the same pull, which also knows to which, and when.

    `worker` and `at`, the time of day in seconds since 1970, are for people, who may want to watch
    a search. They decide nothing and are not compared. What is not known is "" or None.

    >>> Started(3, 25, worker="process 1", at=1795122903.25) == Pull(3, 25)
    True
    """

    worker: str = ""
    at: float | None = None

    def __init__(
        self,
        arm: int,
        upto: int,
        config: Mapping[str, Any] | None = None,
        worker: str = "",
        at: float | None = None,
    ) -> None:
        Pull.__init__(self, arm, upto, config)
        _set_worker(self, worker)
        _set_at(self, at)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pull):
            return self.arm == other.arm and self.upto == other.upto
        return NotImplemented

    __hash__ = Pull.__hash__

    def __repr__(self) -> str:
        return repr(Pull(self.arm, self.upto))


_set_worker, _set_at = (vars(Started)[name].__set__ for name in ("worker", "at"))


class Work(NamedTuple):
    """What it took to answer a pull, the worker and the number of the attempt.

    The arm's state is moved if it was not in the memory of the worker that trained it. The time
    for that, and for writing out other states to make room, is part of `train_seconds`.
    """

    trained: int = 0  # pulls performed: more than were asked for, if progress had been lost
    train_seconds: float = 0.0
    loss_seconds: float = 0.0
    worker: str = ""
    attempt: int = 1
    moves: int = 0
    move_seconds: float = 0.0


class Saved(NamedTuple):
    """A checkpoint: the file of an arm's state after a pull has this sha256 and this size.

    With a journal, the `seal` says which user's search has saved it: see `journal.seals`. A state
    that does not `continue` is there to predict, for the winner: it is never trained further.
    """

    digest: str
    size: int
    seal: str = ""
    continues: bool = True


class Loss(NamedTuple):  # a tuple, because a policy may be told a million of them
    """The loss of `pull.arm` after `pull.upto` pulls; lower is better, nan and ±inf are worst."""

    pull: Pull
    value: float
    work: Work = Work()
    metrics: Mapping[str, Any] | None = None  # what else the trainer has to say
    saved: Saved | None = None


class Failure(NamedTuple):
    """An attempt at `pull` failed: the arm raised, or its worker died.

    One that is `retried` does not count: the pull is started once more. One whose worker was
    `lost` may not be the arm's own fault.
    """

    pull: Pull
    error: str
    traceback: str = ""
    work: Work = Work()
    retried: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A search began: all that decides its answer, and how to run it again.

    `seed`, `policy`, `space` and `trainer` identify the search. `versions`, the `command` and the
    `folder` in which it was given are for people. The journal adds an `identity` of its own and a
    `seal`, which says which user's search has written it: see `journal.seals`. `code` has a hash
    for each function, method and class of the user that the trainer reaches, by its name, so that
    a change can be told. `metric` is for people, too: the `name` of the figure that is compared,
    and whether it is to `maximize`; empty if people read the loss itself.
    """

    seed: int
    policy: Mapping[str, Any]
    space: Mapping[str, Any]
    trainer: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    folder: str = ""
    identity: str = field(default="", compare=False, repr=False)
    seal: str = field(default="", compare=False, repr=False)
    code: Mapping[str, str] = field(default_factory=dict)
    metric: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changed:
    """From here on arms are trained by other code than before.

    `code` has the names of what differs, each with its hash now, "" if it is not used any more.
    """

    code: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Extended:
    """From here on the search has a larger `budget`: that many pulls in all, with those before.

    What the smaller budget began is finished first, so that the answer depends on the budgets of a
    search, and not on the moment at which it was given them.
    """

    budget: int

    def __post_init__(self) -> None:
        if self.budget < 1:
            rule = "it is the total of pulls over all arms, with those before"
            raise InvalidArgument.of("budget", self.budget, rule, "Use a larger one than before")


@dataclass(frozen=True, slots=True)
class Closed:
    """The policy came to its end and `arm` is recommended, as it was after `upto` pulls.

    Its test loss, where there is one, was computed once. `trained` pulls were performed again
    because the state to be tested had been lost.
    """

    arm: int
    upto: int
    test_loss: float | None = None
    trained: int = 0


Told = Loss | Failure
Event = Opened | Pull | Loss | Failure | Changed | Extended | Closed
