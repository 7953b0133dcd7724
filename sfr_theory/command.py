"""One command for all: `sfr check-gpi-bound --help` is `python -m sfr_theory.check_gpi_bound --help`."""

from __future__ import annotations

import runpy
import sys

from sfr_theory import __version__

COMMANDS = {
    "check-gpi-bound": ("sfr_theory.check_gpi_bound", "Theorem 2, its corrections, and a problem of yours"),
    "check-convergence": ("sfr_theory.check_convergence", "Theorem 1, learning and operators"),
    "check-tightness": ("sfr_theory.check_tightness", "how tight the bounds are"),
    "claims": ("proofs_checks", "every claim of the paper: verdict, evidence, scope"),
    "coq": ("proofs_checks.coq", "the theorems that Coq verifies for all finite sizes"),
    "run": ("sfr_fa.run", "run an experiment; kill it at any moment, and go on"),
    "status": ("sfr_fa.status", "what is finished, running, stopped and damaged"),
    "report": ("sfr_fa.report", "a page about runs of your own"),
    "publish": ("sfr_fa.runs.publish", "finished trials as one table per experiment"),
}


def main() -> None:
    """Hand the rest of the command line to the module that the first word names."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("--help", "-h"):
        print(
            "usage: sfr COMMAND ...\n\n"
            + "\n".join(f"  {n:18} {about}" for n, (_, about) in COMMANDS.items())
        )
        print("\nEach has a --help of its own.")
    elif name == "--version":
        print(__version__)
    elif name not in COMMANDS:
        sys.exit(_refused(f"there is no command {name!r}; choose from {', '.join(COMMANDS)}"))
    else:
        module = COMMANDS[name][0]
        sys.argv = [f"sfr {name}", *sys.argv[2:]]
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except ImportError as error:
            if not module.startswith("sfr_fa"):
                raise
            sys.exit(_refused(f"{error}"))


def _refused(sentence: str) -> int:
    print(f"error: {sentence}", file=sys.stderr)
    return 2
