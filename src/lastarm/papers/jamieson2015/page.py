"""The page of the reproduction, and its parts: what each is given, and what it gives back.

The page says what the paper claims, what came out here, and how to repeat it. It is made of the
parts that lie in a folder and of nothing else: the same parts give the same bytes, whenever and
wherever it is written.
"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lastarm.errors import InvalidArgument
from lastarm.papers.jamieson2015.rules import RULES

Holds = Literal["yes", "no", "in part", "not settled"]

Row = dict[str, Any]
"""A line of a part's table, by its columns."""

ORDER = (
    "traces",
    "ridge",
    "grid",
    "svm",
    "completion",
    "table1",
    "theorem",
    "doubling",
    "reductions",
    "subsets",
    "linear-svm",
)  # what a key begins with; other keys come after these, in alphabetical order

HEAD = """\
# Jamieson & Talwalkar (2015), run again

What the paper "Non-stochastic Best Arm Identification and Hyperparameter Optimization" claims, and
what lastarm found for each claim when it ran the paper's experiments. Below the table, every part
has its figures, its numbers and the command that makes them.

Read the verdicts with this in mind: the paper does not say when its sentences count as true, so
the rules are ours. They are in one file that the commands read (`rules.toml`), with the seed of
all intervals. A number in brackets is the 95 % interval over trials, by a paired bootstrap. "Yes"
and "no" mean that all of the interval says so; else the sentence is "not settled". "In part" means
that it holds for one thing that it speaks of, and not for another. c is what a look costs, in
pulls.
"""


COLUMNS = ("claim", "paper", "ours", "axis", "data", "other choices", "holds?")

CHANGED = """\
Rules that were changed after their numbers had been seen; docs/decisions.md has the verdicts by
the first rules:
"""


@dataclass(frozen=True)
class Settings:
    """How a part is run: `None` means as in the paper, `quick` is small enough for a test."""

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
    """A part was stopped by a signal; with the same settings it continues from its journals."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class Claim(NamedTuple):
    """A sentence of the paper, and what was found here, in numbers."""

    claim: str
    paper: str
    ours: str
    data: str
    holds: Holds
    axis: str = "none"  # along which costs are counted
    choices: str = (
        "none"  # for which other choices of the protocol it holds, as far as they were tried
    )


@dataclass(frozen=True)
class Part:
    """What the page says about one part; its figures and its table have `key` in their names."""

    key: str
    title: str
    text: str
    claims: Sequence[Claim]
    figures: Sequence[str] = ()  # their names, without the endings
    command: str = ""
    run: Mapping[str, Any] = field(
        default_factory=dict
    )  # as `provenance` has it; empty if not recorded


def verdict(whole: bool, *, in_part: bool = False) -> Holds:
    """Whether a claim holds."""
    return "yes" if whole else "in part" if in_part else "no"


PARALLEL = ("ridge", "svm", "completion")  # parts that have trials and can run several at a time
REPEATED = (*PARALLEL, "grid", "reductions", "subsets")  # parts that have trials


def command(name: str, settings: Settings) -> str:
    """The command that runs a part with these settings, without those that it does not use."""
    several = settings.workers > 1 and name in PARALLEL  # the seconds depend on it
    options = {
        "--data": settings.data and shlex.quote(Path(settings.data).name),
        "--trials": settings.trials if name in REPEATED else None,
        "--workers": settings.workers if several else None,
        "--seed": settings.seed or None,
    }
    given = [f"{option} {value}" for option, value in options.items() if value is not None]
    return " ".join(["lastarm reproduce", name, *given, *["--quick"] * settings.quick])


def write(part: Part, rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write a part's table as CSV, and what the page says about it as JSON."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{part.key}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    claims = [claim._asdict() for claim in part.claims]
    fields = asdict(replace(part, run={})) | {"claims": claims, "run": dict(part.run)}
    spelled = json.dumps(fields, indent=1, ensure_ascii=False) + "\n"
    (out / f"{part.key}.json").write_text(spelled, encoding="utf-8")


def rows_of(path: Path) -> list[Row]:
    """The rows of a part, with numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def _value(cell: str) -> Any:
    """A cell as what it was.

    >>> [_value(cell) for cell in ("12", "0.5", "True", "uniform", "")]
    [12, 0.5, True, 'uniform', '']
    """
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell == "True" if cell in ("True", "False") else cell


