"""Successor Feature Representations with function approximation: environments, tasks and agents."""
