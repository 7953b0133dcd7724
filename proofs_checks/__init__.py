"""A verdict, with evidence, on every claim of the paper: `python -m proofs_checks`."""
