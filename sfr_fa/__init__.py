"""Successor Feature Representations with function approximation: environments, tasks and agents.

Importing this package registers `sfr/ObjectCollection-v0`, `sfr/ObjectCollectionBarreto-v0` and
`sfr/Racer-v0` with Gymnasium.
"""

from sfr_fa.environments.registration import register_environments

register_environments()
