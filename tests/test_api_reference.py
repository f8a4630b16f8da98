"""The API reference: a line for each parameter of a function, and for each field of a result."""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastarm import Result
from lastarm.report.figures.plots import Plots

PAGES = Path(__file__).parent.parent / "docs" / "api"


def found(name: str) -> Any:
    """What a dotted name stands for."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def functions() -> Iterator[tuple[str, Any, str]]:
    """Every function of the reference: its name, itself, and the page that it is on."""
    for path in sorted(PAGES.glob("*.md")):
        page, module = path.read_text(encoding="utf-8"), "lastarm"
        for kind, name in re.findall(r"^\.\. (currentmodule|autofunction):: (\S+)", page, re.M):
            if kind == "currentmodule":
                module = name
            else:
                full = name if name.startswith("lastarm.") else f"{module}.{name}"
                yield full, found(full), page
    page = (PAGES / "search.md").read_text(encoding="utf-8")
    for kind_of in (Result, Plots):
        for name, method in inspect.getmembers(kind_of, inspect.isroutine):
            if not name.startswith("_"):
                yield f"{kind_of.__name__}.{name}", method, page


def undescribed(function: Any, page: str) -> list[str]:
    """The parameters without a line in the docstring, or in a table of the page."""
    text = inspect.getdoc(function) or ""
    listed = re.findall(r"^(?::param (\w+)|- `(\w+)`): ", text, re.M)
    tabled = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.M)))
    known = {"self", *tabled, *(name for pair in listed for name in pair)}
    return [name for name in inspect.signature(function).parameters if name not in known]


@pytest.mark.parametrize(("name", "function", "page"), list(functions()))
def test_every_parameter_has_a_line(name: str, function: Any, page: str) -> None:
    assert undescribed(function, page) == [], name


def test_every_field_of_a_result_has_a_line() -> None:
    source = inspect.getsource(Result)
    for field in dataclasses.fields(Result):
        assert re.search(rf'^    {field.name}: .*\n    """\S', source, re.M), field.name


def test_a_parameter_without_a_line_is_found() -> None:
    def function(arms: int, budget: int) -> None:
        """Do it.

        :param arms: how many.
        """

    assert undescribed(function, "") == ["budget"]
    assert undescribed(function, "| `budget` | all pulls |") == []
