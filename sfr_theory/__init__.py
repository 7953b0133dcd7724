"""Finite-MDP theory of Successor Feature Representations; see `sfr_theory.mdp` for where to begin."""

__version__ = "0.2.0"
