"""A module of a user, written and imported anew each time, as when a script is run again."""

import linecache
import sys
from pathlib import Path
from types import ModuleType


def load(folder: Path, source: str, name: str = "user_code") -> ModuleType:
    """The module that the source defines. Remove `name` from `sys.modules` afterwards."""
    file = folder / f"{name}.py"
    file.write_text(source)
    linecache.clearcache()
    found = sys.modules[name] = ModuleType(name)
    found.__file__ = str(file)
    # Not by an import, which takes bytecode of the same second and size for the same.
    exec(compile(source, str(file), "exec", dont_inherit=True), vars(found))
    return found
