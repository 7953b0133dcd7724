"""Pictures get smaller, and stay the pictures that they were."""

import base64
import io
import re
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from sfr_fa.analysis import svg
from tests.refusals import refused


def encoded(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def drawn():
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    axes.plot(np.linspace(0, 1, 50), np.random.default_rng(0).random(50), marker="o")
    axes.set_title("100 % of 'a' & <b> #1")
    return encoded(figure)


def numbers(content):
    """All coordinates of all paths and places, in order."""
    found = []
    for element in ElementTree.fromstring(content).iter():
        for name in ("d", "x", "y"):
            letters = element.get(name, "")
            found += [
                float(word) for word in "".join(c if c in "-.0123456789" else " " for c in letters).split()
            ]
    return np.array(found)


def test_a_compact_picture_has_the_same_coordinates():
    before = drawn()
    after = svg.compact(before)
    assert len(after) < 0.85 * len(before)
    np.testing.assert_allclose(numbers(after), numbers(before), atol=0.00501)
    tags = [[e.tag for e in ElementTree.fromstring(c).iter() if "svg" in e.tag] for c in (before, after)]
    assert [tag for tag in tags[0] if not tag.endswith("metadata")] == tags[1]


def test_a_picture_in_a_page_has_ids_of_its_own_and_colours_of_the_page():
    with mpl.rc_context({"svg.fonttype": "none"}):  # letters, as in our figures
        drawing = svg.compact(drawn())
    first, second = (svg.inline(drawing, prefix, "a 'label' & \"more\"") for prefix in ("f1", "f2"))
    for text in (first, second):
        root = ElementTree.fromstring(text.replace("xlink:href", "href"))
        assert root.get("aria-label") == "a 'label' & \"more\""
        assert root.get("width") is None
        assert root.get("viewBox").split()[2] == "288"
    ids = [set(re.findall(r'\bid="([^"]*)"', text)) for text in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for text, known in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:href="|url\()#([^")]*)', text)) <= known
    assert "var(--1f77b4, #1f77b4)" in first
    assert "DejaVu" not in first
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", re.sub(r'(id|href)="[^"]*"', "", first))


def test_a_picture_in_a_page_keeps_named_groups_and_all_that_is_drawn():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], marker="x", gid="s0-line-0")
    axes.scatter([0.2, 0.7], [0.3, 0.4], rasterized=True)
    drawing = svg.compact(encoded(figure))
    text = svg.inline(drawing, "f", "")
    assert len(text) < 0.95 * len(drawing)
    before, after = (
        ElementTree.fromstring(t.replace(b"xlink:href", b"href")) for t in (drawing, text.encode())
    )
    drawn = ("path", "use", "image", "rect")
    shapes = [
        [e.tag.split("}")[-1] for e in root.iter() if e.tag.endswith(drawn)] for root in (before, after)
    ]
    assert shapes[0] == shapes[1]
    (line,) = (e for e in after.iter() if e.get("id") == "f-s0-line-0")
    assert len(list(line.iter())) > 3
    assert not [e for e in after.iter("g") if not e.attrib]
    sizes = []
    for root in (before, after):
        (image,) = (e for e in root.iter() if e.tag.endswith("image"))
        with Image.open(io.BytesIO(base64.b64decode(image.get("href").partition(",")[2]))) as points:
            sizes.append(points.size)
            alpha = np.asarray(points.convert("RGBA"))[..., 3]
            assert alpha.min() == 0
            assert alpha.max() > 240
    assert sizes[0] == sizes[1]


def test_what_is_no_picture_gets_a_sentence():
    with refused("draw it again"):
        svg.inline(b"<html/>", "f", "")
