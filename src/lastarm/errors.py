"""The error tree, sorted by whose error it is: the caller's, an arm's, the journal's.

A message says what was given, what the rule is and what to do. The values in it are fields of the
error too, so that code does not have to read the message. Every error raised on purpose is a
`LastarmError`; anything else that escapes from lastarm is a bug.
"""

from __future__ import annotations

import pickle
import reprlib
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class _Portable(Exception):
    """An exception that can be pickled, although it is made of more than its message."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Its message and its fields; of a field that cannot be pickled, its text."""
        fields = {name: _portable(value) for name, value in self.__dict__.items()}
        return _made_again, (type(self), str(self), fields)


def _made_again(kind: type[_Portable], message: str, fields: dict[str, Any]) -> _Portable:
    error = kind.__new__(kind, message)
    error.__dict__.update(fields)
    return error


def _portable(value: object) -> object:
    try:
        pickle.dumps(value)
    except Exception:
        return shown(value)
    return value


class LastarmError(_Portable):
    """The root of the tree."""


class LastarmWarning(_Portable, UserWarning):
    """Something went wrong that lastarm has put right, at some cost."""


_cut_off = reprlib.Repr()
_cut_off.maxstring = _cut_off.maxother = 120  # most paths are shown whole
_cut_off.maxlong = 40
_cut_off.maxlist = _cut_off.maxtuple = _cut_off.maxdict = 6


def shown(value: object) -> str:
    """A value as an error shows it: on one line, and cut off where it is long.

    >>> shown(list(range(100))), len(shown("x" * 1000))
    ('[0, 1, 2, 3, 4, 5, ...]', 120)
    """
    try:
        return " ".join(_cut_off.repr(value).split())
    except ValueError:  # Python does not write whole numbers of more than 4,300 digits
        return f"(a very large {type(value).__name__})"


