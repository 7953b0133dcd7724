"""The theorems that Coq checks, as data: name, statement in words, claims of the catalogue that they cover.

This is the one list of names. The check asks Coq for the assumptions of each, docs/theory.md shows them all,
and a claim is covered when every theorem that names it is closed.

Letters are those of docs/theory.md: g is the discount, U = max_i Q^{pi_i}, d_i = ||r - r_i||, eps the largest
error of the approximations in value, read under the target. All hold for every finite S, A, Phi and set of
sources, every kernel, and numbers in any real field.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfr_theory.claims import markdown_cell


@dataclass(frozen=True)
class Theorem:
    """A theorem of the Coq development; `name` is file.theorem."""

    name: str
    statement: str
    claims: tuple[str, ...] = ()  # of the catalogue that it proves
    refutes: tuple[str, ...] = ()  # ... and that it shows to be false
    scope: str = "all finite sizes, Coq"

    @property
    def stem(self) -> str:
        return self.name.partition(".")[0]

    @property
    def file(self) -> str:
        return f"{self.stem}.v"


THEOREMS = (
    # Tools
    Theorem("maxima.max_difference", "|max f - max h| <= max |f - h|", ("lemma/max-difference",)),
    # Values and optimal policies
    Theorem("mdp.Q_bellman", "every policy has a value: a fixed point of T^pi", ("bg/q-bellman",)),
    Theorem("mdp.Q_unique", "T^pi has only one fixed point"),
    Theorem(
        "mdp.Q_series",
        "Q^pi is the sum of the first n discounted rewards and g^n times the rest",
        ("bg/q-bellman",),
    ),
    Theorem("mdp.Q_linear", "Q^pi is linear in the reward"),
    Theorem("mdp.optimal_exists", "an optimal policy exists"),
    Theorem("mdp.Qstar_bellman", "its value Q* is a fixed point of T"),
    Theorem("mdp.Qstar_unique", "T has only one fixed point", ("prop2/fixed-point-corrected",)),
    Theorem("mdp.Q_le_Qstar", "no policy has a larger value than Q*"),
    Theorem("mdp.randomised_le_Qstar", "no randomised policy has one either"),
    Theorem("mdp.T_contracts", "T contracts by g in the maximum norm", ("prop2/contraction",)),
    Theorem("mdp.Tpi_contracts", "T^pi contracts by g in the maximum norm"),
    Theorem("mdp.value_iteration", "||T^n q - Q*|| <= g^n ||q - Q*||", ("prop2/fixed-point-corrected",)),
    Theorem("mdp.Qstar_residual", "||Q* - q|| <= ||T q - q||/(1-g)"),
    Theorem("mdp.Q_residual", "||Q^pi - q|| <= ||T^pi q - q||/(1-g)"),
    # Successor feature representations
    Theorem(
        "xi.xi_bellman", "xi^pi = E[1(phi) + g xi^pi(s', pi(s'), .)], under the joint kernel", ("xi/series",)
    ),
    Theorem("xi.xi_unique", "this equation has only one solution"),
    Theorem(
        "xi.xi_series", "xi^pi is the sum of g^k p(phi_{t+k}), up to g^n/(1-g) after n terms", ("xi/series",)
    ),
    Theorem("xi.Q_is_sum_R_xi", "Q^pi = sum R xi^pi, for every R", ("xi/definition", "xi/transfer")),
    Theorem("xi.xi_mass", "the sum of xi^pi over phi is 1/(1-g)", ("xi/mass",)),
    Theorem("xi.xi_ge0", "xi^pi >= 0", ("xi/nonnegative",)),
    Theorem(
        "xi.Txi_is_bellman",
        "sum R T_xi xi = T sum R xi, whichever of tied actions is taken",
        ("prop2/bellman-on-q",),
    ),
    Theorem(
        "xi.Txi_well_defined",
        "the class of T_xi xi depends on the class of xi alone",
        ("prop2/well-defined-corrected",),
    ),
    Theorem("xi.Txi_contracts_classes", "T_xi contracts classes by g", ("prop2/contraction",)),
    Theorem(
        "xi.Txi_fixed_point",
        "a class is fixed by T_xi if and only if it is Q*",
        ("prop2/fixed-point-corrected",),
    ),
    Theorem(
        "xi.xi_optimal_class", "the class of xi of an optimal policy is Q*", ("prop2/fixed-point-corrected",)
    ),
    Theorem(
        "xi.Txi_policy_contracts",
        "with a fixed policy T_xi contracts xi by g, in the maximum norm",
        ("prop2/policy-operator-contraction",),
    ),
    Theorem(
        "xi.every_q_has_a_xi", "if R is not 0, Q R/sum R^2 is a xi with the value Q", ("prop1/corrected",)
    ),
    Theorem("xi.psi_is_image_of_xi", "psi = sum z(phi) xi for every code z of features"),
    Theorem(
        "xi.psi_read_by_w",
        "w.psi^pi is Q^pi under the reward w.z",
        ("bg/psi-linear", "bg/psi-transfer", "thm3/values", "thm3/equivalent-frameworks"),
    ),
    Theorem("xi.one_hot_psi_is_xi", "psi of the one-hot code is xi", ("onehot/discrete",)),
    Theorem("xi.one_hot_rewards_are_linear", "every reward is linear in it", ("onehot/discrete",)),
    # Learning, path by path
    Theorem(
        "learning.pathwise",
        "sum R xi_n is the Q-learning iterate, for any path, ties and step sizes",
        ("thm1/pathwise",),
    ),
    Theorem(
        "learning.vector_td_iff_every_readout",
        "z_n is learned by vector TD if and only if w.z_n is learned by scalar TD, for every w",
    ),
    Theorem(
        "learning.sf_is_image_of_sfr",
        "SF learning is the image of SFR learning: linear maps, no clipping, linear rewards, any decisions",
        ("thm3/equivalent-frameworks", "approx/linear-image"),
    ),
    # Generalised policy improvement
    Theorem(
        "gpi.two_stage_choice_is_gpi",
        "first the policy, then its best action: this is GPI",
        ("gpi/two-stage",),
    ),
    Theorem("gpi.gpi_improves", "GPI on exact values: Q^pi >= Q^{pi_i} for every i"),
    Theorem("gpi.gpi_improves_approximately", "Q^pi >= Q^{pi_i} - 2g eps/(1-g) for every i"),
    Theorem("gpi.step_greedy", "T2', step 1: U(s, pi(s)) >= max U(s, .) - 2 eps", ("thm2/step-greedy",)),
    Theorem("gpi.step_improvement", "T2', step 2: T^pi U >= T U - 2g eps", ("thm2/step-improvement",)),
    Theorem("gpi.step_monotone", "T2', step 3: T U >= U", ("thm2/step-monotone",)),
    Theorem("gpi.step_telescoping", "T2', step 4: Q^pi >= T U - 2g eps/(1-g)", ("thm2/step-telescoping",)),
    Theorem("gpi.step_contraction", "T2', step 5: Q* - T U <= g ||Q* - U||", ("thm2/step-contraction",)),
    Theorem("gpi.step_transfer", "T2', step 6: Q* - Q^{pi_i} <= 2g d_i/(1-g)", ("thm2/step-transfer",)),
    Theorem("gpi.step_value", "T2', for V: V* - V^pi <= max (Q* - U) + 2 eps/(1-g)", ("thm2/step-value",)),
    Theorem("gpi.sharp_V_values", "T2' for V in values: any bounds of one d_i and of all errors will do"),
    Theorem("gpi.sharp_Q_values", "T2' for Q in values"),
    Theorem("gpi.sharp_V", "T2': ||V* - V^pi|| <= 2/(1-g) (g min_i d_i + eps)", ("thm2/sharp-value",)),
    Theorem(
        "gpi.sharp_Q",
        "T2': ||Q* - Q^pi|| <= 2g/(1-g) (g min_i d_i + eps)",
        ("thm2/sharp", "tightness/sharp-never-exceeded"),
    ),
    Theorem(
        "gpi.sharp_V_affine",
        "T2' for V with d_i = ||r - b_i r_i - c_i||, for every b_i > 0 and c_i",
        ("thm2/sharp-value-affine",),
    ),
    Theorem("gpi.sharp_Q_affine", "the same for Q", ("thm2/sharp-affine",)),
    Theorem(
        "gpi.proxy_V",
        "T2'': ||V* - V^pi|| <= 2/(1-g) (||r - r'|| + g min_i ||r' - r_i|| + eps)",
        ("thm2/code-value",),
    ),
    Theorem(
        "gpi.proxy_Q",
        "T2'': ||Q* - Q^pi|| <= 2g/(1-g) (||r - r'|| + g min_i ||r' - r_i|| + eps)",
        ("thm2/code", "gpi/linear-sharp"),
    ),
    Theorem(
        "gpi.linear_gpi_bound",
        "||Q* - Q^pi|| <= 2/(1-g) (||r - r'|| + min_i ||r' - r_i|| + eps), GPI read under r'",
        ("gpi/linear",),
    ),
    # Theorem 2 in xi and in codes
    Theorem("transfer.reward_distance", "||r - r_i|| <= ||R - R_i||_p", ("thm2/reward-distance",)),
    Theorem(
        "transfer.sharp_xi", "T2' in xi: the bound for Q on N_R(xi* - xi^pi), eps = max_i N_R(xi_i - xi~_i)"
    ),
    Theorem("transfer.sharp_xi_V", "T2' in xi, for V"),
    Theorem(
        "transfer.corrected_paper_bound",
        "the paper's form, mended: N_R(xi* - xi^pi) <= 2/(1-g) (min_i ||R - R_i||_p + eps)",
        ("thm2/corrected",),
    ),
    Theorem(
        "transfer.corrected_never_tight",
        "there the left side is at most g times the right side",
    ),
    Theorem(
        "transfer.error_under_target",
        "N_R(xi - xi~) <= N_{R_i}(xi - xi~) + max |R - R_i| max sum |xi - xi~|",
    ),
    Theorem(
        "transfer.code_V", "T2'' for any code z read by w, with r' = E[w.z], for V", ("thm2/code-value",)
    ),
    Theorem("transfer.code_Q", "T2'' for any code z read by w, for Q", ("thm2/code",)),
    # Certificates
    Theorem(
        "certificates.V_lower", "any U, pi greedy on it, m <= T U - U at (s, pi(s)): V^pi >= max U + m/(1-g)"
    ),
    Theorem("certificates.V_upper", "any U, M >= max T U - max U in every state: V* <= max U + M/(1-g)"),
    Theorem(
        "certificates.greedy_certificate_V",
        "so ||V* - V^pi|| <= (M - m)/(1-g)",
        ("certificate/greedy-residual-value",),
    ),
    Theorem("certificates.greedy_certificate_Q", "and ||Q* - Q^pi|| <= g (M - m)/(1-g)"),
    Theorem("certificates.greedy_certificate_with", "Q* <= B implies V* - V^pi <= max B - max U - m/(1-g)"),
    Theorem(
        "certificates.spread_certificate_V",
        "D = T U - U: ||V* - V^pi|| <= (max D - min D)/(1-g)",
        ("certificate/residual-value",),
    ),
    Theorem(
        "certificates.spread_certificate_Q",
        "D = T U - U: ||Q* - Q^pi|| <= g (max D - min D)/(1-g)",
        ("certificate/residual",),
    ),
    Theorem(
        "certificates.Qstar_sublinear", "r <= sum a_i r_i + b implies Q* <= sum a_i Q_i* + b/(1-g), a_i >= 0"
    ),
    Theorem("certificates.Vstar_sublinear", "the same for V"),
    Theorem(
        "certificates.source_certificate_V",
        "V* <= sum a_i V_i* + (c + ||r - sum a_i r_i - c||)/(1-g), for every a_i >= 0 and c",
    ),
    Theorem("certificates.source_certificate_Q", "the same for Q"),
    Theorem(
        "certificates.source_certificate_loss",
        "with GPI on exact values V* - V^pi is at most that bound minus max_i max_a Q^{pi_i}",
    ),
    Theorem(
        "certificates.conical_value",
        "r <= sum a_i r_i + b implies Q* <= r + sum a_i (Q_i* - r_i) + g b/(1-g), a_i >= 0",
    ),
    Theorem(
        "certificates.sources_certificate_V",
        "B above such a bound at every pair, m <= T U - U at (s, pi(s)): "
        "||V* - V^pi|| <= max_s (max B - max U) - m/(1-g)",
        ("certificate/sources-value",),
    ),
    Theorem("certificates.Vstar_from_xi", "V_i*(s) = max_a sum R_i xi^{pi_i}(s, a, .) for an optimal pi_i"),
    # Attained, and false
    Theorem(
        "sharpness.sharp_attained",
        "T2' is attained for V and Q, for every g in [0, 1), d >= 0 and eps >= 0",
        ("tightness/joint", "tightness/sharp-attained-distance"),
        scope="an example of two states for every g, d and eps, Coq",
    ),
    Theorem(
        "sharpness.sharp_constants_are_best",
        "if a d + b eps bounds ||V* - V^pi|| at some g, then a >= 2g/(1-g) and b >= 2/(1-g)",
    ),
    Theorem(
        "sharpness.proxy_attained",
        "T2'' is attained for V and Q, for every g, rho, d and eps",
        ("tightness/code",),
        scope="an example for every g, rho, d and eps, Coq",
    ),
    Theorem(
        "sharpness.printed_false_in_text",
        "Theorem 2 as printed is false: A_R on the left, error in A_{R_i}",
        refutes=("thm2/printed",),
        scope="examples, Coq",
    ),
    Theorem(
        "sharpness.printed_false_in_value_norm",
        "it is false with N_R on the left, error in N_{R_i}",
        refutes=("thm2/printed-value-norm",),
        scope="an example, Coq",
    ),
    Theorem(
        "sharpness.printed_false_error_under_source",
        "it is false for every error read under R_i: N_R on the left, error even in A_{R_i}",
    ),
    Theorem(
        "sharpness.printed_false_absolute_norm",
        "it is false with A_R on the left, even for exact xi~, under any error",
    ),
    Theorem(
        "sharpness.frozen_overestimates_do_harm",
        "learning on GPI actions of frozen values: the error stays at least g/(1-g), for all g and rates",
    ),
    Theorem("sharpness.frozen_bound_is_sharp", "T1-GPI's bound is m g/(1-g) there, for every m > 1"),
)
"""In the order of the development."""


def to_markdown() -> str:
    """The table of docs/theory.md."""
    rows = (
        f"| {markdown_cell(theorem.statement)} | `{theorem.name.partition('.')[2]}` "
        f"| [`{theorem.file}`](../proofs_checks/coq/{theorem.file}) |"
        for theorem in THEOREMS
    )
    return "\n".join(["| statement | Coq theorem | file |", "|---|---|---|", *rows]) + "\n"
