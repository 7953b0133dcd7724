"""One trial: an agent with given rates learns the tasks of one repetition, resumable bit for bit.

A trial is data (sfr_fa.runs.config). Everything random in it comes from streams that depend on (seed,
repetition, name) only: those of `sfr_fa.streams`, and

    fit           on which features rewards are fitted, where features are continuous, and where in them the
                  centres of a code lie
    features      learning of features: what is left out, initial weights, batches

After every task the state is written to a checkpoint. A trial that was killed continues from the last one and
gives the same numbers as if nothing had happened; a checkpoint that is damaged is passed over for the one
before it.

Learned features (SF-h, CSFR-h) come from the Q agent of the same repetition. Its first tasks are run again,
which takes less time than storing millions of states, and its path is retraced.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import gymnasium
import llvmlite.binding
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from sfr_fa.agents import AgentSpec, FitWarning, LearnedFeatures, LinearPerAction, ValueShape
from sfr_fa.agents.checkpoint import load_state, read_checkpoint, write_checkpoint
from sfr_fa.agents.gpi_policies import gpi_policies_by_name
from sfr_fa.agents.policies import CopyPrevious, start_afresh
from sfr_fa.arrays import FloatArray
from sfr_fa.engines import Engine, EpisodeLimit, Streams, make_engine
from sfr_fa.environments.feature_env import feature_space_of
from sfr_fa.feature_codes import code_by_name
from sfr_fa.feature_learning import RewardedTransitions, learn_features
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.runs.config import EXTRAS, AgentSetup, Trial, file_name
from sfr_fa.runs.store import RunFolder, TaskRow, TrialResult, digest, remove, rows_from_csv, rows_to_csv
from sfr_fa.streams import stream
from sfr_fa.tasks import Task
from sfr_theory.errors import InputError
from sfr_theory.reading import known_content, read_bytes

FIT_POINTS = 500
"""SF fits its weights on the features of this many random steps, where features are continuous..."""
CODE_POINTS = 5000
"""... and codes of features their readout, which has many more entries."""

# --- Building ----------------------------------------------------------------------------------------


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


def _row(setup: AgentSetup, space: FeatureSpace | None) -> AgentSpec:
    """The agent's row with what the setup changes in it: what a new task does to the stored policies."""
    spec = setup.spec
    if setup.transfer == "none":
        spec = replace(spec, new_task=start_afresh)
    if setup.initial_weights == "paper":
        return spec
    if not isinstance(spec.new_task, CopyPrevious):
        raise InputError(
            f"{setup.label}: initial_weights are for agents whose policies carry over from task to task; "
            "leave them out"
        )
    if setup.initial_weights == "zero":
        return replace(spec, new_task=CopyPrevious(zero_weights))
    matrix = spec.cumulant.from_indicator
    if matrix is None or not isinstance(space, DiscreteFeatures):
        raise InputError(
            f"{setup.label}: matched weights are for agents that sum discrete features or indicators of them "
            f"(SF, SFR); leave initial_weights out"
        )
    return replace(spec, new_task=CopyPrevious(MatchedWeights(matrix(space))))


def build(trial: Trial, features: Callable[[Trial], LearnedFeatures]) -> tuple[Engine, list[Task], list[str]]:
    """The engine of a trial before its first step, the tasks, and notes about them for the user.

    `features` gives learned features to the agents that need them.
    """
    setting, setup = trial.setting, trial.agent
    environment = setting.make_environment()
    space = feature_space_of(environment)
    random = Streams.spawn(trial.seed, trial.repetition)
    sample = setting.named("tasks")
    tasks = [sample(random.tasks, space) for _ in range(trial.tasks)]
    spec = _row(setup, space)
    rest: dict[str, Any] = {
        name: setup.named(name) for name in (*setup.rates, "reward_model", "weight_fit", "model_rule")
    }  # fmt: skip
    rest |= {name: setup.extra(name) for name in EXTRAS} | {"bins": setup.bins}
    if spec.learns_features:
        rest["feature_map"] = features(trial)
    elif isinstance(space, BoxFeatures) and (spec.fits_rewards or setup.feature_code is not None):
        fit_random = stream(trial.seed, trial.repetition, "fit")
        count = CODE_POINTS if "ridge" in spec.uses else FIT_POINTS
        rest["fit_points"] = points = features_of_random_steps(environment, count, fit_random)
        if setup.feature_code is not None:
            rest["feature_code"] = code_by_name(setup.feature_code)(points, fit_random)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine = make_engine(
            trial.engine,
            environment,
            spec,
            seed=random,
            limit=EpisodeLimit(is_terminal=setting.limit_is_terminal),
            gamma=setting.gamma,
            epsilon=setting.named("epsilon"),
            approximator=setup.named("approximator") or setting.named("approximator"),
            loss=setting.named("loss"),
            optimiser=setup.named("optimiser"),
            clip=setup.named("clipping"),
            gpi_policies=gpi_policies_by_name(setup.gpi_policies),
            dtype=setup.named("precision"),
            **rest,
        )
    return engine, tasks, [str(warning.message) for warning in caught]


