"""An experiment as data: which agents meet which tasks, how often and for how long.

    ExperimentConfig   a figure or table: parts, profiles, seed
    Part               a setting (environment and tasks) and the agents that meet it
    Profile            how much of it: tasks, steps, repetitions
    grid               all combinations of an agent's rates

It unfolds into trials, which are all that the runner sees:

    Trial              Setting, AgentSetup and repetition: all that determines a result

A config is a Python file or module with one value, CONFIG. What comes with the package is known by its name;
your own environments, samplers of tasks, agents, networks and so on are "module:attribute", and the module
may be in the folder of the config.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from sfr_fa.agents import (
    AGENT_SPECS,
    AgentSpec,
    FeatureSubnetworks,
    LinearPerAction,
    LinearRewardModel,
    MlpRewardModel,
    agent_spec,
    clip_at_zero,
    delta_rule,
    no_clip,
    squares,
    squares_averaged_over_dimensions,
    summed_squares,
)
from sfr_fa.agents.gpi_policies import gpi_policies_by_name
from sfr_fa.agents.hysteresis import Hysteresis
from sfr_fa.agents.replay import Replay
from sfr_fa.agents.schedules import check_epsilon, check_rate
from sfr_fa.agents.settings import RATES
from sfr_fa.arrays import positive_integer
from sfr_fa.engines import ENGINES
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.environments.racer import Racer
from sfr_fa.feature_codes import code_by_name
from sfr_fa.interactions import sample_mixed_task, sample_parity_task
from sfr_fa.reward_fitting import l1_weights, least_squares_weights, printed_rule_weights
from sfr_fa.runs.wording import rate_text
from sfr_fa.streams import check_seed
from sfr_fa.tasks import (
    NONLINEARITY_BRACKETS,
    sample_general_task,
    sample_linear_task,
    sample_racer_task,
    sample_task_of_nonlinearity,
)
from sfr_theory.errors import InputError

# --- What a trial is made of, by name ----------------------------------------------------------------

SCHEDULED = ("epsilon", *RATES)
"""Fields that are numbers, or the names of functions of the step."""
NAMES: dict[str, dict[str, Any]] = {
    "environment": {
        "object_collection": ObjectCollection,
        "barreto": ObjectCollectionBarreto,
        "racer": Racer,
    },
    "tasks": {
        "linear": sample_linear_task,
        "general": sample_general_task,
        "racer": lambda rng, space: sample_racer_task(rng),
        "racer_parity": lambda rng, space: sample_parity_task(rng),
        "racer_mixed": lambda rng, space: sample_mixed_task(rng),
        "racer_raw": lambda rng, space: sample_racer_task(rng, unit=2**0.5),
        **{
            f"nonlinearity_{k}": lambda rng, space, level=k: sample_task_of_nonlinearity(rng, level)
            for k in range(len(NONLINEARITY_BRACKETS))
        },
    },
    "approximator": {"linear": LinearPerAction, "networks": FeatureSubnetworks},
    "loss": {"sum": summed_squares, "mean_over_dimensions": squares_averaged_over_dimensions},
    "reward_model": {"linear": LinearRewardModel, "mlp": MlpRewardModel},
    "model_rule": {"delta_rule": delta_rule, "squares": squares},
    "weight_fit": {
        "l1": l1_weights,
        "least_squares": least_squares_weights,
        "printed": printed_rule_weights,
    },
    "optimiser": {"sgd": torch.optim.SGD, "adam": torch.optim.Adam},
    "clipping": {"cumulant": None, "none": no_clip, "at zero": clip_at_zero},
    "initial_weights": dict.fromkeys(("paper", "matched", "zero")),
    "transfer": dict.fromkeys(("gpi", "none")),
    "precision": {"float32": torch.float32, "float64": torch.float64},
    "engine": dict.fromkeys(ENGINES),
    **{name: {} for name in SCHEDULED},
}
"""What can be named in a config: the field, the name, the thing."""
OWN = ("environment", "tasks", "approximator", "loss", "reward_model", "model_rule", "weight_fit",
       "optimiser", *SCHEDULED)  # fmt: skip
"""Fields that may be "module:attribute"."""
EXTRAS: dict[str, Any] = {"replay": Replay, "hysteresis": Hysteresis}
"""What an agent may do besides the listings."""


def thing(what: str, name: str) -> Any:
    """What a field of a config names: a thing of ours by its name, or yours by "module:attribute"."""
    module, colon, attribute = name.partition(":") if isinstance(name, str) else (name, "", "")
    if not colon or what not in OWN:
        if name not in NAMES[what]:
            own = ['"module:attribute" of your own'] if what in OWN else []
            raise InputError(f"there is no {what} {name!r}; choose from {', '.join([*NAMES[what], *own])}")
        return NAMES[what][name]
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # an empty or relative name
        raise InputError(f"{what} is {name!r}, which cannot be found: {error}") from None


def plain(value: Any, name: str) -> Any:
    """`value` in Python's own types, numbers of NumPy too, if a file of JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Replay, Hysteresis)):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {plain(key, name): plain(entry, f"{name}[{key!r}]") for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([plain(entry, f"{name}[{k}]") for k, entry in enumerate(value)])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"{name} is {value!r}; a config holds numbers, text, lists and dictionaries")


