"""Why MB SFR fails as printed: its one-step model is not calibrated. `python -m experiments.calibration`

A trained SFR agent walks through object collection. On its transitions (s, a, phi) softmax models of the next
feature, p(phi) = exp(theta_{a,phi} . s) / sum, are trained online, side by side, at the paper's rates beta:

    delta rule    theta_{a,phi} += beta e(phi) s                       (eq:sf_model_update, on weights)
    squares       theta_{a,phi} += beta 2 p(phi) (e(phi) - e . p) s    (the gradient of L_p, the listing)

with e(phi) = 1[phi occurred] - p(phi). The factor p(phi) makes a feature that is predicted seldom nearly
invisible when it occurs. In the second half of the walk predictions are compared with what happened:

    features    mean predicted probability over the frequency of each feature
    bins        where "an object or the goal" is predicted with a probability in a bin, how often it comes

Writes results/one_step_model.csv, one row for each feature and bin, from which `experiments.pages` draws the
figure in docs/results.md. Takes a minute, most of it the compilation of the engine.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments import rows as rows_of
from sfr_fa.analysis.figures import BLUE, RC, VERMILION, WIDTH, Picture
from sfr_fa.engines import make_engine
from sfr_fa.tasks import LinearTask
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.paper import OBJECT_RATES

TABLE = "one_step_model.csv"
RULES = ("delta rule", "squares")
RATES = OBJECT_RATES["model_learning_rate"]
EDGES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the bins of predicted probabilities."""
TASK = LinearTask(np.array([0.2, 0.2, 0.2, 0.2, 1]))
EPSILON = 0.15
MOST = 10**8
"""Steps; the walk is kept in memory."""
FEWEST = 50
"""A feature that occurred less often than this tells nothing."""
NOTHING, NAME_NOTHING, GOAL = 0, "nothing", "goal"
"""The feature that says that nothing was collected, and two names."""
STYLES = {"delta rule": (BLUE, "o"), "squares": (VERMILION, "X")}


@dataclass(frozen=True)
class Calibration:
    """One rule at one rate, for one feature or one bin of predictions."""

    rule: str
    rate: float
    kind: str
    """feature, or bin."""
    name: str
    count: int
    """Steps of which this is: those with the feature, or with a prediction in the bin."""
    predicted: float
    """Mean predicted probability, of the feature over all steps, or of an object or the goal in the bin."""
    observed: float
    """The frequency that it should be."""


@dataclass(frozen=True)
class RecordedWalk:
    """Transitions of an agent that is trained, and what features mean."""

    states: NDArray[np.float64]
    actions: NDArray[np.int64]
    features: NDArray[np.int64]
    names: tuple[str, ...]


def walk(tasks: int, task_steps: int, steps: int, seed: int = 0) -> RecordedWalk:
    """SFR learns one task again and again, then walks with some exploration."""
    env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0")
    engine = make_engine("compiled", env, "SFR", seed=seed)
    for _ in range(tasks):
        engine.run_task(TASK, steps=task_steps)
    rng = np.random.default_rng(seed + 1)
    states, actions, features = [], [], []
    state, _ = env.reset(seed=seed + 3)
    for _ in range(steps):
        action = engine.agent.act(state, reward=TASK, epsilon=EPSILON, rng=rng)
        next_state, _, terminated, _, info = env.step(action)
        states.append(state)
        actions.append(action)
        features.append(info["feature_index"])
        state = env.reset()[0] if terminated else next_state
    kinds = env.get_wrapper_attr("layout").kinds
    names = (NAME_NOTHING, *(kind.name for kind in kinds), GOAL)
    return RecordedWalk(np.array(states), np.array(actions), np.array(features), names)


def predictions(seen: RecordedWalk) -> dict[tuple[str, float], NDArray[np.float64]]:
    """Each rule and rate -> (steps, features): what the model predicted before it learned from the step."""
    models = [(rule, rate) for rule in RULES for rate in RATES]
    rates = np.array([rate for _, rate in models])[:, None]
    is_squares = np.array([rule == "squares" for rule, _ in models])[:, None]
    theta = np.zeros((seen.actions.max() + 1, len(models), len(seen.names), seen.states.shape[1]))
    found = np.empty((len(seen.actions), len(models), len(seen.names)))
    for t, (state, action, feature) in enumerate(zip(seen.states, seen.actions, seen.features, strict=True)):
        logits = theta[action] @ state
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        found[t] = p
        error = -p
        error[:, feature] += 1
        of_squares = 2 * p * (error - (error * p).sum(axis=1, keepdims=True))
        theta[action] += (rates * np.where(is_squares, of_squares, error))[:, :, None] * state
    return {model: found[:, k] for k, model in enumerate(models)}


