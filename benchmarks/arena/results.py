"""What was played, on disk: a line for each problem, contender and seed, written when it is known.

So a run that is stopped goes on where it was. There is a file for each family of problems.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path

BUDGETS = (5, 10, 20, 50, 100, 200)  # in full trainings
COLUMNS = ("problem", "contender", "seed", "arms", "looks")
PARTS = ("final", "test", "seconds")  # of each of which there is a column for each budget


@dataclass(frozen=True)
class Played:
    """A search, as it stands at each budget that it came to.

    - `problem`, `contender`, `seed`: what was played.
    - `arms`, `looks`: how many configs it began and losses it saw, with its largest budget.
    - `final`, `test`: by budget, what its incumbent comes to when it is fully trained.
    - `seconds`: by budget, the processor time that the contender took for itself.
    """

    problem: str
    contender: str
    seed: int
    arms: int
    looks: int
    final: dict[int, float]
    test: dict[int, float]
    seconds: dict[int, float]

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from all others."""
        return self.problem, self.contender, self.seed


def file_of(arena: Path, family: str) -> Path:
    """The file of a family."""
    folder = arena / "results"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{re.sub('[^a-z0-9]+', '-', family)}.csv"


def known(file: Path) -> list[Played]:
    """What a file has; a last line that was cut is left out, and of two the later one counts."""
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        rows = [_read(row) for row in csv.DictReader(opened) if None not in row.values()]
    return list({played.key: played for played in rows}.values())


def write(file: Path, played: Played) -> None:
    """Add a line to a file."""
    whole = file.read_bytes() if file.exists() else b""
    if whole and not whole.endswith(b"\n"):  # stopped within a line
        file.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with file.open("a", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        if not whole:
            writer.writerow([*COLUMNS, *(f"{part}@{b}" for part in PARTS for b in BUDGETS)])
        writer.writerow(
            [
                *(getattr(played, column) for column in COLUMNS),
                *(_text(getattr(played, part).get(b), part) for part in PARTS for b in BUDGETS),
            ]
        )


def tidy(file: Path, forgotten: Iterable[str] = ()) -> None:
    """Write a file anew: without what these contenders played, and each search once."""
    if file.exists():
        kept = [played for played in known(file) if played.contender not in set(forgotten)]
        file.unlink()
        for played in kept:
            write(file, played)


def _text(value: float | None, part: str) -> str:
    if value is None or isnan(value):
        return ""
    return f"{value:.3g}" if part == "seconds" else f"{value:.6g}"


def _read(row: dict[str, str]) -> Played:
    def numbers(part: str) -> dict[int, float]:
        return dict(_numbers(row, part))

    return Played(
        row["problem"],
        row["contender"],
        int(row["seed"]),
        int(row["arms"]),
        int(row["looks"]),
        numbers("final"),
        numbers("test"),
        numbers("seconds"),
    )


def _numbers(row: dict[str, str], part: str) -> Iterator[tuple[int, float]]:
    reached = [budget for budget in BUDGETS if row[f"final@{budget}"]]
    for budget in reached:
        yield budget, float(row[f"{part}@{budget}"] or nan)
