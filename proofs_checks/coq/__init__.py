"""The theory machine-checked for all finite sizes, by Coq with Mathematical Components.

`theorems` lists the theorems as data, `check` compiles the .v files and asks Coq what each theorem assumes,
`python -m proofs_checks.coq` prints the answer, and `findings` hands it to the ledger.
"""

from proofs_checks.coq.check import CoqUnavailableError, findings, verified_theorems
from proofs_checks.coq.theorems import THEOREMS, Theorem

__all__ = ["THEOREMS", "CoqUnavailableError", "Theorem", "findings", "verified_theorems"]
