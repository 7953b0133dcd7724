"""The templates of the report and of the pages about results (experiments/templates), rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfr_fa.analysis.formats import UNDER
from sfr_fa.analysis.render import Renderer
from sfr_theory.paper import BELOW

TEMPLATES = Path(__file__).parent / "templates"


def printed_p(value: str) -> str:
    """A p-value as the paper prints it."""
    return UNDER if value == BELOW else value


render = Renderer((TEMPLATES,), {"printed_p": printed_p})


def sentence(name: str, /, **facts: Any) -> str:
    """One of the sentences in evidence.txt."""
    return str(getattr(render.environments["txt"].get_template("evidence.txt").module, name)(**facts))
