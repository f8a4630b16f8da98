"""The user's code: all that a trainer reaches is seen, and nothing that does not matter."""

import linecache
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from lastarm import Generated, Program
from lastarm.trainers import Functions, Maximized, as_trainer
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.source_code import changes, code_of
from tests.user_code import load

Module = Callable[..., ModuleType]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Writes a module of the user and imports it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    yield partial(load, tmp_path)
    for name in ("user_code", "user_helpers"):
        sys.modules.pop(name, None)


SOURCE = '''
import math
import functools
import user_helpers
from user_helpers import scaled

RATE = 0.5
LAYERS = (8, ("relu", None))
TABLE = [1, 2, 3]

def logged(function):
    @functools.wraps(function)
    def wrapper(*given):
        return function(*given)
    return wrapper

@logged
def step(x):
    return RATE * x

def unused(x):
    return x

class Base:
    def begun(self):
        return 1.0

class Net(Base):
    """A net."""
    width = 3
    depth: int = 2

    def __init__(self, x: float) -> None:
        """Its weight."""
        self.x = x

    @property
    def squared(self):
        return self.x * self.x

    @staticmethod
    def shown(x):
        return x

activation = functools.partial(scaled, by=2)

def training(config, start=1.0):
    """A loop."""
    net = Net(start)

    def inner(y):
        return user_helpers.halved(y) + LAYERS[0]

    while True:
        net.x = step(activation(net.x))  # a comment
        yield inner(net.squared) + TABLE[0]
'''
HELPERS = """
def halved(y):
    return y / 2

def scaled(x, by=1):
    return by * x

def unused():
    pass
"""
REACHED = {
    "user_code.training",
    "user_code.step",
    "user_code.logged.<locals>.wrapper",
    "user_code.Net",
    "user_code.Net.__init__",
    "user_code.Net.squared",
    "user_code.Net.shown",
    "user_code.Base",
    "user_code.Base.begun",
    "user_helpers.halved",
    "user_helpers.scaled",
}


SCALED = "user_helpers.scaled"


def seen(module: Module, source: str = SOURCE, helpers: str = HELPERS) -> dict[str, str]:
    module(helpers, "user_helpers")
    return code_of(as_trainer(module(source).training))


def test_all_that_the_trainer_reaches_has_a_hash_by_its_qualified_name(module: Module) -> None:
    found = seen(module)
    assert found.keys() == REACHED
    assert all(len(hashed) == 12 for hashed in found.values())


@pytest.mark.parametrize(
    ("was", "now", "named"),
    [
        ("RATE * x", "RATE + x", {"user_code.step"}),
        ("RATE = 0.5", "RATE = 0.25", {"user_code.step"}),
        ('("relu", None)', '("relu", 1)', {"user_code.training"}),
        ("start=1.0", "start=2.0", {"user_code.training"}),
        ("width = 3", "width = 4", {"user_code.Net"}),
        ("depth: int = 2", "depth: int = 3", {"user_code.Net"}),
        ("self.x * self.x", "self.x ** 3", {"user_code.Net.squared"}),
        (
            "        return x\n\nactivation",
            "        return 2 * x\n\nactivation",
            {"user_code.Net.shown"},
        ),
        ("return 1.0", "return 2.0", {"user_code.Base.begun"}),
        (
            "return function(*given)",
            "return 2 * function(*given)",
            {"user_code.logged.<locals>.wrapper"},
        ),
        ("activation(net.x)", "net.x", {"user_code.training", "user_helpers.scaled"}),
        (
            "activation = functools.partial(scaled",
            "activation = functools.partial(max",
            {"user_helpers.scaled"},
        ),
        ("functools.partial(scaled, by=2", "functools.partial(scaled, by=3", {SCALED}),
        ("functools.partial(scaled, by=2", "functools.partial(scaled, 2", {SCALED}),
        ("TABLE[0]", "TABLE[1]", {"user_code.training"}),
    ],
)
def test_what_has_changed_is_named(module: Module, was: str, now: str, named: set[str]) -> None:
    before = seen(module)
    assert SOURCE.count(was) == 1
    assert changes(before, seen(module, SOURCE.replace(was, now))).keys() == named


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("# a comment", "# another one"),
        ('"""A loop."""', '"""A loop, with another docstring."""'),
        ('    """Its weight."""\n', ""),
        ('    """A net."""\n', '    """A net,\n\n    of many lines."""\n'),
        ("x: float) -> None", "x: 'int') -> float"),
        ("depth: int = 2", "depth: float = 2"),
        ("depth: int = 2", "depth = 2"),
        ("def unused(x):\n    return x", "def unused(x):\n    return 2 * x"),
        ("TABLE = [1, 2, 3]", "TABLE = [3, 2, 1]"),
        ("RATE = 0.5", "\n\n\nRATE = (  # moved\n    0.5\n)"),
        ("def inner(y):", "def inner(y: Base) -> 'Base':"),
        ("import math", "import math, json"),
    ],
)
def test_comments_docstrings_annotations_positions_and_what_is_not_used_are_not_seen(
    module: Module, was: str, now: str
) -> None:
    before = seen(module)
    assert was in SOURCE
    assert changes(before, seen(module, SOURCE.replace(was, now))) == {}


