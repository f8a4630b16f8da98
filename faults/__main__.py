"""Run campaigns and write down what they saw: `python -m faults [NAME …] [--part 2/4] [--short]`.

Without names, every part of a campaign runs that has not run since the code that it exercises has
changed; so what was stopped is continued by the same command.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from faults.all import CAMPAIGNS
from faults.campaign import Campaign, Figures, part_of
from faults.records import Part, Records, machine, shown


def main() -> int:
    """Run what was asked for; non-zero if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as F1; all that are due")
    parser.add_argument("--part", type=_part, metavar="K/N", help="only the K-th of N parts")
    parser.add_argument("--short", action="store_true", help="as in `make test`, no page written")
    parser.add_argument("--list", action="store_true", help="say what is due, and run nothing")
    arguments = parser.parse_args()
    known = {campaign.name: campaign for campaign in CAMPAIGNS}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no campaign is called {', '.join(unknown)}: there are {', '.join(known)}")

    records = Records()
    broken = 0
    for campaign in [known[name] for name in arguments.names] or CAMPAIGNS:
        every = {(number, campaign.parts): "" for number in range(1, campaign.parts + 1)}
        due = records.due(campaign)
        parts = every if arguments.names else due
        if arguments.list:
            for (number, of), why in due.items():
                print(f"{campaign.name} part {number} of {of}: {why}")
        elif arguments.short:
            broken += bool(_ran(campaign, range(campaign.short), "in short").broken)
        else:
            for number, of in [arguments.part] if arguments.part else parts:
                named = f"part {number} of {of}" if of > 1 else "in full"
                commit = records.commit(campaign)
                part = _ran(campaign, part_of(campaign, number, of), named)
                records.keep(campaign, part._replace(number=number, parts=of, commit=commit))
                records.write_page(CAMPAIGNS)
                broken += bool(part.broken)
    return 1 if broken else 0


def _part(words: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", words)
    number, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= parts:
        raise argparse.ArgumentTypeError(f"{words} is not a part such as 2/4, the second of four")
    return number, parts


def _ran(campaign: Campaign, tries: range, named: str) -> Part:
    print(f"{campaign.name} {campaign.title}, {named}: {len(tries):,} times …", flush=True)
    began = perf_counter()
    figures: Figures = {}
    broken = ""
    try:
        with tempfile.TemporaryDirectory(prefix="lastarm-faults-") as folder:
            figures = campaign.run(tries, Path(folder))
    except AssertionError as promise:
        broken = str(promise)
    seconds = perf_counter() - began
    print(f"    {f'BROKEN: {broken}' if broken else shown(figures)}; {seconds:,.0f} s", flush=True)
    return Part(1, 1, "unknown", machine(), seconds, figures, broken)


if __name__ == "__main__":
    sys.exit(main())
