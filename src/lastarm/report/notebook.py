"""A line or a page below the cell of a notebook, drawn again and again.

It is drawn by what every kernel can display.
"""

from __future__ import annotations

import html
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BAR = 20  # characters, where a front end shows no HTML


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter. IPython in a terminal has none."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return asked is not None and hasattr(asked(), "kernel")


@contextmanager
def below_the_cell() -> Iterator[Callable[[float, str, str], None]]:
    """A function that draws a share of 1 as a bar, with a text before and after it.

    What it drew is wiped away at the end.
    """
    display = importlib.import_module("IPython.display").display
    handle = display({"text/plain": ""}, raw=True, display_id=True)

    def draw(share: float, before: str, after: str) -> None:
        done = round(BAR * min(share, 1.0))
        bar = f"<progress value='{share:.4f}' max='1'></progress>"
        handle.update(
            {
                "text/plain": f"{before} {'━' * done}{'╌' * (BAR - done)} {after}",
                "text/html": f"{html.escape(before)} {bar} {html.escape(after)}",
            },
            raw=True,
        )

    try:
        yield draw
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)


@contextmanager
def page_below_the_cell() -> Iterator[Callable[[str], None]]:
    """A function that draws a page of HTML, in a frame that can reach nothing else.

    What it drew last stays.
    """
    display = importlib.import_module("IPython.display").display
    handle = display({"text/plain": "The search begins."}, raw=True, display_id=True)

    def draw(page: str) -> None:
        frame = (
            f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
            'style="width: 100%; height: 48rem; border: 0" title="The search"></iframe>'
        )
        handle.update({"text/plain": "The page of a search", "text/html": frame}, raw=True)

    yield draw
