"""An experiment as data: which agents meet which tasks, how often and for how long.

    ExperimentConfig   a figure or table: parts, profiles, seed
    Part               a setting (environment and tasks) and the agents that meet it
    Profile            how much of it: tasks, steps, repetitions
    grid               all combinations of an agent's rates

A config is a Python file with one value, CONFIG. Ours are in experiments/configs; yours can be anywhere. It
unfolds into trials (agent, rates, repetition), and these are all that the runner sees.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments import configs
from sfr_fa.runner import AgentSetup, FeatureLearning, Setting, Trial, file_name
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class Profile:
    """How much is run."""

    tasks: int
    steps: int
    """Of each task."""
    repetitions: int
    feature_tasks: int = 20
    """Tasks of the Q agent from which features are learned."""
    feature_iterations: int = 1_000_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} of a profile is {value!r}; it must be a positive integer")


@dataclass(frozen=True)
class Part:
    """A setting, and the agents that meet it."""

    setting: Setting
    agents: tuple[AgentSetup, ...]


@dataclass(frozen=True)
class ExperimentConfig:
    """A figure or table."""

    name: str
    title: str
    parts: tuple[Part, ...]
    profiles: Mapping[str, Profile]
    seed: int = 0
    engine: str = "compiled"
    feature_learning: FeatureLearning = field(default_factory=FeatureLearning)
    """Its tasks and iterations are the profile's."""

    def __post_init__(self) -> None:
        if self.name != file_name(self.name) or not self.name:
            raise InputError(f"name is {self.name!r}; it becomes a folder: letters, digits, - . _ only")
        if not self.parts or not all(part.agents for part in self.parts):
            raise InputError(f"{self.name} has a part without agents, or no parts at all")
        for profile in self.profiles:
            self.trials(profile)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the agents, each once, in the order of the config."""
        return tuple(dict.fromkeys(agent.label for part in self.parts for agent in part.agents))

    @property
    def is_grid(self) -> bool:
        """Whether some agent is tried with several rates."""
        pairs = [(part.setting.name, agent.label) for part in self.parts for agent in part.agents]
        return len(set(pairs)) < len(pairs)

    def profile(self, name: str) -> Profile:
        if name not in self.profiles:
            raise InputError(f"{self.name} has no profile {name!r}; it has {', '.join(self.profiles)}")
        return self.profiles[name]

    def trials(self, profile_name: str) -> tuple[Trial, ...]:
        """Every (setting, agent, rates, repetition); one repetition after the other."""
        profile = self.profile(profile_name)
        learning = replace(
            self.feature_learning, tasks=profile.feature_tasks, iterations=profile.feature_iterations
        )
        trials = tuple(
            Trial(
                part.setting,
                agent,
                repetition,
                self.seed,
                profile.tasks,
                profile.steps,
                self.engine,
                learning,
            )
            for repetition in range(profile.repetitions)
            for part in self.parts
            for agent in part.agents
        )
        keys = [trial.key for trial in trials]
        twice = (
            next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
        )
        if twice:
            raise InputError(f"{self.name} has the trial {twice} twice; give its agents different labels")
        return trials

    def to_json(self, profile_name: str) -> dict[str, Any]:
        """All that determines the results of a profile."""
        return {
            "name": self.name,
            "title": self.title,
            "profile": profile_name,
            "size": asdict(self.profile(profile_name)),
            "seed": self.seed,
            "engine": self.engine,
            "feature_learning": asdict(self.feature_learning),
            "parts": [asdict(part) for part in self.parts],
        }


def grid(agent: AgentSetup, **rates: tuple[float, ...]) -> tuple[AgentSetup, ...]:
    """The agent with every combination of the given rates."""
    combinations: list[dict[str, Any]] = [
        dict(zip(rates, values, strict=True)) for values in itertools.product(*rates.values())
    ]
    return tuple(replace(agent, **combination) for combination in combinations)


# --- Finding configs ---------------------------------------------------------------------------------


def known_configs() -> tuple[str, ...]:
    """The names of the configs that come with the project."""
    names = (module.name for module in pkgutil.iter_modules(configs.__path__))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_config(name_or_path: str) -> ExperimentConfig:
    """A config of ours by its name, or yours by the path of a Python file, which is executed."""
    if name_or_path in known_configs():
        return _config_of(importlib.import_module(f"experiments.configs.{name_or_path}"), name_or_path)
    path = Path(name_or_path)
    if path.suffix != ".py":
        raise InputError(
            f"there is no experiment {name_or_path!r}; there are {', '.join(known_configs())}, "
            f"or a Python file of yours by its path"
        )
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    # What the config names as "module:function" may lie beside it.
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(f"config_{file_name(path.stem)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} cannot be read as a config: {type(error).__name__}: {error}") from None
    return _config_of(module, name_or_path)


def _config_of(module: Any, source: str) -> ExperimentConfig:
    config = getattr(module, "CONFIG", None)
    if not isinstance(config, ExperimentConfig):
        raise InputError(f"{source} must define CONFIG, an experiments.config.ExperimentConfig")
    return config
