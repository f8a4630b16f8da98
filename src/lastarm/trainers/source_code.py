"""The user's code: a short hash for each function, method and class that a trainer reaches.

A journal holds these hashes, so that a search that is resumed can say what has changed since.

From the trainer on, all is followed that its code uses by a name: functions, methods, classes and
their bases, also as globals, in closures, defaults, partials and decorators, as attributes of
modules, and in objects such as the steps of a Pipeline. Only the user's own code counts: what lies
outside the folders of the interpreter, of installed packages and of lastarm.

A hash covers the syntax tree, without docstrings, annotations and positions, so that a comment
changes nothing; and the values of defaults, of globals and of variables of outer functions, where
these are numbers, strings, None or tuples of them. Arrays, other objects and files are not in it.
Where there is no source, the bytecode takes the place of the syntax tree; each version of Python
writes it differently, so such a hash begins with the version and is compared only within it.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import importlib.util
import inspect
import linecache
import os
import re
import site
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from hashlib import blake2b
from itertools import islice, takewhile
from numbers import Number
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple

from lastarm.plain import as_python

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"  # before a hash of bytecode
FILE = "file"  # before a hash of a file
MOST_OF_A_FILE = 2**20
MOST_OBJECTS = 20_000  # that are looked at, such as the parts of a large network
MOST_ELEMENTS = 1_000  # of a list or a dict


def code_of(trainer: Any) -> dict[str, str]:
    """The qualified name of all that a trainer reaches of the user's code, each with its hash.

    - `trainer`: any trainer. One that runs a program has `code_files()`, the files that its
      command names.

    >>> def loss(x, scale=2):
    ...     return scale * x
    >>> def training(config):
    ...     yield loss(config["x"])
    >>> sorted(code_of(training))
    ['lastarm.trainers.source_code.loss', 'lastarm.trainers.source_code.training']
    """
    reached = _Reached()
    reached.follow(trainer)
    found = {name: _combined(hashes) for name, hashes in reached.hashes.items()}
    if callable(files := getattr(trainer, "code_files", None)):
        found |= {str(path): hashed for path in files() if (hashed := _hash_of_file(path))}
    return dict(sorted(found.items()))


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """What differs, with its hash now; "" for what is not reached any more.

    >>> changes({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"})
    {'b': '9', 'c': '', 'd': '4'}

    What has only moved to another module, as when a script is imported, does not differ. Bytecode
    is compared within one version of Python, and never with a syntax tree. A file that was not
    there before may be what the program writes.

    >>> changes({"a": "3.11:1", "b": "3.11:2"}, {"a": "3.12:1", "b": "2", "log": "file:3"})
    {}
    """
    differing = [name for name in sorted({**before, **now}) if before.get(name) != now.get(name)]
    gone = {before[name] for name in differing if name not in now}
    moved = gone & {now[name] for name in differing if name not in before}
    found = {}
    for name in differing:
        was, hashed = before.get(name, ""), now.get(name, "")
        only_moved = not (was and hashed) and (was or hashed) in moved
        if _comparable(was, hashed) and not only_moved:
            found[name] = hashed
    return found


def users_line(traceback: str) -> str:
    r"""The last line of the user's own code in the text of a traceback; empty if there is none.

    >>> users_line('  File "train.py", line 7, in step\n    x / 0\nZeroDivisionError')
    'train.py, line 7, in step'
    """
    frames = re.findall(r'^  File "(.+)", (line \d+, in .+)$', traceback, re.MULTILINE)
    own = [f"{file}, {line}" for file, line in frames if _is_users_file(file)]
    return own[-1] if own else ""


def _comparable(before: str, now: str) -> bool:
    kinds = [hashed.rpartition(":")[0] for hashed in (before, now)]
    return kinds[0] == kinds[1] if before and now else FILE not in kinds


# What is the user's ----------------------------------------------------------------------------


@functools.cache
def _foreign_folders() -> tuple[str, ...]:
    """The folders of the interpreter, of installed packages and of lastarm."""
    named = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    folders = {sysconfig.get_path(name) for name in named}
    folders |= {*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.__file__)}
    folders |= {os.path.join(sys.base_prefix, "bin"), *os.defpath.split(os.pathsep)}
    folders |= {str(Path(__file__).parent.parent)}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


@functools.cache
def _is_users_file(path: str | None) -> bool:
    if path is None or path.startswith("<"):  # a notebook, a doctest, a string
        return path is not None and not path.startswith("<frozen")
    real = os.path.realpath(path)
    installed = {"site-packages", "dist-packages"} & set(Path(real).parts)
    return not installed and not real.startswith(_foreign_folders())


def _is_users_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None and module.__name__ == "__main__":
        return True  # a notebook or a session
    return all(map(_is_users_file, getattr(module, "__path__", None) or [file]))


# Following names -------------------------------------------------------------------------------


class _Reached:
    """All that was reached so far: names, and the hashes of what has them.

    Several things may have one name: lambdas of one function, or what a function returns each time
    that it is called.
    """

    def __init__(self) -> None:
        self.hashes: dict[str, set[str]] = {}
        self._seen: dict[int, Any] = {}  # by address; held, so that no address is used again
        self._waiting: deque[Any] = deque()
        self._sources = _Sources()

    def follow(self, value: Any) -> None:
        """Look at a value, at all that it uses, at all that that uses, and so on."""
        self._waiting.append(value)
        while self._waiting and len(self._seen) < MOST_OBJECTS:
            one = self._waiting.popleft()
            if id(one) not in self._seen and _simple(one) is None:
                self._seen[id(one)] = one
                with suppress(Exception):  # an object may raise anything when it is looked at
                    self._look_at(one)

    def _look_at(self, value: Any) -> None:
        add = self._waiting.extend
        match value:
            case FunctionType():
                self._look_at_function(value)
            case type():
                self._look_at_class(value)
            case ModuleType():
                return  # what is used of it is known by its name
            case MethodType():
                add([value.__func__, value.__self__])
            case functools.partial():
                self._look_at_partial(value)
            case functools.partialmethod() | functools.cached_property():
                add([value.func])
            case property():
                add([value.fget, value.fset, value.fdel])
            case list() | tuple() | Set():
                add(islice(value, MOST_ELEMENTS))
            case Mapping():
                add(islice(value.values(), MOST_ELEMENTS))
            case _:
                self._look_at_object(value)
        add([getattr(value, "__wrapped__", None)])  # as static methods and decorators have it

    def _look_at_function(self, function: FunctionType) -> None:
        code, scope, closure = function.__code__, function.__globals__, _closure_of(function)
        if not _is_users_file(code.co_filename):
            # A decorator of another package keeps the user's function in its closure.
            self._waiting.extend(closure.values())
            return
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._waiting.extend(defaults)
        node = self._sources.of(code.co_filename, scope).function(code)
        self._add(
            f"{scope.get('__name__')}.{code.co_qualname}",
            _bytecode(code) if node is None else _written(node),
            [_simple(default) for default in defaults],
            self._used(code, scope, closure, node),
            source=node is not None,
        )

    def _look_at_partial(self, bound: functools.partial[Any]) -> None:
        """Its function, and what it gives to it, which takes the place of defaults."""
        function = bound.func
        self._waiting.extend([function, *bound.args, *bound.keywords.values()])
        if isinstance(function, FunctionType) and _is_users_file(function.__code__.co_filename):
            name = f"{function.__globals__.get('__name__')}.{function.__code__.co_qualname}"
            given = [(word, _simple(value)) for word, value in sorted(bound.keywords.items())]
            self._add(name, [_simple(value) for value in bound.args], given, source=True)

    def _look_at_class(self, kind: type) -> None:
        module = sys.modules.get(kind.__module__)
        scope = vars(module) if module else {}
        members = {name: value for name, value in vars(kind).items() if name != "__dict__"}
        codes = {name: _code_of_method(member) for name, member in members.items()}
        methods = [code for code in codes.values() if code]
        file = _file_of_class(kind, scope.get("__file__"), methods)
        if not _is_users_file(file):
            return
        self._waiting.extend([*kind.__mro__[1:], type(kind)])
        node = self._sources.of(file, scope).class_(kind, methods)
        if node is None:
            simple = {name: _simple(value) for name, value in members.items() if name[:2] != "__"}
            text, used = repr(sorted(item for item in simple.items() if item[1])), []
        else:
            # Methods and classes inside of it have hashes of their own.
            body = [one for one in node.body if not isinstance(one, _DEFINITIONS)] or [ast.Pass()]
            bare = ast.copy_location(ast.ClassDef(**{**_fields(node), "body": body}), node)
            module_of_it = ast.Module(body=[bare], type_ignores=[])
            code = compile(ast.fix_missing_locations(module_of_it), file, "exec", 0, True)
            text, used = _written(bare), self._used(code, scope, {}, bare)
            # Other methods are written by a decorator, such as `dataclass`.
            for name, method in codes.items():
                if method and method.co_filename != file:
                    del members[name]
        self._waiting.extend(members.values())
        name = f"{kind.__module__}.{kind.__qualname__}"
        self._add(name, text, used, source=node is not None)

    def _look_at_object(self, value: Any) -> None:
        """Its class; and what it holds, if it is the user's, ours, an estimator or a function."""
        kind = type(value)
        self._waiting.append(kind)
        ours = kind.__module__.partition(".")[0] == "lastarm"
        module = sys.modules.get(kind.__module__)
        users = module is not None and _is_users_module(module)
        if ours or users or callable(value) or hasattr(kind, "get_params"):
            self._waiting.extend(getattr(value, "__dict__", {}).values())
            slots = (name for one in kind.__mro__ for name in vars(one).get("__slots__", ()))
            self._waiting.extend(getattr(value, name, None) for name in slots)

    def _used(
        self, code: CodeType, scope: Mapping[str, Any], closure: Mapping[str, Any], node: Any
    ) -> list[tuple[str, str]]:
        """The globals and variables of outer functions that are numbers and the like, by name.

        Everything else that the code uses is followed. Names that only annotations have are not
        used. A variable that the code itself sets is its memory, and not a part of it.
        """
        named = None if node is None else set(_names_in(node))
        uses = [
            use
            for use in _uses(code)
            if named is None or use.place == "import" or named.issuperset(use.names)
        ]
        memory = {use.name for use in uses if use.place == "set"}
        simple: dict[str, str] = {}
        for use in uses:
            value = _NOTHING if use.place == "set" else _found(use, scope, closure)
            if (text := _simple(value)) is None:
                self._waiting.append(value)
            elif use.name not in memory:
                simple[".".join(use.names)] = text
        return sorted(simple.items())

    def _add(self, name: str, *parts: Any, source: bool) -> None:
        hashed = _short_hash(repr(parts))
        self.hashes.setdefault(name, set()).add(hashed if source else f"{PYTHON}:{hashed}")


def _combined(hashes: set[str]) -> str:
    if len(hashes) == 1:
        return next(iter(hashes))
    version = f"{PYTHON}:" if any(":" in one for one in hashes) else ""
    return version + _short_hash(repr(sorted(hashes)))


def _short_hash(text: str | bytes) -> str:
    content = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    return blake2b(content, digest_size=6).hexdigest()


def _hash_of_file(path: Path) -> str | None:
    """Of its size and its first 1 MB; None if it is foreign, or cannot be read."""
    with suppress(OSError):
        if _is_users_file(str(path)) and path.is_file():  # not a pipe, which would be waited for
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                return f"{FILE}:{_short_hash(file.read(MOST_OF_A_FILE) + str(size).encode())}"
    return None


def _simple(value: Any) -> str | None:
    """The text of a number, a string, None or a tuple of these; of anything else, None."""
    value = as_python(value)
    if value is None or isinstance(value, str | bytes | Number):
        return f"{type(value).__name__} {value!r}"
    if type(value) is tuple:
        texts = [_simple(one) for one in value]
        return None if None in texts else repr(texts)
    return None


def _closure_of(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != CellType()}  # not empty


# The names that code uses ----------------------------------------------------------------------


class _Use(NamedTuple):
    """A name that code uses, what it takes from it by dots, and where the name is looked up."""

    place: Literal["globals", "closure", "import", "set"]  # or that it is set, and not used
    name: str
    attributes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, from left to right."""
        return self.name, *self.attributes


_DOTS = ("LOAD_ATTR", "LOAD_METHOD")
_SETTING = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF")
_LOADING = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")
# What every module has, and no user has chosen; the path of a file is another elsewhere.
_OF_THE_MODULE = {"__name__", "__file__", "__path__", "__package__", "__spec__", "__loader__"}


class _NOTHING:
    """What a name stands for that has no value yet."""


def _uses(code: CodeType) -> Iterator[_Use]:
    """The names that a function uses, with those of functions and classes inside of it."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "NOP"]
    imported: dict[str, str] = {}  # a variable → the module that it is
    for at, step in enumerate(steps):
        kind, name = step.opname, step.argval
        if isinstance(name, tuple) and "_FAST" in kind:  # two variables: dots belong to the last
            name = name[-1]
        dots = tuple(
            later.argval
            for later in takewhile(lambda one: one.opname in _DOTS, islice(steps, at + 1, None))
        )
        if kind == "IMPORT_NAME":
            level, wanted = steps[at - 2].argval, steps[at - 1].argval
            module = "." * level + name
            yield _Use("import", module)
            for taken in wanted or ():
                yield _Use("import", module, (taken,))
            if not wanted:  # `import a.b` binds a, and `import a.b as c` binds a.b
                whole = not steps[at + 1].opname.startswith("STORE")
                stored = next(one for one in steps[at:] if one.opname.startswith("STORE"))
                imported[stored.argval] = name if whole else name.partition(".")[0]
        elif kind in _SETTING and (kind[-5:] != "DEREF" or name in code.co_freevars):
            yield _Use("set", name)
        elif kind.startswith(_LOADING) and name in imported:
            yield _Use("import", imported[name], dots)
        elif kind in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield _Use("globals", name, dots)
        elif kind in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
            yield _Use("closure", name, dots)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _uses(inner)


def _found(use: _Use, scope: Mapping[str, Any], closure: Mapping[str, Any]) -> Any:
    """What a name stands for. Dots are followed through modules of the user."""
    if use.place == "import":
        value = _imported(use.name, scope.get("__package__"))
    elif use.place == "closure":
        value = closure.get(use.name, _NOTHING)
    else:
        value = _NOTHING if use.name in _OF_THE_MODULE else scope.get(use.name, _NOTHING)
    for name in use.attributes:
        if not isinstance(value, ModuleType) or not _is_users_module(value):
            break
        inside = sys.modules.get(f"{value.__name__}.{name}", _NOTHING)
        value = vars(value).get(name, inside)
    return value


def _imported(name: str, package: str | None) -> Any:
    """A module of the user that a function imports when it runs.

    It is imported here already: only then is it known what it defines.
    """
    with suppress(Exception, SystemExit):
        path = importlib.util.resolve_name(name, package)
        first = path.partition(".")[0]
        if first in sys.modules:
            users = _is_users_module(sys.modules[first])
        else:
            spec = importlib.util.find_spec(first)
            users = spec is not None and _is_users_module(importlib.util.module_from_spec(spec))
        if users:
            return importlib.import_module(path)
    return _NOTHING


# Syntax trees and bytecode ---------------------------------------------------------------------

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
# Annotations, which say nothing of what is done, and what a later Python may write differently.
_LEFT_OUT = {"annotation", "returns", "type_comment", "type_params", "kind", "ctx"}


class _Sources:
    """The files that were read so far."""

    def __init__(self) -> None:
        self._read: dict[str, _Source] = {}

    def of(self, file: str, scope: Mapping[str, Any]) -> _Source:
        """A file; that of a notebook or a doctest is where tracebacks find it."""
        if file not in self._read:
            if not file.startswith("<"):
                linecache.checkcache(file)
            self._read[file] = _Source("".join(linecache.getlines(file, dict(scope))))
        return self._read[file]


class _Source:
    """The definitions in a file."""

    def __init__(self, text: str) -> None:
        self._functions: list[Any] = []
        self._classes: dict[str, list[ast.ClassDef]] = {}  # by qualified name
        self._codes: set[tuple[str, int, bytes]] = set()
        with suppress(SyntaxError, ValueError, RecursionError):
            tree = ast.parse(text)
            self._collect(tree, "")
            self._collect_code(compile(tree, "<source>", "exec", 0, True))

    def _collect(self, node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = within
            if isinstance(child, (*_FUNCTIONS, ast.Lambda)):
                self._functions.append(child)
                inside = f"{within}{getattr(child, 'name', '<lambda>')}.<locals>."
            elif isinstance(child, ast.ClassDef):
                self._classes.setdefault(within + child.name, []).append(child)
                inside = f"{within}{child.name}."
            self._collect(child, inside)

    def _collect_code(self, code: CodeType) -> None:
        self._codes.add((code.co_qualname, code.co_firstlineno, code.co_code))
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._collect_code(inner)

    def function(self, code: CodeType) -> Any:
        """The definition of a function; None if it is not here, or not as it was loaded."""
        if (code.co_qualname, code.co_firstlineno, code.co_code) not in self._codes:
            return None
        own = code.co_qualname.rpartition(".")[2]
        nodes = [
            node
            for node in self._functions
            if getattr(node, "name", "<lambda>") == own and _line(node) == code.co_firstlineno
        ]
        if len(nodes) > 1:  # lambdas that begin in one line: the smallest that has all of the code
            spots = [
                (line, column) for line, _, column, _ in code.co_positions() if line and column
            ]
            nodes = [node for node in nodes if spots and _is_in(node, spots)]
            nodes.sort(key=lambda node: len(_written(node)))
        return nodes[0] if nodes else None

    def class_(self, kind: type, methods: list[CodeType]) -> ast.ClassDef | None:
        """The definition of a class; None if it is not here."""
        lines = [m.co_firstlineno for m in methods if m.co_qualname.startswith(_prefix(kind))]
        begins = getattr(kind, "__firstlineno__", None)  # since Python 3.13
        fitting = [
            node
            for node in self._classes.get(kind.__qualname__, [])
            if any(
                node.lineno <= line <= (node.end_lineno or 0) for line in lines or [node.lineno]
            )
            and begins in (None, _line(node))
        ]
        return fitting[-1] if fitting else None


def _line(node: Any) -> int:
    """The first line of a definition, with its decorators."""
    lines: list[int] = [one.lineno for one in (node, *getattr(node, "decorator_list", ()))]
    return min(lines)


def _is_in(node: Any, spots: list[tuple[int, int]]) -> bool:
    first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return all(first <= spot < last for spot in spots)


def _file_of_class(kind: type, file: str | None, codes: list[CodeType]) -> str:
    """Where a class is defined: a notebook has a file for each cell."""
    files = {c.co_filename for c in codes if c.co_qualname.startswith(_prefix(kind))}
    if file is None or (files and file not in files):
        nowhere = "<main>" if kind.__module__ == "__main__" else "<frozen>"
        return min(files, default=file or nowhere)
    return file


def _code_of_method(member: Any) -> CodeType | None:
    code = getattr(getattr(member, "__func__", member), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _prefix(kind: type) -> str:
    return f"{kind.__qualname__}."


def _fields(node: ast.AST) -> dict[str, Any]:
    """What a node is made of."""
    return {name: getattr(node, name) for name in node._fields if hasattr(node, name)}


def _parts(node: ast.AST) -> dict[str, Any]:
    """The same without annotations and docstrings."""
    if isinstance(node, ast.AnnAssign):
        return {"targets": [node.target], "value": node.value}
    parts = {name: part for name, part in _fields(node).items() if name not in _LEFT_OUT}
    if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in it
        parts["values"] = [one for one in node.values if getattr(one, "value", None) != ""]
    if isinstance(node, (*_DEFINITIONS, ast.Module)):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                parts["body"] = rest
    return parts


def _written(node: Any) -> str:
    """A syntax tree as a text that is the same in every version of Python.

    >>> trees = [ast.parse(text) for text in ("x: int = 1  # one", "x = 1", "x = 2")]
    >>> [_written(tree) == _written(trees[0]) for tree in trees]
    [True, True, False]
    """
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    # What is None or empty is left out: a later Python may have more of it.
    parts = _parts(node).items()
    said = [f"{name}={_written(part)}" for name, part in parts if part is not None and part != []]
    kind = ast.Assign if isinstance(node, ast.AnnAssign) else type(node)
    return f"{kind.__name__}({','.join(said)})"


def _names_in(node: Any) -> Iterator[str]:
    """The names and attributes in a syntax tree."""
    if isinstance(node, list):
        for one in node:
            yield from _names_in(one)
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        for part in _parts(node).values():
            yield from _names_in(part)


def _bytecode(code: CodeType) -> str:
    """What a function does, where there is no source: not its docstring."""
    consts = list(code.co_consts)
    if consts and isinstance(consts[0], str) and code.co_flags & inspect.CO_NEWLOCALS:
        del consts[0]
    told = [_bytecode(one) if isinstance(one, CodeType) else _constant(one) for one in consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, told))


def _constant(value: Any) -> str:
    """A set of constants has another order in every process."""
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
