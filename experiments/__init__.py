"""Runs that produce results, and what turns results into figures, tables and a report."""

import os

# Trials run side by side, one a core. Libraries read this once, when they are loaded.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
