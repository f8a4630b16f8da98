"""How long it takes to import lastarm, beside NumPy. Run by `make bench`."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

from record import Record

ROUNDS = 15
FIRST_LINES = (
    "pass",
    "import numpy",
    "import lastarm",
    "from lastarm import search, SuccessiveHalving",
)


def seconds(line: str) -> float:
    """How long a Python takes that does nothing else."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", line], check=True)
    return perf_counter() - began


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("startup", "make bench", ["lastarm", "numpy"])
    turns = [{line: seconds(line) for line in FIRST_LINES} for _ in range(ROUNDS)]
    taken = {line: median(turn[line] for turn in turns[1:]) for line in FIRST_LINES}
    bare = taken.pop("pass")
    record.section("Beyond the start of Python itself")
    for line, total in taken.items():
        record.row(line, (total - bare) * 1000, "ms")
    theirs = taken.pop("import numpy") - bare
    for line, total in taken.items():
        record.row(f"{line} / import numpy", (total - bare) / theirs, "times", "at most 3")
    record.write()


if __name__ == "__main__":
    main()
