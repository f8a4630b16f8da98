"""What is not public in CatBoost: where a model keeps its settings.

`set_params` refuses a model that is fitted, and None is a value there that cannot be taken back.
The names in `PRIVATE` are in CatBoost 1.2: the settings, and a copy with their main names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

PRIVATE = ("_canonized_params", "_init_params")


@contextmanager
def settings_meanwhile(model: Any, settings: Mapping[str, Any]) -> Iterator[None]:
    """Within, a model has just these settings; afterwards its own."""
    own = model.get_params()
    change_settings(model, settings)
    try:
        yield
    finally:
        change_settings(model, own)


def change_settings(model: Any, settings: Mapping[str, Any]) -> None:
    """Give a model just these settings, also if it is fitted."""
    model._init_params = dict(settings)
    model._canonized_params = None  # it is made again
