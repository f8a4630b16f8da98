"""What an error is checked by: its class and the values that it carries, never its wording."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import ANY

import pytest

from lastarm.errors import InvalidArgument


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
