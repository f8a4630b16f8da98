"""Run campaigns and write down their figures: `python -m faults [NAME …] [--short]`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from faults.all import CAMPAIGNS
from faults.campaign import Campaign, Figures

PAGE = Path(__file__).parents[1] / "docs" / "faults.md"


def main() -> int:
    """Run what was asked for; non-zero if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as F1; all, if none")
    parser.add_argument("--short", action="store_true", help="as in `make test`, no page written")
    arguments = parser.parse_args()
    known = {campaign.name: campaign for campaign in CAMPAIGNS}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no campaign is called {', '.join(unknown)}: there are {', '.join(known)}")

    broken = 0
    for campaign in [known[name] for name in arguments.names] or CAMPAIGNS:
        times = campaign.short if arguments.short else campaign.full
        print(f"{campaign.name} {campaign.title}, {times:,} times …", flush=True)
        began = perf_counter()
        try:
            seen = _shown(_figures(campaign, times))
        except AssertionError as promise:
            broken += 1
            seen = f"BROKEN: {promise}"
        seconds = perf_counter() - began
        print(f"    {seen}; {seconds:,.0f} s", flush=True)
        if not arguments.short:
            _write_down(f"| {campaign.name} | {campaign.title} | {seen} | {seconds:,.0f} |")
    return 1 if broken else 0


def _figures(campaign: Campaign, times: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="lastarm-faults-") as folder:
        return campaign.run(times, Path(folder))


def _shown(figures: Figures) -> str:
    return ", ".join(
        f"{value:,.3g} {name}" if isinstance(value, float) else f"{value:,} {name}"
        for name, value in figures.items()
    )


def _write_down(row: str) -> None:
    """Put a campaign's row in its place on the page; the other rows stay as they were."""
    before = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = {line.split("|")[1].strip(): line for line in before if line.startswith("| F")}
    rows[row.split("|")[1].strip()] = row
    about = [f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]
    about += [f"{package} {version(package)}" for package in ("lastarm", "numpy")]
    lines = [
        "# What the fault campaigns saw",
        "",
        "Written by `make faults`, row by row (or by `python -m faults NAME`, one of them), with",
        f"{', '.join(about)}. What is promised is in [reliability.md](reliability.md).",
        "",
        "| | campaign | seen | seconds |",
        "| --- | --- | --- | --- |",
        *(rows[name] for name in sorted(rows, key=lambda name: int(name[1:]))),
    ]
    PAGE.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    sys.exit(main())
