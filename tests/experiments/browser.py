"""A page in headless Chromium: did its images render, does anything stick out or get clipped?

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

# What may be wider than the page lies in a box that scrolls; all else must end within the viewport.
MEASURE = """
function measure(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  const outside = [], clipped = [];
  for (const element of page.body.querySelectorAll('*')) {
    if (element.closest('.scroll, pre') && !element.matches('.scroll, pre')) continue;
    if (element.closest('svg') && !element.matches('svg')) continue;
    const box = element.getBoundingClientRect();
    const name = element.tagName + ' ' + element.textContent.trim().slice(0, 40);
    if (box.width && (box.right > view.innerWidth + 0.5 || box.left < -0.5)) outside.push(name);
    const overflow = view.getComputedStyle(element).overflowX;
    if (overflow === 'hidden' && element.scrollWidth > element.clientWidth + 1) clipped.push(name);
  }
  const images = [...page.images];
  return {
    width: view.innerWidth, scroll: page.documentElement.scrollWidth, outside: outside, clipped: clipped,
    images: images.length, broken: images.filter(i => !i.complete || i.naturalWidth === 0).length,
    narrow: images.filter(i => i.getBoundingClientRect().width < 100).length,
  };
}
window.onload = () => {
  const found = [...document.querySelectorAll('iframe')].map(measure);
  document.body.innerHTML = '<pre id=found>' + JSON.stringify(found) + '</pre>';
};
"""


def run(folder, url, *flags):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'chromium'}", *flags, url]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def measure(page, folder, widths):
    """The page in a frame of each width, as a phone and a desktop would show it; a dict for each."""
    content = html.escape(page, quote=True)
    frames = "".join(
        f"<iframe width={width} height=800 style='border:0' srcdoc=\"{content}\"></iframe>"
        for width in widths
    )
    wrapper = folder / "wrapper.html"
    wrapper.write_text(f"<!doctype html><body>{frames}<script>{MEASURE}</script></body>", encoding="utf-8")
    dom = run(folder, wrapper.as_uri(), "--virtual-time-budget=20000", "--dump-dom")
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))


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


def evaluate(page, folder, script, *flags):
    """What a piece of JavaScript returns that runs once the page is there."""
    source = folder / "asked.html"
    source.write_text(page.replace("</body>", ANSWER.replace("SCRIPT", script) + "</body>"), encoding="utf-8")
    dom = run(folder, source.as_uri(), "--virtual-time-budget=1000", "--dump-dom", *flags)
    result = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))
    assert not isinstance(result, str) or not result.startswith("error"), result
    return result


# --- As readers see it

DARK = "--blink-settings=preferredColorScheme=0"
A4 = (718, 1047)
"""Pixels inside the margins of a centimetre."""
SCREENS = {"desktop": (1280, 900), "phone": (390, 844), "dark": (1280, 900), "print": A4}
INSPECT = (Path(__file__).parent / "screens.js").read_text(encoding="utf-8")


def looked_at(page, folder, screen):
    """What is found on a page, a file, that is seen on a screen; its picture is FOLDER/SCREEN.png."""
    width, height = SCREENS[screen]
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
    picture = folder / f"{screen}.png"
    alone = folder / screen  # what a page remembers of one screen it shall not know on the next
    dom = run(alone, wrapper.as_uri(), *flags, "--dump-dom")
    run(alone, wrapper.as_uri(), *flags, f"--screenshot={picture}")
    Image.open(picture).crop((0, 0, width, height)).save(picture)
    return json.loads(html.unescape(re.search(r'<pre id="found"[^>]*>(.*?)</pre>', dom, re.DOTALL)[1]))


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
        print(screen, looked_at(sys.argv[1], Path(sys.argv[2]), screen))
