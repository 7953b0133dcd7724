"""T1-H: with hysteresis of the bootstrap action xi converges under ties, and Theorem 1 feeds Theorem 2.

The instances have ties everywhere: each action of a random MDP gets a twin with the same dynamics whose
features are copies of the same reward. Optimal policies then come in 2^S versions that xi tells apart, and
noise decides from visit to visit which of two twins looks better. Step sizes are n^-omega per pair and
thresholds max|R| t^-kappa, as docs/theory.md asks for.

* `thm1/hysteresis`: the error of xi against the xi of the policy that was followed at the end, if that policy
  is optimal (else against some optimal one). Three runs on the same paths: with the rule, without it, and
  with the rule and constant step sizes, which break the conditions.
* `thm1-thm2/hysteresis`: from learning to transfer. Two sources with ties are learned, a target that values
  twins differently is read under what was learned, and GPI's loss is compared with T2', whose eps_R is the
  error of the learned xi under the target. With the rule eps_R fades.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from sfr_theory.arithmetic import Array, float_array
from sfr_theory.bounds import STATEMENTS
from sfr_theory.checks.settings import (
    CONTROL,
    CRITERION,
    Check,
    Decay,
    Instance,
    Settings,
    decay,
    explore,
    xi_along,
)
from sfr_theory.checks.theorem_1 import action_gap, clearest_instances
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.examples import coin_behind_two_doors
from sfr_theory.learning import (
    FeatureEstimate,
    Path,
    Polynomial,
    Schedule,
    SlowDecay,
    TabularHysteresis,
    sample_path,
    uniform_behaviour,
)
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.operators import greedy, q_from_xi
from sfr_theory.random_mdp import dyadic
from sfr_theory.solve import optimal, optimal_actions, policy_xi
from sfr_theory.transfer import evaluate

OMEGA, KAPPA = 0.8, 0.2
"""Step sizes n^-omega and thresholds t^-kappa: kappa < omega - 1/2."""
SOURCES = 2
TIE = 1e-9
"""Actions whose values differ by less than this, relative to max|R|/(1-gamma), are tied."""


def with_twins(instance: Instance) -> Instance:
    """Each action gets a twin that shows copies of the features; copies have the same reward."""
    kernel = float_array(instance.mdp.kernel)
    states, actions, _, features = kernel.shape
    doubled = np.zeros((states, 2 * actions, states, 2 * features))
    doubled[:, :actions, :, :features] = doubled[:, actions:, :, features:] = kernel
    mdp = FiniteMDP(doubled, float(instance.mdp.gamma))
    reward = np.tile(float_array(instance.reward), 2)
    return Instance(mdp, reward, optimal(mdp, reward))


@dataclass(frozen=True, eq=False)
class Learned:
    """xi along a run (C, S, A, F), and the optimal policy that was followed at its end."""

    xi: Array
    policy: Array
    is_optimal: bool


def learned(
    instance: Instance, path: Path, schedule: Schedule, checkpoints: Array, keep: bool = True
) -> Learned:
    """SFRQ-learning from 0 with the indicator, with or without hysteresis."""
    mdp, reward = instance.mdp, instance.reward
    rule = TabularHysteresis(SlowDecay(float(np.abs(reward).max()), KAPPA), mdp.num_states) if keep else None
    xi = xi_along(instance, path, FeatureEstimate.indicator(mdp), schedule, checkpoints, rule)
    policy = greedy(q_from_xi(xi[-1], reward)) if rule is None else rule.kept
    tied = optimal_actions(instance.solution.q, TIE * instance.value_scale)
    is_optimal = bool(tied[np.arange(mdp.num_states), policy].all())
    return Learned(xi, policy if is_optimal else instance.solution.policy, is_optimal)


def _clear_instances(settings: Settings, name: str) -> list[Instance]:
    """Twins of the MDPs with the clearest greedy policy, so that a finite run can tell twins from rivals."""
    return [with_twins(instance) for instance in clearest_instances(settings, settings.rng(name))]


RATES = Polynomial(OMEGA)
KEPT = {"with": True, "without": False}
"""Whether actions are kept."""


def _too_short(verdict: Verdict, fit: Decay, settings: Settings) -> bool:
    """Whether errors still fall where thresholds may not have come below the differences of values yet."""
    return verdict is Verdict.INCONCLUSIVE and fit.rate < 0 and settings.steps < Settings.steps


def converges(settings: Settings, rates: Schedule = RATES) -> CheckResult:
    """||xi_n - xi^pi|| in every feature, pi the policy that was followed at the end."""
    rng = settings.rng("hysteresis paths")
    runs: dict[str, tuple[Schedule, bool]] = {name: (rates, keep) for name, keep in KEPT.items()}
    runs["constant_steps"] = (CONTROL, True)
    errors: dict[str, list[Array]] = {name: [] for name in runs}
    settled = 0
    for instance in _clear_instances(settings, "hysteresis"):
        path = explore(instance, settings, rng)
        for name, (schedule, keep) in runs.items():
            run = learned(instance, path, schedule, settings.checkpoints, keep)
            target = policy_xi(instance.mdp, run.policy)
            errors[name].append(np.abs(run.xi - target).max(axis=(-3, -2, -1)))
            settled += run.is_optimal and name == "with"
    mass = [1 / (1 - settings.gamma)] * settings.mdps
    fits = {name: decay(settings.checkpoints, curves, mass) for name, curves in errors.items()}
    medians = {name: float(np.median([curve[-1] for curve in curves])) for name, curves in errors.items()}
    verdict = fits["with"].verdict(fits["constant_steps"])
    if fits["without"].converges:  # nothing here needs the rule
        verdict = Verdict.INCONCLUSIVE
    return CheckResult(
        verdict,
        f"sup |xi_n - xi^pi|, at most {mass[0]:g}, after {settings.steps} steps: median "
        f"{medians['with']:.3f} with the rule, "
        f"falling like n^{fits['with'].rate:.2f}; {medians['without']:.3f} without it "
        f"(n^{fits['without'].rate:.2f}); {medians['constant_steps']:.3f} with it and constant steps. It "
        f"settled on an optimal policy in {settled} of {settings.mdps}",
        scope=f"{settings.mdps} MDPs in which every action has a twin, gamma={settings.gamma}, rates "
        f"n^-{OMEGA}, thresholds max|R| t^-{KAPPA}, seed {settings.seed}; errors relative to "
        f"1/(1-gamma); {CRITERION}. Proof: docs/theory.md",
        details={
            "curve": fits["with"].to_json(),
            "without": fits["without"].to_json(),
            "constant_steps": fits["constant_steps"].to_json(),
            "medians": medians,
            "example": _example_curves(settings),
            "too_short": _too_short(verdict, fits["with"], settings),
        },
    )


def _example_curves(settings: Settings) -> dict[str, list[float]]:
    """xi_n(t) of `coin_behind_two_doors` with and without the rule, on one path."""
    example = coin_behind_two_doors()
    mdp, reward = example.mdp.to_float(), float_array(example.reward)
    instance = Instance(mdp, reward, optimal(mdp, reward))
    rng = settings.rng("hysteresis example")
    path = sample_path(mdp, uniform_behaviour(mdp), settings.steps, rng)
    checkpoints = np.unique(np.geomspace(10, settings.steps, 400).astype(int))
    curves = {
        name: learned(instance, path, RATES, checkpoints, keep).xi[:, 0, 0, 1].tolist()
        for name, keep in KEPT.items()
    }
    return {"steps": checkpoints.tolist(), **curves}


def _another_clear_reward(mdp: FiniteMDP, rng: Generator) -> Array:
    """Of many rewards that do not tell twins apart, the one with the clearest greedy policy."""
    candidates = np.tile(dyadic(rng, (32, mdp.num_features // 2)), 2)
    candidates[(candidates == 0).all(axis=1)] = 1.0
    q = optimal(mdp, candidates).q[..., : mdp.num_actions // 2]  # without the twins
    gaps = [action_gap(values) / np.abs(reward).max() for values, reward in zip(q, candidates, strict=True)]
    return candidates[int(np.argmax(gaps))]


def feeds_transfer(settings: Settings, keep: bool = True) -> CheckResult:
    """Learned xi, GPI on a target that tells twins apart, and its loss against T2'.

    `keep`: whether the runs "with" the rule follow it.
    """
    rng = settings.rng("hysteresis transfer")
    errors: dict[str, list[Array]] = {"with": [], "without": []}
    ends: dict[str, list[tuple[float, float, float]]] = {"with": [], "without": []}
    violations = 0
    scales = []
    for instance in _clear_instances(settings, "hysteresis transfer"):
        mdp = instance.mdp
        rewards = [instance.reward, _another_clear_reward(mdp, rng)]
        target = instance.reward + dyadic(rng, (mdp.num_features,)) / 2
        scales.append(float(np.abs(target).max()) / (1 - settings.gamma))
        sources = [Instance(mdp, reward, optimal(mdp, reward)) for reward in rewards]
        paths = [explore(source, settings, rng) for source in sources]
        for name in errors:
            runs = [
                learned(source, path, RATES, settings.checkpoints, KEPT[name] and keep)
                for source, path in zip(sources, paths, strict=True)
            ]
            truth = policy_xi(mdp, np.stack([run.policy for run in runs]))
            curve = []
            for step in range(len(settings.checkpoints)):
                approximations = np.stack([run.xi[step] for run in runs])
                problem = TransferProblem(mdp, target, np.stack(rewards), approximations)
                evaluation = replace(evaluate(problem), source_xi=truth)
                terms = STATEMENTS["thm2/sharp-value"](evaluation)
                violations += int(terms.violated.sum())
                curve.append(float(terms.epsilon))
            errors[name].append(np.array(curve))
            ends[name].append((float(terms.left), float(terms.right), float(terms.epsilon)))
    fits: dict[str, Decay] = {
        name: decay(settings.checkpoints, curves, scales) for name, curves in errors.items()
    }
    loss = {name: max(end[0] for end in ends[name]) for name in ends}
    bound, epsilon = ({name: float(np.median([end[k] for end in ends[name]])) for name in ends}
                      for k in (1, 2))  # fmt: skip
    supported = not violations and fits["with"].converges and not fits["without"].converges
    verdict = Verdict.SUPPORTED if supported else Verdict.INCONCLUSIVE
    return CheckResult(
        verdict,
        f"after {settings.steps} steps eps_R has a median of {epsilon['with']:.3f} with the rule, "
        f"{epsilon['without']:.3f} without; T2' allows a median loss of {bound['with']:.2f} and "
        f"{bound['without']:.2f}, GPI loses at most {loss['with']:.3f} and {loss['without']:.3f}. "
        f"{violations} violations of T2' at {2 * settings.mdps * len(settings.checkpoints)} checkpoints",
        scope=f"{settings.mdps} MDPs in which every action has a twin, {SOURCES} sources learned with the "
        f"indicator, targets that value twins differently; gamma={settings.gamma}, seed {settings.seed}; "
        f"supported: with the rule rate < -1/4 and every final eps_R < 1/10 of max|R|/(1-gamma), without it "
        f"not, and no violation",
        details={
            "curve": fits["with"].to_json(),
            "without": fits["without"].to_json(),
            "loss": loss,
            "bound": bound,
            "epsilon": epsilon,
            "violations": violations,
            "too_short": not violations and _too_short(verdict, fits["with"], settings),
        },
    )


CHECKS = (
    Check("thm1/hysteresis", Method.SIMULATION, converges),
    Check("thm1-thm2/hysteresis", Method.SIMULATION, feeds_transfer),
)
