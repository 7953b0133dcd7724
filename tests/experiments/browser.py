"""A page in headless Chromium: what it answers, how it looks, and whether it can be read on every screen.

`python -m tests.experiments.browser report/index.html FOLDER` leaves pictures of a page to look at: on a
desktop, on a phone, in the dark, and as it is printed.
"""

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

needed = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the PATH; no page was looked at")


def run(folder, url, *flags):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'chromium'}", *flags, url]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def answer(folder, url, *flags):
    """What a script has left in a page, as JSON in <pre id=found>."""
    dom = run(folder, url, "--dump-dom", *flags)
    result = json.loads(html.unescape(re.search(r'<pre id="found"[^>]*>(.*?)</pre>', dom, re.DOTALL)[1]))
    assert not isinstance(result, str) or not result.startswith("error"), result
    return result


def screenshot(page, folder, width, height, *flags):
    """The top of the page as an array of pixels (height, width, 3); the picture stays in the folder."""
    source, picture = folder / "page.html", folder / f"screenshot-{width}.png"
    source.write_text(page, encoding="utf-8")
    run(folder, source.as_uri(), f"--window-size={width},{height}", f"--screenshot={picture}", *flags)
    return np.array(Image.open(picture).convert("RGB"))


ANSWER = """
<script>window.addEventListener('load', () => {
  const found = document.createElement('pre');
  found.id = 'found';
  let result;
  try { result = (() => { SCRIPT })(); } catch (error) { result = 'error: ' + error.stack; }
  found.textContent = JSON.stringify(result);
  document.body.append(found);
});</script>
"""


def evaluate(page, folder, script, *flags, address=""):
    """What a piece of JavaScript returns that runs once the page is there."""
    source = folder / "asked.html"
    source.write_text(page.replace("</body>", ANSWER.replace("SCRIPT", script) + "</body>"), encoding="utf-8")
    return answer(folder, source.as_uri() + address, "--virtual-time-budget=1000", *flags)


# --- As readers see it

DARK = "--blink-settings=preferredColorScheme=0"
A4 = (718, 1047)
"""Pixels inside the margins of a centimetre."""
SCREENS = {"desktop": (1280, 900), "phone": (390, 844), "dark": (1280, 900), "print": A4}
INSPECT = (Path(__file__).parent / "screens.js").read_text(encoding="utf-8")


def looked_at(page, folder, screen="desktop", size=None, picture=None):
    """What is found on a page, a file, that is seen on a screen, of another size perhaps."""
    width, height = size or SCREENS[screen]
    script = INSPECT.replace("PRINT", str(screen == "print").lower()).replace("TALL", str(A4[1]))
    wrapper = folder / f"{screen}.html"
    wrapper.write_text(
        f"<!doctype html><body style='margin:0'><iframe width={width} height={height} "
        f"style='border:0;display:block' src='{Path(page).resolve().as_uri()}'></iframe>"
        f"<script>{script}</script></body>"
    )
    flags = [
        "--allow-file-access-from-files",
        "--force-prefers-reduced-motion",  # a page that moves keeps a busy machine busy
        "--virtual-time-budget=3000",
        f"--window-size={max(width, 500)},{height}",
    ]
    flags += [DARK] if screen == "dark" else []
    alone = folder / f"{screen}-{width}"  # what a page remembers of one screen it shall not know on the next
    if picture:
        run(alone, wrapper.as_uri(), *flags, f"--screenshot={picture}")
        Image.open(picture).crop((0, 0, width, height)).save(picture)
    return answer(alone, wrapper.as_uri(), *flags)


def check_fits(page, folder, sizes=(SCREENS["phone"], SCREENS["desktop"])):
    """The text of a page shows all that it has at every size: nothing sticks out, is cut off or broken."""
    source = folder / "page.html"
    source.write_text(page, encoding="utf-8")
    for size in sizes:
        found = looked_at(source, folder, size=size)
        assert found["scroll"] <= 0, size
        for what in ("outside", "clipped", "broken"):
            assert not found[what], (size, what)
    return found


def check_screens(page, folder):
    """A page that opens with a title and a picture, and can be read on every screen and on paper."""
    for screen, (_, height) in SCREENS.items():
        found = looked_at(page, folder, screen)
        assert found["scroll"] <= 0, (screen, "scrolls sideways")
        assert not found["faint"], (screen, "too little contrast")
        assert found["title"] < found["picture"] < height, (screen, "no picture on the first screen")
        assert not (screen == "print" and (found["controls"] or found["cut"])), found


if __name__ == "__main__":
    for screen in SCREENS:
        print(
            screen, looked_at(sys.argv[1], Path(sys.argv[2]), screen, picture=f"{sys.argv[2]}/{screen}.png")
        )
