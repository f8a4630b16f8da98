"""What a planted bug is: its campaign must catch it."""

from __future__ import annotations
import __future__

import inspect
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from unittest.mock import patch

from faults.campaign import Campaign


class Planted(NamedTuple):
    """A bug that is there within a context, and the campaign that must break over it."""

    name: str
    plant: Callable[[], AbstractContextManager[None]]
    campaign: Campaign
    tries: range


@contextmanager
def mutated(owner: Any, name: str, was: str, becomes: str) -> Iterator[None]:
    """Within, a function of a module or a class reads otherwise in one place."""
    function = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(was) == 1, f"{name} no longer reads {was!r} in one place"
    module = vars(sys.modules[function.__module__])
    code = compile(
        source.replace(was, becomes),
        f"<{name} with a bug>",
        "exec",
        __future__.annotations.compiler_flag,
    )
    made: dict[str, Any] = {}
    exec(code, module, made)
    if hasattr(function, "__wrapped__") or not isinstance(function, FunctionType):
        with patch.object(owner, name, made[name]):
            yield
        return
    # Its code, not its name: other modules may have imported the function already.
    before, function.__code__ = function.__code__, made[name].__code__
    try:
        yield
    finally:
        function.__code__ = before


@contextmanager
def everywhere(code: str) -> Iterator[None]:
    """Within, every Python process that is started begins with this code."""
    with tempfile.TemporaryDirectory(prefix="lastarm-faults-") as folder:
        Path(folder, "sitecustomize.py").write_text(code)
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        with patch.dict(os.environ, {"PYTHONPATH": path}):
            yield
