"""Which warnings fail a test: those that are ours to fix, and no other."""

import gc
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

UNRAISABLE = pytest.PytestUnraisableExceptionWarning
IN_A_THREAD = pytest.PytestUnhandledThreadExceptionWarning


def from_module(name: str, category: type[Warning]) -> None:
    warnings.warn_explicit("old", category, f"{name}.py", 1, module=name)


@pytest.mark.parametrize("category", [UserWarning, DeprecationWarning, FutureWarning])
@pytest.mark.parametrize(
    "module", ["lastarm", "lastarm.journal", "tests.test_x", "faults", "league_curves", "__main__"]
)
def test_a_warning_in_our_code_is_an_error(category: type[Warning], module: str) -> None:
    with pytest.raises(category, match="old"):
        from_module(module, category)


def test_a_warning_in_this_file_is_an_error() -> None:
    with pytest.raises(DeprecationWarning, match="old"):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with pytest.raises(RuntimeWarning):
        np.array([np.inf]).var()


@pytest.mark.parametrize("category", [UserWarning, DeprecationWarning, ResourceWarning])
@pytest.mark.parametrize("module", ["optuna.storages", "numpy", "testsuite", "lastarmory"])
def test_a_warning_in_another_package_fails_nothing(category: type[Warning], module: str) -> None:
    with warnings.catch_warnings(record=True) as shown:
        from_module(module, category)
    assert len(shown) == 1


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """What is raised where nobody can catch it."""
    found: list[Any] = []
    gc.collect()  # what others left behind is not ours
    monkeypatch.setattr(sys, "unraisablehook", lambda args: found.append(args.exc_value))
    yield found
    found.clear()


def test_what_we_leave_open_is_an_error(tmp_path: Path, unraisable: list[BaseException]) -> None:
    file: object = (tmp_path / "file").open("w")
    del file
    folder: object = tempfile.TemporaryDirectory(dir=tmp_path)
    del folder
    sleeper: Any = subprocess.Popen(["sleep", "600"])
    process = sleeper.pid
    del sleeper
    assert [type(error) for error in unraisable] == [ResourceWarning] * 3
    subprocess.run(["kill", "-9", str(process)], check=True)


def test_what_another_package_leaves_open_fails_nothing(
    tmp_path: Path, unraisable: list[BaseException]
) -> None:
    database: object = sqlite3.connect(tmp_path / "optunas")
    del database
    gc.collect()
    assert unraisable == []


@pytest.mark.parametrize("category", [UNRAISABLE, IN_A_THREAD])
@pytest.mark.parametrize("place", ["src/lastarm/loop.py", "tests/test_loop.py"])
def test_an_error_of_ours_that_nobody_can_catch_fails_a_test(
    category: type[Warning], place: str
) -> None:
    text = f'Exception ignored in: <x>\n\nTraceback:\n  File "/home/{place}", line 1\nOops'
    with pytest.raises(category):
        warnings.warn(category(text), stacklevel=1)


@pytest.mark.parametrize("category", [UNRAISABLE, IN_A_THREAD])
def test_one_of_another_package_does_not(category: type[Warning]) -> None:
    place = "/home/lastarm/.venv/lib/python3.13/site-packages/optuna/storage.py"
    text = f'Exception ignored in: <x>\n\nTraceback:\n  File "{place}", line 1\nOops'
    with warnings.catch_warnings(record=True) as shown:
        warnings.warn(category(text), stacklevel=1)
    assert len(shown) == 1
