"""Run an experiment of the paper: `python -m experiments.run object_collection_general --profile reduced`.

This is `python -m sfr_fa.run` for the configs in experiments/configs, which it knows by their names. Kill it
at any moment: the same command continues where it stopped and gives the same numbers, bit for bit.

Exit code 0: every trial is finished. 1: some failed, and are named with their error. 2: bad input.
130: interrupted.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.configs import known_configs, module_of
from sfr_fa import run as library
from sfr_fa.run import Options, command


def main(options: Options) -> int:
    return library.main(replace(options, experiment=module_of(options.experiment)))


if __name__ == "__main__":
    names = "\nExperiments: " + ", ".join(known_configs())
    command(main, Options, "experiments.run", (__doc__ or "") + names)
