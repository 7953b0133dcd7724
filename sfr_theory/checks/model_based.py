"""The one-step model (eq:sf_model_update): identity, bias, variance, convergence, and beta = 0.

With r~_n = R . p~_n after the n-th visit of a pair and beta > 0 constant,

    r~_n = R(phi_n) - ((1 - beta) / beta) (r~_n - r~_{n-1})                              (identity)
    E p~_n - p = (1 - beta)^n (p~_0 - p)                                                 (bias)

So MB SFRQ-learning is MF SFRQ-learning up to a telescoping term, and converges although it is biased at
every finite time. With beta = 0, which the paper admits, p~_0 is never corrected, and what is learned is
the optimal Q of the MDP whose features are drawn from p~_0.

**Variance of the update.** Its target is y = r^ + gamma V(s'), with r^ = R(phi_t) (MF) or r~_n (MB). For one
pair and a given V, with Var r~_n = c_n Var R, c_n = sum of squares of the weights that p~_n gives to its
observations, and beta_n the weight of the last one,

    Var y_MF = Var R + 2 gamma Cov(R, V) + gamma^2 Var V,
    Var y_MB = c_n Var R + 2 gamma beta_n Cov(R, V) + gamma^2 Var V.

So the model lowers it where (1 - c_n) Var R >= -2 gamma (1 - beta_n) Cov(R(phi_t), V(s_{t+1})): always if
gamma = 0 or if feature and next state are independent, but not where a high reward comes with a low next
value: with a fair e = +-1, R = e, V = -2e and gamma = 1/2 the MF target is 0 for certain.

**Variance of the value** is another matter. At gamma = 0 a value is a weighted sum of independent
observations, sum h_i R(phi_i), with variance proportional to sum h_i^2. Give each of n visits a feature of
its own: then xi_n(phi_i) = h_i, so the algorithm itself tells its weights, exactly. With constant rates
alpha, beta the ratio MB / MF tends to

    beta (1 + ab) / ((2 - beta)(1 - ab)),    a = 1 - alpha, b = 1 - beta,

which is below 1 for beta < 1 but tends to 1 as alpha / beta -> 0. With alpha = beta = 1/n, the value is a
mean of running means, h_i = (1/n) sum_{m >= i} 1/m, and the ratio tends to the integral of log(u)^2 over
(0, 1), which is 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from functools import partial

import numpy as np

from sfr_theory.arithmetic import Array, Number, exact_array, fraction, rational
from sfr_theory.checks.settings import (
    CRITERION,
    Check,
    Settings,
    class_error,
    contrasted,
    decay,
    exact_instances,
    explore,
    random_instances,
    too_short,
    xi_along,
)
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.learning import (
    Constant,
    FeatureEstimate,
    Harmonic,
    Path,
    Schedule,
    learn,
    sample_path,
    uniform_behaviour,
    uniform_model,
)
from sfr_theory.mdp import FiniteMDP
from sfr_theory.solve import optimal

BETAS = (0.02, 0.1, 0.5, 1.0)
HARMONIC = Harmonic()
"""1/n."""
OPPOSED = Fraction(-2)
"""V(s') over R(phi_t) in the example whose MF target has no variance at gamma = 1/2."""


def convergence(settings: Settings) -> CheckResult:
    """The class converges for every constant beta in (0, 1]."""
    rng = settings.rng("mb/convergence")
    walks = [(i, explore(i, settings, rng)) for i in random_instances(settings, rng, settings.mdps)]

    def model(mdp: FiniteMDP, beta: float) -> FeatureEstimate:
        return FeatureEstimate.one_step_model(uniform_model(mdp), beta)

    betas = dict.fromkeys((settings.beta, *BETAS))
    fits = {beta: contrasted(settings, walks, partial(model, beta=beta)) for beta in betas}
    supported = all(fit.verdict(control) is Verdict.SUPPORTED for fit, control in fits.values())
    listed = ", ".join(
        f"beta = {beta:g}: n^{fit.rate:.2f} to {fit.mean[-1]:.0e}" for beta, (fit, _) in fits.items()
    )
    return CheckResult(
        Verdict.SUPPORTED if supported else Verdict.INCONCLUSIVE,
        f"||R.xi_n - Q*|| relative to max|R|/(1-gamma) after {settings.steps} steps: {listed}; with constant "
        f"alpha on the same paths at best n^{min(control.rate for _, control in fits.values()):.2f}",
        scope=f"{settings.mdps} MDPs, gamma={settings.gamma}, p~_0 uniform, seed {settings.seed}; "
        f"{CRITERION}",
        details={
            "too_short": too_short(fits.values()),
            "curves": {f"{beta:g}": fit.to_json() for beta, (fit, _) in fits.items()},
            "constant_steps": {f"{beta:g}": control.to_json() for beta, (_, control) in fits.items()},
        },
    )


def exact_identity(settings: Settings) -> CheckResult:
    """The identity of the module's text, at every step of rational paths."""
    rng = settings.rng("mb/exact-identity")
    beta = rational(settings.beta)
    steps, compared, failures = 300, 0, 0
    for mdp, reward in exact_instances(settings, rng, settings.mdps):
        path = sample_path(mdp, uniform_behaviour(mdp), steps, rng, restart=0.1)
        initial = uniform_model(mdp)
        after = (FeatureEstimate.one_step_model(initial, beta).along(path) * reward).sum(axis=1)
        last = (initial * reward).sum(axis=2)
        for t in range(steps):
            pair = path.states[t], path.actions[t]
            observed = reward[path.features[t]]
            failures += after[t] != observed - (1 - beta) / beta * (after[t] - last[pair])
            last[pair] = after[t]
            compared += 1
    return CheckResult(
        Verdict.REFUTED if failures else Verdict.SUPPORTED,
        f"{failures} exceptions at {compared} steps on {settings.mdps} MDPs, rational arithmetic, beta = "
        f"{fraction(beta)}, seed {settings.seed}",
        details={"steps": compared, "failures": failures},
    )


def beta_zero(settings: Settings, beta: float = 0) -> CheckResult:
    """With beta = 0 the model stays as it is, and learning ends at the optimal Q of the wrong model p~_0."""
    rng = settings.rng("mb/beta-zero")
    instances = random_instances(settings, rng, settings.mdps)
    to_optimum, to_wrong_model, gaps = [], [], []
    stays = True
    for instance in instances:
        model = uniform_model(instance.mdp)
        path = explore(instance, settings, rng)
        estimate = FeatureEstimate(model, Constant(beta))
        stays &= bool((estimate.along(path) == model[path.states, path.actions]).all())
        xi = xi_along(instance, path, estimate, settings.step_size, settings.checkpoints)
        believed = FiniteMDP(instance.mdp.transition[..., None] * model[:, :, None, :], settings.gamma)
        wrong = optimal(believed, instance.reward).q
        to_optimum.append(class_error(xi, instance.reward, instance.solution.q))
        to_wrong_model.append(class_error(xi, instance.reward, wrong))
        gaps.append(float(np.abs(wrong - instance.solution.q).max()))
    scales = [instance.value_scale for instance in instances]
    optimum, wrong_model = (decay(settings.checkpoints, e, scales) for e in (to_optimum, to_wrong_model))
    refuted = stays and wrong_model.converges and not optimum.converges
    return CheckResult(
        Verdict.REFUTED if refuted else Verdict.INCONCLUSIVE,
        f"the model stays p~_0 {'at every step' if stays else 'NOT always'}, and the error settles at "
        f"{optimum.mean[-1]:.2f} of max|R|/(1-gamma) (rate n^{optimum.rate:.2f}); the limit is the "
        f"optimal Q for the initial model (distance {wrong_model.mean[-1]:.0e}), up to {max(gaps):.2g} away "
        "from Q*",
        scope=f"{settings.mdps} MDPs, gamma={settings.gamma}, p~_0 uniform, seed {settings.seed}",
        details={"curve": optimum.to_json(), "to_wrong_model": wrong_model.to_json(), "gaps": gaps},
    )


def one_pair_path(features: Array) -> Path:
    """A path that stays in the only state of a one-state, one-action MDP."""
    zero = np.zeros(len(features), dtype=int)
    return Path(zero, zero, zero, features)


def expected_model(probability: list[Fraction], initial: list[Fraction], beta: Number, visits: int) -> Array:
    """E p~_n by enumeration of all feature sequences of n visits, exactly."""
    estimate = FeatureEstimate.one_step_model(exact_array([[initial]]), beta)
    mean = exact_array([0] * len(probability))
    for sequence in itertools.product(range(len(probability)), repeat=visits):
        chance = Fraction(1)
        for feature in sequence:
            chance *= probability[feature]
        mean = mean + rational(chance) * estimate.along(one_pair_path(np.array(sequence)))[-1]
    return mean


def unbiased(settings: Settings, betas: Iterable[Fraction] = ()) -> CheckResult:
    """E p~_n - p, enumerated, over all pasts and given what was seen first; `betas` for the usual rates."""
    probability, initial = [Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2), Fraction(1, 2)]
    truth, start = exact_array(probability), exact_array(initial)
    agrees, biased, rows = True, True, []
    for beta in sorted(betas or {Fraction(1, 10), Fraction(1, 2), fraction(rational(settings.beta))}):
        for visits in range(1, 9):
            bias = expected_model(probability, initial, rational(beta), visits) - truth
            formula = rational((1 - beta) ** visits) * (start - truth)
            agrees &= bool(np.array_equal(bias, formula))
            biased &= bool((bias != 0).any())
            rows.append({"beta": str(beta), "visits": visits, "bias": str(fraction(bias[0]))})
        for seen in (0, 1):
            after = rational(1 - beta) * truth + rational(beta) * np.eye(2, dtype=int)[seen]
            mean = expected_model(probability, [fraction(p) for p in after], rational(beta), 1)
            biased &= bool((mean != truth).any())
    first = rows[0]
    return CheckResult(
        Verdict.REFUTED if agrees and biased else Verdict.INCONCLUSIVE,
        f"p = (1/3, 2/3), p~_0 = (1/2, 1/2): the bias equals (1-beta)^n (p~_0 - p) in all {len(rows)} cases, "
        f"each an exact sum over all feature sequences; for example {first['bias']} after {first['visits']} "
        f"visit with beta = {first['beta']}. With p~_0 = p the mean is right over all pasts, but not given "
        "what was seen first",
        scope="two features; E[p~_n | past] = (1-beta) p~_{n-1} + beta p, so T1' does not apply for any "
        "beta < 1. The paper says that it is needed, not that it is so",
        details={"cases": rows},
    )


