"""The documentation as a site: built without a warning, no dead link, nothing from another server."""

import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tests.commands import ROOT, python
from tests.experiments import browser


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids, self.formulas = [], [], set(), 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.formulas += tag == "math"
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("script", "img", "link", "iframe"):
            self.loads += [found[name] for name in ("src", "href") if found.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = python("-m", "mkdocs", "build", "--strict", "--site-dir", folder, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stderr
    return {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_the_site(site):
    names = {path.name for path in site}
    assert {"index.html", "theory.html", "claims.html", "own-environment.html", "fa.html"} <= names
    dead, elsewhere = [], []
    for path, page in site.items():
        if path.name == "404.html":
            continue  # its links begin at the root of a server
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                elsewhere += [link] if link in page.loads and parts.scheme != "data" else []
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in site and anchor not in site[target].ids):
                dead.append(f"{path.name}: {link}")
    assert not dead
    assert not elsewhere
    pages = {path.as_posix().rsplit("/site", 1)[1].split("/", 1)[1]: path for path in site}
    theory = pages["theory.html"]
    source = re.sub(r"`[^`]*`", "", (ROOT / "docs" / "theory.md").read_text())
    assert site[theory].formulas > 0.95 * len(re.findall(r"\$\$?[^$]+\$\$?", source))
    assert not re.search(r"\\(frac|sum|xi|mathbb|arg|lVert)\b", theory.read_text())
    assert "sfr_fa.engines.make.make_engine" in site[pages["api/fa.html"]].ids


@pytest.mark.slow
@browser.needed
def test_the_site_on_screens_and_paper(site, tmp_path):
    root = min(site, key=lambda path: len(path.parts)).parent
    browser.check_screens(root / "index.html", tmp_path)
    for name in ("results.html", "theory.html", "tutorial.html"):
        assert browser.looked_at(root / name, tmp_path, "phone")["scroll"] == 0, name
        assert not browser.looked_at(root / name, tmp_path, "dark")["faint"], name
