"""How a result looks in a notebook: the answer, a table and the picture of its curves."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from html import escape

from lastarm.plain import printable
from lastarm.result import Result


def as_html(
    result: Result, sentences: Sequence[str], rows: Sequence[Sequence[str]], more: Sequence[str]
) -> str:
    """Sentences, of which the first is the answer; a table, of which the first row is its head.

    Names and values are shown as text, whatever they hold. Without matplotlib there is no picture.
    """
    answer, *others = (_text(sentence) for sentence in sentences)
    head, *body = rows
    return "".join(
        [
            "<div>",
            "<br>".join([f"<b>{answer}</b>", *others]),
            f"<table><thead>{_row(head, 'th')}</thead><tbody>",
            *(_row(cells, "td") for cells in body),
            "</tbody></table>",
            "<br>".join(_text(sentence) for sentence in more),
            f"<div>{_curves(result)}</div></div>",
        ]
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(anything: str) -> str:
    return escape(printable(anything))


def _curves(result: Result) -> str:
    """The curves as SVG; drawn without pyplot, which would show them a second time."""
    if not result.curves:
        return ""
    try:
        drawing = importlib.import_module("lastarm.report.figures.drawing")
        figures = importlib.import_module("lastarm.report.figures.plots")
    except ImportError:
        return ""
    written = io.StringIO()
    with drawing.house():
        figure = drawing.Figure(figsize=(6, 3.6))
        figures.Plots(result).curves(figure.subplots())
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    return svg[svg.index("<svg") :]  # what comes before is for files
