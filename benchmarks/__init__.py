"""Speed, as ratios measured in one run: `make bench`, or `python -m benchmarks.theory` for one part."""
