"""How the pages are built: Markdown, the API from docstrings, formulas as MathML; nothing is fetched."""

import re
import tomllib
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = _project["name"]
version = release = _project["version"]
copyright = "rankdp developers, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
exclude_patterns = ["_build"]
default_role = "code"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Real", "ArrayLike")}
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"rankdp {release}"
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False


def _mathml(translator: HTML5Translator, node: nodes.Element, as_block: bool) -> None:
    """Write a formula as MathML, which browsers draw without a script or a font from elsewhere."""
    try:
        formula = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
        raise nodes.SkipNode from error
    if as_block:
        number = f"({node['number']})" if node["number"] else ""
        formula = f'<div class="math">{formula}{number}</div>'
    translator.body.append(formula)
    raise nodes.SkipNode


def _short(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Write aliases of types by their names, and arrays by what they hold."""

    def shorten(text: str | None) -> str | None:
        text = re.sub(r"[~\w.]*TypeAliasForwardRef\('(\w+)'\)", r"\1", (text or "").replace("<factory>", "..."))
        return (
            re.sub(r"[~\w.]*ndarray\[[^\[]*\[[^\]]*\], [~\w.]*dtype\[[~\w.]*?(\w+)\]\]", r"NDArray[\1]", text) or None
        )

    return shorten(signature), shorten(returned)


def _plain_stars(app: Sphinx, context: object, lines: list[str]) -> None:
    """Let a star in the help of a command be a star."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", _short)
    app.connect("sphinx-click-process-description", _plain_stars)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda translator, node: _mathml(translator, node, False), None),
        block_renderers=(lambda translator, node: _mathml(translator, node, True), None),
    )
