"""How Sphinx builds the site: see `make docs`."""

import re
from importlib.metadata import version as installed

from docutils import nodes
from sphinx.application import Sphinx

project = "lastarm"
author = "The lastarm authors"
copyright = author
release = installed("lastarm")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]

smartquotes = False  # `--json` has two hyphens

html_theme = "furo"
html_title = "lastarm"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["pages.css"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Docstrings are plain sentences, with names in single backticks, and doctests.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["keras", "lightning", "torch", "transformers"]  # the site is built without
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_type_aliases = {  # by which names of types are written, and linked where they are told
    "AnyRunner": "lastarm.runners.AnyRunner",
    "AnyTrainer": "lastarm.trainers.AnyTrainer",
    "Array": "Array",
    "ArrayLike": "ArrayLike",
    "Config": "lastarm.trainers.Config",
    "Space": "lastarm.space.Space",
}
python_maximum_signature_line_length = 99
python_use_unqualified_type_names = True


def _keep_bars(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """|S| is the size of a set, not a name for docutils to look up."""
    in_doctest = False
    for number, line in enumerate(lines):
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if not in_doctest:
            lines[number] = line.replace("|", r"\|")


def _plain_aliases(
    app: Sphinx, what: str, name: str, thing: object, options: object, *signature: str | None
) -> tuple[str | None, ...]:
    """An alias within another type comes as TypeAliasForwardRef('Config')."""
    return tuple(
        part and re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", part) for part in signature
    )


def _trim_blocks(app: Sphinx, page: nodes.document) -> None:
    """A doctest in Markdown needs an empty line at its end; a reader does not."""
    for block in page.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, [nodes.Text(text)]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _plain_aliases)
    app.connect("doctree-read", _trim_blocks)
    app.connect("autodoc-process-docstring", _keep_bars)