def listed(names: list[str], most: int = 10) -> str:
    """Names, as many as a sentence has room for.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


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
        message = f"{argument}={shown(given)} is not valid: {rule}. {way_out}."
        return cls(message, argument=argument, given=given)


class UnknownArgument(InvalidArgument, TypeError):
    """An argument of that name is not known, such as one that another tool has.

    `instead` is lastarm's name for it, where there is one.
    """

    def __init__(
        self, place: str, argument: str, given: object, way_out: str, instead: str | None = None
    ) -> None:
        self.instead = instead
        super().__init__(
            f"{argument}={shown(given)} is not valid: {place} does not take it. {way_out}.",
            argument=argument,
            given=given,
        )


class BudgetTooSmall(InvalidArgument):
    """The budget does not reach every arm once.

    `least` is the smallest budget that does, and `most_arms` the number of `arms` that this one
    reaches.
    """

    def __init__(self, budget: int, arms: int, least: int, most_arms: int) -> None:
        self.arms, self.least, self.most_arms = arms, least, most_arms
        fewer = f", or draw at most {most_arms} arm{'s' * (most_arms > 1)}" if most_arms else ""
        super().__init__(
            f"budget={budget} is too small: the first round, with {arms} arms to choose from, "
            f"needs a budget of at least {least}. Raise the budget to {least}{fewer}.",
            argument="budget",
            given=budget,
        )


class NotAsked(InvalidArgument):
    """A policy was told of a `pull` that it does not wait for: never asked, or told before."""

    def __init__(self, pull: object) -> None:
        self.pull = pull
        super().__init__(
            f"the policy does not wait for {pull}. Tell it only of pulls that it asked for, and "
            "of each only once.",
            argument="event",
            given=pull,
        )


# An arm's --------------------------------------------------------------------------------------


class BadLoss(LastarmError, TypeError):
    """A trainer returned something that is not a real number. That arm has failed.

    `kind` is the name of the type that it returned.
    """

    def __init__(self, message: str, kind: str) -> None:
        self.kind = kind
        super().__init__(message)


class MetricsTooLarge(LastarmError, ValueError):
    """A trainer returned more metrics than a journal takes. That arm has failed.

    `arm` is its number, `limit` is "entries", "levels" or "bytes", and `most` how many of these
    all metrics may have together.
    """

    def __init__(self, arm: int | None, limit: str, most: int) -> None:
        self.arm, self.limit, self.most = arm, limit, most
        whose = "an arm" if arm is None else f"arm {arm}"
        super().__init__(
            f"the metrics of {whose} have more than {most:,} {limit}. This is the limit for all "
            "metrics beside one loss together. Return less, and write the rest to files."
        )


class AllArmsFailed(LastarmError, RuntimeError):
    """No arm has a finite loss, so nothing can be recommended; `causes` says why, arm by arm.

    If all of them are from a `journal`, so that nothing was trained, this is its path. `changed`
    are the names of the code that has changed since some of them failed.
    """

    def __init__(
        self,
        causes: Mapping[int, str],
        *,
        where: str = "",
        journal: object = None,
        changed: Iterable[str] = (),
    ) -> None:
        self.causes, self.changed = dict(causes), list(changed)
        self.journal = None if journal is None else str(journal)
        counts = Counter(self.causes.values()).most_common()
        shown = "; ".join(
            f"{count} of {len(causes)}: {cause.rstrip('.')}" for cause, count in counts[:5]
        )
        more = f"; and {len(counts) - 5} other causes" if len(counts) > 5 else ""
        raised = f" The first was raised at {where}." if where else ""
        found = f" All of this was found in {journal}: nothing was trained." if journal else ""
        way_out = "Look at what an arm returns as its loss, or at the range of its settings."
        if self.changed:
            way_out = (
                f"The code has changed since the journal was begun: {listed(self.changed)}. To "
                "start again, use fresh=True (--fresh), which keeps this journal, or name another."
            )
        super().__init__(
            f"all {len(causes)} arms failed, so nothing can be recommended. {shown}{more}."
            f"{raised}{found} {way_out}"
        )


class ArmRaised(LastarmError):
    """What an arm raised in another process, or before the search was resumed; as its traceback.

    `arm` is its number and `upto` the pull at which it failed. Errors are raised from this one
    where the original cannot be had.
    """

    def __init__(self, arm: int, upto: int, traceback: str) -> None:
        self.arm, self.upto, self.traceback = arm, upto, traceback
        super().__init__(f"arm {arm} failed at pull {upto}:\n\n{traceback.rstrip()}\n")


class EndedEarly(LastarmWarning):
    """The loop of an arm ended before it had yielded as many losses as were asked for.

    `arm` had `pulls` pulls then, and `upto` were asked for.
    """

    def __init__(self, arm: int, pulls: int, upto: int) -> None:
        self.arm, self.pulls, self.upto = arm, pulls, upto
        super().__init__(
            f"the loop of arm {arm} ended at pull {pulls}, and {upto} were asked for. Its last "
            "loss stands for the rest. Let the loop run on (`while True:`), or use a `max_pulls` "
            "that it reaches. Other arms like this are not reported."
        )


class Dropped(BaseException):
    """Raised where a loop waits at its report: its arm is not pulled again in this process.

    The search ends, or others need the memory. It is not an error, and comes from `BaseException`,
    so that `except Exception` lets it pass. Clean up, by `finally` or `with`, and let it pass.
    """


class LoopsLeft(LastarmWarning):
    """`many` loops of a `function` that reports did not end when their arms were dropped."""

    def __init__(self, function: str, many: int) -> None:
        self.function, self.many = function, many
        super().__init__(
            f"{many} loops of {function} have not ended, and their threads are still there. Let "
            "lastarm.Dropped pass: use `except Exception`, or raise it again."
        )


# A policy's or a runner's ----------------------------------------------------------------------


class Stuck(LastarmError, RuntimeError):
    """The search cannot go on: a policy or a runner broke its contract, or workers are missing."""


class WorkersNotStarted(Stuck):
    """Workers cannot start, and no arm is the cause; `details` is what became of them."""

    def __init__(self, what: str, details: str) -> None:
        self.details = details
        super().__init__(f"{what}:\n{details}")


class EngineNotStarted(Stuck):
    """An `engine`, such as Ray, cannot be started here. Nothing was trained."""

    def __init__(self, engine: str, why: str, way_out: str) -> None:
        self.engine, self.why = engine, why
        super().__init__(f"{engine} could not be started on this machine: {why}. {way_out}.")


class ClusterLost(Stuck):
    """The cluster of a Dask or Ray runner is gone. The search can be resumed elsewhere."""


# The journal's ---------------------------------------------------------------------------------


class JournalError(LastarmError):
    """The journal cannot be used. What it holds is left as it was.

    `path` is the file that is at fault, if it is a single one.
    """

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        self.path: Any = path
        super().__init__(message)


class JournalNotRead(JournalError):
    """There is no file that can be read as a journal."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the journal {path} cannot be read: {why}. Name a file that a search wrote as its "
            "journal.",
            path=path,
        )