def test_what_only_moved_to_another_module_has_not_changed(module: Module) -> None:
    source = "def step(x):\n    return x\ndef training(config):\n    yield step(1.0)\n"
    before = code_of(module(source).training)
    moved = code_of(module(source, "user_helpers").training)
    assert before.keys().isdisjoint(moved)
    assert changes(before, moved) == {}
    other = code_of(module(source.replace("1.0", "2.0"), "user_helpers").training)
    assert changes(before, other).keys() == {"user_code.training", "user_helpers.training"}


def test_a_module_of_the_user_is_followed_by_its_dots(module: Module) -> None:
    before = seen(module)
    after = seen(module, helpers=HELPERS.replace("y / 2", "y / 3").replace("pass", "return 1"))
    assert changes(before, after).keys() == {"user_helpers.halved"}


def test_an_import_inside_of_a_function_is_followed(module: Module) -> None:
    source = """
def training(config):
    import user_helpers as h
    from user_helpers import scaled
    import user_helpers
    import numpy
    yield h.halved(1.0) + scaled(2.0) + numpy.sum([1])
"""
    assert seen(module, source).keys() == {
        "user_code.training",
        "user_helpers.halved",
        "user_helpers.scaled",
    }


def test_closures_lambdas_and_memory(module: Module) -> None:
    source = """
calls = 0

def made(rate, kind=dict):
    count = 0
    def training(config):
        nonlocal count
        global calls
        calls += 1
        count += 1
        yield rate
    return training

first, second = (lambda x: x + 1), (lambda x: x + 2)
training = made(0.5)
"""
    found = module(source)
    before = code_of(found.training)
    assert before.keys() == {"user_code.made.<locals>.training"}
    next(found.training({}))
    assert code_of(found.training) == before, "what it counts is not its code"
    assert changes(before, code_of(found.made(0.25))).keys() == before.keys()
    one, other = code_of(found.first), code_of(found.second)
    assert one.keys() == other.keys() == {"user_code.<lambda>"}
    assert changes(one, other)
    both = code_of([found.first, found.second])
    assert both == code_of([found.second, found.first])
    assert both["user_code.<lambda>"] not in (*one.values(), *other.values())


def test_without_source_there_is_bytecode_of_one_version_of_python(module: Module) -> None:
    def made(text: str) -> dict[str, str]:
        scope: dict[str, Any] = {"__name__": "nowhere"}
        exec(text, scope)
        return code_of(scope["training"])

    before = made("def training(config):\n    '''It trains.'''\n    yield 1.0")
    assert before["nowhere.training"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}:")
    assert (
        changes(before, made("\n\ndef training(config):\n    'So'\n    yield 1.0  # here")) == {}
    )
    after = made("def training(config):\n    'It trains.'\n    yield 2.0")
    assert changes(before, after).keys() == {"nowhere.training"}
    elsewhere = {name: hashed.replace("3.", "9.") for name, hashed in before.items()}
    assert changes(elsewhere, after) == {}


