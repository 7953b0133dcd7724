"""Every claim of the paper, as data: what it says, where it says it, and the verdict that we expect.

The paper is "Successor Feature Representations" (Reinke & Alameda-Pineda, TMLR 2023); labels are those of
its LaTeX source, sections where it gives no label, and empty for statements of ours. Claims stand in the
paper's order. Where a statement needs mending there are two: as printed and as corrected.

The expectation is a claim of ours, too: `python -m proofs_checks` computes every verdict anew and fails if
one differs. A claim that no check covers stands in `UNCHECKED` with the reason; those of `EXPERIMENTS` are
decided by results at the paper's scale.

Letters: g is gamma; r(s, a) the expected reward; d_i = sup |r - r_i|; eps_R the error of the xi~_i in value
under R; N_R the value norm of Corollary 1, A_R the absolute norm of the text of Theorem 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfr_theory.claims import Claim, Verdict

PROVED, SUPPORTED, REFUTED = Verdict.PROVED, Verdict.SUPPORTED, Verdict.REFUTED
NEEDS_ASSUMPTION, NOT_CHECKED = Verdict.NEEDS_ASSUMPTION, Verdict.NOT_CHECKED
REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = (
    Verdict.REPRODUCED,
    Verdict.NOT_REPRODUCED,
    Verdict.INCONCLUSIVE,
)


@dataclass(frozen=True)
class Section:
    """A part of the paper with its claims, in order."""

    title: str
    claims: tuple[Claim, ...]


BACKGROUND = Section("Background", (
    Claim("bg/q-bellman", "eq:q_function", "Q of a policy satisfies the Bellman equation", PROVED),
    Claim("bg/q-learning-printed", "eq:q_learning",
          "Q-learning as printed, without gamma before the max, learns Q*", REFUTED),
    Claim("bg/q-learning-corrected", "eq:q_learning",
          "With gamma before the max the mean update is T Q - Q, and Q* is its fixed point", PROVED),
    Claim("bg/sr", "eq:sr_q",
          "Q(s, a) = sum over s' of M(s, a, s') R(s') for rewards of the current state", PROVED),
    Claim("bg/psi-linear", "eq:psi_function", "Q = psi.w for linear rewards", PROVED),
    Claim("bg/psi-transfer", "c:background_sf_gpi",
          "psi of a policy gives its Q under any other linear task", PROVED),
    Claim("bg/psi-bellman-printed", "eq:psi_function_bellman",
          "psi(s, a) = E[phi_{t+1} + g psi(s_{t+1}, .)]", REFUTED),
    Claim("bg/psi-bellman-corrected", "eq:psi_function_bellman",
          "psi(s, a) = E[phi_t + g psi(s_{t+1}, .)]", PROVED),
    Claim("gpi/linear", "eq:gpi_guarantee",
          "The linear GPI bound holds if GPI reads the psi_j with the weights of the linear task i",
          SUPPORTED),
    Claim("bg/gpi-linear-wrong-reading", "eq:gpi_guarantee",
          "The bound holds with i the closest linear task whatever weights GPI uses", REFUTED),
    Claim("gpi/two-stage", "eq:gpi_policy",
          "Choosing first the policy c, then its best action, as the listings do, is GPI", PROVED),
))  # fmt: skip

DEFINITION = Section("Successor feature representations", (
    Claim("xi/no-linear-decomposition", "sec. 3.1",
          "For general rewards Q cannot be split linearly into feature dynamics and rewards as in SF",
          REFUTED),
    Claim("xi/definition", "eqn:xi_definition", "Q(s, a) = sum over phi of R(phi) xi(s, a, phi)", PROVED),
    Claim("xi/series", "eqn:xi_definition",
          "xi, the sum of g^k p(phi_{t+k}), satisfies xi = p + g E[xi(s_{t+1}, .)]", PROVED),
    Claim("xi/mass", "", "The sum over phi of xi is 1/(1-g)", PROVED),
    Claim("xi/transfer", "sec. 3.3", "xi of a policy gives its Q under any other reward function", PROVED),
    Claim("xi/l1-not-enough", "prop:xi-q-equivalence",
          "On a continuum, R in L1 is enough for Q = integral of R xi to be finite", REFUTED),
    Claim("xi/finite-integral", "eqn:xi_definition",
          "Sum and integral may be exchanged if the integral of |R| xi is finite", PROVED),
))  # fmt: skip

CONVERGENCE = Section("Proposition 1, Corollary 1, Proposition 2", (
    Claim("prop1/printed", "prop:xi-q-equivalence",
          "Classes of xi under R correspond one to one to bounded Q, for every R in L1", NEEDS_ASSUMPTION),
    Claim("prop1/corrected", "prop:xi-q-equivalence",
          "The correspondence is one to one if R is not 0: xi = Q(s, a) R / ||R||^2 reaches every Q", PROVED),
    Claim("cor1/isometry", "cor:xi-banach",
          "N_R(xi) = ||Q|| depends on the class alone and is a norm there", PROVED),
    Claim("cor1/two-norms-differ", "cor:xi-banach",
          "The norm ||.||_R of Corollary 1 is the ||.||_R that Theorem 2 defines", REFUTED),
    Claim("prop2/well-defined", "prop:xi-fixed-point",
          "The class of T_xi xi depends on the class of xi alone", PROVED),
    Claim("lemma/max-difference", "prop:xi-fixed-point", "|max f - max h| <= max |f - h|", PROVED),
    Claim("prop2/contraction", "prop:xi-fixed-point", "T_R contracts classes by g in N_R", PROVED),
    Claim("prop2/bellman-on-q", "prop:xi-fixed-point",
          "Q of T_xi xi is the Bellman operator applied to Q of xi", PROVED),
    Claim("prop2/fixed-point", "prop:xi-fixed-point",
          "T_R has exactly one fixed point, the class of xi*, and iterating it converges there", PROVED),
    Claim("prop2/txi-contraction", "eqn:txi_definition", "T_xi itself is a contraction on xi", REFUTED),
    Claim("prop2/policy-operator-contraction", "eqn:txi_definition",
          "For a fixed policy the operator is a g-contraction on xi", PROVED),
))  # fmt: skip

LEARNING = Section("Theorem 1 and the learning rules", (
    Claim("thm1/printed", "th:convergence-xi-learning",
          "Visits for ever and one Robbins-Monro sequence alpha_k make the class of xi_k converge", REFUTED),
    Claim("thm1/corrected", "th:convergence-xi-learning",
          "T1': with Robbins-Monro rates for each pair (s, a) the class converges to that of xi*", SUPPORTED),
    Claim("thm1/pathwise", "eqn:xi_learning",
          "Along any path the sum of R xi_n is the Q-learning iterate, exactly", PROVED),
    Claim("thm1/pointwise", "",
          "If the optimal action is unique in every state, xi_n converges in every feature", SUPPORTED),
    Claim("thm1/oscillation", "", "xi_n itself converges also where greedy actions tie", REFUTED),
    Claim("thm1/kernel-meaningless", "sec. 3.2",
          "Additive functions of zero reward are meaningless for reinforcement learning", REFUTED),
    Claim("thm1/continuous-features", "c:appendix_relation_xi_and_sf",
          "The convergence proof also holds for continuous features", NOT_CHECKED),
    Claim("mf/indicator-unbiased", "eq:stoch_xi_update",
          "The indicator of the observed feature has mean p(phi | s, a), for discrete features", PROVED),
    Claim("mf/indicator-density", "c:appendix_proof_convergence",
          "The mean of the indicator is the exact distribution, also for densities", REFUTED),
    Claim("mf/learns-distribution", "eq:stoch_xi_update",
          "If the learning rate decreases over time, the update learns p(phi | s, a)", NEEDS_ASSUMPTION),
    Claim("mb/bias-formula", "eq:sf_model_update",
          "After n updates the mean error of the model is (1 - beta)^n (p~_0 - p)", PROVED),
    Claim("mb/unbiased", "c:appendix_proof_convergence", "The one-step model p~ is unbiased", REFUTED),
    Claim("mb/exact-identity", "",
          "r~_n = R(phi_n) - ((1-beta)/beta) (r~_n - r~_{n-1}): the step behind T1-MB", PROVED),
    Claim("mb/beta-zero", "eq:sf_model_update",
          "beta in [0, 1] as allowed: the model learns also at beta = 0", REFUTED),
    Claim("mb/convergence", "c:appendix_mb_xi",
          "T1-MB: for constant beta in (0, 1] and decreasing alpha the classes converge", SUPPORTED),
    Claim("mb/variance", "c:appendix_mb_xi",
          "MB SFRQ-learning reduces the variance of the update", NEEDS_ASSUMPTION),
    Claim("mb/model-transfers", "c:appendix_mb_xi",
          "The model is independent of reward function and policy and can be kept over tasks", NOT_CHECKED),
    Claim("gpi-learning/covered-by-theorem-1", "",
          "Theorem 1 extends to targets with the GPI action, which Algorithms 3-5 use", NEEDS_ASSUMPTION),
    Claim("gpi-learning/frozen-limit", "",
          "T1-GPI: with frozen stored values limsup ||Q_n - Q*|| <= g eta/(1-g)^2", SUPPORTED),
    Claim("lemma/comparison", "",
          "T1-MB, T1-GPI: the inequalities of the comparison lemma for asynchronous recursions", PROVED),
    Claim("gpi-learning/step-bootstrap", "",
          "T1-GPI, step 1: max_a Q - c <= Q(s', abar) <= max_a Q and Q(s', abar) >= max_a M - c", PROVED),
    Claim("gpi-learning/step-limit", "", "T1-GPI, step 2: the limits combine to g eta/(1-g)^2", PROVED),
))  # fmt: skip

TRANSFER = Section("Theorem 2", (
    Claim("thm2/printed", "t:xi_gpi_formulation",
          "A_R(xi* - xi^pi) <= 2/(1-g) (min ||R - R_i||_p + eps), eps in A_{R_i}: the norms of the text",
          REFUTED),
    Claim("thm2/printed-value-norm", "t:xi_gpi_formulation",
          "The same with the norm of Corollary 1 on both sides, eps in N_{R_i}", REFUTED),
    Claim("thm2/printed-no-ties", "t:xi_gpi_formulation",
          "As printed, it holds at least where no optimal and no GPI action is tied", REFUTED),
    Claim("thm2/printed-nonnegative-mass-preserving", "t:xi_gpi_formulation",
          "As printed, it holds at least for xi~ >= 0 of mass 1/(1-g)", REFUTED),
    Claim("thm1-thm2/compose", "t:xi_gpi_formulation",
          "With xi~ from iterating T_xi, eps -> 0, and the bound tends to 2/(1-g) min ||R - R_i||_p",
          REFUTED),
    Claim("thm2/reward-distance", "c:appendix_proof_performance_bound",
          "sup |r - r_i| <= ||R - R_i||_p", PROVED),
    Claim("thm2/step-greedy", "", "T2', step 1: U(s, pi(s)) >= max U(s, .) - 2 eps_R, U = max Q_i", PROVED),
    Claim("thm2/step-improvement", "", "T2', step 2: T^pi U >= T U - 2g eps_R", PROVED),
    Claim("thm2/step-monotone", "", "T2', step 3: T U >= U", PROVED),
    Claim("thm2/step-telescoping", "", "T2', step 4: Q^pi >= T U - 2g eps_R/(1-g)", PROVED),
    Claim("thm2/step-contraction", "", "T2', step 5: Q* - T U <= g ||Q* - U||", PROVED),
    Claim("thm2/step-transfer", "", "T2', step 6: ||Q* - Q^{pi_i}|| <= 2g d_i/(1-g)", PROVED),
    Claim("thm2/step-value", "", "T2', for V: V* - V^pi <= ||Q* - U|| + 2 eps_R/(1-g)", PROVED),
    Claim("thm2/corrected", "",
          "||Q* - Q^pi|| <= 2/(1-g) (min ||R - R_i||_p + eps_R): eps read under the target", PROVED),
    Claim("thm2/sharp", "", "T2': ||Q* - Q^pi|| <= 2g/(1-g) (g min d_i + eps_R)", PROVED),
    Claim("thm2/sharp-value", "", "T2': ||V* - V^pi|| <= 2/(1-g) (g min d_i + eps_R)", PROVED),
    Claim("thm2/sharp-affine", "", "T2' for Q with d_i up to scale and shift of r_i", SUPPORTED),
    Claim("thm2/sharp-value-affine", "", "T2' for V with d_i up to scale and shift of r_i", SUPPORTED),
    Claim("tightness/sharp-attained-epsilon", "",
          "The eps part of T2' is attained: with d = 0 the ratio is exactly 1, one state, for Q and V",
          PROVED),
    Claim("tightness/sharp-attained-distance", "",
          "The d part of T2' is attained: with exact xi the ratio is exactly 1, two states, for Q and V",
          PROVED),
    Claim("tightness/joint", "",
          "Both parts of T2' are attained at once, for d > 0 and eps > 0 in any proportion, with two states",
          PROVED),
    Claim("tightness/no-tie-limit", "",
          "Ties are not needed: problems without any come arbitrarily close to T2'", SUPPORTED),
    Claim("tightness/sharp-never-exceeded", "",
          "No choice of dynamics, policies, rewards and errors exceeds T2'", SUPPORTED),
    Claim("tightness/printed-never-tight", "t:xi_gpi_formulation",
          "The paper's constant is never tight for Q unless both sides are 0: the worst ratio is g, g^2 with "
          "exact xi",
          SUPPORTED),
))  # fmt: skip

RELATION = Section("Relation to classical SF", (
    Claim("thm3/values", "c:appendix_relation_xi_classical_sf_linear_case",
          "Theorem 3: for linear rewards the sum of R xi equals psi.w", PROVED),
    Claim("thm3/equivalent-frameworks", "c:appendix_relation_xi_classical_sf_linear_case",
          "Theorem 3: the two frameworks are equivalent", REFUTED),
    Claim("onehot/discrete", "c:appendix_relation_xi_and_sf",
          "On discrete features, psi of the one-hot code is xi and rewards are linear in it", PROVED),
    Claim("tent/binary", "c:appendix_relation_xi_and_sf",
          "For discretised features binary index features can be constructed (the code that CSFR uses)",
          REFUTED),
    Claim("continuous/no-linear-reformulation", "c:appendix_relation_xi_and_sf",
          "On a continuum no reformulation with linear rewards is possible", REFUTED),
    Claim("continuous/no-linear-for-all-rewards", "c:appendix_relation_xi_and_sf",
          "On a continuum no finite feature vector makes all reward functions linear at once", PROVED),
))  # fmt: skip

CONTINUOUS = Section("Continuous features: CSFR", (
    Claim("csfr/decomposition", "eq:racer_env_q_decomposition",
          "For R = sum of r_k(phi_k), Q is the sum of the integrals of r_k xi_k, for dependent features too",
          PROVED),
    Claim("tent/printed-centres", "c:appendix_cmf_xi",
          "The centres with 0 < j < U are U = 11 from 0 to 1", REFUTED),
    Claim("tent/printed-misbracketed", "c:appendix_cmf_xi",
          "u = max(0, (1 - |x - phi|)/Delta) is 1 at the centre and 0 at the neighbours", REFUTED),
    Claim("tent/partition", "algo:CMFXI", "The code max(0, 1 - |x - phi|/Delta) sums to 1 on [0, 1]", PROVED),
    Claim("tent/reproduces", "algo:CMFXI",
          "The tent code reproduces phi: the sum of x_j u_j is phi on [0, 1]", PROVED),
    Claim("csfr/interpolant-bias", "c:appendix_cmf_xi",
          "CSFR's Q is that of the piecewise linear interpolant, off by <= sum of sup |r_k - I r_k| / (1-g)",
          PROVED),
    Claim("continuous/hoelder-gap", "t:xi_gpi_formulation",
          "R_i in L1 is enough for the norms of Theorem 2 to be finite on a continuum", REFUTED),
    Claim("clip/absolute-error", "c:appendix_cmf_xi",
          "Clipping xi~ at 0 never increases its absolute error", PROVED),
    Claim("clip/q-error", "c:appendix_cmf_xi", "Clipping xi~ at 0 never increases the error of Q", REFUTED),
))  # fmt: skip

ALGORITHMS = Section("Listings and procedures", (
    Claim("alg/half-rates", "c:app_experimental_procedure",
          "SGD(alpha) on a squared error moves by 2 alpha times it, so half the rate is the tabular rule",
          PROVED),
    Claim("alg/notation-arg", "algo:sfql",
          "argmax_a arg_k in Algorithms 2-5 means argmax_a max_k", NOT_CHECKED),
    Claim("alg/sfql-updates-given-weights", "algo:sfql",
          "Updating w although it is given, as listed, changes nothing", NEEDS_ASSUMPTION),
    Claim("alg/csfr-listing-printed", "algo:CMFXI",
          "Bootstrapping on the best action of s_t, as listed, learns Q*", REFUTED),
    Claim("alg/csfr-listing-corrected", "algo:CMFXI",
          "Bootstrapping on the best action of s_{t+1} has the fixed point Q*", PROVED),
    Claim("alg/csfr-listing-index", "algo:CMFXI",
          "xi^j in the listing's choice of the action means xi^c", NOT_CHECKED),
    Claim("alg/loss-sum-or-mean", "eq:loss_cxi",
          "The listing's loss (a sum over k) and eq:loss_cxi (a mean) give the same updates", REFUTED),
    Claim("alg/linear-model-fitting-printed", "eq:linear_model_fitting",
          "The printed step descends the mean absolute error of the linear model", REFUTED),
    Claim("alg/linear-model-fitting-corrected", "eq:linear_model_fitting",
          "With sign(R - phi.w) phi in the sum it is a subgradient step", PROVED),
    Claim("alg/state-dimension", "c:environment_object_collection",
          "The state of object collection lies in R^112", REFUTED),
    Claim("alg/feature-input-dimension", "c:appendix_feature_learning",
          "Two concatenated states lie in R^226", PROVED),
    Claim("alg/object-grid-total", "c:app_experimental_procedure",
          "The object grid has 100 parameter combinations", REFUTED),
    Claim("alg/object-grid-names", "c:app_experimental_procedure",
          "The object grid lists the agents that were evaluated there (it says CSFR-3)", REFUTED),
    Claim("alg/racer-grid-total", "tbl:racer_parameter_settings",
          "The racer grid has 72 parameter combinations", PROVED),
    Claim("alg/racer-three-settings", "tbl:racer_parameter_settings",
          "Each learning rate of the racer was evaluated for three settings", REFUTED),
    Claim("alg/racer-feature-range", "c:appendix_racer_env",
          "Distances on the unit torus fill [0, 1]", REFUTED),
    Claim("alg/racer-time-limit", "c:appendix_racer_env",
          "The racer's 200-step limit is (or is not) a terminal state", NOT_CHECKED),
    Claim("alg/gpi-cost", "c:discussion",
          "The cost of GPI grows linearly with the number of tasks", NOT_CHECKED),
    Claim("alg/joint-bins", "c:discussion",
          "Discretising all feature combinations grows exponentially with the dimension", NOT_CHECKED),
))  # fmt: skip

NONLINEARITY = Section("Non-linearity of the general rewards", (
    Claim("nonlinearity/not-linear", "c:appendix_object_collection_env_environment",
          "Reward functions of the general tasks cannot be linearly decomposed", NEEDS_ASSUMPTION),
    Claim("nonlinearity/mean-error", "fig:object_collection_env",
          "There are general rewards whose best linear model has a mean absolute error of 1.25 to 1.75",
          REFUTED),
    Claim("nonlinearity/sum-error", "fig:object_collection_env",
          "Read as a sum, the least absolute error is |R_2 - R_3 - R_4 + R_5|, and all seven levels occur",
          PROVED),
    Claim("nonlinearity/level-probabilities", "",
          "A random reward falls into the seven levels with probability 8131, 7789, ..., 3379 over 49152",
          PROVED),
))  # fmt: skip

STATISTICS = Section("Statistics of the printed tables", (
    Claim("stats/asymptotic-test", "fig:results_total_reward",
          "The printed p-values are attainable by the asymptotic Mann-Whitney test at n = 10 vs 10", PROVED),
    Claim("stats/exact-test", "fig:results_total_reward",
          "The printed p-values are attainable by the exact Mann-Whitney test", REFUTED),
    Claim("stats/exact-test-conclusions", "",
          "The exact test would lead to the same conclusions at the 5% level", PROVED),
    Claim("stats/reported-differences", "c:environment_object_collection",
          "All differences that the text reports are significant (p < 0.05) in its tables", REFUTED),
))  # fmt: skip

EXPERIMENTS = Section("Experimental results", (
    Claim("results/object-linear-sfr-above-sf", "fig:object_collection_env",
          "Object collection, linear: SFR reaches a higher average reward than SF and Q", REPRODUCED),
    Claim("results/object-general-sfr-above-sf", "fig:object_collection_env",
          "Object collection, general: SFR reaches a higher average reward than SF and Q", REPRODUCED),
    Claim("results/object-linear-sfr-best", "fig:object_collection_env",
          "Object collection, linear: SFR reaches the highest average reward of all agents", NOT_CHECKED),
    Claim("results/object-general-sfr-best", "fig:object_collection_env",
          "Object collection, general: SFR reaches the highest average reward of all agents", NOT_CHECKED),
    Claim("results/object-learned-rewards", "c:environment_object_collection",
          "SFR-R outperforms SF-R and Q, linear and general", NOT_CHECKED),
    Claim("results/object-learned-features", "c:environment_object_collection",
          "SF-4 and CSFR-4 perform alike, slightly above SFR-R", NOT_CHECKED),
    Claim("results/object-eight-features", "c:environment_object_collection",
          "Eight learned features perform below four", NOT_CHECKED),
    Claim("results/object-stronger-for-general", "fig:results_total_reward",
          "SFR's advantage over SF is larger for general than for linear rewards", REPRODUCED),
    Claim("results/object-linear-model-based", "fig:results_total_reward",
          "Linear: no significant difference between SFR and MB SFR (p = 0.186)", NOT_REPRODUCED),
    Claim("results/nonlinearity-trend", "fig:object_collection_env",
          "SF / SFR decreases with the non-linearity of the rewards", REPRODUCED),
    Claim("results/nonlinearity-near-linear", "fig:object_collection_env",
          "At error 0.125 SF and SFR perform alike", INCONCLUSIVE),
    Claim("results/nonlinearity-half", "fig:object_collection_env",
          "At error 1.625 SF reaches less than 50% of SFR", NOT_REPRODUCED),
    Claim("results/racer-csfr-above-q", "fig:racer_env",
          "Racer: CSFR reaches a higher performance than Q and SF", REPRODUCED),
    Claim("results/racer-csfr-best", "fig:racer_env",
          "Racer: CSFR reaches the highest performance of all", NOT_CHECKED),
    Claim("results/racer-sf-below-q", "fig:racer_env",
          "Racer: SF and all agents with learned rewards or features stay below Q", NOT_CHECKED),
    Claim("results/barreto-sfr-best", "fig:barreto_env_results_total_reward",
          "Barreto's environment: SFR outperforms SF in speed and asymptotically", INCONCLUSIVE),
    Claim("results/barreto-model-based", "fig:barreto_env_results_total_reward",
          "Barreto's environment: no significant difference between MB SFR and SF (p = 0.121)",
          NOT_REPRODUCED),
    Claim("results/barreto-early-tasks", "c:appendix_barreto_task_results",
          "MB SFR learns faster than SF in the first 40 tasks, the -R agents of SFR in the first 70",
          NOT_REPRODUCED),
    Claim("results/barreto-sf-beats-q", "c:appendix_barreto_task_results",
          "All SF and SFR agents clearly outperform Q-learning", NOT_CHECKED),
    Claim("results/single-task", "c:discussion",
          "SFRQ-learning outperforms SF also in single tasks without transfer", REPRODUCED),
    Claim("results/easier-approximation", "c:discussion",
          "Hypothesis: xi is easier to approximate than psi", NOT_CHECKED),
    Claim("results/p-values", "fig:results_total_reward", "The 163 printed p-values", NOT_REPRODUCED),
))  # fmt: skip

SECTIONS = (
    BACKGROUND,
    DEFINITION,
    CONVERGENCE,
    LEARNING,
    TRANSFER,
    RELATION,
    CONTINUOUS,
    ALGORITHMS,
    NONLINEARITY,
    STATISTICS,
    EXPERIMENTS,
)

CATALOGUE: Mapping[str, Claim] = {claim.id: claim for section in SECTIONS for claim in section.claims}

UNCHECKED: Mapping[str, str] = {
    "thm1/continuous-features": "nothing precise to check: with known p its conditions are those of T1'; "
    "what is missing for densities is mf/indicator-density and xi/l1-not-enough",
    "mb/model-transfers": "immediate: eq:sf_model_update contains neither R nor the policy",
    "alg/notation-arg": "notation, not mathematics; gpi/two-stage checks the reading that we use",
    "alg/csfr-listing-index": "notation: j is not bound in that line, c is what line 4 computed",
    "alg/racer-time-limit": "the paper does not say; an option of the environment",
    "alg/gpi-cost": "immediate: GPI evaluates one function for each stored task",
    "alg/joint-bins": "immediate: U bins in n dimensions are U^n cells",
}
"""Why a claim has no check: claim id -> reason."""
