"""What the campaigns saw: kept part by part in `faults/seen`, shown in `docs/faults.md`.

A campaign has a file of its own, so that several can run at a time. Each of its parts names the
commit that it ran on. Parts add up as long as the code that the campaign exercises is the same; a
campaign is due when a part is missing, has failed, or ran on other code.
`python -m faults.records` writes the page anew from what is kept.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from faults.campaign import Campaign, Figures, Most, added

ROOT = Path(__file__).parents[1]
SEEN, PAGE = "faults/seen", "docs/faults.md"
DIRTY = "-dirty"


class Part(NamedTuple):
    """What one part of a campaign saw."""

    number: int
    parts: int  # how many there are
    commit: str  # that it ran on; ends with -dirty if its files were changed since; may be unknown
    machine: str
    seconds: float
    figures: Figures
    broken: str = ""  # the promise that was broken, in words


class Records:
    """What the campaigns saw, in the git repository `root`."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def of(self, campaign: Campaign) -> list[Part]:
        """The parts that are kept, in their order."""
        path = self._path(campaign)
        return list(map(_part, json.loads(path.read_text()))) if path.exists() else []

    def keep(self, campaign: Campaign, part: Part) -> None:
        """Keep a part, with those others that still add up with it."""
        others = [
            other
            for other in self.of(campaign)
            if other.parts == part.parts
            and other.number != part.number
            and not self._why_again(campaign, other)
        ]
        kept = sorted([*others, part])
        path = self._path(campaign)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([_fields(each) for each in kept], indent=1) + "\n")

    def due(self, campaign: Campaign) -> dict[tuple[int, int], str]:
        """The parts that have to run, as (2, 4) for the second of four, and why each of them."""
        kept = {part.number: part for part in self.of(campaign)}
        parts = next((part.parts for part in kept.values()), campaign.parts)
        return {
            (number, parts): why
            for number in range(1, parts + 1)
            if (why := self._why_again(campaign, kept.get(number)))
        }

    def commit(self, campaign: Campaign) -> str:
        """The commit that is checked out, and whether files that count here differ from it."""
        commit = self._git("rev-parse", "--short", "HEAD").stdout.strip()
        if not commit:
            return "unknown"
        changed = self._git("status", "--porcelain", "--", *_pathspecs(campaign)).stdout
        return f"{commit}{DIRTY}" if changed else commit

    def write_page(self, campaigns: Sequence[Campaign]) -> None:
        """Write the page that shows them all."""
        (self._root / PAGE).write_text(self.page(campaigns))

    def page(self, campaigns: Sequence[Campaign]) -> str:
        """The page that shows what is kept."""
        kept = {campaign: parts for campaign in campaigns if (parts := self.of(campaign))}
        machines = {part.machine for parts in kept.values() for part in parts}
        return "\n".join(
            [
                "# What the fault campaigns saw",
                "",
                "Written by `make faults`. It runs a campaign, or a part of it, again if the code",
                "that it exercises has changed since the commit of its row. All ran with",
                f"{', or '.join(sorted(machines))}.",
                "What is promised is in [reliability.md](reliability.md).",
                "",
                "| | campaign | seen | seconds | commit |",
                "| --- | --- | --- | --- | --- |",
                *(_row(campaign, parts) for campaign, parts in kept.items()),
                "",
            ]
        )

    def _why_again(self, campaign: Campaign, part: Part | None) -> str:
        """Why a part has to run; nothing if it need not."""
        if part is None:
            return "it has not run"
        if part.broken:
            return "it failed"
        if part.commit == "unknown" or part.commit.endswith(DIRTY):
            return f"the code that it ran on is not known ({part.commit})"
        same = self._git("diff", "--quiet", part.commit, "--", *_pathspecs(campaign))
        return f"the code has changed since {part.commit}" if same.returncode else ""

    def _path(self, campaign: Campaign) -> Path:
        return self._root / SEEN / f"{campaign.name}.json"

    def _git(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["git", *words]
        return subprocess.run(command, cwd=self._root, capture_output=True, text=True, check=False)


def machine() -> str:
    """What a campaign runs with."""
    about = [f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]
    about += [f"{package} {version(package)}" for package in ("lastarm", "numpy")]
    return ", ".join(about)


def shown(figures: Figures) -> str:
    """Figures in words."""
    return ", ".join(
        f"{value:.3g} {name}"
        if isinstance(value, float) and value < 1000
        else f"{value:,.0f} {name}"
        for name, value in figures.items()
    )


def _row(campaign: Campaign, parts: Sequence[Part]) -> str:
    seen = shown(added([part.figures for part in parts if not part.broken]))
    if broken := [part.broken for part in parts if part.broken]:
        seen = f"BROKEN: {' '.join(broken[0].split())}"
    elif len(parts) < parts[0].parts:
        numbers = ", ".join(str(part.number) for part in parts)
        seen = f"only part {numbers} of {parts[0].parts}: {seen}"
    seconds = sum(part.seconds for part in parts)
    commits = ", ".join(dict.fromkeys(part.commit for part in parts))
    return f"| {campaign.name} | {campaign.title} | {seen} | {seconds:,.0f} | {commits} |"


def _fields(part: Part) -> dict[str, Any]:
    figures = {
        name: {"most": value} if isinstance(value, Most) else value
        for name, value in part.figures.items()
    }
    return {**part._asdict(), "seconds": round(part.seconds, 1), "figures": figures}


def _part(fields: dict[str, Any]) -> Part:
    figures = {
        name: Most(value["most"]) if isinstance(value, dict) else value
        for name, value in fields["figures"].items()
    }
    return Part(**{**fields, "figures": figures})


def _pathspecs(campaign: Campaign) -> list[str]:
    return [f":(glob){path}" for path in campaign.paths]


if __name__ == "__main__":
    from faults.all import CAMPAIGNS

    Records().write_page(CAMPAIGNS)
