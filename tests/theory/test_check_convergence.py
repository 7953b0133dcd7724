"""The command line, and that its checks would notice a mistake."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfr_theory import learning
from sfr_theory.arithmetic import fraction, rational
from sfr_theory.check_convergence import CHECKS, Options, main, selected
from sfr_theory.checks import gpi_learning, model_based, operators, theorem_1
from sfr_theory.checks.settings import Settings, decay
from sfr_theory.claims import Verdict
from sfr_theory.learning import Constant, Harmonic
from tests import commands
from tests.refusals import refused

SMALL = Settings(mdps=3, states=3, actions=2, features=3, steps=60_000, gamma=0.5)


@pytest.mark.parametrize("name", CHECKS)
def test_each_claim_is_as_expected_on_a_small_run(name: str) -> None:
    outcome = CHECKS[name].outcome(SMALL)
    assert outcome.as_expected, outcome.result.evidence


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_extreme_shapes(gamma: float) -> None:
    """One state, one action or one feature: every claim that concerns operators and paths still holds."""
    for states, actions, features in ((1, 2, 2), (3, 1, 2), (3, 2, 1)):
        settings = Settings(
            mdps=2, states=states, actions=actions, features=features, steps=1000, gamma=gamma
        )
        for name in ("prop2/contraction", "cor1/isometry-corrected", "thm1/pathwise", "mb/exact-identity"):
            assert CHECKS[name].outcome(settings).as_expected, name


# --- The judge ----------------------------------------------------------------------------------


def test_decay_tells_convergence_from_a_floor() -> None:
    """And a run whose control converges, too, supports nothing."""
    steps = np.unique(np.geomspace(10, 100_000, 30).astype(int))
    curves = [3 * steps**-0.5, 2 * steps**-0.5]
    falling = decay(steps, curves, [1.0, 1.0])
    floor = decay(steps, [curve + 0.05 for curve in curves], [1.0, 1.0])
    arrived = decay(steps, [np.where(steps < 100, 1.0, 0.0)], [1.0])
    assert falling.rate == pytest.approx(-0.5)
    assert falling.converges
    assert arrived.converges
    assert not floor.converges
    assert not decay(steps, [curves[0], curves[1] + 0.2], [1.0, 1.0]).converges
    assert falling.verdict(control=floor) is Verdict.SUPPORTED
    assert falling.verdict(control=falling) is Verdict.INCONCLUSIVE
    assert floor.verdict(control=floor) is Verdict.INCONCLUSIVE
    # Without noise constant steps converge, too, and that is no fault of the run.
    assert arrived.verdict(control=arrived) is Verdict.SUPPORTED


def test_class_convergence_is_not_supported_where_gamma_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = learning.learn

    def without_gamma(path, cumulants, readout, step_sizes, gamma, *rest):  # type: ignore[no-untyped-def]
        return original(path, cumulants, readout, step_sizes, 0, *rest)

    monkeypatch.setattr(learning, "learn", without_gamma)
    assert CHECKS["thm1/corrected"].run(SMALL).verdict == Verdict.INCONCLUSIVE


def test_pathwise_notices_a_wrong_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """SF-learning that bootstraps on another next state is not the twin of SFRQ-learning."""

    def late_bootstrap(mdp, path, *arguments):  # type: ignore[no-untyped-def]
        late = learning.Path(path.states, path.actions, np.roll(path.next_states, 1), path.features)
        return learning.learn_psi(mdp, late, *arguments)

    monkeypatch.setattr(theorem_1, "learn_psi", late_bootstrap)
    assert CHECKS["thm1/pathwise"].run(SMALL).verdict == Verdict.REFUTED


def test_operator_checks_notice_a_wrong_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that bootstraps on action 0 is well defined, but is not the Bellman operator."""

    def first_action(mdp, reward, xi):  # type: ignore[no-untyped-def]
        return mdp.feature_probability + mdp.gamma * operators_expected_next(mdp, xi[:, 0])

    from sfr_theory.operators import expected_next as operators_expected_next

    monkeypatch.setattr(operators, "bellman_xi", first_action)
    assert CHECKS["prop2/bellman-on-q"].run(SMALL).verdict == Verdict.REFUTED
    monkeypatch.setattr(operators, "bellman_xi", lambda mdp, reward, xi: xi + xi)
    assert CHECKS["prop2/contraction"].run(SMALL).verdict == Verdict.REFUTED


# --- Closed forms behind the checks -------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta"), [(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 5), Fraction(1, 2))]
)
def test_variance_ratio_tends_to_its_limit(alpha: Fraction, beta: Fraction) -> None:
    measured = model_based.variance_ratio(Constant(rational(alpha)), Constant(rational(beta)), 60)
    both = (1 - alpha) * (1 - beta)
    limit = beta * (1 + both) / ((2 - beta) * (1 - both))
    # What is missing are weights older than 60 visits: squares of terms n (1 - alpha)^n.
    assert abs(measured - limit) < 60 * (1 - alpha) ** 60
    assert measured < 1


