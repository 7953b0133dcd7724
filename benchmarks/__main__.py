"""All benchmarks, one after another."""

import sys

from benchmarks import engines, runner, theory

if __name__ == "__main__":
    theory.main()
    sys.exit(engines.main(engines.Options()) or runner.main(runner.Options()))
