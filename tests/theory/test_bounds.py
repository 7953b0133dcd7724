"""Each bound: hand-computed terms, the counterexamples, and all statements on generated problems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfr_theory.arithmetic import exact_array, float_array, fraction
from sfr_theory.bounds import LARGE, STATEMENTS, BoundTerms, affine_distance
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import Verdict
from sfr_theory.mdp import TransferProblem, deterministic_mdp
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.transfer import evaluate, evaluate_all_ties, evaluate_batch
from tests.refusals import refused
from tests.strategies import arrays, problems
from tests.theory.examples import equal_values, one_state

HOLDING = [name for name in STATEMENTS if CATALOGUE[name].expected is not Verdict.REFUTED]


def test_the_absolute_norm_separates_policies_of_equal_value():
    worst = {
        name: max(STATEMENTS[name](e).left.item() for e in evaluate_all_ties(equal_values()))
        for name in STATEMENTS
    }
    assert worst.pop("thm2/printed") == 2
    assert all(left == 0 for left in worst.values())


def misled(gamma="1/2"):
    """One state, action j emits feature j; R_0 = (2, 2, 0) is the nearest reward in the span of (1, 1, 0).

    GPI under R takes action 1 (it reads 5 there), GPI under R_0 action 2 (it reads 14).
    """
    approximations = np.array(
        [[[[1, 1, 0], [1, 2, 0], [0, 1, 1]]], [[[1, 0, 1], [0, 1, 1], [-4, 11, 2]]]], dtype=object
    )
    mdp = deterministic_mdp([[0, 0, 0]], [[0, 1, 2]], gamma, [[1], [1], [0]])
    return TransferProblem(mdp, [3, 1, 0], [[0, 4, 1], [1, 0, 5]], approximations)


def test_every_term_of_every_statement_by_hand():
    """xi_i(b) = e_b + e_i, Q* = (6, 4, 3), and with g = 1/2

    GPI under R:   Q = (4, 2, 1), V = 2; loss 2 in Q, 4 in V;    under R_0: Q = (3, 1, 0), V = 0; 3 and 6
    errors         E_1(b=1) = (-1, 0, 0); E_2(b=2) = (4, -11, 0)
    read under     R: 3, 1 -> 3;  R_0: 2, 14 -> 14;  R_1, R_2: 0, 4 -> 4 (absolute: 0, 4)
    distances      R to R_1 (3, 3, 1), to R_2 (2, 1, 5) -> 3;  R to R_0 (1, 1, 0) -> 1;
                   R_0 to R_1 (2, 2, 1) -> 2, to R_2 (1, 2, 5) -> 5; affine: R - a R_1 - c, a = 0 -> 3/2
    """
    expected = {
        "gpi/linear": (3, 1 + 2, 14, 4 * 17),
        "thm2/printed": (3 + 1, 3, 4, 4 * 7),  # xi* - xi^pi = (1, -1, 0) everywhere
        "thm2/printed-value-norm": (2, 3, 4, 4 * 7),
        "thm2/corrected": (2, 3, 3, 4 * 6),
        "thm2/sharp": (2, 3, 3, 2 * 4.5),
        "thm2/sharp-value": (4, 3, 3, 4 * 4.5),
        "thm2/sharp-affine": (2, 1.5, 3, 2 * 3.75),
        "thm2/sharp-value-affine": (4, 1.5, 3, 4 * 3.75),
        "thm2/code": (3, 1 + 1, 14, 2 * 16),
        "thm2/code-value": (6, 1 + 1, 14, 4 * 16),
    }
    evaluation = evaluate(misled())
    for name, terms in expected.items():
        found = STATEMENTS[name](evaluation)
        parts = (found.left, found.reward_distance, found.epsilon, found.right)
        assert tuple(float(fraction(part.item())) for part in parts) == terms, name


@given(problems(max_states=3, with_vectors=True))
def test_terms_by_their_definitions(problem):
    """In loops over fractions, as the module's text writes them."""
    e = evaluate(problem)
    g, target, linear = e.gamma, e.target, e.linear_reward
    pairs = list(np.ndindex(e.optimal_q.shape))

    def read(reward, xi):
        return {pair: sum(r * x for r, x in zip(reward, xi[pair], strict=True)) for pair in pairs}

    def sup(values):
        return max(map(abs, values.values()))

    def apart(one, other):
        return sup({pair: one[pair] - other[pair] for pair in pairs})

    def loss(policy, xi):
        best, q = read(target, e.optimal_xi), read(target, xi)
        states = range(len(policy))
        in_values = max(max(best[s, a] for a in range(len(e.optimal_q[s]))) - q[s, policy[s]] for s in states)
        return apart(best, q), in_values

    def printed(reward, xi):
        return max(sum(abs(r * x) for r, x in zip(reward, xi[pair], strict=True)) for pair in pairs)

    r, r_0 = (read(reward, e.feature_probability) for reward in (target, linear))
    r_i = [read(reward, e.feature_probability) for reward in e.sources]
    d, d_0 = (min(apart(own, other) for other in r_i) for own in (r, r_0))
    wide = min(printed(target - source, e.feature_probability) for source in e.sources)
    errors = e.source_xi - e.approximations
    own = list(zip(e.sources, errors, strict=True))
    eps, eps_0 = (max(sup(read(reward, error)) for error in errors) for reward in (target, linear))
    eps_own, eps_absolute = max(sup(read(*pair)) for pair in own), max(printed(*pair) for pair in own)
    q_loss, v_loss = loss(e.gpi_policy, e.gpi_xi)
    linear_q_loss, linear_v_loss = loss(e.linear_gpi_policy, e.linear_gpi_xi)
    rho, factor = apart(r, r_0), 2 / (1 - g)
    affine = min(
        affine_distance(*(exact_array(list(x.values()))[None] for x in (r, source)))[0] for source in r_i
    )
    code = rho + g * d_0
    absolute_loss = printed(target, e.optimal_xi - e.gpi_xi)
    expected = {
        "gpi/linear": (linear_q_loss, rho + d_0, eps_0, factor * (rho + d_0 + eps_0)),
        "thm2/printed": (absolute_loss, wide, eps_absolute, factor * (wide + eps_absolute)),
        "thm2/printed-value-norm": (q_loss, wide, eps_own, factor * (wide + eps_own)),
        "thm2/corrected": (q_loss, wide, eps, factor * (wide + eps)),
        "thm2/sharp": (q_loss, d, eps, factor * g * (g * d + eps)),
        "thm2/sharp-value": (v_loss, d, eps, factor * (g * d + eps)),
        "thm2/sharp-affine": (q_loss, affine, eps, factor * g * (g * affine + eps)),
        "thm2/sharp-value-affine": (v_loss, affine, eps, factor * (g * affine + eps)),
        "thm2/code": (linear_q_loss, code, eps_0, factor * g * (code + eps_0)),
        "thm2/code-value": (linear_v_loss, code, eps_0, factor * (code + eps_0)),
    }
    upper = {pair: max(read(target, xi)[pair] for xi in e.approximations) for pair in pairs}
    states, actions = e.optimal_q.shape
    best = [max(upper[s, a] for a in range(actions)) for s in range(states)]
    ahead = {pair: r[pair] + g * sum(e.transition[pair] * best) for pair in pairs}
    gap = {pair: ahead[pair] - upper[pair] for pair in pairs}
    span, lowest = max(gap.values()) - min(gap.values()), min(gap[s, e.gpi_policy[s]] for s in range(states))
    gain = max(max(ahead[s, a] for a in range(actions)) - best[s] for s in range(states))
    ceiling = e.ceiling.excess(exact_array(best))
    expected |= {
        f"certificate/{name}": (left, d, eps, right / (1 - g))
        for name, left, right in (
            ("residual", q_loss, g * span),
            ("residual-value", v_loss, span),
            ("greedy-residual-value", v_loss, gain - lowest),
            ("sources-value", v_loss, (1 - g) * ceiling - lowest),
        )
    }
    assert expected.keys() == STATEMENTS.keys()
    for name, terms in expected.items():
        found = STATEMENTS[name](e)
        assert (found.left, found.reward_distance, found.epsilon, found.right) == terms, name


