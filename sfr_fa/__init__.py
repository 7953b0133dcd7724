"""Successor Feature Representations with function approximation: environments, tasks and agents.

Importing this package registers `sfr/ObjectCollection-v0`, `sfr/ObjectCollectionBarreto-v0` and
`sfr/Racer-v0` with Gymnasium.
"""

from sfr_theory import __version__

try:
    from sfr_fa.environments.registration import register_environments
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"sfr_fa needs {error.name}, which is not installed; pip install 'sfr[fa]', in a checkout '.[fa]'",
        name=error.name,
    ) from error

__all__ = ["__version__"]

register_environments()
