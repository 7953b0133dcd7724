"""Hypothesis strategies for exact MDPs, rewards, policies and transfer problems.

Numbers are small fractions, so that ties happen and failures shrink to something readable. The strategies
are themselves tested (`test_strategies.py`): they do give ties, absorbing and unreachable states, gamma = 0
and rewards that are all negative.
"""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sfr_theory.mdp import FiniteMDP, TransferProblem

gammas = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)])
small_fractions = st.builds(Fraction, st.integers(-4, 4), st.sampled_from([1, 2, 3]))


@st.composite
def mdps(draw, max_states=4, max_actions=3, max_features=3, discounts=gammas, with_vectors=False):
    """An exact MDP whose rows have one to three outcomes of simple probability."""
    states = draw(st.integers(1, max_states))
    actions = draw(st.integers(1, max_actions))
    features = draw(st.integers(1, max_features))
    kernel = np.full((states, actions, states, features), Fraction(0), dtype=object)
    outcome = st.tuples(st.integers(0, states - 1), st.integers(0, features - 1), st.integers(1, 3))
    for s, a in np.ndindex(states, actions):
        outcomes = draw(st.lists(outcome, min_size=1, max_size=3))
        total = sum(weight for *_, weight in outcomes)
        for next_state, feature, weight in outcomes:
            kernel[s, a, next_state, feature] += Fraction(weight, total)
    vectors = None
    if with_vectors:
        dimensions = draw(st.integers(1, 3))
        vectors = draw(arrays((features, dimensions)))
    return FiniteMDP(kernel, draw(discounts), vectors)


@st.composite
def arrays(draw, shape, elements=small_fractions):
    """An array of fractions of the given shape."""
    size = int(np.prod(shape))
    result = np.empty(size, dtype=object)
    result[:] = draw(st.lists(elements, min_size=size, max_size=size))
    return result.reshape(shape)


def rewards(mdp, elements=small_fractions):
    """A reward for each feature of an MDP."""
    return arrays((mdp.num_features,), elements)


@st.composite
def policies(draw, mdp):
    """A deterministic policy."""
    actions = st.integers(0, mdp.num_actions - 1)
    return np.array(draw(st.lists(actions, min_size=mdp.num_states, max_size=mdp.num_states)))


@st.composite
def stochastic_policies(draw, mdp):
    """A policy that gives every action a positive rational probability."""
    weights = draw(arrays((mdp.num_states, mdp.num_actions), st.integers(1, 3).map(Fraction)))
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def problems(draw, max_sources=3, **sizes):
    """A transfer problem whose approximations may be far off, or absent."""
    mdp = draw(mdps(**sizes))
    sources = draw(st.integers(1, max_sources))
    shape = (sources, mdp.num_states, mdp.num_actions, mdp.num_features)
    return TransferProblem(
        mdp,
        draw(rewards(mdp)),
        draw(arrays((sources, mdp.num_features))),
        draw(st.none() | arrays(shape)),
    )
