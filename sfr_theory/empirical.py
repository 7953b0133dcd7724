"""Verdicts on the paper's experiments, kept beside the results that they were computed from.

`python -m experiments.empirical_claims --write` reads results and leaves RESULTS/claims.json: each empirical
claim with verdict, evidence and scope, and a fingerprint of every run that was read. The ledger takes the
verdicts from there, because reading results needs packages that the theory does without; where a fingerprint
no longer fits, all are INCONCLUSIVE. A fingerprint is a SHA-256 over the manifest and all tables of a run,
with their names, so that a changed number, a lost repetition and an exchanged file all show.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sfr_theory.catalogue import EXPERIMENTS
from sfr_theory.claims import CheckResult, Outcome, Verdict
from sfr_theory.errors import InputError

FILE = "claims.json"
COMMAND = "python -m experiments.empirical_claims --write"
NO_RESULTS = "no results are here to decide it ({path})"
FINGERPRINT, CLAIMS = "runs", "claims"


def fingerprint(run: Path) -> str:
    """Of the manifest and the tables of a run."""
    digest = hashlib.sha256()
    for path in (run / "manifest.json", *sorted(run.rglob("*.csv"))):
        digest.update(path.relative_to(run).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def to_json(runs: Iterable[Path], results: Path, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """The content of claims.json; runs are named relative to the folder of results."""
    return {
        FINGERPRINT: {path.relative_to(results).as_posix(): fingerprint(path) for path in sorted(runs)},
        CLAIMS: {
            outcome.claim.id: {
                "verdict": outcome.result.verdict.value,
                "evidence": outcome.result.evidence,
                "scope": outcome.result.scope,
            }
            for outcome in outcomes
        },
    }


def read(results: Path) -> dict[str, CheckResult]:
    """The verdicts of a folder of results by claim id; none if it has none."""
    path = results / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        runs, claims = content[FINGERPRINT], content[CLAIMS]
        found = {
            claim.id: CheckResult(
                Verdict(claims[claim.id]["verdict"]),
                str(claims[claim.id]["evidence"]),
                str(claims[claim.id]["scope"]),
            )
            for claim in EXPERIMENTS.claims
        }
        changed = [name for name, known in runs.items() if _differs(results / name, known)]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not what `{COMMAND}` writes ({type(error).__name__}: {error}); run it again"
        ) from None
    if changed:
        reason = f"{', '.join(changed)} changed since the verdict was computed; run `{COMMAND}`"
        return {name: CheckResult(Verdict.INCONCLUSIVE, reason) for name in found}
    return found


def _differs(run: Path, known: str) -> bool:
    return not (run / "manifest.json").is_file() or fingerprint(run) != known
