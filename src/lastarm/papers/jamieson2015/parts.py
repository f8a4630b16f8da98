"""What every part of the reproduction is given, and what it gives back."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

Holds = Literal["yes", "no", "in part", "undecided"]


@dataclass(frozen=True)
class Settings:
    """How a part is to be run: `None` is as in the paper, `quick` is small enough for a test."""

    out: Path
    trials: int | None = None
    quick: bool = False
    data: str | None = None
    workers: int = 1
    seed: int = 0
    progress: Callable[[int, int], None] = lambda done, of: None

    @property
    def journals(self) -> Path:
        """Where the journals of this seed are."""
        return self.out / "journals" / f"seed-{self.seed}"


class Stopped(Exception):
    """A part was stopped by a signal; the same settings go on from its journals."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class Claim(NamedTuple):
    """A sentence of the paper, and what became of it here, in numbers."""

    claim: str
    paper: str
    ours: str
    data: str
    holds: Holds


@dataclass(frozen=True)
class Part:
    """What the page says of one part: under `key` lie its figures and its table."""

    key: str
    title: str
    text: str
    claims: Sequence[Claim]
    figures: Sequence[str] = ()  # their names, without the endings
    command: str = ""


def command(name: str, settings: Settings) -> str:
    """The command that runs a part so."""
    options = {
        "--data": settings.data and shlex.quote(Path(settings.data).name),
        "--trials": settings.trials,
        "--seed": settings.seed or None,
    }
    given = [f"{option} {value}" for option, value in options.items() if value is not None]
    return " ".join(["lastarm reproduce", name, *given, *["--quick"] * settings.quick])


def write(part: Part, rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write a part's table as CSV, and what the page says of it as JSON."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{part.key}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    fields = asdict(part) | {"claims": [claim._asdict() for claim in part.claims]}
    spelled = json.dumps(fields, indent=1, ensure_ascii=False) + "\n"
    (out / f"{part.key}.json").write_text(spelled, encoding="utf-8")


def read(path: Path) -> Part:
    """What `write` wrote."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    claims = [Claim(**claim) for claim in fields.pop("claims")]
    return Part(claims=claims, **fields)
