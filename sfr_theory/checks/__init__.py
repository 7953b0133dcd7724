"""The statements that `check_convergence` checks, one file a topic."""
