"""Pictures get smaller, and stay the pictures that they were."""

import io
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from experiments.analysis import svg


def drawn():
    figure = Figure(figsize=(4, 3))
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.plot(np.linspace(0, 1, 50), np.random.default_rng(0).random(50), marker="o")
    axes.set_title("100 % of 'a' & <b> #1")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()


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


def test_a_uri_ends_no_attribute_and_keeps_every_character():
    drawing = svg.compact(drawn())
    uri = svg.data_uri(drawing)
    assert not set("'#&\n") & set(uri)
    assert unquote(uri.removeprefix("data:image/svg+xml,")) == drawing.decode().replace("\n", " ")


def test_the_width():
    assert svg.width(drawn()) == 288.0
    assert svg.width(b"<svg/>") == 0.0
