"""F6: files rot, are cut short, exchanged or rolled back, and nothing wrong is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO, Any, NamedTuple
from unittest.mock import patch

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import Files, as_state, files_of, in_memory, lay_out
from faults.reference import EACH, TABLE, Reference, Tallied, whole
from lastarm.checkpoints import folder
from lastarm.errors import JournalError
from lastarm.events import Closed, Event, Loss

JOURNAL = "search.jsonl"
HARMS = ("flips",) * 20 + ("truncations",) * 4 + ("exchanges",)

exploded: list[str] = []


def explode() -> None:
    """What a planted state would do when it is loaded."""
    exploded.append("a state that was never saved was loaded")


class Bomb:
    """An object whose pickle does harm."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return explode, ()


class Damaged(NamedTuple):
    """A disk after some damage, and whether resuming from it must be refused.

    States are trained again if need be. Of a journal, the end may be torn, and what was written
    last can be done again; None where that depends on the place.
    """

    files: Files
    refused: bool | None = False


class Damage:
    """Two searches with other losses, at every moment, and what can be made of their files."""

    def __init__(self, place: Path) -> None:
        reference = Reference(place / "search")
        self.ours = _history(reference)
        reference.clear()
        other = Tallied(place / "tally", [row[::-1] for row in TABLE])
        self.theirs = _history(reference, trainer=other)
        self.pristine = {
            content for files in (*self.ours, *self.theirs) for content in files.values()
        }

    def flipped(self, random: Random) -> Damaged:
        """One bit of a file is flipped."""
        files = dict(random.choice(self.ours))
        name = self._name(files, random)
        content = bytearray(files[name])
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        return Damaged({**files, name: bytes(content)}, None if name == JOURNAL else False)

    def truncated(self, random: Random) -> Damaged:
        """A file ends too early. Without its header it is not a journal, not even an empty one."""
        files = dict(random.choice(self.ours))
        name = self._name(files, random)
        end = random.choice((0, *random.choices(range(len(files[name])), k=3)))
        refused = name == JOURNAL and end <= files[name].find(b"\n")
        return Damaged({**files, name: files[name][:end]}, refused)

    def exchanged(self, random: Random, kind: int) -> Damaged:
        """A file, or a line of the journal, is that of another place or time: nine kinds."""
        moment = random.randrange(1, len(self.ours))
        files, earlier = dict(self.ours[moment]), self.ours[random.randrange(moment)]
        theirs = self.theirs[min(moment, len(self.theirs) - 1)]
        states = sorted(files.keys() - {JOURNAL})
        state, other = random.sample(states, 2) if len(states) > 1 else states * 2
        lines, their_lines = (these[JOURNAL].splitlines(True) for these in (files, theirs))
        line, second = random.sample(range(min(len(lines), len(their_lines))), 2)
        match kind % 9:
            case 0:
                lines[line] = their_lines[line]
            case 1:
                del lines[line]
            case 2:
                lines[line], lines[second] = lines[second], lines[line]
            case 3:
                return Damaged({**files, JOURNAL: theirs[JOURNAL]}, refused=True)
            case 4:  # the journal as it was before
                return Damaged({**files, JOURNAL: earlier[JOURNAL]})
            case 5:  # the states as they were before
                return Damaged({**earlier, JOURNAL: files[JOURNAL]})
            case 6:
                return Damaged(files | {state: files[other], other: files[state]})
            case 7:
                return Damaged(files | {state: theirs.get(state, b"")})
            case 8:
                return Damaged(files | {state: as_state(Bomb())})
        return Damaged({**files, JOURNAL: b"".join(lines)}, refused=None)

    def _name(self, files: Files, random: Random) -> str:
        states = sorted(files.keys() - {JOURNAL})
        return random.choice(states) if states and random.random() < 0.5 else JOURNAL


def _history(reference: Reference, **changed: Any) -> list[Files]:
    """The files of a search after every one of its losses, and at its end."""
    history: list[Files] = []

    def remember(event: Event) -> None:
        if isinstance(event, Loss | Closed):
            history.append(files_of(reference.disk))

    reference.play(on_event=remember, runner=EACH, **changed)
    return [*history, files_of(reference.disk)]


def damages(tries: range, folder: Path) -> Figures:
    """20 flipped bits to four truncations to one exchange, of journal and states."""
    seen: Counter[str] = Counter()
    with in_memory(folder) as place:
        damage = Damage(place)
        image = Reference(place / "image")
        for seed in tries:
            kind, random = HARMS[seed % len(HARMS)], Random(seed)
            match kind:
                case "flips":
                    damaged = damage.flipped(random)
                case "truncations":
                    damaged = damage.truncated(random)
                case _:
                    damaged = damage.exchanged(random, seed // len(HARMS))
            with _only_pristine(damage.pristine, f"{kind}, seed {seed}"):
                seen[_end(image, damaged, f"{kind}, seed {seed}")] += 1
            seen[kind] += 1
    return {
        "bit flips": seen["flips"],
        "truncations": seen["truncations"],
        "exchanges": seen["exchanges"],
        "ended with the same digest": seen["same"],
        "were refused": seen["refused"],
        "wrong values believed": 0,
        "untyped errors": 0,
        "states loaded that were never saved": 0,
    }


def _end(image: Reference, damaged: Damaged, fault: str) -> str:
    image.clear()
    lay_out(damaged.files, image.disk)
    try:
        result = image.play()
    except JournalError:
        assert damaged.refused is not False, f"{fault}: it was refused"
        assert files_of(image.disk) == damaged.files, f"{fault}: refused, and yet changed"
        return "refused"
    except Exception as error:
        raise AssertionError(f"{fault}: that is {error!r}") from error
    assert not damaged.refused, f"{fault}: it was not refused"
    same = (result.digest, result.arm, result.loss) == (whole().digest, whole().arm, whole().loss)
    assert same, f"{fault}: another answer"
    return "same"


@contextmanager
def _only_pristine(pristine: set[bytes], fault: str) -> Iterator[None]:
    """Within, only what was saved may be unpickled."""
    load, foreign = folder._unpickled, []

    def guarded(file: IO[bytes], *form: Any) -> Any:
        start = file.tell()
        file.seek(0)
        content = file.read()
        file.seek(start)
        if content not in pristine:
            foreign.append(content)
        return load(file, *form)

    with patch.object(folder, "_unpickled", guarded):
        yield
    assert not foreign, f"{fault}: it unpickled what was never saved"
    assert not exploded, f"{fault}: {exploded}"


DAMAGES = Campaign(
    "F6",
    "bits flip, files are cut short or exchanged",
    damages,
    full=12_500,
    short=250,
    paths=(*SEARCHING, *REFERENCE, "faults/damage.py"),
)
