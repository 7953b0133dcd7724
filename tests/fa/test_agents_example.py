"""The example of the README runs, and shows what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_the_transfer_example_transfers() -> None:
    """SFR earns more than Q in the first thousand steps of a task that is new to both."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "transfer_in_30_lines.py")],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    new_task, afresh = re.findall(r"(?:SFR|afresh): +([+-]\d\.\d+) a step", result.stdout)
    assert float(new_task) > float(afresh)