def check_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r}; it must be text")


class _Plain:
    """A dataclass whose fields are what JSON can hold."""

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]
            value = plain(getattr(self, entry.name), entry.name)
            if entry.type == "str":
                check_text(value, entry.name)
            object.__setattr__(self, entry.name, value)


class _Named(_Plain):
    """Fields of a dataclass that are names: checked when it is made, looked up on demand."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for entry in fields(self):  # type: ignore[arg-type]
            if entry.name in NAMES:
                self.named(entry.name)

    def named(self, what: str) -> Any:
        """The thing that a field names; None and the numbers of schedules stand for themselves."""
        name = getattr(self, what)
        is_value = name is None or (what in SCHEDULED and not isinstance(name, str))
        return name if is_value else thing(what, name)

    def to_json(self) -> dict[str, Any]:
        """The fields; those that earlier versions did not have are left out at their defaults."""
        content = asdict(self)  # type: ignore[call-overload]
        for entry in fields(self):  # type: ignore[arg-type]
            if entry.metadata.get("later") and content[entry.name] == _default(entry):
                del content[entry.name]
        return dict(content)


def _default(entry: Any) -> Any:
    return entry.default_factory() if entry.default is MISSING else entry.default


@dataclass(frozen=True)
class Setting(_Named):
    """An environment with a distribution of tasks.

    `environment` and `tasks` are names, or "module:function" of your own: a function that makes an
    environment, and one (rng, feature space) -> Task.
    """

    name: str
    environment: str
    tasks: str
    gamma: float
    epsilon: float | str = 0.15
    """A probability, or "module:function" of the step of the task."""
    approximator: str = "linear"
    loss: str = "sum"
    limit_is_terminal: bool | None = None
    """Whether gamma_t = 0 where a time limit ends an episode, as in the listings; otherwise it bootstraps.
    None: in worlds, but not in other environments."""
    environment_options: Mapping[str, Any] = field(default_factory=dict, metadata={"later": True})
    """Keyword arguments of the environment, as JSON."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.gamma, (int, float)) or not 0 <= self.gamma < 1:
            raise InputError(f"gamma of {self.name} is {self.gamma!r}; it must be at least 0 and below 1")
        if not isinstance(self.limit_is_terminal, bool | None):
            raise InputError(
                f"limit_is_terminal of {self.name} is {self.limit_is_terminal!r}; it must be True, False or "
                f"None"
            )
        check_epsilon(self.named("epsilon"), f"epsilon of {self.name}")

    def make_environment(self) -> gymnasium.Env[Any, Any]:
        environment: gymnasium.Env[Any, Any] = self.named("environment")(**self.environment_options)
        return environment


