"""How long it takes to import lastarm and to ask the command for help, beside NumPy.

The time is that of the processor, which means the same on a busy machine. Run by `make bench`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

from record import Record

ROUNDS = 15
SEARCH = "from lastarm import search"
FIRST_LINES = {
    "pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import lastarm": ["-c", "import lastarm"],
    SEARCH: ["-c", SEARCH],
    f"{SEARCH}, SuccessiveHalving": ["-c", f"{SEARCH}, SuccessiveHalving"],
    "all of that and a first search": [
        "-c",
        f"{SEARCH}, Uniform\n"
        "search(lambda config: (yield config['x']), {'x': Uniform(0, 1)}, arms=2, budget=2)",
    ],
    "lastarm --help": ["-m", "lastarm", "--help"],
    "lastarm show --help": ["-m", "lastarm", "show", "--help"],
    "lastarm --version": ["-m", "lastarm", "--version"],
}
GOALS = {"import lastarm": "at most 1.5", SEARCH: "at most 1.5"}


def seconds(arguments: list[str]) -> float:
    """How long the processor works for a Python that does nothing else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure, print, and write the results down."""
    record = Record("startup", "make bench", ["lastarm", "numpy"])
    turns = [{line: seconds(words) for line, words in FIRST_LINES.items()} for _ in range(ROUNDS)]
    taken = {line: median(turn[line] for turn in turns[1:]) for line in FIRST_LINES}
    bare = taken.pop("pass")
    record.section("Beyond the start of Python itself, in processor time")
    for line, total in taken.items():
        goal = "< 100" if line.startswith("lastarm ") else ""
        record.row(line, (total - bare) * 1000, "ms", goal)
    theirs = taken.pop("import numpy") - bare
    for line, total in taken.items():
        goal = GOALS.get(line, "")
        record.row(f"{line} / import numpy", (total - bare) / theirs, "times", goal)
    record.write()


if __name__ == "__main__":
    main()
