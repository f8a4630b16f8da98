"""How errors and warnings are checked: by class and the values they carry, never by wording."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import ANY

import pytest

from lastarm.errors import InvalidArgument, LastarmError, LastarmWarning


@contextmanager
def refused(
    argument: str | None, given: object = ANY, kind: type[InvalidArgument] = InvalidArgument
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Within, this argument is refused, with the value that was given, where one is named."""
    with pytest.raises(kind) as info:
        yield info
    error = info.value
    assert (error.argument, given) == (argument, error.given if given is ANY else given), error
    if given is not ANY:
        assert error.given is given or repr(error.given) == repr(given), error


@contextmanager
def raised(kind: type[LastarmError], **fields: object) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Within, such an error is raised, with these values in its fields."""
    with pytest.raises(kind) as info:
        yield info
    assert {name: getattr(info.value, name) for name in fields} == fields, info.value


@contextmanager
def warned(kind: type[LastarmWarning], **fields: object) -> Iterator[list[Any]]:
    """Within, there is one such warning, with these values; afterwards it is in the list."""
    found: list[Any] = []
    with pytest.warns(kind) as told:
        yield found
    found += [each.message for each in told if isinstance(each.message, kind)]
    (one,) = found
    assert {name: getattr(one, name) for name in fields} == fields, one
