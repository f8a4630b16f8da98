"""The house: its map names what is there, nothing stands twice, and private names have a fence."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from lastarm.policies import POLICIES

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "lastarm"
BODY = 10  # lines, from which on a body may not stand twice

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files() -> dict[Path, ast.Module]:
    """The syntax tree of every file in the house."""
    return {
        path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(HOUSE.rglob("*.py"))
    }


def trees(kind: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """All nodes of a kind in the house, and where each is."""
    for path, tree in files().items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield f"{path}:{getattr(node, 'lineno', 0)}", node


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


def test_no_two_public_classes_share_a_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in files().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_bodies_that_differ_in_names_only_are_the_same() -> None:
    one, other, third = ast.parse(
        "def one(a):\n    'Said.'\n    return a + 1\n"
        "def other(b):\n    return b + 1\n"
        "def third(b):\n    return b + 2\n"
    ).body
    assert isinstance(one, Function)
    assert isinstance(other, Function)
    assert isinstance(third, Function)
    assert normalised(one) == normalised(other) != normalised(third)


# A policy is one file -------------------------------------------------------------------------


def test_nobody_asks_whether_a_policy_is_this_or_that_one() -> None:
    """What the command, the report and others have to know of a policy, it says itself."""
    kinds = {kind.__name__ for kind in POLICIES.values()}
    asked = [
        where
        for where, node in trees(ast.Call)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("isinstance", "issubclass")
        and kinds & {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
    ]
    assert asked == []


# Private names of other packages --------------------------------------------------------------

PACKAGES = ("catboost", "dask", "distributed", "lightgbm", "ray", "sklearn", "xgboost")
# Python's own: methods of named tuples, which are public, and the way out of a forked child.
PYTHONS = {"_asdict", "_exit", "_fields", "_make", "_replace"}
BY_NAME = {"attrgetter", "delattr", "getattr", "hasattr", "methodcaller", "setattr"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def imported(tree: ast.Module) -> Iterator[str]:
    """The full names of all that a file imports, anywhere in it and by any means."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (name.name for name in names)
            case ast.ImportFrom(str() as module, names, 0):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.Constant(str() as module) if re.fullmatch(r"\w+(\.\w+)+", module):
                yield module  # as `import_module`, `__import__` and others take it


def attributes(tree: ast.Module) -> Iterator[str]:
    """The attributes of other objects that a file uses: `x.name`, but not `self.name`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("self" | "cls"), _):
                continue
            case ast.Attribute(_, name):
                yield name
            case ast.Call(ast.Name(function), [*_, ast.Constant(str() as name)]) | ast.Call(
                ast.Name(function), [_, ast.Constant(str() as name), _]
            ) if function in BY_NAME:
                yield name
            case ast.Subscript(ast.Call(ast.Name("vars")), ast.Constant(str() as name)):
                yield name
            case ast.Subscript(ast.Attribute(_, "__dict__"), ast.Constant(str() as name)):
                yield name


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts in a file that are names, by which attributes can be had as well."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str() as name) if name.isidentifier():
                yield name


def keywords(tree: ast.Module) -> Iterator[str]:
    """The names of the keyword arguments that a file passes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def defined(tree: ast.Module) -> Iterator[str]:
    """The names that a file gives to functions, classes, variables and attributes of `self`."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(name, ast.Store()) | ast.arg(name):
                yield name
            case ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                yield name


def listed(tree: ast.Module) -> set[str]:
    """The names that a compat file says it uses of another package, though they are not public."""
    for node in filter(is_list, tree.body):
        assert isinstance(node, ast.Assign)
        return set(ast.literal_eval(node.value))
    return set()


def is_list(node: ast.stmt) -> bool:
    """Whether it is the statement in which a compat file lists these names."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PRIVATE"


def fenced() -> dict[Path, ast.Module]:
    """The files in which names of other packages may be used that are not public."""
    return {path: tree for path, tree in files().items() if path.stem.startswith("compat")}


def others() -> dict[Path, ast.Module]:
    """All other files."""
    return {path: tree for path, tree in files().items() if not path.stem.startswith("compat")}


def test_private_names_of_other_packages_are_imported_in_compat_files_only() -> None:
    found = {
        (path, name)
        for path, tree in others().items()
        for name in imported(tree)
        if name.split(".")[0] in PACKAGES and any(map(is_private, name.split(".")))
    }
    assert not found


@pytest.mark.parametrize(
    "planted",
    [
        "import sklearn._hidden",
        "from sklearn import _hidden",
        "importlib.import_module('sklearn._hidden')",
        "__import__('sklearn._hidden')",
        "model._hidden",
        "getattr(model, '_hidden', None)",
        "operator.attrgetter; attrgetter('_hidden')",
        "vars(model)['_hidden'] = 1",
        "model.__dict__['_hidden']",
        "model.fit(_hidden=1)",
    ],
)
def test_a_private_name_is_found_in_any_form(planted: str) -> None:
    tree = ast.parse(planted)
    used = [*imported(tree), *attributes(tree), *keywords(tree)]
    assert "_hidden" in {part for name in used for part in name.split(".")}


def test_what_compat_files_list_is_used_in_no_other_file() -> None:
    names = {name for tree in fenced().values() for name in listed(tree)}
    used = {path: names.intersection(attributes(tree)) for path, tree in others().items()}
    assert not {path: found for path, found in used.items() if found}


def test_private_names_that_are_not_ours_are_used_in_compat_files_only() -> None:
    ours = {name for tree in files().values() for name in defined(tree)} | PYTHONS
    for path, tree in others().items():
        used = filter(is_private, [*attributes(tree), *keywords(tree)])
        assert ours.issuperset(used), path


def test_a_compat_file_lists_just_what_it_uses() -> None:
    for path, whole in fenced().items():
        names, tree = listed(whole), ast.Module([n for n in whole.body if not is_list(n)], [])
        parts = {part for name in imported(tree) for part in name.split(".")}
        used = {*attributes(tree), *keywords(tree), *texts(tree), *parts}
        ours = {*defined(tree), *PYTHONS}
        assert {name for name in used if is_private(name)} - ours <= names <= used, path
