"""One trial: an agent with given rates learns the tasks of one repetition, resumable to the bit.

A trial is data. Everything random in it comes from streams that depend on (seed, repetition, name) only:

    tasks         which tasks are learned: the same for all agents of a repetition
    environment   noise of moves and initial states
    weights       initial weights
    exploration   two uniform numbers a step
    fit           on which features SF fits its reward weights, where features are continuous
    features      learning of features: what is left out, initial weights, batches

After every task the state is written to a checkpoint. A trial that was killed goes on from the last one and
gives the same numbers as if nothing had happened; a checkpoint that is damaged is passed over for the one
before it.

Learned features (SF-h, CSFR-h) come from the Q agent of the same repetition. Its first tasks are played
again, which takes less time than to store some million states, and the environment is walked along its
actions.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import platform
import subprocess
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from sfr_fa.agents import (
    AGENT_SPECS,
    AgentSpec,
    FeatureSubnetworks,
    LearnedFeatures,
    LinearPerAction,
    LinearRewardModel,
    MlpRewardModel,
    ValueShape,
    delta_rule,
    no_clip,
    squares,
    squares_averaged_over_dimensions,
    summed_squares,
)
from sfr_fa.agents.checkpoint import read_checkpoint, write_checkpoint
from sfr_fa.agents.gpi_policies import gpi_policies_by_name
from sfr_fa.agents.policies import NewTask, PolicyLibrary, copy_previous, start_afresh
from sfr_fa.arrays import FloatArray
from sfr_fa.engines import ENGINES, Engine, EpisodeLimit, Streams, make_engine
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.environments.racer import Racer
from sfr_fa.feature_learning import RewardedTransitions, learn_features
from sfr_fa.feature_spaces import BoxFeatures, FeatureSpace
from sfr_fa.results import RunFolder, TaskRow, digest, rows_from_csv, rows_to_csv
from sfr_fa.reward_fitting import l1_weights, least_squares_weights, printed_rule_weights
from sfr_fa.tasks import (
    NONLINEARITY_BRACKETS,
    Task,
    sample_general_task,
    sample_linear_task,
    sample_racer_task,
    sample_task_of_nonlinearity,
)
from sfr_theory.errors import InputError

# --- What a trial is made of, by name ----------------------------------------------------------------

Sampler = Callable[[np.random.Generator, Any], Task]


def _of_nonlinearity(level: int) -> Sampler:
    return lambda rng, space: sample_task_of_nonlinearity(rng, level)


ENVIRONMENTS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "object_collection": ObjectCollection,
    "barreto": ObjectCollectionBarreto,
    "racer": Racer,
}
TASKS: dict[str, Sampler] = {
    "linear": sample_linear_task,
    "general": sample_general_task,
    "racer": lambda rng, space: sample_racer_task(rng),
    "racer_raw": lambda rng, space: sample_racer_task(rng, unit=2**0.5),
    **{f"nonlinearity_{level}": _of_nonlinearity(level) for level in range(len(NONLINEARITY_BRACKETS))},
}
APPROXIMATORS = {"linear": LinearPerAction, "networks": FeatureSubnetworks}
LOSSES = {"sum": summed_squares, "mean_over_dimensions": squares_averaged_over_dimensions}
REWARD_MODELS = {"linear": LinearRewardModel, "mlp": MlpRewardModel}
WEIGHT_FITS = {"l1": l1_weights, "least_squares": least_squares_weights, "printed": printed_rule_weights}
MODEL_RULES = {"delta_rule": delta_rule, "squares": squares}
INITIAL_WEIGHTS = ("paper", "matched", "zero")
CLIPPING = ("cumulant", "none")
TRANSFER = ("gpi", "none")
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
RATE_NAMES = {"learning_rate": "alpha", "reward_learning_rate": "reward", "model_learning_rate": "beta"}
FIT_POINTS = 500
"""Features on which SF fits its weights, where features are continuous: those of so many random steps."""


@dataclass(frozen=True)
class Setting:
    """An environment with a distribution of tasks.

    `environment` and `tasks` are names (ENVIRONMENTS, TASKS), or "module:function" for your own: a function
    that makes an environment, and one (rng, feature space) -> Task.
    """

    name: str
    environment: str
    tasks: str
    gamma: float
    epsilon: float = 0.15
    approximator: str = "linear"
    loss: str = "sum"
    limit_is_terminal: bool = True
    """Whether gamma_t = 0 where a time limit ends an episode, as in the listings; otherwise it bootstraps."""

    def __post_init__(self) -> None:
        _check_name("approximator", self.approximator, APPROXIMATORS)
        _check_name("loss", self.loss, LOSSES)
        for what, name, known in (
            ("environment", self.environment, ENVIRONMENTS),
            ("tasks", self.tasks, TASKS),
        ):
            if ":" not in name:
                _check_name(what, name, known)


@dataclass(frozen=True)
class AgentSetup:
    """An agent with its rates and with what distinguishes it from others of its kind."""

    label: str
    agent: str
    learning_rate: float = 0.005
    reward_learning_rate: float | None = None
    model_learning_rate: float | None = None
    reward_model: str | None = None
    """"linear" or "mlp", for SFR-R and MB SFR-R."""
    model_rule: str | None = None
    """"delta_rule" (what None means) or "squares", for MB SFR and MB SFR-R."""
    weight_fit: str | None = None
    """"l1", "least_squares" or "printed", for SF on rewards that are not linear."""
    learned_dimensions: int | None = None
    """h of learned features, for SF-h and CSFR-h."""
    clipping: str = "cumulant"
    """"cumulant": values are clipped at 0 where they cannot be negative; "none": never."""
    initial_weights: str = "paper"
    """"paper": N(0, 0.01^2) for each entry; "matched": psi_0 = sum_j phi_j xi_0(phi_j) with the xi_0 that SFR
    starts from; "zero"."""
    transfer: str = "gpi"
    """"none": every task is learned alone, from fresh weights."""
    gpi_policies: str = "all"
    """"all", or "nearest 5", "recent 5", "random 5": which stored policies GPI may choose."""
    precision: str = "float32"

    def __post_init__(self) -> None:
        _check_name("agent", self.agent, AGENT_SPECS)
        _check_name("clipping", self.clipping, CLIPPING)
        _check_name("initial_weights", self.initial_weights, INITIAL_WEIGHTS)
        _check_name("transfer", self.transfer, TRANSFER)
        _check_name("precision", self.precision, PRECISIONS)
        gpi_policies_by_name(self.gpi_policies)
        if self.reward_model is not None:
            _check_name("reward_model", self.reward_model, REWARD_MODELS)
        if self.model_rule is not None:
            _check_name("model_rule", self.model_rule, MODEL_RULES)
        if self.weight_fit is not None:
            _check_name("weight_fit", self.weight_fit, WEIGHT_FITS)
        learns_features = self.agent.endswith("-h")
        if learns_features != (self.learned_dimensions is not None):
            raise InputError(
                f"{self.label}: learned_dimensions is {self.learned_dimensions}; {self.agent} "
                + ("learns features and needs it" if learns_features else "learns no features")
            )

    @property
    def rates(self) -> dict[str, float]:
        """The rates that this agent has, by name."""
        names = ("learning_rate", "reward_learning_rate", "model_learning_rate")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class FeatureLearning:
    """How features are learned from the Q agent's transitions (c:appendix_feature_learning)."""

    tasks: int = 20
    iterations: int = 1_000_000
    drop_zero_rewards: float = 0.75
    """Part of the transitions with reward 0 that is left out."""
    keep: float = 1.0
    """Part of all transitions that is used; the racer's two million would not fit into memory."""
    q_learning_rate: float = 0.005


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
        _check_name("engine", self.engine, ENGINES)
        for name, least in (("repetition", 0), ("seed", 0), ("tasks", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    @property
    def key(self) -> str:
        """Setting, agent, rates and repetition as a path: "general/SFR/alpha_0.005/rep-00"."""
        rates = "_".join(f"{RATE_NAMES[name]}_{value:g}" for name, value in self.agent.rates.items())
        parts = (self.setting.name, self.agent.label, rates, f"rep-{self.repetition:02d}")
        return "/".join(file_name(part) for part in parts)

    def to_json(self) -> dict[str, Any]:
        content = asdict(self) | {"rates": self.agent.rates}
        if self.agent.learned_dimensions is None:
            del content["feature_learning"]
        return content


def file_name(text: str) -> str:
    """The text with nothing in it that a file system or a shell might mind."""
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in text)
    return name if name.strip(".") else "_" * max(1, len(name))


def _check_name(what: str, name: str, known: Any) -> None:
    if name not in known:
        raise InputError(f"there is no {what} {name!r}; choose from {', '.join(known)}")


def _resolve(name: str, known: Mapping[str, Any]) -> Any:
    """A thing by its name, or by "module:attribute"."""
    if ":" not in name:
        return known[name]
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot find {name}: {error}") from None


# --- Randomness --------------------------------------------------------------------------------------


def stream(seed: int, repetition: int, name: str) -> np.random.Generator:
    """The generator of that name: its numbers depend on nothing else."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(repetition, *name.encode())))


def streams(seed: int, repetition: int) -> Streams:
    """The streams that agents, environments and tasks draw from."""
    return Streams(**{entry.name: stream(seed, repetition, entry.name) for entry in fields(Streams)})


# --- Building ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedStart:
    """Policies carry over from task to task; the first starts from weights of our choice (A, D, S)."""

    first_weights: Callable[[ValueShape, np.random.Generator], torch.Tensor]

    def __call__(self, library: PolicyLibrary, rng: np.random.Generator) -> None:
        if len(library):
            copy_previous(library, rng)
            return
        library.add_fresh(np.random.default_rng(0))
        if "weight" not in library.parameters:
            raise InputError("initial_weights are for linear values; networks have the paper's")
        weight = library.parameters["weight"][0]
        num_actions, dimensions, state_dim = weight.shape
        weight.copy_(self.first_weights(ValueShape(state_dim, num_actions, 1, dimensions), rng))


@dataclass(frozen=True, eq=False)
class MatchedWeights:
    """sum_j M_j xi_0(phi_j), where xi_0 (A, F, S) is what SFR draws at this point of the stream.

    `matrix` M is (F, D): the features for SF, so that psi_0 = sum_j phi_j xi_0(phi_j); the identity for SFR.
    """

    matrix: FloatArray

    def __call__(self, shape: ValueShape, rng: np.random.Generator) -> torch.Tensor:
        xi = LinearPerAction(replace(shape, groups=1, size=len(self.matrix)), rng).weight.detach()
        return torch.einsum("afs,fd->ads", xi, torch.tensor(self.matrix))


def zero_weights(shape: ValueShape, rng: np.random.Generator) -> torch.Tensor:
    return torch.zeros(shape.num_actions, shape.dimensions, shape.state_dim)


def _new_task(setup: AgentSetup, space: FeatureSpace) -> NewTask:
    """What a new task does to the stored policies, by the names in the setup."""
    own = start_afresh if setup.transfer == "none" else AGENT_SPECS[setup.agent].new_task
    if setup.initial_weights == "paper":
        return own
    if own is not copy_previous:
        raise InputError(
            f"{setup.label}: initial_weights are for agents whose policies carry over from task to task; "
            "leave them out"
        )
    if setup.initial_weights == "zero":
        return FixedStart(zero_weights)
    if setup.agent not in ("SF", "SFR") or isinstance(space, BoxFeatures):
        raise InputError(
            f"{setup.label}: matched weights are defined for SF and SFR on discrete features, "
            f"not for {setup.agent}"
        )
    return FixedStart(MatchedWeights(space.vectors if setup.agent == "SF" else np.eye(space.size)))


def build(trial: Trial, folder: RunFolder, notes: list[str]) -> tuple[Engine, list[Task]]:
    """The engine of a trial before its first step, and the tasks; `notes` gets what should be known."""
    setting, setup = trial.setting, trial.agent
    environment = _resolve(setting.environment, ENVIRONMENTS)()
    space = environment.get_wrapper_attr("feature_space")  # features may be what a wrapper adds
    random = streams(trial.seed, trial.repetition)
    sample = _resolve(setting.tasks, TASKS)
    tasks = [sample(random.tasks, space) for _ in range(trial.tasks)]
    spec: AgentSpec = replace(AGENT_SPECS[setup.agent], new_task=_new_task(setup, space))
    optional: dict[str, Any] = {
        "gpi_policies": gpi_policies_by_name(setup.gpi_policies),
        "reward_learning_rate": setup.reward_learning_rate,
        "model_learning_rate": setup.model_learning_rate,
        "model_rule": setup.model_rule and MODEL_RULES[setup.model_rule],
        "reward_model": setup.reward_model and REWARD_MODELS[setup.reward_model],
        "weight_fit": setup.weight_fit and WEIGHT_FITS[setup.weight_fit],
        "clip": no_clip if setup.clipping == "none" else None,
    }
    if setup.learned_dimensions is not None:
        optional["feature_map"] = learned_feature_map(trial, folder)
    elif isinstance(space, BoxFeatures) and spec.readout is AGENT_SPECS["SF"].readout:
        optional["fit_points"] = features_of_random_steps(
            environment, FIT_POINTS, stream(trial.seed, trial.repetition, "fit")
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine = make_engine(
            trial.engine,
            environment,
            spec,
            streams=random,
            limit=EpisodeLimit(is_terminal=setting.limit_is_terminal),
            gamma=setting.gamma,
            epsilon=setting.epsilon,
            learning_rate=setup.learning_rate,
            approximator=APPROXIMATORS[setting.approximator],
            loss=LOSSES[setting.loss],
            dtype=PRECISIONS[setup.precision],
            **{name: value for name, value in optional.items() if value is not None},
        )
    notes += [str(warning.message) for warning in caught]
    return engine, tasks


def features_of_random_steps(
    environment: gymnasium.Env[Any, Any], steps: int, rng: np.random.Generator
) -> FloatArray:
    """What a random walk sees: (steps, n)."""
    environment.unwrapped.np_random = rng
    features = []
    ended = True
    for _ in range(steps):
        if ended:
            environment.reset()
        action = rng.integers(environment.action_space.n)  # type: ignore[attr-defined]
        _, _, terminated, truncated, info = environment.step(action)
        features.append(info["features"])
        ended = terminated or truncated
    return np.array(features)


# --- Learned features --------------------------------------------------------------------------------


def learned_feature_map(trial: Trial, folder: RunFolder) -> LearnedFeatures:
    """phi~ for a trial: read, or learned from the Q agent's transitions and stored for the others."""
    how, setting = trial.feature_learning, trial.setting
    tasks = min(how.tasks, trial.tasks)
    description = {
        "setting": asdict(setting), "seed": trial.seed, "repetition": trial.repetition, "steps": trial.steps,
        "learning": asdict(replace(how, tasks=tasks)), "dimensions": trial.agent.learned_dimensions,
    }  # fmt: skip
    path = folder.feature_path(
        f"{file_name(setting.name)}/h{trial.agent.learned_dimensions}/rep-{trial.repetition:02d}"
    )
    try:
        return LearnedFeatures(read_checkpoint(path, description)["matrix"])
    except InputError:
        rng = stream(trial.seed, trial.repetition, "features")
        data = transitions_of_q(trial, folder, tasks, rng)
        model = learn_features(data, trial.agent.learned_dimensions or 0, rng, iterations=how.iterations)
        write_checkpoint(path, description, {"matrix": model.matrix, "losses": model.losses})
        return model.feature_map


def transitions_of_q(
    trial: Trial, folder: RunFolder, tasks: int, rng: np.random.Generator
) -> RewardedTransitions:
    """What the Q agent of this repetition saw in its first tasks, thinned out as the trial says."""
    how = trial.feature_learning
    q = AgentSetup("Q", "Q", learning_rate=how.q_learning_rate)
    engine, task_list = build(replace(trial, agent=q, tasks=tasks), folder, [])
    kept: list[tuple[FloatArray, FloatArray, FloatArray, Any]] = []
    for number, task in enumerate(task_list):
        before = engine.streams.environment.bit_generator.state
        actions = engine.run_task(task, trial.steps).actions
        # The same noise again: walked by hand, the environment shows the states that the engine did not.
        noise = np.random.default_rng(0)
        noise.bit_generator.state = before
        states, next_states, rewards = walk_along(engine.environment, task, actions, noise, engine.limit)
        keep = rng.random(len(rewards)) < how.keep
        keep &= (rewards != 0) | (rng.random(len(rewards)) >= how.drop_zero_rewards)
        kept.append((states[keep], next_states[keep], rewards[keep], np.full(keep.sum(), number)))
    if not any(len(rewards) for _, _, rewards, _ in kept):
        raise InputError("the Q agent saw no transition to learn features from; give it more steps or tasks")
    return RewardedTransitions(*(np.concatenate(parts) for parts in zip(*kept, strict=True)))


def walk_along(
    environment: gymnasium.Env[Any, Any],
    task: Task,
    actions: NDArray[np.int64],
    noise: np.random.Generator,
    limit: EpisodeLimit,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States, next states and rewards on the path of given actions."""
    environment.unwrapped.np_random = noise
    state, _ = environment.reset(options={"task": task})
    states, next_states, rewards = [], [], []
    steps_of_episode = 0
    for action in actions:
        next_state, reward, terminated, truncated, _ = environment.step(int(action))
        steps_of_episode += 1
        states.append(state)
        next_states.append(next_state)
        rewards.append(float(reward))
        state = next_state
        if terminated or truncated or steps_of_episode == limit.steps:
            state, _ = environment.reset()
            steps_of_episode = 0
    return np.array(states, dtype=np.float32), np.array(next_states, dtype=np.float32), np.array(rewards)


# --- Running -----------------------------------------------------------------------------------------

OnTask = Callable[[TaskRow], None]
"""Called after every task that is safely stored; what it raises stops the trial, which can be resumed."""


@dataclass
class _Progress:
    """What a trial has come to: the content of a checkpoint beside the engine."""

    rows: list[TaskRow] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_trial(trial: Trial, folder: RunFolder, on_task: OnTask | None = None) -> list[str]:
    """Bring a trial to its end, from wherever it was left; returns what a user should know.

    Calling it for a trial that is finished does nothing.
    """
    torch.set_num_threads(1)
    key = trial.key
    with folder.working_on(key):
        if folder.json_path(key).exists():
            folder.read_result(key)
            return []
        progress = _Progress()
        engine, tasks = build(trial, folder, progress.notes)
        remarks = _resume(trial, folder, engine, progress)
        while len(progress.rows) < trial.tasks and not (progress.rows and progress.rows[-1].diverged):
            number = len(progress.rows)
            result = engine.run_task(tasks[number], trial.steps)
            progress.rows.append(
                TaskRow(
                    task=number,
                    total_return=float(result.total_reward),
                    steps=result.steps,
                    episodes=result.episodes,
                    diverged=result.diverged,
                    **TaskRow.of_counts(result.gpi_counts),
                )
            )
            progress.seconds.append(result.seconds)
            _write(trial, folder, engine, progress)
            if on_task is not None:
                on_task(progress.rows[-1])
        folder.write_result(
            key,
            trial.to_json(),
            progress.rows,
            progress.seconds,
            digest([_task_json(task) for task in tasks]),
            provenance(engine.name),
            progress.notes,
        )
        folder.forget_checkpoints(key, before=trial.tasks + 1)
        return [f"{key}: {note}" for note in (*progress.notes, *remarks)]


def _write(trial: Trial, folder: RunFolder, engine: Engine, progress: _Progress) -> None:
    """Store the state, then let go of all but this one and the one before."""
    done = len(progress.rows)
    state = {
        "engine": engine.state_dict(),
        "rows": rows_to_csv(progress.rows).decode(),
        "seconds": progress.seconds,
        "notes": progress.notes,
    }
    write_checkpoint(folder.checkpoint_path(trial.key, done), trial.to_json(), state)
    folder.forget_checkpoints(trial.key, before=done - 1)


def _resume(trial: Trial, folder: RunFolder, engine: Engine, progress: _Progress) -> list[str]:
    """Go back to the newest checkpoint that is whole; says which ones are not."""
    remarks = []
    for done, path in folder.checkpoints(trial.key).items():
        try:
            state = read_checkpoint(path, trial.to_json())
            engine.load_state(state["engine"])
        except InputError as error:
            remarks.append(f"{error}; an earlier state was taken instead of the one after {done} tasks")
            path.unlink(missing_ok=True)
            continue
        progress.rows[:] = rows_from_csv(state["rows"].encode(), path)
        progress.seconds[:] = state["seconds"]
        progress.notes[:] = state["notes"]
        break
    folder.forget_checkpoints(trial.key, before=0)
    return remarks


def _task_json(task: Task) -> Any:
    to_json = getattr(task, "to_json", None)
    return to_json() if to_json else type(task).__qualname__


# --- Where a result comes from -----------------------------------------------------------------------

PACKAGES = ("numpy", "scipy", "numba", "torch", "gymnasium")


@functools.cache
def provenance(engine: str) -> dict[str, Any]:
    """Versions, commit, engine and platform of this process."""
    return {
        "engine": engine,
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "commit": _commit(),
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _commit() -> str | None:
    """The commit of the source tree, with a + if sources differ from it; None outside a git checkout."""

    def git(*arguments: str) -> str:
        here = Path(__file__).parent
        return subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "--", Path(__file__).name)  # installed inside another repository?
        sources = (":/sfr_theory", ":/sfr_fa", ":/experiments")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *sources)
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
