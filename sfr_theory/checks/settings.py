"""What the checks share: settings, random instances, and when an error counts as converging.

**When does a finite run support convergence?** With step sizes `Harmonic(1 / (1 - gamma))` per pair the
error of Q-learning is of order n^-1/2 (`sfr_theory.learning.Harmonic`); an error that does not vanish has
rate 0. A run decides between the two: the rate is the slope of log error against log steps over the last
two decades, of the geometric mean over the MDPs. Convergence is supported where the slope is below the
midpoint -1/4 and every final error is below a tenth of max |R| / (1 - gamma), the largest value that |Q*| can
take, or where every final error is round-off. A run that decides otherwise is INCONCLUSIVE, never a
refutation: no finite run refutes a limit.

**The control.** Constant step sizes break the conditions: their error falls, too, and then levels off at the
size of the noise. Until it has, nothing tells it from one that converges. So the control walks the same paths
of the same MDPs, and a run whose control meets the criterion as well is too short: INCONCLUSIVE, which is not
a failure of the command if nothing else speaks against convergence. Where there is no noise, and the control
reaches round-off, it tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from sfr_theory.arithmetic import Array, exact_array
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import CheckResult, Method, Outcome, Skipped, Verdict
from sfr_theory.errors import InputError
from sfr_theory.learning import (
    Constant,
    FeatureEstimate,
    Harmonic,
    Path,
    Schedule,
    TabularHysteresis,
    learn_xi,
    sample_path,
    uniform_behaviour,
)
from sfr_theory.mdp import FiniteMDP, discount
from sfr_theory.random_mdp import Shape, dyadic, garnet
from sfr_theory.solve import Solution, optimal

RESTART = 0.1
"""Paths restart with this probability, so that they visit every pair of any MDP."""

RATE_THRESHOLD = -0.25
FINAL_FRACTION = 0.1
SMALLEST_BETA = 1e-6
MEMORY_LIMIT = 4 * 2**30
CONTROL = Constant(0.2)
"""Step sizes that do not converge where there is noise."""
ROUND_OFF = 1e-12
"""Final errors below this, relative to their scale, have arrived: they fall no further in float64."""


CRITERION = (
    "supported: rate < -1/4 and every final error < 1/10 (or all round-off), where constant steps fail that"
)


@dataclass(frozen=True)
class Settings:
    """Sizes, seed and rates of a run."""

    mdps: int = 8
    """Number of random MDPs for each claim that needs some."""
    states: int = 5
    """States of a random MDP."""
    actions: int = 3
    """Actions of a random MDP."""
    features: int = 4
    """Features of a random MDP; mb/beta-zero needs two."""
    steps: int = 200_000
    """Steps of a learning path. Convergence is judged over the last two decades; with a gamma near 1 or many
    states a verdict may be INCONCLUSIVE until there are more. --steps 20000 is quick; it is too short to tell
    convergence from constant step sizes, which is reported and is not a failure."""
    gamma: float = 0.9
    """Discount of the random MDPs, in [0, 1). The examples have their own."""
    beta: float = 0.1
    """Learning rate of the one-step model, from 1e-6 to 1."""
    seed: int = 0
    """Seed of all randomness; the same seed gives the same table."""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        Shape(self.states, self.actions, self.features)
        discount(self.gamma, exact=False)
        if self.mdps < 1:
            raise InputError(f"mdps is {self.mdps}; it must be at least 1")
        if self.steps < 1000:
            raise InputError(f"steps is {self.steps}; a rate over two decades needs at least 1000")
        if not 0 < self.beta <= 1:
            raise InputError(
                f"beta is {self.beta}; it must be above 0 and at most 1 (at 0 a model never learns)"
            )
        if self.beta < SMALLEST_BETA:
            raise InputError(
                f"beta is {self.beta}; it must be at least {SMALLEST_BETA:g}: a smaller one learns "
                f"nothing in any run of practical length"
            )
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; it must not be negative")
        if self.memory > MEMORY_LIMIT:
            raise InputError(
                f"these sizes need some {self.memory / 2**30:,.0f} GiB of memory, more than the "
                f"{MEMORY_LIMIT / 2**30:.0f} that a run may take; lower steps, mdps, states, actions or "
                f"features"
            )

    @property
    def memory(self) -> int:
        """Bytes that a run holds at once, roughly.

        A path has some 20 numbers for each step (transition, uniforms, visits, step sizes and what sorts
        them) and an estimate of p with its cumulants, F numbers each; `pointwise` draws 32 MDPs for each one
        that it keeps.
        """
        pairs = self.states * self.actions
        path = self.steps * (20 + 2 * self.features)
        kernels = 32 * self.mdps * pairs * self.states * self.features
        return 8 * (path + kernels)

    def rng(self, name: str) -> Generator:
        """A stream of its own for each check, whichever checks run."""
        return default_rng([self.seed, *name.encode()])

    @property
    def step_size(self) -> Schedule:
        """The schedule under which the error is of order n^-1/2."""
        return Harmonic(1 / (1 - self.gamma))

    @property
    def checkpoints(self) -> Array:
        """Numbers of steps, evenly spaced on a logarithmic axis."""
        return np.unique(np.geomspace(10, self.steps, 40).astype(int))


@dataclass(frozen=True)
class Check:
    """What is found out about a claim of the catalogue, and by which method."""

    claim: str
    method: Method
    run: Callable[[Settings], CheckResult]
    min_features: int = 1

    def outcome(self, settings: Settings) -> Outcome:
        result = self.run(settings)
        skipped = Skipped.TOO_SHORT if result.details.get("too_short") else None
        return Outcome(CATALOGUE[self.claim], result, self.method, skipped)


@dataclass(frozen=True, eq=False)
class Instance:
    """A random MDP with rewards and its solution."""

    mdp: FiniteMDP
    reward: Array
    solution: Solution

    @property
    def value_scale(self) -> float:
        """max |R| / (1 - gamma), the largest value that |Q*| can take."""
        return float(np.abs(self.reward).max() / (1 - self.mdp.gamma))


def random_instances(settings: Settings, rng: Generator, count: int) -> list[Instance]:
    """Garnet MDPs with dyadic rewards, not all zero."""
    shape = Shape(settings.states, settings.actions, settings.features)
    mdps = garnet(rng, count, shape, settings.gamma)
    rewards = dyadic(rng, (count, settings.features))
    rewards[(rewards == 0).all(axis=1), 0] = 1.0
    return [Instance(mdps[b], rewards[b], optimal(mdps[b], rewards[b])) for b in range(count)]


def exact_instances(settings: Settings, rng: Generator, count: int) -> list[tuple[FiniteMDP, Array]]:
    """The same in rational arithmetic: (MDP, rewards)."""
    return [(i.mdp.to_exact(), exact_array(i.reward)) for i in random_instances(settings, rng, count)]


def random_xi(rng: Generator, mdp: FiniteMDP) -> Array:
    """Dyadic entries in [-4, 4], in the arithmetic of the MDP."""
    entries = 4 * dyadic(rng, mdp.feature_probability.shape)
    return exact_array(entries) if mdp.is_exact else entries


def explore(instance: Instance, settings: Settings, rng: Generator) -> Path:
    """A path that visits everything."""
    return sample_path(instance.mdp, uniform_behaviour(instance.mdp), settings.steps, rng, restart=RESTART)


def xi_along(
    instance: Instance, path: Path, estimate: FeatureEstimate, schedule: Schedule, checkpoints: Array,
    rule: TabularHysteresis | None = None,
) -> Array:  # fmt: skip
    """SFRQ-learning from xi = 0 with step sizes per pair: (C, S, A, F)."""
    mdp = instance.mdp
    zero = np.zeros(mdp.feature_probability.shape)
    step_sizes = schedule(path.visit_number)
    return learn_xi(mdp, path, instance.reward, estimate.along(path), step_sizes, zero, checkpoints, rule)


def class_error(xi: Array, reward: Array, q: Array) -> Array:
    """||R . xi - Q|| of each snapshot: (C, S, A, F) -> (C,)."""
    return np.abs(xi @ reward - q).max(axis=(-2, -1))


@dataclass(frozen=True)
class Decay:
    """How errors fall along a run; see the module's text."""

    checkpoints: Array
    mean: Array  # geometric mean over MDPs, (C,)
    rate: float
    worst_final: float  # largest final error relative to its scale

    @property
    def converges(self) -> bool:
        falls = self.rate < RATE_THRESHOLD and self.worst_final < FINAL_FRACTION
        return falls or self.is_round_off

    @property
    def is_round_off(self) -> bool:
        return self.worst_final < ROUND_OFF

    def verdict(self, control: Decay) -> Verdict:
        """SUPPORTED if this converges and the control, constant steps on the same paths, does not."""
        supported = self.converges and not self.too_short(control)
        return Verdict.SUPPORTED if supported else Verdict.INCONCLUSIVE

    def too_short(self, control: Decay) -> bool:
        """Whether nothing speaks against convergence, but the control looks the same so far."""
        return self.converges and control.converges and not control.is_round_off

    def to_json(self) -> dict[str, Any]:
        return {
            "steps": self.checkpoints.tolist(),
            "error": self.mean.tolist(),
            "rate": self.rate,
            "worst_final": self.worst_final,
            "converges": self.converges,
        }