class NotAJournal(JournalNotRead):
    """The file was never a journal. It is left as it is."""

    def __init__(self, path: Path, what: str) -> None:
        JournalError.__init__(
            self,
            f"the file {path} is not a journal: {what}. Name a journal, which a search has "
            "written, or for a new search a file that does not exist yet.",
            path=path,
        )


class JournalDamaged(JournalError):
    """A `line` that had been safely written is not what was written."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        self.line = line
        super().__init__(
            f"the journal {path} is damaged at line {line}: {what}. It is left as it is. Restore "
            "a copy of it, or start the search again with another journal.",
            path=path,
        )


class ImpossibleValue(JournalError):
    """A `line` of a journal has a value that no search has, so it is not shown.

    `name` is what has it, and `value` what it is.
    """

    def __init__(self, line: int, name: str, value: object, rule: str) -> None:
        self.line, self.name, self.value = line, name, value
        super().__init__(
            f"line {line} of the journal has {name}={shown(value)}, which no search has: {rule}. "
            "Ask the person who made this journal."
        )


class OtherFormat(JournalError):
    """The journal has another format than this version of lastarm reads.

    The number of its format is `written`, and the one that can be read is `known`.
    """

    def __init__(self, path: Path, written: object, known: int) -> None:
        self.written, self.known = written, known
        super().__init__(
            f"the journal {path} has format {written}, and this version of lastarm reads format "
            f"{known}. Use the version of lastarm that wrote it.",
            path=path,
        )


class JournalLocked(JournalError):
    """Another process is writing to the journal: its `owner`."""

    def __init__(self, path: Path, owner: str) -> None:
        self.owner = owner
        super().__init__(
            f"the journal {path} is in use by {owner}. Only one process at a time may write to "
            "it. Wait until it ends, or stop it, or name another journal.",
            path=path,
        )


class JournalNotWritten(JournalError):
    """The disk refused to write, or the file is not the one that was written any more.

    Everything that counted before is safe: in the second case, all lines are in `rescued`, a new
    file. It is None if the file is as it was, or if there is no place where a new one can be made.
    """

    def __init__(
        self,
        path: Path,
        cause: OSError | None = None,
        *,
        what: str = "",
        rescued: Path | None = None,
        taken: bool = False,
    ) -> None:
        self.rescued: Any = rescued
        why = (cause.strerror or cause) if cause else ""
        if taken:
            way_out = (
                f"Its lines are saved in {rescued}. Use this file as the journal to resume, with "
                f"the same command. If {path}.states holds its states, rename that to "
                f"{rescued}.states before, or they are trained again."
            )
        elif rescued:
            way_out = (
                f"Its lines are saved in {rescued}. Move this file to {path}, then run the same "
                "command again: it resumes from the last loss that was saved."
            )
        elif what:
            way_out = (
                f"Its lines could not be saved elsewhere: {why}. Restore a copy of it, or start "
                "the search again with another journal."
            )
        else:
            what = f"could not be written: {why}"
            way_out = (
                "Fix this, then run the same command again: it resumes from the last loss that "
                "was saved."
            )
        super().__init__(f"the journal {path} {what}. {way_out}", path=path)


class NotOwnFile(JournalError):
    """A name that lastarm writes to is taken, by a link or by what may be another user's."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is not written to, because {why}. There lastarm uses only a regular file of "
            "this user, so that others cannot have it write elsewhere. Remove it if no search of "
            "another user needs it, or name a journal in a folder that only you can write to.",
            path=path,
        )


class KeyNotSafe(JournalError):
    """The file with this user's secret may be known to others, or be another user's."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the key file {path} is not used, because {why}. It holds the secret that seals "
            "journals and states as yours, so it is a file of this user that others can neither "
            "read nor write. Remove it if others may have read it, and another one is made. Else "
            "run chmod 600 on it, or name another file by LASTARM_KEY_FILE.",
            path=path,
        )


class CheckpointNotWritten(JournalError):
    """The disk refused a state. The search stops before its loss counts, and can be resumed."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(
            f"the checkpoint {path} could not be written: {cause.strerror or cause}. Fix this, "
            "then run the same command again: it resumes from the last loss that was saved.",
            path=path,
        )