@dataclass(frozen=True)
class AgentSetup(_Named):
    """An agent with its rates and with what distinguishes it from others of its kind."""

    label: str
    agent: str
    learning_rate: float | str = 0.005
    """This and the other rates are numbers, or "module:function" of the step of the task."""
    reward_learning_rate: float | str | None = None
    model_learning_rate: float | str | None = None
    reward_model: str | None = None
    """"linear" or "mlp", for SFR-R and MB SFR-R."""
    model_rule: str | None = field(default=None, metadata={"later": True})
    """"delta_rule" (what None means) or "squares", for MB SFR and MB SFR-R."""
    weight_fit: str | None = None
    """"l1", "least_squares" or "printed", for SF on rewards that are not linear."""
    learned_dimensions: int | None = None
    """h of learned features, for SF-h and CSFR-h."""
    clipping: str = "cumulant"
    """"cumulant": values are clipped at 0 where they are probabilities; "none": never; "at zero": always.
    The last is right where no feature is negative."""
    initial_weights: str = "paper"
    """"paper": N(0, 0.01^2) for each entry; "matched": psi_0 = sum_j phi_j xi_0(phi_j) with the xi_0 that SFR
    starts from; "zero"."""
    transfer: str = "gpi"
    """"none": every task is learned alone, from fresh weights."""
    gpi_policies: str = "all"
    """"all", or "nearest 5", "bound 5", "recent 5", "random 5": which stored policies GPI may choose."""
    precision: str = "float32"
    optimiser: str = field(default="sgd", metadata={"later": True})
    feature_code: str | None = field(default=None, metadata={"later": True})
    """"bumps 128" or "cells 128", with centres among features of random steps, for SFR-K."""
    approximator: str | None = field(default=None, metadata={"later": True})
    """Used in place of the setting's."""
    bins: int | tuple[int, ...] | None = field(default=None, metadata={"later": True})
    """U of the tent code, or a number for each feature dimension, for CSFR."""
    replay: Mapping[str, Any] | None = field(default=None, metadata={"later": True})
    """`Replay(batch=32, ...)`, or its fields..."""
    hysteresis: Mapping[str, Any] | None = field(default=None, metadata={"later": True})
    """... and those of `Hysteresis`; either runs in the reference engine."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in EXTRAS:
            self.extra(name)
        gpi_policies_by_name(self.gpi_policies)
        if self.feature_code is not None:
            code_by_name(self.feature_code)
        for name in self.rates:
            check_rate(self.named(name), f"{name} of {self.label}")
        if self.spec.learns_features != (self.learned_dimensions is not None):
            raise InputError(
                f"{self.label}: learned_dimensions is {self.learned_dimensions}; {self.agent} "
                + ("learns features and needs it" if self.spec.learns_features else "learns no features")
            )

    @property
    def spec(self) -> AgentSpec:
        return agent_spec(self.agent)

    def to_json(self) -> dict[str, Any]:
        """Of an agent of the user's own also its family: whoever reads results does not import it."""
        own = {} if self.agent in AGENT_SPECS else {"family": self.spec.family}
        return super().to_json() | own

    def extra(self, name: str) -> Replay | Hysteresis | None:
        """`replay` or `hysteresis`, made of its fields."""
        content = getattr(self, name)
        try:
            return None if content is None else EXTRAS[name](**content)
        except InputError as error:
            raise InputError(f"{name} of {self.label}: {error}") from None
        except TypeError:
            known = ", ".join(entry.name for entry in fields(EXTRAS[name]))
            raise InputError(f"{name} of {self.label} is {content!r}; its fields are {known}") from None

    @property
    def rates(self) -> dict[str, float | str]:
        """The rates that this agent has, by name; a schedule by its own name."""
        return {name: getattr(self, name) for name in RATES if getattr(self, name) is not None}


@dataclass(frozen=True)
class FeatureLearning(_Plain):
    """How features are learned from the Q agent's transitions (c:appendix_feature_learning)."""

    tasks: int = 20
    iterations: int = 1_000_000
    drop_zero_rewards: float = 0.75
    """Fraction of the transitions with reward 0 that is left out."""
    keep: float = 1.0
    """Fraction of all transitions that is used; the racer's two million would not fit into memory."""
    q_learning_rate: float = 0.005


RATE_NAMES = {"learning_rate": "alpha", "reward_learning_rate": "reward", "model_learning_rate": "beta"}


