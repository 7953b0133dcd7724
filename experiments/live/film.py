"""The live page as a moving picture, for pages that run no scripts.

    python -m experiments.live --output live.html
    python -m experiments.live.film live.html

Chromium shows the page under some of its rewards, at moments of one episode; the frames become an animated
WebP.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro
from PIL import Image

from experiments.live.export import ROOM_PRESETS
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.reading import read_text

REWARDS = ("Orange triangles and blue boxes", "Orange boxes and blue triangles", "Everything, then home")
WINDOW, CROP = (1180, 900), (6, 188, 1176, 688)
"""Pixels: the browser's, and left, top, right, bottom of what is shown."""
# A page that has taken this many steps and stands still.
STILL = """
<script>addEventListener("load", () => {
  const app = LiveXi.apps[0];
  app.scene.random = new app.scene.random.constructor(1);
  app.scene.restart(app.scene.world.start(app.scene.random.uniform));
  app.owed = 0;
  app.speed = 10;
  for (let k = 0; k < STEPS; k++) app.advance(100);
  app.panelStale = true;
  for (let k = 0; k < 50; k++) app.frame(0);
  app.playing = false;
  app.frame = () => {};
});</script>
"""


@dataclass(frozen=True)
class Options:
    page: tyro.conf.Positional[str]
    """What `python -m experiments.live` wrote."""
    output: str = "docs/images/live.webp"
    """Where the moving picture goes."""
    frames: int = 9
    """Frames for each reward."""
    steps: int = 5
    """Steps of the agents from frame to frame."""
    width: int = 800
    """Width in pixels."""


def frame(browser: str, page: str, reward: str, steps: int, folder: Path) -> Image.Image:
    """The page under a reward after this many steps."""
    source, picture = folder / "page.html", folder / "frame.png"
    source.write_text(
        page.replace("</body>", STILL.replace("STEPS", str(steps)) + "</body>"), encoding="utf-8"
    )
    numbers = ",".join(f"{value:g}" for value in ROOM_PRESETS[reward])
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
    flags = [f"--user-data-dir={folder / 'profile'}", f"--window-size={WINDOW[0]},{WINDOW[1]}"]
    shot = [f"--screenshot={picture}", "--virtual-time-budget=500", f"{source.as_uri()}#live=rooms:{numbers}"]
    subprocess.run([*command, *flags, *shot], capture_output=True, check=True, timeout=120)
    return Image.open(io.BytesIO(picture.read_bytes())).convert("RGB").crop(CROP)


def main(options: Options) -> int:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise InputError("chromium is not on the PATH; install it to film the page")
    if not Path(options.page).is_file():
        raise InputError(
            f"there is no {options.page}; `python -m experiments.live --output {options.page}` writes it"
        )
    cli.require_writable(options.output)
    page = read_text(Path(options.page))
    pictures = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        cli.progress(len(REWARDS) * options.frames, "frames") as advance,
    ):
        for reward in REWARDS:
            for number in range(options.frames):
                seen = frame(browser, page, reward, number * options.steps, Path(folder))
                height = round(seen.height * options.width / seen.width)
                pictures.append(seen.resize((options.width, height), Image.Resampling.LANCZOS))
                advance(1)
    buffer = io.BytesIO()
    first, *others = pictures
    # The first and the last moment of a reward are shown longer.
    times = [900 if k % options.frames in (0, options.frames - 1) else 350 for k in range(len(pictures))]
    first.save(
        buffer, "WEBP", save_all=True, append_images=others, duration=times, loop=0, quality=45, method=6
    )
    cli.write_atomic(Path(options.output), buffer.getvalue())
    print(f"wrote {options.output}, {len(buffer.getvalue()) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.live.film", __doc__ or "")
