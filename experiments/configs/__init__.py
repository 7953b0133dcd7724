"""The experiments of the paper, and ours: each module defines CONFIG."""

from __future__ import annotations

import pkgutil

from sfr_fa.runs.config import ExperimentConfig
from sfr_fa.runs.config import load_config as load_any
from sfr_theory.errors import InputError


def known_configs() -> tuple[str, ...]:
    """The names of the configs that come with the project."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def module_of(name: str) -> str:
    """The module of a config that is known by its name; the path of a Python file stays as it is."""
    if name in known_configs():
        return f"{__name__}.{name}"
    if not name.endswith(".py"):
        raise InputError(
            f"there is no experiment {name!r}; there are {', '.join(known_configs())}, or a Python file of "
            f"yours by its path"
        )
    return name


def load_config(name: str) -> ExperimentConfig:
    """A config of ours by its name, or yours by the path of a Python file, which is executed."""
    return load_any(module_of(name))