def weights_of_observations(alpha: Schedule, beta: Schedule, visits: int) -> Array:
    """h_i: the share of the i-th observation in the value after n visits of one pair, at gamma = 0."""
    path = one_pair_path(np.arange(visits))
    zero = exact_array(np.zeros((1, 1, visits), dtype=int))
    estimates = FeatureEstimate(zero, beta).along(path)
    step_sizes = alpha(exact_array(path.visit_number))
    readout = exact_array(np.zeros(visits, dtype=int))
    return learn(path, estimates, readout, step_sizes, 0, zero, np.array([visits]))[0, 0, 0]


def variance_ratio(alpha: Schedule, beta: Schedule, visits: int) -> Fraction:
    """Variance of the value with the one-step model over that with the indicator, exactly."""
    with_model = weights_of_observations(alpha, beta, visits)
    with_indicator = weights_of_observations(alpha, Constant(1), visits)
    return fraction((with_model * with_model).sum() / (with_indicator * with_indicator).sum())


def target_variances(beta: Schedule, next_value: Fraction, visits: int) -> tuple[Fraction, Fraction]:
    """Variance of the n-th target with the model and with the indicator, gamma = 1/2, by enumeration.

    One pair; a fair e = +-1 is the feature and the next state: R(e) = e, V(e) = `next_value` * e; p~_0 = p.
    """
    estimate = FeatureEstimate(exact_array([[["1/2", "1/2"]]]), beta)
    reward, discounted = exact_array([1, -1]), rational(next_value / 2)

    def of(values: list[Number]) -> Fraction:
        mean = sum(values) / len(values)
        return fraction(sum((value - mean) * (value - mean) for value in values) / len(values))

    with_model, with_indicator = [], []
    for sequence in itertools.product(range(2), repeat=visits):
        last = reward[sequence[-1]]
        model = estimate.along(one_pair_path(np.array(sequence)))[-1]
        with_model.append((model * reward).sum() + discounted * last)
        with_indicator.append(last + discounted * last)
    return of(with_model), of(with_indicator)


