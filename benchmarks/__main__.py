"""All benchmarks, one after another."""

import sys

from benchmarks import engines, theory

if __name__ == "__main__":
    theory.main()
    sys.exit(engines.main(engines.Options()))
