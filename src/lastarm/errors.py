"""The error tree, sorted by whose error it is: the caller's, an arm's, the journal's.

A message says what was given, what the rule is and what to do. Every error raised on purpose is a
`LastarmError`; anything else that escapes from lastarm is a bug.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LastarmError(Exception):
    """The root of the tree."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As they were worded: most are made of more than their message."""
        return _as_worded, (type(self), str(self), self.__dict__)


def _as_worded(kind: type[LastarmError], message: str, fields: dict[str, Any]) -> LastarmError:
    error = kind.__new__(kind, message)
    error.__dict__.update(fields)
    return error


def short(value: object) -> str:
    """A value as an error shows it: cut off where it is long."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:16]}…"


# The caller's ---------------------------------------------------------------------------------


class InvalidArgument(LastarmError, ValueError):
    """What was asked for cannot be done. Nothing was trained.

    `argument` is the name of the argument that is not valid and `given` its value, where a single
    one is at fault. Code should look at these, because the wording may change.
    """

    def __init__(self, message: str, *, argument: str | None = None, given: object = None) -> None:
        self.argument, self.given = argument, given
        super().__init__(message)

    @classmethod
    def of(cls, argument: str, given: object, rule: str, way_out: str) -> Self:
        """The error for one argument, with its three parts: the value, the rule, what to do.

        >>> print(InvalidArgument.of("workers", 0, "it counts processes", "Use 1 or more"))
        workers=0 is not valid: it counts processes. Use 1 or more.
        """
        message = f"{argument}={short(given)} is not valid: {rule}. {way_out}."
        return cls(message, argument=argument, given=given)


class BudgetTooSmall(InvalidArgument):
    """The budget does not reach every arm once.

    `least` is a budget that does, `most_arms` how many arms this one reaches.
    """

    def __init__(self, budget: int, arms: int, least: int, most_arms: int) -> None:
        self.least, self.most_arms = least, most_arms
        fewer = f", or draw at most {most_arms} arm{'s' * (most_arms > 1)}" if most_arms else ""
        super().__init__(
            f"budget={budget} is too small: the first round, with {arms} arms to choose from, "
            f"takes a budget of at least {least}. Raise the budget to {least}{fewer}.",
            argument="budget",
            given=budget,
        )


class NotAsked(InvalidArgument):
    """A policy was told of a pull that it is not waiting for: never asked, or told before."""

    def __init__(self, pull: object) -> None:
        super().__init__(
            f"{pull} is not awaited. Tell a policy only what it asked for, and only once."
        )


# An arm's --------------------------------------------------------------------------------------


class BadLoss(LastarmError, TypeError):
    """A trainer returned something that is not a real number. That arm has failed.

    `kind` is the name of the type that it returned.
    """

    def __init__(self, message: str, kind: str) -> None:
        self.kind = kind
        super().__init__(message)


class AllArmsFailed(LastarmError, RuntimeError):
    """No arm has a finite loss, so nothing can be recommended; `causes` says why, arm by arm."""

    def __init__(self, causes: Mapping[int, str]) -> None:
        self.causes = dict(causes)
        counts = Counter(self.causes.values()).most_common()
        shown = "; ".join(f"{cause} ({count} of {len(causes)})" for cause, count in counts[:5])
        more = f"; and {len(counts) - 5} other causes" if len(counts) > 5 else ""
        super().__init__(
            f"all {len(causes)} arms failed, so nothing can be recommended: {shown}{more}. "
            "Look at what an arm returns as its loss, or at the range of its settings."
        )


# A policy's or a runner's ----------------------------------------------------------------------


class Stuck(LastarmError, RuntimeError):
    """The search cannot go on: a policy or a runner broke its contract, or workers are missing."""


class WorkersNotStarted(Stuck):
    """Workers cannot start, and no arm is the cause; `details` is what became of them."""

    def __init__(self, what: str, details: str) -> None:
        self.details = details
        super().__init__(f"{what}:\n{details}")


class ClusterLost(Stuck):
    """The cluster of a Dask or Ray runner is gone. The search can be resumed elsewhere."""


# The journal's ---------------------------------------------------------------------------------


class JournalError(LastarmError):
    """The journal cannot be used. What it holds is left as it was."""


class JournalDamaged(JournalError):
    """A line that had been safely written is not what was written."""

    def __init__(self, path: object, line: int, what: str) -> None:
        self.line = line
        super().__init__(
            f"the journal {path} is damaged at line {line}: {what}. It is left as it is; restore "
            f"a copy, or move it away and start the search anew."
        )


class OtherFormat(JournalError):
    """The journal was written by a version of lastarm that writes them differently."""

    def __init__(self, path: object, written: object, known: int) -> None:
        super().__init__(
            f"the journal {path} is of format {written}, and this version of lastarm knows format "
            f"{known}. Use the version that wrote it."
        )


class JournalLocked(JournalError):
    """Another process is writing to the journal."""

    def __init__(self, path: object, owner: str) -> None:
        super().__init__(
            f"the journal {path} is in use by {owner}. One process at a time may write to it: "
            "wait for that one or stop it, or name another journal."
        )


class JournalNotWritten(JournalError):
    """The disk refused. Everything acknowledged before is safe."""

    def __init__(self, path: object, cause: OSError) -> None:
        super().__init__(
            f"the journal {path} could not be written: {cause.strerror or cause}. Mend that, "
            "then run the same command again: it resumes from the last loss that was saved."
        )


class CheckpointNotWritten(JournalError):
    """The disk refused a state. The search stops before its loss counts, and can be resumed."""

    def __init__(self, path: Any, cause: OSError) -> None:
        self.path = path
        super().__init__(
            f"the checkpoint {path} could not be written: {cause.strerror or cause}. Fix this, "
            "then run the same command again: it resumes from the last loss that was saved."
        )


class CheckpointLost(LastarmError):
    """A state is not there as it was saved. The arm is trained again, and no caller sees this."""


class CheckpointReplaced(UserWarning):
    """A checkpoint was missing or damaged; its arm was trained again, to the same answer."""

    def __init__(self, path: Any, arm: int) -> None:
        self.path, self.arm = path, arm
        super().__init__(
            f"the checkpoint {path} was missing or damaged, so arm {arm} was trained again"
        )


class JournalRepaired(UserWarning):
    """The journal's end was torn, as a crash leaves it; it was cut off and is done again."""

    def __init__(self, path: object, torn: int) -> None:
        super().__init__(
            f"the journal {path} ended in {torn} bytes that a crash had torn; they are cut off, "
            "and what they were about is done again"
        )