def read(path: Path) -> Part:
    """What `write` wrote."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        claims = [Claim(**claim) for claim in fields.pop("claims")]
        return Part(claims=claims, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidArgument(
            f"{path} is not a part of the reproduction ({type(error).__name__}: {error}). Run its "
            "part again, or move the file to another folder.",
            argument="out",
            given=path,
        ) from error


def check(out: Path) -> None:
    """Refuse a folder in which the page cannot be written, before anything runs."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(
            f"The folder {out} cannot be created ({error.strerror or error}). Choose another one "
            "with --out.",
            argument="out",
            given=out,
        ) from error
    page = out / "README.md"
    if page.exists() and not page.read_text(encoding="utf-8").startswith(HEAD[:20]):
        raise InvalidArgument(
            f"{page} was not written by this command and would be overwritten. Choose another "
            "folder with --out.",
            argument="out",
            given=out,
        )
    for path in out.glob("*.json"):
        read(path)


def write_page(out: Path) -> Path:
    """Write `README.md` beside the parts in `out`, and return where it is."""
    parts = [read(path) for path in sorted(out.glob("*.json"), key=_place)]
    if not parts:
        raise InvalidArgument(
            f"The folder {out} has no parts in it, so there is no page to write. Run a part "
            "first; each writes a JSON file there.",
            argument="out",
            given=out,
        )
    page = out / "README.md"
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [_in_columns(claim) for part in parts for claim in part.claims]
    blocks = [HEAD, _table(rows), CHANGED, _table(_changes())]
    blocks += [f"{block}\n" for part in parts for block in _blocks(part, out)]
    page.write_text("\n".join(blocks), encoding="utf-8", newline="\n")
    return page


def _in_columns(claim: Claim) -> tuple[str, ...]:
    axis, choices = ("" if text == "none" else text for text in (claim.axis, claim.choices))
    return claim.claim, claim.paper, claim.ours, axis, claim.data, choices, claim.holds


def _changes() -> list[tuple[str, ...]]:
    columns = ("rule", "was", "now", "when")
    listed = [tuple(change[name] for name in columns) for change in RULES["changed"]]
    return [columns, ("---",) * len(columns), *listed]


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in rows)


def _place(path: Path) -> tuple[int, str]:
    known = [rank for rank, start in enumerate(ORDER) if path.stem.startswith(start)]
    return (*known, len(ORDER))[0], path.stem


def _cell(text: str) -> str:
    r"""A text for one cell: on one line, its bars escaped.

    >>> print(_cell("|S_k|\nhalves"))
    \|S_k\| halves
    """
    return " ".join(text.replace("|", r"\|").split())


def _blocks(part: Part, out: Path) -> Iterator[str]:
    yield f"## {part.title}"
    if text := part.text.strip():
        yield text
    for name in part.figures:
        yield f"![{part.title}: {name}]({_beside(out, f'{name}.png', part)})"
    names = [*(f"{name}.svg" for name in part.figures), f"{part.key}.csv"]
    yield f"Files: {', '.join(f'[{name}]({_beside(out, name, part)})' for name in names)}."
    if command := part.command.strip():
        yield f"Made by `{command}`{_with(part.run)}."


def _with(run: Mapping[str, Any]) -> str:
    if not run:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    commit = f" at commit {run['commit']}" if run["commit"] else ""
    return f"{commit}, with {versions}, on {run['processor']} ({run['system']})"


def _beside(out: Path, name: str, part: Part) -> str:
    """The name of a file that the page refers to; the file must exist."""
    if not (out / name).exists():
        raise InvalidArgument(
            f"{out / name} is missing, and the part {part.key!r} names it. Run that part again.",
            argument="out",
            given=out / name,
        )
    return name
