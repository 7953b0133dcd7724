"""docs/theory.md links each step to a check: every id that it names must be one."""

import re
from pathlib import Path

from sfr_theory.catalogue import CATALOGUE

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_every_id_on_the_page_is_a_check() -> None:
    named = set(re.findall(r"`([a-z0-9-]+/[a-z0-9-]+)`", PAGE))
    assert len(named) > 40
    assert named <= set(CATALOGUE)


def test_every_step_of_the_gpi_bound_is_on_the_page() -> None:
    steps = {claim_id for claim_id in CATALOGUE if claim_id.startswith("thm2/step-")}
    assert steps
    assert all(f"`{step}`" in PAGE for step in steps)


def test_mathematics_is_balanced() -> None:
    without_displays = re.sub(r"\$\$.*?\$\$", "", PAGE, flags=re.DOTALL)
    assert PAGE.count("$$") % 2 == 0
    for paragraph in without_displays.split("\n\n"):
        for line in paragraph.splitlines():
            assert line.count("$") % 2 == 0, line
