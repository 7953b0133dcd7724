"""The page and the fragment: template, style, script and data in one piece of HTML.

`fragment` is a <section> that brings its own style, data and script and touches nothing outside of it, for
any page to include; `page` is that section in a page of its own. Where scripts do not run, a still picture of
the first reward stands in its place.
"""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from typing import Any

import numpy as np

from experiments.live.export import ROOM_PRESETS
from sfr_fa.agents import GpiAgent
from sfr_fa.environments.layouts import OBJECT_COLLECTION_LAYOUT
from sfr_fa.kernels.dynamics import blocked
from sfr_fa.tasks import TableTask
from sfr_theory.gpi import gpi_choice

POLICY_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#beb000", "#808080")
"""As in live.js."""


def page(data: dict[str, Any], picture: str) -> str:
    """A page of its own."""
    return _read("page.html").replace("@@FRAGMENT@@", fragment(data, picture, " data-standalone"))


def fragment(data: dict[str, Any], picture: str, attribute: str = "") -> str:
    """A section for another page."""
    # A script ends at the first "</", whatever it means there.
    content = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("</", "<\\/")
    parts = {
        "STANDALONE": attribute,
        "PICTURE": picture,
        "PRESET": html.escape(next(iter(ROOM_PRESETS))),
        "STYLE": _read("live.css"),
        "DATA": content,
        "SCRIPT": _read("live.js"),
    }
    section = _read("live.html")
    for name, text in parts.items():
        section = section.replace(f"@@{name}@@", text)
    return section


def _read(name: str) -> str:
    return files("experiments.live").joinpath(name).read_text(encoding="utf-8")


# --- The still picture ------------------------------------------------------------------------------------


def still_picture(agent: GpiAgent, cells: int = 20) -> str:
    """What SFR does for the first reward when nothing has been collected, as SVG with y upwards."""
    layout = OBJECT_COLLECTION_LAYOUT
    task = TableTask(layout.feature_space, np.array(next(iter(ROOM_PRESETS.values())), dtype=np.float64))
    tiles, arrows = [], []
    turns = (math.pi / 2, -math.pi / 2, math.pi, 0.0)
    side = 1000 / cells
    for j, i in np.ndindex(cells, cells):
        x, y = (i + 0.5) / cells, (j + 0.5) / cells
        if blocked(x, y, layout.walls):
            continue
        state = layout.state_at(x, y)
        policy, action = (int(chosen) for chosen in gpi_choice(agent.values(state, task)))
        colour = POLICY_COLOURS[policy]
        tiles.append(f'<path fill="{colour}" d="M{i * side:g} {j * side:g}h{side:g}v{side:g}h-{side:g}z"/>')
        c, s = (round(0.3 * side * part) for part in (math.cos(turns[action]), math.sin(turns[action])))
        arrows.append(
            f"M{1000 * x - c:g} {1000 * y - s:g}l{2 * c} {2 * s}m{-c - s // 2} {-s + c // 2}"
            f"l{c + s // 2} {s - c // 2}l{-c + s // 2} {-s - c // 2}"
        )
    walls = "".join(
        f'<path d="M{1000 * a:.0f} {1000 * c:.0f}H{1000 * b:.0f}V{1000 * d:.0f}H{1000 * a:.0f}z"/>'
        for a, b, c, d in layout.walls
    )
    objects = "".join(
        _object(x, y, layout.kinds[kind].colour, layout.kinds[kind].shape)
        for (x, y), kind in zip(layout.objects.tolist(), layout.kind_of_object, strict=True)
    )
    u, v = (1000 * z for z in layout.goal)
    return (
        '<svg viewBox="-12 -12 1024 1024" role="img" aria-label="Four rooms with arrows from everywhere">'
        '<g transform="matrix(1 0 0 -1 0 1000)"><path fill="#fbf8f1" d="M0 0h1000v1000H0z"/>'
        f'<g opacity="0.4">{"".join(tiles)}</g>'
        f'<circle cx="{u:g}" cy="{v:g}" r="{1000 * layout.goal_radius:g}" fill="#57a77366" stroke="#2f7d4f" '
        f'stroke-width="8"/><path d="{"".join(arrows)}" fill="none" stroke="#1d2330" stroke-width="4" '
        f'stroke-linecap="round"/><g fill="#3b4252">{walls}</g>{objects}'
        '<path d="M0 0h1000v1000H0z" fill="none" stroke="#3b4252" stroke-width="12"/></g></svg>'
    )


def _object(x: float, y: float, colour: str, shape: str) -> str:
    at = f"M{1000 * x - 27:.0f} {1000 * y - 27:.0f}"
    outline = "h54v54h-54z" if shape == "box" else "h54l-27 54z"
    return f'<path d="{at}{outline}" fill="{colour}" stroke="#fff" stroke-width="8"/>'