class TemporaryNotWritten(CheckpointNotWritten):
    """The folder for temporary files has no room, or cannot be written to: `path`."""

    def __init__(self, path: Path, cause: OSError) -> None:
        why = cause.strerror or cause
        JournalError.__init__(
            self,
            f"temporary files cannot be written to {path}: {why}. Make room there, or set TMPDIR "
            "to a folder that has more. With a journal, the same command then resumes.",
            path=path,
        )


class CheckpointLost(LastarmError):
    """A state is not there as it was saved. The arm is trained again, and no caller sees this."""


class CannotBeStacked(LastarmError):
    """What some networks do cannot be done for all of them in one step. Nothing was trained."""


class StateNotSaved(LastarmWarning):
    """The state of an `arm` cannot be saved, for a `reason`. It is kept in memory only."""

    def __init__(self, arm: int, reason: str) -> None:
        self.arm, self.reason = arm, reason
        super().__init__(
            f"the state of arm {arm} cannot be saved: {reason}. After a crash, or on another "
            "worker, the arm is trained again from its beginning, and the result may have no "
            "state. Other arms like this are not reported."
        )


class CheckpointReplaced(LastarmWarning):
    """A checkpoint was missing or damaged; its arm was trained again, to the same answer."""

    def __init__(self, path: Path, arm: int) -> None:
        self.path, self.arm = path, arm
        super().__init__(
            f"the checkpoint {path} was missing or damaged, so arm {arm} was trained again"
        )


class FolderNotSeen(LastarmWarning):
    """The workers do not see the folder of the states, its `path`, so no state is saved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"the workers do not see {path}: states stay in their memory, and what is lost there "
            "is trained again. Put the journal, or `checkpoints`, into a folder that all workers "
            "see."
        )


class EarlyStoppingOff(LastarmWarning):
    """An `estimator` would stop early, by its `settings` or a `callback`: that is switched off."""

    def __init__(self, estimator: str, settings: Mapping[str, object], callback: bool) -> None:
        self.estimator, self.settings, self.callback = estimator, dict(settings), callback
        stops = [f"{name}={shown(value)}" for name, value in settings.items()]
        stops += ["a callback"] * callback
        super().__init__(
            f"the early stopping of {estimator} by {' and '.join(stops)} is switched off in all "
            "arms: pulls decide how long an arm is trained, and the policy stops it. With "
            'recommend="best", the best state that was seen is returned. Leave the setting out '
            "to avoid this warning."
        )


class FittedByRows(LastarmWarning):
    """An `estimator` cannot be trained in steps, so arms are fitted to more and more rows."""

    def __init__(self, estimator: str) -> None:
        self.estimator = estimator
        super().__init__(
            f"{estimator} cannot be trained in steps, so a pull is 1 % of the training rows: each "
            'level is a fit of its own, and level 100 has all of them. Use resource="rows" to '
            "avoid this warning."
        )


class NoTestLoss(LastarmWarning):
    """The test loss of the recommended arm could not be computed; `cause` says why."""

    def __init__(self, cause: str) -> None:
        self.cause = cause
        super().__init__(f"the test loss could not be computed: {cause}")


class StatesNotTrusted(LastarmWarning):
    """States of a journal have no seal of this user, so they are not loaded.

    `path` is their folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"states in {path} have no seal of this user, as when a journal comes from another "
            "machine. Loading a state may run code in it, so they are not loaded. Their arms are "
            "trained again, to the same answer. If you trust their source, stop this search and "
            "run it with checkpoints=Checkpoints(trust=True), or with --trust-states"
        )


class StateNotLoaded(LastarmWarning):
    """The state of the recommended `arm` of a journal is not loaded, so the result has none.

    `why` says what is in the way.
    """

    def __init__(self, arm: int, why: str, way_out: str) -> None:
        self.arm, self.why = arm, why
        super().__init__(f"the state of arm {arm} is not loaded: {why}. {way_out}")


class NothingSealed(LastarmWarning):
    """No secret of this user can be kept, so the journal at `path` and its states have no seals.

    `why` says what is in the way.
    """

    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"no secret can be kept ({why}), so what this search writes to {path} is not sealed. "
            "Commands are run and states are loaded if their files are this user's and closed to "
            "others, wherever they come from. Name a file for the secret by LASTARM_KEY_FILE"
        )


