"""How a benchmark says what it measured: a table, a line of JSON each, and RESULTS.md."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
DASK_ML = Path(".venv-dask-ml/bin/python")  # it does not run with today's Dask
DEHB = Path(".venv-dehb/bin/python")  # it does not run with today's NumPy

Cell = float | str | tuple[float, float]
"""A number, a word, or a number and half of its interval."""


class Record:
    """The measurements of one script; they replace its part of RESULTS.md and leave the rest."""

    def __init__(self, name: str, command: str, packages: list[str]) -> None:
        self._name = name
        self._about = ", ".join(
            [f"`{command}`", f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]
            + [f"{package} {version(package)}" for package in packages]
        )
        self._lines: list[str] = []

    def beside_dask_ml(self) -> bool:
        """Whether Dask-ML is there to be measured; what it runs with is written down too."""
        return self.beside(DASK_ML, ["dask-ml", "distributed", "scikit-learn", "numpy"])

    def beside(self, python: Path, packages: list[str]) -> bool:
        """Whether another environment is there; its versions of these are written down too."""
        ask = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
        if not python.exists():
            return False
        said = subprocess.run([python, "-c", ask, *packages], check=True, stdout=subprocess.PIPE)
        pairs = zip(packages, said.stdout.decode().split(), strict=True)
        self._about += f"; apart: {', '.join(map(' '.join, pairs))}"
        return True

    def section(self, title: str) -> None:
        """Begin a table."""
        print(f"\n{title}")
        self._lines += [
            "",
            f"**{title}**",
            "",
            "| what | measured | goal |",
            "| --- | --- | --- |",
        ]

    def row(self, what: str, value: float, unit: str, goal: str = "") -> None:
        """Add a measurement."""
        shown = _shown(value)
        print(f"  {what:<50} {shown:>12} {unit:<10} {goal}")
        print(json.dumps({"benchmark": self._name, "what": what, "value": value, "unit": unit}))
        self._lines.append(f"| {what} | {shown} {unit} | {goal} |")

    def note(self, text: str) -> None:
        """Say what the tables mean."""
        self._lines += ["", text]

    def table(self, title: str, rows: Mapping[str, Mapping[str, Cell]]) -> None:
        """Add a table with several measurements in a row; not every row need have all."""
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        lines = [["what", *names]]
        for what, row in rows.items():
            lines.append([what, *(_shown(row[name]) if name in row else "" for name in names)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{title}")
        for what, *cells in lines:
            right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            print("  ", what.ljust(widths[0]), *right, sep="  ")
        for what, row in rows.items():
            line = {"benchmark": self._name, "table": title, "what": what, **row}
            print(json.dumps(line, ensure_ascii=False))
        lines.insert(1, ["---"] * len(lines[0]))
        self._lines += ["", f"**{title}**", "", *(f"| {' | '.join(line)} |" for line in lines)]

    def write(self, file: Path = RESULTS) -> None:
        """Put this script's part into RESULTS.md, or into another file."""
        begin, end = f"<!-- {self._name} -->", f"<!-- end of {self._name} -->"
        part = "\n".join([begin, f"## {self._name}", "", self._about, *self._lines, "", end])
        head = "# What the benchmarks measured\n\nEach part was written by the command it names.\n"
        text = file.read_text() if file.exists() else head
        if begin in text:
            pattern = f"{re.escape(begin)}.*{re.escape(end)}"
            text = re.sub(pattern, lambda _: part, text, flags=re.DOTALL)
        else:
            text += f"\n{part}\n"
        file.write_text(text)


def _shown(value: Cell) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return " ± ".join(map(_shown, value))
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
