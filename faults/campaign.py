"""What a campaign is: a fault, how often it is tried, and figures of what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

Figures = Mapping[str, int | float]
"""What was seen, by name, in the order in which it is shown."""

Try = Callable[[range, Path], Figures]
"""Try a fault, once for each number of a range, in an empty folder. The numbers are the seeds, so
that ranges which do not overlap try different things. A broken promise is an `AssertionError` that
says which one, and with which seed it can be seen again."""

# The code that campaigns exercise, in groups: what a profile saw them call, in their own process
# and in those that they start. Most of what they import they never call. What is left out though
# it is called: tables of public names, and `named.py` where it only passes a policy on.
HALVING = (
    "src/lastarm/policies/parts/budgeted.py",
    "src/lastarm/policies/parts/integers.py",
    "src/lastarm/policies/successive_halving.py",
    "src/lastarm/policies/uniform_allocation.py",
)
DECIDING = (
    *HALVING,
    "src/lastarm/arguments/checks.py",
    "src/lastarm/columns.py",
    "src/lastarm/errors.py",
    "src/lastarm/events.py",
    "src/lastarm/ledger/ledger.py",
    "src/lastarm/ledger/utilisation.py",
    "src/lastarm/loop.py",
    "src/lastarm/masking.py",
    "src/lastarm/plain.py",
    "src/lastarm/policy.py",
)
KEEPING = ("src/lastarm/checkpoints/*.py", "src/lastarm/journal/*.py")
RUNNING = (
    "src/lastarm/batched/adapters.py",
    "src/lastarm/runners/*.py",
    "src/lastarm/signals.py",
    "src/lastarm/system/*.py",
    "src/lastarm/trainers/any_trainer.py",
    "src/lastarm/trainers/losses.py",
    "src/lastarm/trainers/maximized.py",
    "src/lastarm/trainers/protocol.py",
    "src/lastarm/trainers/recorded.py",
    "src/lastarm/trainers/source_code.py",
)
SEARCHING = (
    *DECIDING,
    *KEEPING,
    *RUNNING,
    "src/lastarm/arguments/other_tools.py",
    "src/lastarm/report/notebook.py",
    "src/lastarm/result.py",
    "src/lastarm/searching/*.py",
    "src/lastarm/space/domains.py",
    "src/lastarm/space/drawn.py",
    "src/lastarm/space/spaces.py",
)
COMMAND = (
    "src/lastarm/cli/__init__.py",
    "src/lastarm/cli/command.py",
    "src/lastarm/cli/display.py",
    "src/lastarm/cli/ending.py",
    "src/lastarm/cli/memory.py",
    "src/lastarm/cli/options.py",
    "src/lastarm/cli/tune.py",
    "src/lastarm/cli/words/tune.py",
    "src/lastarm/policies/named.py",
    "src/lastarm/texts.py",
    "src/lastarm/trainers/metric.py",
)
REFERENCE = ("faults/disk.py", "faults/reference.py")


class Campaign(NamedTuple):
    """A fault of docs/reliability.md and how it is tried."""

    name: str  # such as "F1"
    title: str
    run: Try
    full: int  # how often in `make faults`
    short: int  # how often in `make test`
    paths: Sequence[str]  # the code that it exercises: when one of these files changes, it is due
    parts: int = 1  # in which it runs, so that none takes longer than 30 minutes


class Most(int):
    """A number of things that are the same in every part: they are not added up."""


def part_of(campaign: Campaign, number: int, parts: int) -> range:
    """The tries of one part; those of all parts together are the campaign in full."""
    return range(campaign.full * (number - 1) // parts, campaign.full * number // parts)


def added(several: Sequence[Figures]) -> Figures:
    """The figures of several parts as one: counts add up, of a float the greatest counts."""
    total: dict[str, int | float] = {}
    for figures in several:
        for name, value in figures.items():
            if isinstance(value, float | Most):
                total[name] = max(total.get(name, value), value)
            else:
                total[name] = total.get(name, 0) + value
    return total


@contextmanager
def replayable(call: str) -> Iterator[None]:
    """Anything that is raised within is a broken promise; `call` shows it again."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        notes = getattr(error, "__notes__", [])
        said = "\n".join([f"{type(error).__name__}: {error}", *notes])[:4000]
        raise AssertionError(f"{said}\nSee it again with {call}") from error