class TrainerChanged(LastarmWarning):
    """The user's code is not the one that the journal was written with. The search continues.

    `names` are those of the functions, methods and classes that differ, or of the files of a
    program; `new` and `unused` are those that were not reached before, or are not any more.
    """

    def __init__(
        self, path: Path, names: Iterable[str], new: Iterable[str] = (), unused: Iterable[str] = ()
    ) -> None:
        self.path, self.names = path, list(names)
        self.new, self.unused = list(new), list(unused)
        notes = dict.fromkeys(self.new, " (new)") | dict.fromkeys(self.unused, " (not used now)")
        differing = listed([f"{name}{notes.get(name, '')}" for name in self.names])
        super().__init__(
            f"the code has changed since the journal {path} was written: {differing}. The search "
            "continues with the code as it is now, and the losses in the journal stay. To start "
            "again, use fresh=True (--fresh), which keeps this journal, or name another journal."
        )


class OtherSecret(LastarmWarning):
    """A masked word of a command has another value than when the search was begun.

    `command` has all its words, with `***` in place of what is masked.
    """

    def __init__(self, path: Path, command: list[str]) -> None:
        self.path, self.command = path, command
        super().__init__(
            f"the search in {path} was begun with another value for *** in {shlex.join(command)}. "
            "The journal holds no such value, only its hash. The search continues"
        )


class JournalRepaired(LastarmWarning):
    """The end of a journal was incomplete, as a crash leaves it. It was cut off and is done again.

    `torn` is the number of bytes that were cut off.
    """

    def __init__(self, path: Path, torn: int) -> None:
        self.path, self.torn = path, torn
        super().__init__(
            f"the journal {path} ended in {torn} bytes that a crash had left incomplete; they are "
            "cut off, and the pulls that they were about are done again"
        )


class Unencrypted(LastarmWarning):
    """A page is served to other machines, at `host`, without encryption."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"what is sent from {shown(host)} is not encrypted: whoever is on the way can read "
            "the journals, and the secret of the address. Use --certificate on a network that you "
            "do not trust"
        )


class OtherSearch(JournalError):
    """The journal is of a search with other arguments.

    `differences` has the name of each, its value in the journal, and its value now.
    """

    def __init__(self, path: Path, differences: Iterable[tuple[str, object, object]]) -> None:
        self.differences = list(differences)
        listed = "; ".join(
            f"{name} was {shown(was)} and is now {shown(now)}"
            for name, was, now in self.differences
        )
        way_out = "Use the same arguments to resume it"
        if [name for name, _, _ in self.differences] == ["budget"]:
            way_out = "A budget can only grow: use the same to resume it, or more to extend it"
        super().__init__(
            f"the journal {path} is of another search: {listed}. "
            f"{way_out}, or name another journal.",
            path=path,
        )


class OtherVersion(JournalError):
    """The journal follows a rule that has changed since.

    `part` is "policy" or "trainer" and `name` says which one. Its rule has the number `written` in
    the journal and `known` now.
    """

    def __init__(
        self, path: Path, part: str, name: str, written: int, known: int, by: str = ""
    ) -> None:
        self.part, self.name, self.written, self.known = part, name, written, known
        wrote = f" (lastarm {by})" if by else ""
        super().__init__(
            f"the journal {path} was written with version {written} of the {part} {name}, which "
            f"now has version {known} and does not do the same. A search is never resumed by "
            "another rule. Start it again with another journal, or resume it with the code that "
            f"began it{wrote}. `lastarm show`, `report` and `export` still read this journal.",
            path=path,
        )


class ReplayDiverged(JournalError):
    """Walked through the journal, the policy did something else than what was `written`.

    `record` is the number of the line, and `instead` says what the policy does now.
    """

    def __init__(self, record: int, written: object, instead: str) -> None:
        self.record, self.written, self.instead = record, written, instead
        super().__init__(
            f"record {record} of the journal is {written}, but the policy now {instead}: its code "
            "has changed since. Resume with the version that began this search, or start it again "
            "with another journal."
        )


class DrawnOtherwise(JournalError):
    """An `arm` of the journal has a config that is not found in the space, as it is drawn now.

    The config is `written` as the journal has it.
    """

    def __init__(self, arm: int, written: Mapping[str, Any]) -> None:
        self.arm, self.written = arm, written
        super().__init__(
            f"in the journal, arm {arm} has the config {shown(written)}, but the space no longer "
            "has such a config: the space, or a package that draws from it, has changed since. "
            "Resume with the versions that began this search, which the header of the journal "
            "names, or start again with another journal."
        )
