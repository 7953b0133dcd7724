"""Small transfer problems with known answers."""

from sfr_theory.mdp import TransferProblem, deterministic_mdp


def one_state(gamma="1/2", actions=2, **tasks):
    """One state; action j emits feature j."""
    return TransferProblem(deterministic_mdp([[0] * actions], [range(actions)], gamma), **tasks)


def hidden_error(gamma="1/2"):
    """The error of xi~_2 is invisible under R_2 and misleads GPI under R: Theorem 2 as printed fails."""
    return one_state(
        gamma,
        target=["1", "0"],
        sources=[["1", "0"], ["0", "1"]],
        approximations=[[[["2", "0"], ["1", "1"]]], [[["1", "1"], ["3", "2"]]]],
    )


def equal_values(gamma="1/2"):
    """Both actions are worth the same; the absolute norm tells them apart."""
    return one_state(gamma, target=["1", "1"], sources=[["1", "1"]])
