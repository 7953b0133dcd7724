"""All benchmarks, one after another."""

import sys

from benchmarks import engines, feature_learning, growth, networks, runner, theory

if __name__ == "__main__":
    theory.main()
    feature_learning.main()
    networks.main(networks.Options())
    growth.main(growth.Options(learn_steps=50))
    sys.exit(engines.main(engines.Options()) or runner.main(runner.Options()))
