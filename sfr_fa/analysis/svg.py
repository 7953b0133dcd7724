"""Vector pictures made small enough for a page that holds many, and made part of it.

`compact` drops what no reader sees: line breaks and indentation between elements, Matplotlib's description of
itself, and digits beyond a hundredth of a point. `inline` makes a picture an element of a page: its ids get a
prefix of their own, its letters the page's font, and each colour #abcdef is read as the variable --abcdef if
the page defines one, which is how a figure is dark on a dark page. Groups that Matplotlib has only numbered
(`line2d_7`) are dissolved; those that we have named (`s0-line-0`) answer to the pointer, and stay.
"""

from __future__ import annotations

import base64
import io
import re

from markupsafe import Markup, escape
from PIL import Image

from sfr_theory.errors import InputError

PATH = re.compile(rb'(?<= d=")[^"]*')
PLACE = re.compile(rb'(?<= [xy]=")[^"]*')
NUMBER = re.compile(rb"-?\d+\.\d{3,}")
COMMAND = re.compile(rb"\s*([A-Za-z])\s*")
METADATA = re.compile(rb"<metadata>.*?</metadata>", re.DOTALL)
OPENING = re.compile(r"^.*?<svg\b[^>]*>", re.DOTALL)
GLOBAL_STYLE = re.compile(r"<defs><style.*?</style></defs>", re.DOTALL)
FONT = re.compile(r"font-family:[^;\"]*;?\s*")
NUMBERED = re.compile(r'(<g\b[^>]*?) id="[\w.]+_\d+"')
STYLE = re.compile(r'\bstyle="[^"]*"')
IMAGE = re.compile(r"(?<=data:image/png;base64,)[^\"]*")
GROUP = re.compile(r"<g\b[^>]*>|</g>")
IDENTIFIER = re.compile(r"""(?P<before>\bid="|href="#|url\(#)""")
COLOURS = 64
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
        raise InputError("a picture in the folder is not an SVG with a viewBox; draw it again")
    text = GLOBAL_STYLE.sub("", text[found.end() :])
    text = _dissolved(NUMBERED.sub(r"\1", FONT.sub("", text)))
    text = STYLE.sub(lambda style: style[0].replace("; ", ";").replace(": ", ":"), text)
    text = IMAGE.sub(lambda image: _few_colours(image[0]), text)
    text = IDENTIFIER.sub(lambda match: f"{match['before']}{prefix}-", text)
    text = COLOUR.sub(lambda match: f"var(--{match[1].lower()}, #{match[1]})", text)
    return Markup(f'<svg {box[0]} role="img" aria-label="{escape(label)}">{text}')


def _few_colours(encoded: str) -> str:
    """An image, as points of a scatter may be, with a palette, which takes a third of the bytes."""
    buffer = io.BytesIO()
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    image.quantize(COLOURS, Image.Quantize.FASTOCTREE).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _dissolved(text: str) -> str:
    """Without the groups that have no attributes."""
    is_plain: list[bool] = []

    def kept(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return "" if is_plain.pop() else tag[0]
        if tag[0].endswith("/>"):
            return tag[0]
        is_plain.append(tag[0] == "<g>")
        return "" if is_plain[-1] else tag[0]

    return GROUP.sub(kept, text)


def is_wide(svg: bytes) -> bool:
    """Whether a picture needs more than half of a page to be read."""
    found = re.search(rb'viewBox="\S+ \S+ (\S+)', svg)
    return found is not None and float(found[1]) > WIDE
