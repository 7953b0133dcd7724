"""From numbers to words: Jinja2 templates for HTML, Markdown and plain text (experiments/templates).

Whatever a template inserts is escaped for its kind, in text and attributes alike, unless it was made by a
template: results, configs and the files of checks come from outside. Numbers are put into words by the
filters of `experiments.analysis.formats`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from experiments.analysis import formats

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = {
    "number": formats.number,
    "p": formats.p_value,
    "relation": formats.p_relation,
    "printed_p": formats.printed_p,
    "plus_minus": formats.plus_minus,
    "interval": formats.interval,
    "share": formats.share,
    "percent": formats.percent,
    "duration": formats.duration,
    "rates": formats.rates,
    "frozenset": frozenset,
}
MARKUP = re.compile(r"[\\`*|~$]|(?<!\w)_|_(?!\w)|\](?=[(\[:])")
"""What Markdown would not show as it is, but for HTML."""


def markdown(value: Any) -> Markup:
    """Text that Markdown shows as it is, on one line."""
    if isinstance(value, Markup):
        return value
    text = str(value).replace("&", "&amp;").replace("<", "&lt;")
    return Markup(MARKUP.sub(r"\\\g<0>", text).replace("\n", "<br>"))


@cache
def environment(kind: str) -> jinja2.Environment:
    """Of templates that end in .html, .md or .txt."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=kind != "txt",
        finalize=markdown if kind == "md" else None,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(FILTERS)
    made.globals["kind"] = kind
    return made


def render(name: str, /, **content: Any) -> str:
    """A template with its content."""
    kind = name.rsplit(".", 1)[1]
    made = environment(kind).get_template(name).render(**content)
    return re.sub(r"\n{3,}", "\n\n", made).lstrip("\n") if kind == "md" else made


def sentence(name: str, /, **facts: Any) -> str:
    """One of the sentences in evidence.txt."""
    return str(getattr(environment("txt").get_template("evidence.txt").module, name)(**facts))
