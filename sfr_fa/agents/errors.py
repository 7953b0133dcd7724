"""The error that a run raises when learning has left the finite numbers."""

from __future__ import annotations


class DivergedError(ArithmeticError):
    """Weights, values or a reward model are no longer finite; the message says whose and when."""
