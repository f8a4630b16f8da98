"""Where numbers come from: the commit, the versions, the processor, the seed and the rules."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

PACKAGES = ("lastarm", "numpy", "numba")


def provenance(*, seed: int, workers: int) -> dict[str, Any]:
    """What a reader has to know to run a part again, without anything that changes by itself."""
    return {
        "commit": _commit(),
        "versions": {"python": platform.python_version()} | _versions(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "seed": seed,
        "workers": workers,
        "rules": hashlib.sha256(
            files(__package__).joinpath("rules.toml").read_bytes()
        ).hexdigest(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def _commit() -> str | None:
    """The commit of the source, if it is a checkout; "-dirty" if it has been changed since."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()


@cache
def _processor() -> str:
    """Its name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
