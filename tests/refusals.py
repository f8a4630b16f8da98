"""What an error is checked by: its class and the values that it carries, never its wording."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import ANY

import pytest

from lastarm.errors import InvalidArgument, LastarmError


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