class OtherSearch(JournalError):
    """The journal is of a search with other arguments; `differences` names them."""

    def __init__(self, path: object, differences: Iterable[tuple[str, object, object]]) -> None:
        self.differences = list(differences)
        listed = "; ".join(
            f"{name} was {short(was)} and is now {short(now)}"
            for name, was, now in self.differences
        )
        way_out = "Use the same arguments to resume it"
        if [name for name, _, _ in self.differences] == ["budget"]:
            way_out = "A budget can only grow: give the same to resume it, or more to extend it"
        super().__init__(
            f"the journal {path} is of another search: {listed}. "
            f"{way_out}, or name another journal."
        )


class OtherVersion(JournalError):
    """The journal follows a rule that this version of lastarm has changed.

    `part` is "policy" or "trainer" and `name` says which; the rule has the number `written` in the
    journal and `known` here.
    """

    def __init__(
        self, path: object, part: str, name: str, written: object, known: object, by: str = ""
    ) -> None:
        self.path, self.part, self.name = path, part, name
        self.written, self.known = written, known
        wrote = f" (lastarm {by})" if by else ""
        super().__init__(
            f"the journal {path} was written with version {written} of the {part} {name}, and "
            f"this lastarm has version {known}, which does not do the same. A search is never "
            "resumed by another rule. Start it again with another journal, or resume it with the "
            f"lastarm that wrote it{wrote}. `lastarm show`, `report` and `export` still read it."
        )


class ReplayDiverged(JournalError):
    """Walked through the journal, the policy asked for something else than what was written."""

    def __init__(self, record: int, written: object, asked: object) -> None:
        self.record = record
        super().__init__(
            f"record {record} of the journal is {written}, but the policy now does {asked}: the "
            "policy's code has changed since. Resume with the version that began this search."
        )


class DrawnOtherwise(JournalError):
    """An arm of the journal has a config that is not found in the space, as it is drawn now.

    `arm` is its number, and `written` is the config.
    """

    def __init__(self, arm: int, written: object) -> None:
        self.arm, self.written = arm, written
        super().__init__(
            f"in the journal, arm {arm} has the config {written}, but the space no longer gives "
            "such a config: the space, or a package that draws from it, has changed since. Resume "
            "with the versions that began this search, which the header of the journal names, or "
            "start again with another journal."
        )
