"""Merges what is installed in some environments, each of another Python, into constraints for pip.

Its arguments are the file to write and the interpreters of the environments. `make constraints`
runs it.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

Python = tuple[int, int, int]
Installed = dict[str, str]  # the version of each package

ASKED = """
import json, subprocess, sys
command = [sys.executable, "-m", "pip", "list", "--format=json", "--exclude-editable"]
found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
left_out = {"pip", "setuptools", "wheel"}
packages = {one["name"]: one["version"] for one in found if one["name"] not in left_out}
print(json.dumps([sys.version_info[:3], packages]))
"""


def merged(environments: dict[Python, Installed]) -> list[str]:
    """The lines: a package has as many as there are versions of it.

    The newest Python that was tried stands for those after it.

    >>> for line in merged({
    ...     (3, 11, 2): {"numpy": "2.4.6", "rich": "15.0.0", "soupsieve": "2.10", "zipp": "4.1"},
    ...     (3, 11, 7): {"numpy": "2.4.6", "rich": "15.0.0", "soupsieve": "4.1", "zipp": "4.1"},
    ...     (3, 12, 1): {"numpy": "2.5.4", "rich": "15.0.0", "soupsieve": "4.1"},
    ...     (3, 13, 0): {"numpy": "2.5.5", "rich": "15.0.0", "soupsieve": "4.1"},
    ... }):
    ...     print(line)
    numpy==2.4.6; python_version < "3.12"
    numpy==2.5.4; python_version >= "3.12" and python_version < "3.13"
    numpy==2.5.5; python_version >= "3.13"
    rich==15.0.0
    soupsieve==2.10; python_full_version < "3.11.7"
    soupsieve==4.1; python_full_version >= "3.11.7"
    zipp==4.1
    """
    lines = []
    for name in sorted({name for one in environments.values() for name in one}, key=str.lower):
        there = [(python, environments[python].get(name)) for python in sorted(environments)]
        known = [(python, version) for python, version in there if version is not None]
        changes = [
            (before[0], after[0]) for before, after in pairwise(known) if before[1] != after[1]
        ]
        versions = [known[0][1], *(dict(known)[after] for _, after in changes)]
        bounds = [_bound(before, after) for before, after in changes]
        for number, version in enumerate(versions):
            conditions = []
            if number > 0:
                conditions.append("{} >= {}".format(*bounds[number - 1]))
            if number < len(bounds):
                conditions.append("{} < {}".format(*bounds[number]))
            marker = f"; {' and '.join(conditions)}" if conditions else ""
            lines.append(f"{name}=={version}{marker}")
    return lines


def _bound(before: Python, after: Python) -> tuple[str, str]:
    """The marker that tells two Pythons apart, and the value at which the second begins."""
    if before[:2] == after[:2]:
        return "python_full_version", f'"{_text(after)}"'
    return "python_version", f'"{_text(after[:2])}"'


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def main(file: str, *interpreters: str) -> None:
    """Write the constraints of these environments."""
    environments: dict[Python, Installed] = {}
    for interpreter in interpreters:
        asked = subprocess.run([interpreter, "-c", ASKED], check=True, stdout=subprocess.PIPE)
        (major, minor, patch), packages = json.loads(asked.stdout)
        environments[major, minor, patch] = packages
    lines = [
        "# What `make test` installs. `make constraints` writes this file; the versions are those",
        f"# for Python {', '.join(map(_text, sorted(environments)))} on {platform.system()}.",
        *merged(environments),
    ]
    Path(file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