def check_trials(trials: Iterable[Trial]) -> dict[tuple[str, str], Engine]:
    """Build each agent of each setting once and start two tasks, so that what is wrong shows before a run.

    Returns an engine for each setting and label. Learned features are zeros here.
    """
    engines: dict[tuple[str, str], Engine] = {}
    for trial in trials:
        if (trial.setting.name, trial.agent.label) in engines:
            continue  # those of one label differ in rates only
        try:
            engine, tasks, _ = build(replace(trial, tasks=2), _zero_features)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                for task in tasks:
                    engine.start_task(task)
        except InputError as error:
            raise InputError(f"{trial.setting.name}, {trial.agent.label}: {error}") from None
        except Exception as error:
            raise InputError(
                f"{trial.setting.name}, {trial.agent.label} cannot be built: {where(error)}"
            ) from error
        engines[trial.setting.name, trial.agent.label] = engine
    return engines


def _zero_features(trial: Trial) -> LearnedFeatures:
    (state_dim,) = trial.setting.make_environment().observation_space.shape or (1,)
    return LearnedFeatures(np.zeros((2 * state_dim, trial.agent.learned_dimensions or 1)))


def where(error: BaseException) -> str:
    """What went wrong, with the file and line of the innermost call."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"


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
        features.append(np.array(info["features"]))
        ended = terminated or truncated
    return np.array(features)


# --- Learned features --------------------------------------------------------------------------------


def learned_feature_map(trial: Trial, folder: RunFolder) -> LearnedFeatures:
    """phi~ for a trial: read, or learned from the Q agent's transitions and stored for the others."""
    how, setting = trial.feature_learning, trial.setting
    tasks = min(how.tasks, trial.tasks)
    description = {
        "setting": setting.to_json(), "seed": trial.seed, "repetition": trial.repetition,
        "steps": trial.steps, "learning": asdict(replace(how, tasks=tasks)),
        "dimensions": trial.agent.learned_dimensions,
    }  # fmt: skip
    path = folder.feature_path(
        f"{file_name(setting.name)}/h{trial.agent.learned_dimensions}/rep-{trial.repetition:02d}"
    )
    try:
        return LearnedFeatures(read_checkpoint(path, description)["matrix"])
    except InputError:
        rng = stream(trial.seed, trial.repetition, "features")
        data = transitions_of_q(trial, tasks, rng)
        model = learn_features(data, trial.agent.learned_dimensions or 0, rng, iterations=how.iterations)
        write_checkpoint(path, description, {"matrix": model.matrix, "losses": model.losses})
        return model.feature_map


def transitions_of_q(trial: Trial, tasks: int, rng: np.random.Generator) -> RewardedTransitions:
    """What the Q agent of this repetition saw in its first tasks, thinned out as the trial says."""
    how = trial.feature_learning
    q = AgentSetup("Q", "Q", learning_rate=how.q_learning_rate)
    engine, task_list, _ = build(replace(trial, agent=q, tasks=tasks), _zero_features)
    kept: list[tuple[Any, ...]] = []
    for number, task in enumerate(task_list):
        before = engine.streams.environment.bit_generator.state
        actions = engine.run_task(task, trial.steps).actions
        noise = np.random.default_rng(0)
        noise.bit_generator.state = before
        states, next_states, rewards = engine.retrace(task, actions, noise)
        keep = rng.random(len(rewards)) < how.keep
        keep &= (rewards != 0) | (rng.random(len(rewards)) >= how.drop_zero_rewards)
        kept.append((states[keep], next_states[keep], rewards[keep], np.full(keep.sum(), number)))
    if not any(len(rewards) for _, _, rewards, _ in kept):
        raise InputError("the Q agent saw no transition to learn features from; give it more steps or tasks")
    return RewardedTransitions(*(np.concatenate(parts) for parts in zip(*kept, strict=True)))


# --- Running -----------------------------------------------------------------------------------------

OnTask = Callable[[TaskRow], None]
"""Called after every task that is safely stored; what it raises stops the trial, which can be resumed."""


