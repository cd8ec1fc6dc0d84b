"""An mkdocs hook: formulas become MathML when the site is built, so that they need no script and no network.

``pymdownx.arithmatex`` finds ``$...$`` and ``$$...$$`` and keeps Markdown away from them; latex2mathml translates them.
"""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import cycle
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# Text fonts raise the prime themselves: as an exponent it would be raised twice and too small to see.
PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>(&#x02032;)</mi></msup>")
# An exponent of a norm belongs to the whole norm; a bar that only its right neighbour owns would carry it too low.
NORM = re.compile(r"(\\l[vV]ert(?:(?!\\l[vV]ert).)*?\\r[vV]ert)(?=[\^_])")
BAR = re.compile(r"<mo>(&#x02016;|&#x0007C;)</mo>")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def to_mathml(latex: str, *, display: bool) -> str:
    """The formula as a ``<math>`` element that keeps its LaTeX as a label for screen readers."""
    mathml = convert(NORM.sub(r"{\1}", latex), display="block" if display else "inline")
    unknown = re.search(r"\\\w+", unescape(mathml))
    if unknown or "<merror" in mathml:
        raise PluginError(f"the formula {latex!r} has {unknown[0] if unknown else 'an error'}; use other commands")
    forms = cycle(("prefix", "postfix"))  # bars come in pairs; a bare one would be spaced like a relation
    mathml = BAR.sub(
        lambda bar: f'<mo form="{next(forms)}" stretchy="false" lspace="0" rspace="0">{bar[1]}</mo>', mathml
    )
    mathml = PRIME.sub(r'<mrow>\1<mo form="postfix" lspace="0" rspace="0">\2</mo></mrow>', mathml)
    mathml = mathml.replace("<mo>&#x0005E;</mo></mover>", "<mo>&#x002C6;</mo></mover>")  # a hat, not a caret
    return mathml.replace("<math ", f'<math alttext="{escape(latex, quote=True)}" ', 1)


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs with each page's body."""

    def replace(found: re.Match[str]) -> str:
        display, latex = found[1] == "div", unescape(found[2]).strip()
        try:
            mathml = to_mathml(latex, display=display)
        except PluginError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from error
        return f'<div class="formula">{mathml}</div>' if display else mathml

    return FORMULA.sub(replace, html)
