"""Vector pictures made small enough for a page that holds many, and part of it.

`compact` drops what no reader sees: line breaks and indentation between elements, Matplotlib's description of
itself, and digits beyond a hundredth of a point. `inline` makes a picture an element of a page: its ids get a
prefix of their own, its letters the page's font, and each colour #abcdef is read as the variable --abcdef if
the page defines one, which is how a figure is dark on a dark page.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from sfr_theory.errors import InputError

PATH = re.compile(rb'(?<= d=")[^"]*')
PLACE = re.compile(rb'(?<= [xy]=")[^"]*')
NUMBER = re.compile(rb"-?\d+\.\d{3,}")
COMMAND = re.compile(rb"\s*([A-Za-z])\s*")
METADATA = re.compile(rb"<metadata>.*?</metadata>", re.DOTALL)
OPENING = re.compile(r"^.*?<svg\b[^>]*>", re.DOTALL)
GLOBAL_STYLE = re.compile(r"<defs><style.*?</style></defs>", re.DOTALL)
FONT = re.compile(r"font-family:[^;\"]*;?\s*")
IDENTIFIER = re.compile(r"""(?P<before>\bid="|href="#|url\(#)""")
WIDE = 500
"""Points."""
COLOUR = re.compile(r"#([0-9a-fA-F]{6})\b")


def _rounded(match: re.Match[bytes]) -> bytes:
    return NUMBER.sub(lambda number: f"{float(number[0]):.2f}".encode(), match[0])


def _tight(match: re.Match[bytes]) -> bytes:
    return COMMAND.sub(rb"\1", _rounded(match)).strip()


def compact(svg: bytes) -> bytes:
    """The same picture in fewer bytes."""
    svg = METADATA.sub(b"", svg)
    svg = PLACE.sub(_rounded, PATH.sub(_tight, svg))
    return re.sub(rb">\s+<", b"><", svg)


def inline(svg: bytes, prefix: str, label: str) -> Markup:
    """An <svg> element that fills the width it has; screen readers read the label."""
    text = svg.decode("utf-8")
    found = OPENING.match(text)
    box = re.search(r'viewBox="[^"]*"', found[0]) if found else None
    if found is None or box is None:
        raise InputError("a picture in the folder is no SVG with a viewBox; draw it anew")
    text = GLOBAL_STYLE.sub("", text[found.end() :])
    text = FONT.sub("", text)
    text = IDENTIFIER.sub(lambda match: f"{match['before']}{prefix}-", text)
    text = COLOUR.sub(lambda match: f"var(--{match[1].lower()}, #{match[1]})", text)
    return Markup(f'<svg {box[0]} role="img" aria-label="{escape(label)}">{text}')


def is_wide(svg: bytes) -> bool:
    """Whether a picture needs more than half of a page to be read."""
    found = re.search(rb'viewBox="\S+ \S+ (\S+)', svg)
    return found is not None and float(found[1]) > WIDE