def variance(settings: Settings, next_value: Fraction = OPPOSED) -> CheckResult:
    """Exact variances of the target: feature and next value uncorrelated, and opposed."""
    visits = 6
    rates: dict[str, Schedule] = {
        str(rate): Constant(rational(rate))
        for rate in sorted({Fraction(1, 10), Fraction(1, 2), fraction(rational(settings.beta))})
    }
    rates["1/n"] = HARMONIC
    uncorrelated = {name: target_variances(beta, Fraction(0), visits) for name, beta in rates.items()}
    opposed = {name: target_variances(beta, next_value, visits) for name, beta in rates.items()}
    lowers = all(model <= indicator for model, indicator in uncorrelated.values())
    raises = all(
        model > indicator for name, (model, indicator) in opposed.items() if name != "1"
    )  # at beta = 1 the model is the indicator
    value_ratio = float(variance_ratio(HARMONIC, HARMONIC, 120))

    def shown(pairs: dict[str, tuple[Fraction, Fraction]]) -> str:
        return ", ".join(f"beta = {name}: {float(model):.2g}" for name, (model, _) in pairs.items())

    return CheckResult(
        Verdict.NEEDS_ASSUMPTION if lowers and raises else Verdict.INCONCLUSIVE,
        f"Needed: a feature and a next value that are not opposed. One pair, R = e = +-1, gamma = 1/2, visit "
        f"{visits}, variance of the target: with V(s') = 0 it is {uncorrelated['1/n'][1]} (MF) and, MB, "
        f"{shown(uncorrelated)}: lower; with V(s') = {next_value} e it is {opposed['1/n'][1]} (MF) and, MB, "
        f"{shown(opposed)}",
        scope="one pair, all sequences, exact; lower where (1 - c_n) Var R >= -2 gamma (1 - beta_n) "
        "Cov(R(phi_t), V(s_{t+1})), c_n Var R the variance of the model's reward. That of the value is "
        f"another matter: at gamma = 0, alpha = beta = 1/n, it is {value_ratio:.2f} times MF's at visit 120",
        details={
            kind: {name: {"mb": str(mb), "mf": str(mf)} for name, (mb, mf) in pairs.items()}
            for kind, pairs in (("uncorrelated", uncorrelated), ("opposed", opposed))
        },
    )


CHECKS = (
    Check("mb/convergence", Method.SIMULATION, convergence),
    Check("mb/exact-identity", Method.INSTANCES, exact_identity),
    # With one feature there is one distribution, and no initial model is wrong.
    Check("mb/beta-zero", Method.COUNTEREXAMPLE, beta_zero, min_features=2),
    Check("mb/unbiased", Method.COUNTEREXAMPLE, unbiased),
    Check("mb/variance", Method.COUNTEREXAMPLE, variance),
)