def test_variance_ratio_of_running_means() -> None:
    """alpha = beta = 1/n: h_i = (1/n) sum_{m >= i} 1/m, against 1/n each."""
    n = 12
    weights = model_based.weights_of_observations(Harmonic(), Harmonic(), n)
    expected = [sum((Fraction(1, m) for m in range(i, n + 1)), Fraction(0)) / n for i in range(1, n + 1)]
    assert [fraction(h) for h in weights] == expected
    ratio = model_based.variance_ratio(Harmonic(), Harmonic(), n)
    assert ratio == n * sum(h * h for h in expected)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_frozen_limit_is_checked_where_it_says_something(gamma: float) -> None:
    """Bounds of over-estimates are positive and at most a quarter of 2 max|R|/(1-gamma); max|R| <= 1."""
    settings = Settings(**{**vars(SMALL), "gamma": gamma})
    bounds = [row["bound"] for row in gpi_learning.frozen_limit(settings).details["overestimated"]]
    assert all(0 < bound <= 0.5 / (1 - gamma) for bound in bounds)


@pytest.mark.parametrize("beta", [Constant(rational("1/3")), Harmonic()])
@pytest.mark.parametrize("next_value", [Fraction(-2), Fraction(0), Fraction(3)])
def test_variance_of_the_target_is_as_in_the_text(beta: Constant | Harmonic, next_value: Fraction) -> None:
    """gamma = 1/2, Var R = 1, Cov(R, V) = v: c_n + beta_n v + v^2/4, and 1 + v + v^2/4 without a model."""
    last, kept = (Fraction(1, 3), Fraction(2, 3)) if isinstance(beta, Constant) else (Fraction(1, 4), None)
    squares = sum((last * kept**k) ** 2 for k in range(4)) if kept else Fraction(1, 4)
    with_model, with_indicator = model_based.target_variances(beta, next_value, 4)
    assert with_model == squares + last * next_value + next_value**2 / 4
    assert with_indicator == (1 + next_value / 2) ** 2


# --- Command line -------------------------------------------------------------------------------


def test_selection_by_heading() -> None:
    assert [check.claim for check in selected([])] == list(CHECKS)
    assert all(check.claim.startswith("mb/") for check in selected(["mb"]))
    assert [check.claim for check in selected(["mb/variance", "thm1/pathwise"])] == [
        "thm1/pathwise",
        "mb/variance",
    ]
    with refused("no claim 'mb/vari'"):
        selected(["mb/vari"])


def test_json_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out" / "result.json"
    options = Options(
        mdps=2, states=3, actions=2, features=3, steps=20_000, gamma=0.5, seed=3,
        claim=["thm1", "gpi-learning"], json=str(target), plot=str(tmp_path / "curves.svg"),
    )  # fmt: skip
    assert main(options) == 0
    payload = json.loads(target.read_text())
    assert payload["seed"] == 3
    assert payload["gamma"] == 0.5
    claims = payload["claims"]
    assert set(claims) == {name for name in CHECKS if name.startswith(("thm1/", "gpi-learning/"))}
    curve = claims["thm1/corrected"]["details"]["indicator"]["curve"]
    assert len(curve["steps"]) == len(curve["error"])
    assert claims["thm1/printed"]["verdict"] == "REFUTED"
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert "thm1/oscillation" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_numbers_whatever_else_runs() -> None:
    name = "thm1/corrected"
    alone = CHECKS[name].run(SMALL)
    CHECKS["thm1/pointwise"].run(SMALL)
    assert CHECKS[name].run(SMALL).details == alone.details
    other_seed = Settings(**{**vars(SMALL), "seed": 1})
    assert CHECKS[name].run(other_seed).details != alone.details


def test_unexpected_verdict_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    """gamma near 1 and few steps: convergence cannot be seen, and the command says so."""
    options = Options(mdps=2, steps=1000, gamma=0.99, claim=["thm1/corrected"])
    assert main(options) == 1
    assert "INCONCLUSIVE" in capsys.readouterr().out


def test_a_run_that_is_too_short_says_so_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The control, constant step sizes, has not levelled off yet, or thresholds are still large."""
    claims = ["thm1/corrected", "thm1/pathwise", "thm1/hysteresis", "thm1-thm2/hysteresis"]
    assert main(Options(mdps=4, steps=20_000, claim=claims)) == 0
    out = capsys.readouterr().out
    assert "INCONCLUSIVE" in out
    assert "--steps 200000" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--claim", "nonsense"], "there is no claim 'nonsense'"),
        (["--gamma", "1"], "gamma is 1.0"),
        (["--beta", "0"], "beta is 0"),
        (["--beta", "1e-300", "--claim", "mb"], "it must be at least 1e-06"),
        (["--steps", "10"], "steps is 10"),
        (["--steps", "99999999999"], "GiB of memory"),
        (["--mdps", "99999999999"], "GiB of memory"),
        (["--states", "1", "--actions", "1", "--features", "1"], "mb/beta-zero needs at least 2"),
        (["--claim", "mb/unbiased", "--plot", "x.png"], "no curves to plot"),
    ],
)
def test_bad_input_exits_2_with_a_sentence(arguments: list[str], sentence: str) -> None:
    commands.refuses("sfr_theory.check_convergence", *arguments, words=sentence)


def test_the_smallest_beta_ends() -> None:
    settings = Settings(**{**vars(SMALL), "beta": 1e-6, "mdps": 1})
    for name in ("mb/exact-identity", "mb/unbiased", "mb/variance"):
        assert CHECKS[name].outcome(settings).as_expected, name


def test_json_on_standard_output_is_only_json() -> None:
    done = commands.run("sfr_theory.check_convergence", "--claim", "cor1", "--json", "-")
    assert list(json.loads(done.stdout)["claims"]) == ["cor1/isometry-corrected"]
    assert "cor1/isometry-corrected" in done.stderr
