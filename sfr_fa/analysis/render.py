"""From numbers to words: Jinja2 templates for HTML, Markdown and plain text.

Whatever a template inserts is escaped for its kind, in text and attributes alike, unless it was made by a
template: results, configs and the files of checks come from outside. Numbers are put into words by the
filters, which are functions of `sfr_fa.analysis.formats`. A caller brings folders of templates of its own,
which come before those of this package, and filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from sfr_fa.analysis import formats
from sfr_fa.runs import wording

TEMPLATES = Path(__file__).parent / "templates"
FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": formats.number,
    "p": formats.p_value,
    "relation": formats.p_relation,
    "plus_minus": formats.plus_minus,
    "interval": formats.interval,
    "share": formats.share,
    "percent": formats.percent,
    "duration": wording.duration,
    "rates": wording.rates_text,
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


@dataclass(frozen=True)
class Renderer:
    """Templates of a caller, and those of this package."""

    folders: tuple[Path, ...] = ()
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @cached_property
    def environments(self) -> dict[str, jinja2.Environment]:
        """By the ending of a template: html, md or txt."""
        return {kind: self._environment(kind) for kind in ("html", "md", "txt")}

    def _environment(self, kind: str) -> jinja2.Environment:
        made = jinja2.Environment(
            loader=jinja2.FileSystemLoader([*self.folders, TEMPLATES]),
            autoescape=kind != "txt",
            finalize=markdown if kind == "md" else None,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        made.filters.update({**FILTERS, **self.filters})
        made.globals["kind"] = kind
        return made

    def __call__(self, name: str, /, **content: Any) -> str:
        """A template with its content."""
        kind = name.rsplit(".", 1)[1]
        made = self.environments[kind].get_template(name).render(**content)
        return re.sub(r"\n{3,}", "\n\n", made).lstrip("\n") if kind == "md" else made


render = Renderer()
"""With the templates of this package alone."""
