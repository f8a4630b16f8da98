"""The winner of a search, later and elsewhere: `load` reads a journal and the winner's state."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lastarm.batched import BatchedTrainer, Single, is_batched
from lastarm.checkpoints import Checkpoints
from lastarm.checkpoints.folder import MAIN, NeedsItsTrainer, StateFolder
from lastarm.errors import CheckpointLost, InvalidArgument, StateNotLoaded
from lastarm.events import Event, Loss, Opened, Pull, Saved
from lastarm.journal import read
from lastarm.journal.header import header_of
from lastarm.journal.seals import Seals
from lastarm.journal.secret import own_secret
from lastarm.plain import readable
from lastarm.result import Result, Winner, unwrapped
from lastarm.trainers import (
    AnyTrainer,
    Functions,
    Generated,
    Maximized,
    Program,
    Reporting,
    Trainer,
    as_trainer,
)

ATTEMPTS = 20  # because a search that is running deletes the states of earlier levels
# Their classes can load and unwrap a state, without the trainer itself. Each has an entry of its
# own in headers.
STAND_INS: dict[str, type] = {
    "argv": Program,
    "function": Generated,
    "loop": Reporting,
    "train": Functions,
}
PASS_TRAINER = "Pass trainer=…, the trainer of the search"
TRAIN_AGAIN = "Train it again with `result.config`"


def load(
    journal: str | Path,
    trainer: AnyTrainer | BatchedTrainer[Any, Any] | None = None,
    trust: bool = False,
    *,
    checkpoints: Checkpoints | str | Path | bool = True,
) -> Result:
    """The result of a search with the winner's state, from its journal, in any process.

    The journal may be of a search that has ended, was stopped, or is running. It is only read, and
    nothing is trained.

    >>> import tempfile
    >>> from lastarm import Uniform, search
    >>> def to_zero(config, resume):
    ...     x = 1.0 if resume is None else resume
    ...     while True:
    ...         x *= config["shrink"]
    ...         yield x, x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = f"{folder}/zero.jsonl"
    ...     found = search(to_zero, {"shrink": Uniform(0, 1)}, arms=4, budget=16, journal=journal)
    ...     again = load(journal)
    >>> again.config == found.config, again.state == found.state
    (True, True)

    The state is loaded if a resumed search would load it: if it has this user's seal, is what was
    saved, and its file is this user's. Otherwise it is None, and a `StateNotLoaded` warning says
    why and what to do. A state that the trainer's own `save` has written needs the trainer.

    :param journal: the file that the search wrote.
    :param trainer: the trainer of the search. It is needed for states that its own `load` reads or
        its own `unwrap` makes, for classes of the script that was run, and for `Result.refit`. It
        may have other data.
    :param trust: whether a state without this user's seal is loaded, as of a journal that came
        from elsewhere. Loading it may run code in it.
    :param checkpoints: where the search kept its states, if they are not beside the journal: the
        same as `search` was given. With False, no state is loaded.
    :returns: the result that the journal tells, with the state of the recommended arm.
    :raises JournalError: if it is not a journal, or is damaged.
    :raises InvalidArgument: if the search had another kind of trainer.
    """
    if not isinstance(journal, str | Path):
        raise InvalidArgument.of("journal", journal, "it is a file", "Use the path of a file")
    kept = Checkpoints.of(checkpoints)
    trust = Checkpoints(trust=trust).trust or bool(kept and kept.trust)
    path = Path(os.path.realpath(journal))
    events = read(path)
    opened = header_of(events)
    how = _stand_in(opened) if trainer is None else _of_the_search(trainer, path, opened)
    seals = None if trust else Seals(opened, own_secret(make=False))
    imported_as = MAIN if trainer is None else _module(trainer)
    state = None
    for left in reversed(range(ATTEMPTS)):
        result = Result.of(events, journal=str(path))
        found = Pull(result.arm, result.level) if result.arm is not None and result.level else None
        if found is None or kept is None:
            break
        folder = StateFolder(kept.states_of(path), how, durable=True, imported_as=imported_as)
        try:
            state = _loaded(folder, found, _saved(events, found), seals)
            break
        except StateNotLoaded as reason:
            newer = read(path)
            if not left or len(newer) == len(events):
                warnings.warn(reason, stacklevel=2)
                break
            events = newer
    if found is None:
        return result
    return replace(
        result,
        config=_as_drawn(result, state),
        state=unwrapped(how, state),
        winner=None if trainer is None else Winner.of(how, state, opened.seed, found),
    )


def _stand_in(opened: Opened) -> Any:
    """What can load and unwrap the states of a trainer of lastarm, or None if it is another's."""
    kind = opened.trainer.get("maximized", opened.trainer.get("kind"))
    for entry, known in STAND_INS.items():
        if entry in opened.trainer and kind == known.__qualname__:
            return known
    return None


def _of_the_search(given: Any, path: Path, opened: Opened) -> Trainer[Any]:
    """The trainer as the search had it. Another kind of trainer has other states."""
    trainer = as_trainer(Single(given) if is_batched(given) else given)
    maximized = opened.trainer.get("kind") == Maximized.__qualname__
    kind = opened.trainer.get("maximized" if maximized else "kind")
    if kind != type(trainer).__qualname__:
        rule = f"the journal {path} is of a search with the trainer {kind}"
        way_out = "Use the trainer of that search, or leave it out"
        raise InvalidArgument.of("trainer", given, rule, way_out)
    return Maximized(trainer) if maximized else trainer


def _module(trainer: Any) -> str:
    """Where the trainer is defined: the module that its script is here."""
    first = trainer[0] if isinstance(trainer, tuple | list) else trainer
    return getattr(first, "__module__", MAIN)


def _saved(events: list[Event], found: Pull) -> Saved | None:
    """The checkpoint that the journal names for an arm at a level."""
    named = (e.saved for e in reversed(events) if isinstance(e, Loss) and e.pull == found)
    return next(filter(None, named), None)


def _loaded(folder: StateFolder, found: Pull, saved: Saved | None, seals: Seals | None) -> Any:
    """The state, under the rules of a search that is resumed; else a `StateNotLoaded`."""
    file = folder.file(found)
    if saved is None:
        why = "the search saved none, because it kept no states or such a state cannot be saved"
        raise StateNotLoaded(found.arm, why, TRAIN_AGAIN)
    if seals and not seals.vouch_for(found, saved):
        why = f"{file} has no seal of this user, as when a journal comes from another machine, "
        why += "and loading it may run code in it"
        way_out = "If you trust its source, use load(…, trust=True)"
        raise StateNotLoaded(found.arm, why, way_out)
    try:
        return folder.load(found, saved)
    except NeedsItsTrainer:
        why = f"the trainer's own `save` wrote {file}, and only its own `load` can read it"
        raise StateNotLoaded(found.arm, why, PASS_TRAINER) from None
    except CheckpointLost as lost:
        way_out = TRAIN_AGAIN
        if not os.path.lexists(file):
            way_out = f"If the search was given checkpoints=…, pass the same. {TRAIN_AGAIN} if not"
        elif lost.__cause__:  # its file is as it was saved
            way_out = f"Import or define here what it needs. {PASS_TRAINER}, if you did not"
        raise StateNotLoaded(found.arm, f"{file}: {lost}", way_out) from lost


def _as_drawn(result: Result, state: Any) -> Any:
    """The config itself, if the state has it: in a journal, a tuple is a list, for example."""
    drawn = getattr(state, "config", None)
    is_it = isinstance(drawn, Mapping) and readable(drawn) == result.config
    return drawn if is_it else result.config
