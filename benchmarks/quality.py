"""What a search finds and how soon, on the same arms as the peers: two questions, each a part.

`digits` asks what is found for a quarter of the cost of training all, by four families of models;
`sooner` asks when what is found is within 1 % of the best arm, fully trained. Each says below how.

    .venv-bench/bin/python benchmarks/quality.py [--a9a FILE.npz]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from digits import digits
from sooner import sooner


def main() -> None:
    """Measure both parts, or the one that is named."""
    parser = argparse.ArgumentParser(description="What a search finds and how soon.")
    parser.add_argument("part", nargs="?", choices=("digits", "sooner"), help="default: both")
    parser.add_argument("--a9a", metavar="FILE.npz", help="a9a, as arrays X, y, X_test, y_test")
    given = parser.parse_args()
    command = ".venv-bench/bin/python benchmarks/quality.py"
    if given.part != "sooner":
        digits(f"{command} digits")
    if given.part != "digits":
        file = f" --a9a {Path(given.a9a).name}" if given.a9a else ""
        sooner(f"{command} sooner{file}", given.a9a)


if __name__ == "__main__":
    main()
