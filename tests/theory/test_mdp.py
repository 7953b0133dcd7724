"""FiniteMDP and TransferProblem accept what is right and answer the rest in a sentence."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from sfr_theory.arithmetic import exact_array, float_array
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.random_mdp import Shape, garnet
from tests.refusals import refused
from tests.strategies import mdps, problems

ONE = np.ones((1, 1, 1, 1))


@pytest.mark.parametrize(
    ("kernel", "gamma", "message"),
    [
        (ONE, 1.0, "gamma.*less than 1"),
        (ONE, -0.1, "gamma is -0.1"),
        (ONE, float("nan"), "gamma: nan is not a finite number"),
        (ONE, "half", "gamma: 'half' is not a number"),
        (ONE * 0.9, 0.5, r"kernel\[0, 0\].* 0.9.*sum to 1"),
        (-ONE, 0.5, r"kernel\[0, 0, 0, 0\].*negative"),
        (ONE * np.nan, 0.5, r"kernel\[0, 0, 0, 0\] is nan"),
        (np.ones((1, 1, 1)), 0.5, r"kernel.*4: \(states, actions, states, features\)"),
        (np.ones((2, 1, 1, 1)), 0.5, "2 states on its first axis and 1 next states"),
        (np.ones((0, 1, 0, 1)), 0.5, "there must be a state"),
        ([[1, 2], [3]], 0.5, "kernel.*equal rows"),
        ([[[["1/2", "1/3"]]]], "1/2", r"kernel\[0, 0\] sums to 5/6"),
    ],
)
def test_bad_mdps(kernel, gamma, message):
    with pytest.raises(InputError, match=message):
        FiniteMDP(kernel, gamma)


def test_bad_feature_vectors():
    with refused("feature_vectors", "2 rows", "1 features"):
        FiniteMDP(ONE, 0.5, [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("target", "sources", "approximations", "message"),
    [
        ([1.0, 2.0], [[1.0]], None, "target.*2 rewards.*1 features"),
        ([1.0], [[1.0, 2.0]], None, "sources gives 2 rewards"),
        ([1.0], [], None, "sources.*at least one"),
        ([1.0], [1.0], None, r"sources.*2: \(tasks, features\)"),
        ([np.inf], [[1.0]], None, r"target\[0\] is inf"),
        ([1.0], [[1.0]], [[[[1.0, 2.0]]]], r"approximations.*needs \(1, 1, 1, 1\)"),
    ],
)
def test_bad_problems(target, sources, approximations, message):
    with pytest.raises(InputError, match=message):
        TransferProblem(FiniteMDP(ONE, 0.5), target, sources, approximations)


def test_arithmetic_follows_the_numbers():
    assert not FiniteMDP(ONE, 0.5).is_exact
    assert FiniteMDP(ONE, Fraction(1, 2)).is_exact
    assert FiniteMDP([[[["1/2", "1/2"]]]], 0.5).is_exact


def test_floats_in_an_exact_mdp_are_normalised_as_in_files():
    mdp = FiniteMDP(np.full((1, 1, 1, 3), 1 / 3), "1/2")
    assert mdp.kernel[0, 0, 0, 0] == exact_array(["1/3"])[0]


def test_text_and_complex_numbers_in_a_float_mdp():
    assert FiniteMDP(ONE, 0.5, [["1/2"]]).feature_vectors[0, 0] == 0.5
    with refused("complex"):
        FiniteMDP(ONE.astype(complex), 0.5)


def test_exact_numbers_that_no_float_holds_are_told_about_exact_arithmetic():
    nearly_one = FiniteMDP(ONE, 1 - Fraction(1, 10**20))
    huge = TransferProblem(FiniteMDP(ONE, "1/2"), ["1e400"], [["1"]])
    for place, to_float in (("gamma is 99999", nearly_one.to_float), ("target[0] is 10000", huge.to_float)):
        with refused(place, "--exact"):
            to_float()


def test_arrays_are_frozen():
    mdp = FiniteMDP(ONE, 0.5)
    for array in (mdp.kernel, mdp.transition, mdp.feature_probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        mdp.gamma = 0.9  # type: ignore[misc]


def test_the_callers_array_stays_the_callers():
    kernel = ONE.copy()
    mdp = FiniteMDP(kernel, 0.5)
    kernel[:] = 7
    assert mdp.kernel[0, 0, 0, 0] == 1


@given(mdps(with_vectors=True))
def test_marginals_pickle_and_conversion(mdp):
    assert (mdp.transition.sum(axis=-1) == 1).all()
    assert (mdp.feature_probability.sum(axis=-1) == 1).all()
    assert pickle.loads(pickle.dumps(mdp)) == mdp
    assert not pickle.loads(pickle.dumps(mdp)).kernel.flags.writeable
    again = mdp.to_float().to_exact()
    np.testing.assert_allclose(float_array(again.kernel), float_array(mdp.kernel), atol=1e-15)


@given(problems())
def test_problems_pickle(problem):
    again = pickle.loads(pickle.dumps(problem))
    assert again.mdp == problem.mdp
    assert (again.target == problem.target).all()
    assert (again.sources == problem.sources).all()


def test_a_batch_gives_the_same_marginals_as_its_members():
    batch = garnet(np.random.default_rng(1), 5, Shape(4, 2, 3, 1), 0.9)
    for b in range(len(batch)):
        assert (batch[b].transition == batch.transition[b]).all()
        assert (batch[b].feature_probability == batch.feature_probability[b]).all()
