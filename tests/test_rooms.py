"""The house: its map names what is there, a room says what it is for, and nothing stands twice."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "lastarm"
FILES = sorted(HOUSE.rglob("*.py"))
BODY = 10  # lines, from which on a body may not stand twice

Function = ast.FunctionDef | ast.AsyncFunctionDef


def trees(kind: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """All nodes of a kind in the house, and where each is."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, kind):
                yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node


def test_the_map_names_what_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = re.search(r"```text\nsrc/lastarm/\n(.*?)```", page, re.DOTALL)
    assert drawn
    lines = drawn[1].splitlines()
    named = [line.split()[0] for line in lines if re.match(r"  \S", line)]
    told = [line for line in lines if re.match(r"  \S+ +\S", line)]
    assert len(told) == len(named), "a name without a word about it"
    there = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in HOUSE.iterdir()
        if path.name not in ("__pycache__", "py.typed")
    }
    assert sorted(named) == sorted(there)


def body(function: Function) -> list[ast.stmt]:
    """What a function does, without what it says of itself."""
    documented = ast.get_docstring(function, clean=False) is not None
    return function.body[documented:]


def normalised(function: Function) -> str:
    """Its body, with names numbered in the order in which they come."""
    numbers: dict[str, int] = defaultdict(count().__next__)

    class Numbered(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(f"name-{numbers[node.id]}", node.ctx)

        def visit_arg(self, node: ast.arg) -> ast.arg:
            return ast.arg(f"name-{numbers[node.arg]}")

    copy = ast.parse(ast.unparse(ast.Module(body(function), [])))
    return ast.dump(Numbered().visit(copy))


def lines(function: Function) -> int:
    """How long the body is."""
    first, last = body(function)[0], function.body[-1]
    return (last.end_lineno or 0) - first.lineno + 1


def test_no_function_stands_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        for where, node in trees(kind):
            assert isinstance(node, Function)
            if body(node) and lines(node) >= BODY:
                found[normalised(node)].append(f"{where} {node.name}")
    assert [places for places in found.values() if len(places) > 1] == []