def run_trial(trial: Trial, folder: RunFolder, on_task: OnTask | None = None) -> list[str]:
    """Bring a trial to its end, from wherever it was left; returns what a user should know.

    Calling it for a trial that is finished does nothing.
    """
    # Trials run side by side, one per core.
    torch.set_num_threads(1)
    threadpool_limits(1)
    key = trial.key
    with folder.working_on(key):
        if folder.json_path(key).exists():
            folder.read_result(key)
            return []
        engine, tasks, notes = build(trial, functools.partial(learned_feature_map, folder=folder))
        rows, seconds, notes, remarks = _resume(trial, folder, engine, notes)
        # A task that a code cannot express is a result of the run, not a surprise at every task.
        warnings.simplefilter("ignore", FitWarning)
        while len(rows) < trial.tasks and not (rows and rows[-1].diverged):
            result = engine.run_task(tasks[len(rows)], trial.steps)
            rows.append(
                TaskRow(
                    task=len(rows),
                    total_return=float(result.total_reward),
                    steps=result.steps,
                    episodes=result.episodes,
                    diverged=result.diverged,
                    **TaskRow.of_counts(result.gpi_counts),
                )
            )
            seconds.append(result.seconds)
            # Store the state, then let go of all but this one and the one before.
            state = {
                "engine": engine.state_dict(), "rows": rows_to_csv(rows).decode(), "seconds": seconds,
                "notes": notes,
            }  # fmt: skip
            write_checkpoint(folder.checkpoint_path(key, len(rows)), trial.to_json(), state)
            folder.forget_checkpoints(key, before=len(rows) - 1)
            if on_task is not None:
                on_task(rows[-1])
        folder.write_result(
            TrialResult(
                key,
                trial.to_json(),
                rows,
                seconds,
                digest([_task_json(task) for task in tasks]),
                {**provenance(engine.name), "modules": _sources(trial.modules)},
                notes,
            )
        )
        folder.forget_checkpoints(key)
        return [f"{key}: {note}" for note in (*notes, *remarks)]


def _resume(
    trial: Trial, folder: RunFolder, engine: Engine, notes: list[str]
) -> tuple[list[TaskRow], list[float], list[str], list[str]]:
    """Go back to the newest checkpoint that is whole: rows, seconds, notes, and which ones are not whole."""
    rows: list[TaskRow] = []
    seconds: list[float] = []
    remarks = []
    for done, path in folder.checkpoints(trial.key).items():
        try:
            state = read_checkpoint(path, trial.to_json())
            with known_content(path, "this program"):
                stored = list(rows_from_csv(state["rows"].encode(), path))
                times = [float(value) for value in state["seconds"]]
                remembered = [str(note) for note in state["notes"]]
                if not len(stored) == len(times) == done:
                    raise InputError(f"{path} has {len(stored)} tasks in place of {done}")
            load_state(engine, state["engine"], path)
        except InputError as error:
            remarks.append(f"{error}; an earlier state was taken instead of the one after {done} tasks")
            remove(path)
            continue
        rows, seconds, notes = stored, times, remembered
        break
    folder.forget_checkpoints(trial.key, before=0)
    return rows, seconds, notes, remarks


def _task_json(task: Task) -> Any:
    to_json = getattr(task, "to_json", None)
    return to_json() if to_json else type(task).__qualname__


# --- Where a result comes from -----------------------------------------------------------------------

PACKAGES = ("numpy", "scipy", "numba", "torch", "gymnasium")
OURS = ("sfr_theory", "sfr_fa", "experiments")
INSTALLED = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))


@functools.cache
def provenance(engine: str) -> dict[str, Any]:
    """Versions, commit, engine, platform and processor of this process.

    Code that is compiled for another processor rounds in another way, and paths part after some steps.
    """
    return {
        "engine": engine,
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "commit": _commit(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": llvmlite.binding.get_host_cpu_name(),
    }


def _sources(modules: Iterable[str]) -> dict[str, str]:
    """Digests of the files of modules, and of what they import from their folder.

    By them a change between trials is noticed.
    """
    digests: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and name not in digests:
            source = read_bytes(Path(file))
            digests[name] = sha256(source).hexdigest()[:16]
            waiting += _imports(name, Path(file), source)
    return dict(sorted(digests.items()))


def _imports(name: str, path: Path, source: bytes) -> Iterator[str]:
    """What a module may import from the folder of its top package; others have a version or a commit."""
    depth = name.count(".") + (path.name == "__init__.py")
    folder = path.parents[min(depth, len(path.parents) - 1)]
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # compiled, or changed since it was imported
        return
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = sys.modules[name].__package__ if node.level else None
            start = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [start, *(f"{start}.{alias.name}" for alias in node.names)]
    for found in (whole for name in names for whole in accumulate(name.split("."), "{}.{}".format)):
        file = Path(getattr(sys.modules.get(found), "__file__", None) or "/")
        known = found.partition(".")[0] in OURS or any(map(file.is_relative_to, INSTALLED))
        if file.is_relative_to(folder) and not known:
            yield found


def _commit() -> str | None:
    """The commit of the source tree, with a + if sources differ from it; None outside a git checkout."""

    def git(*arguments: str) -> str:
        here = Path(__file__).parent
        return subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "--", Path(__file__).name)  # installed inside another repository?
        sources = (f":/{package}" for package in OURS)
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *sources)
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