def test_a_batch_has_the_terms_of_its_problems():
    batch = FAMILIES["garnet"](np.random.default_rng(7), 3, Shape(4, 3, 5, 2), 0.75, 0.5)
    together = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
    for name, statement in STATEMENTS.items():
        alone = BoundTerms.join(
            np.stack,
            [statement(evaluate(batch.problem(b, together.approximations[b]).to_float())) for b in range(3)],
        )
        for part in ("left", "reward_distance", "epsilon", "right", "rounding", "blurred"):
            one, other = (getattr(terms, part) for terms in (statement(together), alone))
            assert one.shape == (3,)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13, err_msg=f"{name}, {part}")


def test_rounding_by_hand():
    """64 u S max|R| (max|xi~| + 1/(1-g)) / (1-g)^2; S = 1, g = 1/2, and the largest entries of each sign."""
    unit = np.finfo(float).eps
    for reward, source, entry in ((3.0, 1.0, 8.0), (1.0, -3.0, -8.0), (-3.0, 1.0, 8.0)):
        approximations = np.full((1, 1, 2, 2), entry)
        approximations[0, 0, 0] = 2.0
        problem = one_state(target=[reward, 0.0], sources=[[source, 0.0]], approximations=approximations)
        e = evaluate(problem.to_float())
        assert e.rounding == 64 * unit * 1 * 3 * (8 + 2) * 4
        # max|R| / (1-g) is 2 |R|; approximations that much larger blur it.
        edge = 2 * abs(reward) / (LARGE * 64 * unit * 3 * 4)
        for factor, blurred in ((0.99, False), (1.01, True)):
            large = replace(e, approximations=np.full((1, 1, 2, 2), factor * edge))
            assert large.blurred == blurred
    nothing = replace(e, target=np.zeros(2), approximations=np.full((1, 1, 2, 2), 1e30))
    assert not nothing.blurred  # both sides are 0, exactly
    small = replace(e, target=np.full(2, 1e-3), approximations=np.full((1, 1, 2, 2), 1e30))
    assert small.blurred
    assert LARGE == 1000