def decay(checkpoints: Array, errors: Sequence[Array], scales: Sequence[float]) -> Decay:
    """Fit the decay of errors (one array over checkpoints for each MDP), each relative to its scale."""
    relative = np.array(errors) / np.array(scales)[:, None]
    # An error of exactly 0 has no logarithm; the smallest positive number stands for it.
    mean = np.exp(np.log(np.maximum(relative, np.finfo(float).tiny)).mean(axis=0))
    late = checkpoints >= checkpoints[-1] / 100
    rate = float(np.polyfit(np.log(checkpoints[late]), np.log(mean[late]), 1)[0])
    return Decay(checkpoints, mean, rate, float(relative[:, -1].max()))


def of_class(instance: Instance, xi: Array) -> Array:
    """||R . xi_n - Q*|| relative to max |R| / (1 - gamma)."""
    return class_error(xi, instance.reward, instance.solution.q) / instance.value_scale


def contrasted(
    settings: Settings,
    walks: Sequence[tuple[Instance, Path]],
    estimate: Callable[[FiniteMDP], FeatureEstimate],
    error: Callable[[Instance, Array], Array] = of_class,
) -> tuple[Decay, Decay]:
    """How relative errors of SFRQ-learning fall, and how they do with the step sizes of the control."""

    def fit(schedule: Schedule) -> Decay:
        learned = (
            (instance, xi_along(instance, path, estimate(instance.mdp), schedule, settings.checkpoints))
            for instance, path in walks
        )
        return decay(settings.checkpoints, [error(*run) for run in learned], [1.0] * len(walks))

    return fit(settings.step_size), fit(CONTROL)


def too_short(fits: Iterable[tuple[Decay, Decay]]) -> bool:
    """Whether all that keeps runs (each with its control) from supporting convergence is their length."""
    pairs = list(fits)
    undecided = [(fit, control) for fit, control in pairs if fit.verdict(control) is Verdict.INCONCLUSIVE]
    return bool(undecided) and all(fit.too_short(control) for fit, control in undecided)
