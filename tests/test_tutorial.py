"""The tutorial runs as it stands, prints what it says that it prints, and draws its pictures."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_tutorial(tmp_path, monkeypatch, capsys):
    text = (DOCS / "tutorial.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    namespace: dict = {}
    printed = ""
    blocks = BLOCK.findall(text)
    for kind, content in blocks:
        if kind == "python":
            assert not printed, f"the tutorial does not show: {printed}"
            exec(compile(content, "tutorial.md", "exec"), namespace)
            printed = capsys.readouterr().out
        else:
            assert printed == content
            printed = ""
    assert not printed
    assert len(blocks) > 10
    pictures = re.findall(r"\]\((images/[^)]*)\)", text)
    assert pictures
    for name in pictures:
        made, shown = (np.array(Image.open(f / name).convert("RGB"), float) for f in (tmp_path, DOCS))
        assert made.shape == shown.shape
        assert np.abs(made - shown).mean() < 2  # fonts may differ a little