@dataclass(frozen=True)
class Trial:
    """All that determines a result: agent, rates, repetition, and the setting they meet."""

    setting: Setting
    agent: AgentSetup
    repetition: int
    seed: int
    tasks: int
    steps: int
    engine: str = "compiled"
    feature_learning: FeatureLearning = field(default_factory=FeatureLearning)

    def __post_init__(self) -> None:
        thing("engine", self.engine)
        for name, least in (("repetition", 0), ("seed", 0), ("tasks", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    @property
    def key(self) -> str:
        """Setting, agent, rates and repetition as a path: "general/SFR/alpha_0.005/rep-00"."""
        rates = "_".join(f"{RATE_NAMES[name]}_{rate_text(rate)}" for name, rate in self.agent.rates.items())
        parts = (self.setting.name, self.agent.label, rates, f"rep-{self.repetition:02d}")
        return "/".join(file_name(part) for part in parts)

    @property
    def modules(self) -> tuple[str, ...]:
        """Those that it names as "module:attribute"."""
        named = {**vars(self.setting), **vars(self.agent)}
        values = (named[name] for name in (*OWN, "agent") if isinstance(named.get(name), str))
        return tuple(sorted({value.partition(":")[0] for value in values if ":" in value}))

    def to_json(self) -> dict[str, Any]:
        content = asdict(self) | {"rates": self.agent.rates}
        content |= {"setting": self.setting.to_json(), "agent": self.agent.to_json()}
        if self.agent.learned_dimensions is None:
            del content["feature_learning"]
        return content


def file_name(text: str) -> str:
    """The text without characters that a file system or a shell might not accept."""
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in text)
    return name if name.strip(".") else "_" * max(1, len(name))


# --- Experiments -------------------------------------------------------------------------------------

MOST_TRIALS = 100_000


@dataclass(frozen=True)
class Profile(_Plain):
    """How much of an experiment is run."""

    tasks: int
    steps: int
    """Of each task."""
    repetitions: int
    feature_tasks: int = 20
    """Tasks of the Q agent from which features are learned."""
    feature_iterations: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in asdict(self).items():
            positive_integer(value, f"{name} of a profile")


@dataclass(frozen=True)
class Part:
    """A setting, and the agents that meet it."""

    setting: Setting
    agents: tuple[AgentSetup, ...]

    def to_json(self) -> dict[str, Any]:
        return {"setting": self.setting.to_json(), "agents": [agent.to_json() for agent in self.agents]}


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
        check_text(self.title, "title")
        if not isinstance(self.profiles, Mapping):
            raise InputError(f"profiles is {self.profiles!r}; it must be a dictionary of Profile by name")
        for what, name in (("name", self.name), *(("the name of a profile", name) for name in self.profiles)):
            check_text(name, what)
            if name != file_name(name) or not name:
                raise InputError(f"{what} is {name!r}; it becomes a folder: letters, digits, - . _ only")
        for name, size in self.profiles.items():
            if not isinstance(size, Profile):
                raise InputError(
                    f"profile {name} is {size!r}; it must be a Profile(tasks, steps, repetitions)"
                )
        object.__setattr__(self, "seed", check_seed(self.seed))
        if not self.parts or not all(part.agents for part in self.parts):
            raise InputError(f"{self.name} has a part without agents, or no parts at all")
        for profile in self.profiles:
            self.trials(profile)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the agents, each once, in the order of the config."""
        return tuple(dict.fromkeys(agent.label for part in self.parts for agent in part.agents))

    def profile(self, name: str) -> Profile:
        if name not in self.profiles:
            raise InputError(f"{self.name} has no profile {name!r}; it has {', '.join(self.profiles)}")
        return self.profiles[name]

    def trials(self, profile_name: str) -> tuple[Trial, ...]:
        """Every (setting, agent, rates, repetition); one repetition after the other."""
        size = self.profile(profile_name)
        count = size.repetitions * sum(len(part.agents) for part in self.parts)
        if count > MOST_TRIALS:
            raise InputError(
                f"profile {profile_name} of {self.name} has {count:,} trials; at most {MOST_TRIALS:,} fit "
                f"into one run: ask for fewer repetitions or rates"
            )
        learning = replace(
            self.feature_learning, tasks=size.feature_tasks, iterations=size.feature_iterations
        )
        trials = tuple(
            Trial(part.setting, agent, k, self.seed, size.tasks, size.steps, self.engine, learning)
            for k in range(size.repetitions)
            for part in self.parts
            for agent in part.agents
        )
        (most_common, times), *_ = Counter(trial.key for trial in trials).most_common(1)
        if times > 1:
            raise InputError(
                f"{self.name} has the trial {most_common} twice; give its agents different labels, "
                f"and its settings different names"
            )
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
            "parts": [part.to_json() for part in self.parts],
        }


def grid(agent: AgentSetup, **rates: tuple[float, ...]) -> tuple[AgentSetup, ...]:
    """The agent with every combination of the given rates."""
    combinations: list[dict[str, Any]] = [
        dict(zip(rates, values, strict=True)) for values in itertools.product(*rates.values())
    ]
    return tuple(replace(agent, **combination) for combination in combinations)


def _module_name(path: Path) -> str:
    """The name by which other processes import the file, unless it is that of another module."""
    found = sys.modules.get(path.stem)
    taken = found is not None and not hasattr(found, "CONFIG")
    return f"config_{file_name(path.stem)}" if taken or not path.stem.isidentifier() else path.stem


def load_config(source: str) -> ExperimentConfig:
    """The CONFIG of a Python file by its path, or of a module by its name; either is executed."""
    path = Path(source)
    try:
        if path.suffix == ".py":
            if not path.is_file():
                raise InputError(f"there is no file {path}")
            # What the config names as "module:attribute" may be in its folder.
            sys.path.insert(0, str(path.resolve().parent))
            name = _module_name(path)
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            # So that what it names as f"{__name__}:attribute" is found, here and in workers.
            sys.modules[name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(source)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{source} cannot be read as a config: {what}") from None
    config = getattr(module, "CONFIG", None)
    if not isinstance(config, ExperimentConfig):
        raise InputError(f"{source} must define CONFIG, a sfr_fa.runs.ExperimentConfig")
    return config