def test_a_file_that_was_changed_after_it_was_loaded_says_nothing_of_what_runs(
    module: Module, tmp_path: Path
) -> None:
    found = module("def training(config):\n    yield 1.0\n")
    (tmp_path / "user_code.py").write_text("def training(config):\n    yield config\n")
    linecache.clearcache()
    assert ":" in code_of(found.training)["user_code.training"]


def test_a_notebook_has_its_source_where_tracebacks_find_it() -> None:
    cell = "class Net:\n    def go(self): return 1.0\ndef training(config): yield Net().go()\n"
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(True), "<cell 1>")
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<cell 1>", "exec", dont_inherit=True), scope)
    found = code_of(scope["training"])
    del linecache.cache["<cell 1>"]
    assert found.keys() == {"__main__.training", "__main__.Net", "__main__.Net.go"}
    assert not any(":" in hashed for hashed in found.values())


def test_installed_packages_and_lastarm_are_not_the_users() -> None:
    assert code_of(partial(np.linalg.norm, ord=2)) == {}
    assert code_of(Estimator(SGDClassifier(), [[0.0], [1.0]] * 8, [0, 1] * 8)) == {}


def test_estimators_and_functions_of_the_user_are_found_inside_of_others(module: Module) -> None:
    found = module("""
from sklearn.base import BaseEstimator

class Half(BaseEstimator):
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return X / 2

def shifted(X):
    return X + 1

def metric(y, predicted):
    return 1.0
""")
    model = make_pipeline(found.Half(), FunctionTransformer(found.shifted), SGDClassifier())
    scoring = make_scorer(found.metric)
    trainer = Estimator(model, np.eye(8), [0, 1] * 4, scoring=scoring)
    assert code_of(Maximized(trainer)).keys() == {
        "user_code.Half",
        "user_code.Half.fit",
        "user_code.Half.transform",
        "user_code.shifted",
        "user_code.metric",
    }


def test_trainers_of_other_forms_lead_to_the_users_functions(module: Module) -> None:
    found = module("""
from dataclasses import dataclass

def train(config, state, pulls):
    return 1
def loss(state):
    return 1.0
def loop(config):
    yield 1.0

@dataclass(frozen=True)
class Trainer:
    scale: float = 1.0
    def start(self, config, seed): return 1
    def train(self, state, pulls): return helper(state)
    def loss(self, state): return 1.0

def helper(state):
    return state
""")
    assert code_of(Functions(found.train, found.loss)).keys() == {
        "user_code.train",
        "user_code.loss",
    }
    pair = code_of(Generated(found.loop, test=found.loss))
    assert pair.keys() == {"user_code.loop", "user_code.loss"}
    methods = {f"user_code.Trainer.{name}" for name in ("start", "train", "loss")}
    assert code_of(found.Trainer()).keys() == {"user_code.Trainer", "user_code.helper", *methods}


def test_of_a_program_the_files_count_that_its_command_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train, settings = tmp_path / "train.py", tmp_path / "settings.ini"
    train.write_text("print(1)")
    settings.write_text("a = 1")
    command = [
        sys.executable,
        "train.py",
        "--settings=settings.ini",
        "--lr",
        "{lr}",
        "--out",
        "log",
    ]
    before = code_of(Program(command))
    assert before.keys() == {"train.py", "settings.ini"}
    settings.write_text("a = 2")
    (tmp_path / "log").write_text("what the program writes")
    assert changes(before, code_of(Program(command))).keys() == {"settings.ini"}
    train.write_bytes(bytes(2**20) + b"a")
    before = code_of(Program(command))
    train.write_bytes(bytes(2**20) + b"b")
    assert code_of(Program(command)) == before, "past 1 MB, only the size counts"
