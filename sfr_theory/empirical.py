"""Verdicts on the paper's experiments, computed from the published tables whenever they are asked for.

None is read from a file. What judges the tables is part of the experiments, which are not installed with the
theory and need more packages; it is found by name, and where it is missing nothing is decided.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from sfr_theory.claims import CheckResult

JUDGE = "experiments.analysis.claims"
NO_RESULTS = "{path} holds no published results to decide it, or the packages that read them are missing"


def decide(results: Path) -> dict[str, CheckResult]:
    """The verdicts that the published tables of a folder give, by claim id; none if it has none."""
    try:
        judge = importlib.import_module(JUDGE)
    except ModuleNotFoundError:
        return {}
    decided: dict[str, CheckResult] = judge.decide(results)
    return decided
