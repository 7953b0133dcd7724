"""What MkDocs is told beside mkdocs.yml: links into the repository lead somewhere, and formulas are drawn.

Pages link to files of the repository (`../examples/own_world.py`), as they must where the repository is
browsed. On the site such a file is a page or a picture below repository/: Markdown as it is, source in a box.

Formulas become MathML when the site is built, which browsers draw by themselves: no script, no network.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")
LANGUAGES = {".py": "python", ".v": "coq", ".json": "json", ".sh": "bash", ".html": "html"}
NOT_TEXT = (".svg", ".png", ".gif", ".webp")
PLACE = "repository"
LISTED = ("results/README.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""In the navigation; the others are there because a page links to them."""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
UNKNOWN = {r"\\arg\\max": r"\\operatorname{arg\\,max}", r"\\[bB]igg?[lrm]?(?=\\[lr]Vert)": ""}
"""What the converter does not know, in words that it does."""
LONG = 30
"""Characters of a formula that may be wider than a phone."""


def site_path(source: str) -> str:
    """Where a file of the repository is on the site."""
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    shown = posixpath.join(PLACE, source)
    return shown if Path(source).suffix in (".md", *NOT_TEXT) else f"{shown}.md"


def source_of(page: str) -> str:
    """The file of the repository that a page shows."""
    if not page.startswith(f"{PLACE}/"):
        return f"docs/{page}"
    source = page.removeprefix(f"{PLACE}/")
    return source if (ROOT / source).is_file() else source.removesuffix(".md")


def targets(source: str) -> set[str]:
    """The files of the repository that a Markdown file links to."""
    folder = posixpath.dirname(source)
    found = LINK.findall((ROOT / source).read_text(encoding="utf-8"))
    return {posixpath.normpath(posixpath.join(folder, target)) for target in found}


def outside() -> set[str]:
    """All files outside docs/ that belong to the site: linked from docs, or from such a page."""
    found: set[str] = set()
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    waiting = [*pages, *LISTED]
    while waiting:
        source = waiting.pop()
        if source in found:
            continue
        if not source.startswith("docs/"):
            found.add(source)
        if source.endswith(".md"):
            there = (target for target in targets(source) if (ROOT / target).is_file())
            waiting += [target for target in there if not target.startswith("docs/")]
    return found


def on_files(files: Files, config: Any) -> Files:
    for source in sorted(outside()):
        path = ROOT / source
        if path.suffix in NOT_TEXT:
            made = File.generated(config, site_path(source), content=path.read_bytes())
        else:
            text = path.read_text(encoding="utf-8")
            if path.suffix != ".md":
                text = f"# {source}\n\n```` {LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"
            made = File.generated(config, site_path(source), content=text)
        files.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links of the repository as links of the site."""
    here = page.file.src_uri
    source = source_of(here)
    if not source.endswith(".md"):
        return markdown

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if not (ROOT / target).is_file():
            return match[1]  # MkDocs says what is wrong with it
        return Path(os.path.relpath(site_path(target), posixpath.dirname(here) or ".")).as_posix()

    return LINK.sub(moved, markdown)


def on_page_content(content: str, page: Page, **_: Any) -> str:
    for entry in (entry for top in page.toc for entry in (top, *below(top))):
        entry.title = re.sub(r"\\[()]", "", entry.title).replace(r"\xi", "ξ")
    return FORMULA.sub(formula, content)


def below(entry: AnchorLink) -> list[AnchorLink]:
    return [found for child in entry.children for found in (child, *below(child))]


def formula(match: re.Match[str]) -> str:
    text = html.unescape(match[2])
    for unknown, known in UNKNOWN.items():
        text = re.sub(unknown, known, text)
    made = convert(text.strip(), display="block" if match[1] == "div" else "inline")
    # A line of text that is one formula scrolls on a phone (site.css).
    return made if match[1] == "div" or len(text) < LONG else f'<span class="formula">{made}</span>'