@pytest.mark.parametrize(
    ("left", "right", "blurred", "verdict", "ratio"),
    [
        (1.0, 2.0, False, "holds", 0.5),
        (2.0, 2.0, False, "holds", 1.0),
        (2.1, 2.0, False, "holds", 1.05),  # within the rounding of 1/8
        (2.125, 2.0, True, "undecided", 1.0625),
        (2.25, 2.0, True, "violated", 1.125),
        (2.25, 2.0, False, "violated", 1.125),
        (1.875, 2.0, True, "holds", 0.9375),
        (1.9, 2.0, True, "undecided", 0.95),
        (0.1, 0.125, False, "holds", 0.0),
        (0.125, 0.0, False, "holds", 0.0),
        (0.2, 0.125, False, "holds", 1.6),
        (1.0, 0.0, False, "violated", np.inf),
        (0.0, 1.0, False, "holds", 0.0),
    ],
)
def test_sides_are_compared_up_to_rounding(left, right, blurred, verdict, ratio):
    numbers = [np.array(value) for value in (left, 0.0, 0.0, right, 0.125)]
    terms = BoundTerms(*numbers, np.array(blurred))
    assert [name for name in ("violated", "undecided", "holds") if getattr(terms, name)] == [verdict]
    assert terms.ratio == pytest.approx(ratio)


@pytest.mark.parametrize("broken", ["gpi_xi", "source_xi"])
def test_one_problem_of_a_batch_beyond_float64_is_enough(broken):
    """The left side of one problem is infinite, or the right one."""
    batch = FAMILIES["garnet"](np.random.default_rng(0), 2, Shape(2, 2, 2, 1), 0.5, 0.5)
    e = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
    large = getattr(e, broken).copy()
    large[1] = np.inf
    with refused("--exact"), np.errstate(invalid="ignore"):
        STATEMENTS["thm2/printed"](replace(e, **{broken: large}))


@given(problems(with_vectors=True))
def test_statements_that_should_hold_do_exactly(problem):
    evaluation = evaluate(problem)
    for name in HOLDING:
        terms = STATEMENTS[name](evaluation)
        assert terms.holds, name
        assert terms.rounding == 0


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(arrays((n,)), arrays((n,)))))
def test_affine_distance_three_ways(case):
    """In fractions, in floats, and by a linear programme."""
    target, source = (exact_array(values) for values in case)
    exact = affine_distance(target[None], source[None])[0]
    y, x = float_array(target), float_array(source)
    # minimise t subject to |y - a x - c| <= t, a >= 0
    upper = np.block([[-x[:, None], -np.ones((len(x), 1)), -np.ones((len(x), 1))],
                      [x[:, None], np.ones((len(x), 1)), -np.ones((len(x), 1))]])  # fmt: skip
    programme = linprog(
        [0, 0, 1], A_ub=upper, b_ub=np.concatenate([-y, y]), bounds=[(0, None), (None, None), (0, None)]
    )
    assert programme.success
    assert programme.fun == pytest.approx(float(exact), abs=1e-9)
    for scale in ("1/1000", "1000"):  # of the source: any a > 0 is allowed
        assert affine_distance(target[None], exact_array([scale])[0] * source[None] + 1)[0] == exact
    floats = affine_distance(y[None], x[None])[0]
    assert float(exact) - 1e-12 <= floats <= float(exact) + 1e-12


def test_scale_and_shift_of_a_source_cost_nothing():
    problem = one_state(target=["1", "0"], sources=[["30", "10"]])
    terms = STATEMENTS["thm2/sharp-affine"](evaluate(problem))
    assert terms.reward_distance == 0
    assert STATEMENTS["thm2/sharp"](evaluate(problem)).reward_distance > 0
    flipped = one_state(target=["1", "0"], sources=[["0", "1"]])
    assert STATEMENTS["thm2/sharp-affine"](evaluate(flipped)).reward_distance == exact_array(["1/2"])[0]
