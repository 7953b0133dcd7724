"""The wheel holds the library and nothing that would collide with folders of a user's own."""

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.commands import ROOT, printed_by

BUILD = "from setuptools import build_meta; build_meta.build_wheel('wheel')"


def test_the_wheel_installs_three_packages(tmp_path):
    here = subprocess.run(
        ["git", "ls-files", "*.py", "sfr_fa/analysis/templates"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in ("pyproject.toml", "README.md", *here.stdout.split()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    printed_by("-c", BUILD, cwd=tmp_path)
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    top_level = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {name for name in top_level if not name.endswith(".dist-info")}
    assert packages == {"sfr_theory", "sfr_fa", "proofs_checks"}
    templates = ROOT / "sfr_fa" / "analysis" / "templates"
    shipped = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/templates/" in name}
    assert shipped == {path.name for path in templates.iterdir()}