def calibrations(seen: RecordedWalk) -> list[Calibration]:
    """Predictions and frequencies in the second half of a walk."""
    half = len(seen.features) // 2
    shown = seen.features[half:, None] == np.arange(len(seen.names))
    counts, anything = shown.sum(axis=0), ~shown[:, NOTHING]
    rows = []
    for (rule, rate), all_of_them in predictions(seen).items():
        p = all_of_them[half:]
        for k, name in enumerate(seen.names):
            mean, observed = float(p[:, k].mean()), float(shown[:, k].mean())
            rows.append(Calibration(rule, rate, "feature", name, int(counts[k]), mean, observed))
        something = 1 - p[:, NOTHING]
        within = np.clip(np.searchsorted(EDGES, something) - 1, 0, len(EDGES) - 2)
        for b, (low, high) in enumerate(itertools.pairwise(EDGES)):
            inside = within == b
            if inside.any():
                mean, observed = float(something[inside].mean()), float(anything[inside].mean())
                name = f"{low:g} to {high:g}"
                rows.append(Calibration(rule, rate, "bin", name, int(inside.sum()), mean, observed))
    return rows


read = functools.partial(rows_of.read, Calibration, command="experiments.calibration")
"""The rows of a table; none if there is no such file."""


# --- The figure --------------------------------------------------------------------------------------


def of_features(rows: Iterable[Calibration], rule: str, rate: float) -> dict[str, float]:
    """Feature -> predicted over actual frequency, of one model."""
    return {
        row.name: row.predicted / row.observed
        for row in rows
        if (row.rule, row.rate, row.kind) == (rule, rate, "feature") and row.count >= FEWEST
    }


def of_objects(rows: Iterable[Calibration], rule: str, rate: float) -> list[float]:
    """Of the objects that occur often enough, without the goal."""
    return [
        ratio for name, ratio in of_features(rows, rule, rate).items() if name not in (NAME_NOTHING, GOAL)
    ]


def picture(rows: Sequence[Calibration]) -> Picture:
    caption = (
        "One-step models of the next feature, trained online by the delta rule and on the printed squares. "
        f"Left: predicted over actual frequency of each feature, at rates {', '.join(map(str, RATES))} "
        "(pale to dark); 1 is right. Right: how often an object or the goal comes where it is "
        f"predicted with some probability, at rate {RATES[1]}; the diagonal is right"
    )
    return Picture("one_step_model", caption, lambda: (draw(rows), {}))


def draw(rows: Sequence[Calibration]) -> Figure:
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH * 1.4, 3.3), layout="constrained")
        features, bins = figure.subplots(1, 2)
        names = list(of_features(rows, RULES[0], RATES[0]))
        for k, (rule, (colour, marker)) in enumerate(STYLES.items()):
            for j, rate in enumerate(RATES):
                ratios = of_features(rows, rule, rate)
                features.plot(
                    [names.index(name) + 0.12 * (j - 1) + 0.05 * (2 * k - 1) for name in ratios],
                    list(ratios.values()),
                    marker,
                    color=colour,
                    alpha=0.4 + 0.3 * j,
                    markersize=6,
                    linestyle="",
                    label=rule if rate == RATES[1] else None,
                )
            shown = [r for r in rows if (r.rule, r.rate, r.kind) == (rule, RATES[1], "bin")]
            points = [(row.predicted, max(row.observed, 1e-4)) for row in shown]
            bins.plot(*np.array(points).T, marker=marker, color=colour, linewidth=1.4, markersize=6)
        features.axhline(1, color="#777", linewidth=0.9, zorder=0)
        features.set_yscale("log")
        features.set_xticks(range(len(names)), names, rotation=20)
        features.set_ylabel("predicted / actual frequency")
        bins.plot([1e-4, 1], [1e-4, 1], color="#777", linewidth=0.9, zorder=0)
        bins.set_xscale("log")
        bins.set_yscale("log")
        bins.set_xlabel("predicted probability")
        bins.set_ylabel("frequency")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


@dataclass(frozen=True)
class Options:
    output: str = f"results/{TABLE}"
    """Where the table goes."""
    tasks: int = 6
    """How often SFR learns the task before it walks."""
    task_steps: int = 20_000
    """Steps each time."""
    steps: int = 40_000
    """Steps of the walk."""


def main(options: Options) -> int:
    if min(options.tasks, options.task_steps) < 1 or options.steps < 2:
        raise InputError("--tasks and --task-steps must be at least 1, --steps at least 2")
    if max(options.tasks, options.task_steps, options.steps) > MOST:
        raise InputError(f"--tasks, --task-steps and --steps must be at most {MOST}")
    output = Path(options.output)
    cli.require_writable(options.output)
    rows = calibrations(walk(options.tasks, options.task_steps, options.steps))
    cli.write_atomic(output, rows_of.to_csv(Calibration, rows))
    print("predicted over actual frequency in the second half of the walk; 1 is right")
    for rule in RULES:
        for rate in RATES:
            ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in of_features(rows, rule, rate).items())
            print(f"  {rule}, rate {rate}: {ratios}")
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.calibration", __doc__ or "")
