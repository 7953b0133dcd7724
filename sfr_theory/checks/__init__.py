"""The statements that `check_convergence` checks, one file per topic.

Each file ends with `CHECKS`, a tuple of `Check`: a claim with the function that computes its result from
the `Settings` of a run.
"""
