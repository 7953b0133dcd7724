"""All benchmarks, one after another."""

from benchmarks import theory

if __name__ == "__main__":
    theory.main()
