(* Theorem 2 in the paper's own terms: rewards of features, xi and its approximations.

   Given: sources R_i with optimal policies pi_i, approximations xi~_i of xi^{pi_i}, a target R with an
   optimal policy pi*, and pi greedy on max_i sum_phi R xi~_i. The paper writes ||.||_R for two functions:

     value_dist R z z'     N_R(z - z') = max over (s, a) of |sum_phi R (z - z')|      Corollary 1
     absolute_dist R z z'  A_R(z - z') = max over (s, a) of sum_phi |R (z - z')|      the text of Theorem 2

   and ||R - R'||_p = max over (s, a) of sum_phi p(phi | s, a) |R - R'|, which bounds ||r - r'||.

   `paper_bound` is the printed inequality, left side <= 2/(1-g) (min_i ||R - R_i||_p + max_i error_i), with
   the norm on the left and the error as parameters. It holds where the error is read under the target in N_R;
   the printed readings are refuted in sharpness.v. T2' follows in xi, and T2'' in codes z : Phi -> F^K read
   by w, with r' = E[w.z]: SF, SFR, tent codes and kernels are special cases. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp xi gpi.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Distances.
Variables (F : realFieldType) (X Phi : finType).
Implicit Types (R : Phi -> F) (z : X -> Phi -> F).

Definition value_dist R z z' : F := dist (value R z) (value R z').
Definition absolute_dist R z z' : F := sup (fun x => \sum_phi `|R phi * (z x phi - z' x phi)|).

Lemma value_difference R z z' x : value R z x - value R z' x = \sum_phi R phi * (z x phi - z' x phi).
Proof. by rewrite /value -sumrB; apply: eq_bigr => phi _; rewrite mulrBr. Qed.

Lemma value_dist_le_absolute R z z' : value_dist R z z' <= absolute_dist R z z'.
Proof.
apply: dist_le => [|x]; first exact: sup_ge0.
rewrite value_difference; apply: le_trans (ler_norm_sum _ _ _) _.
exact: (le_sup (fun x => \sum_phi `|R phi * (z x phi - z' x phi)|)).
Qed.

(* An approximation that is good in every feature transfers from R' to R. *)
Theorem error_under_target R R' z z' :
  value_dist R z z' <= value_dist R' z z' + dist R R' * sup (fun x => \sum_phi `|z x phi - z' x phi|).
Proof.
apply: dist_le => [|x]; first by rewrite addr_ge0 ?mulr_ge0 ?dist_ge0 ?sup_ge0.
have -> : value R z x - value R z' x =
    (value R' z x - value R' z' x) + \sum_phi (R phi - R' phi) * (z x phi - z' x phi).
  by rewrite !value_difference -big_split; apply: eq_bigr => phi _ /=; ring.
apply: le_trans (ler_norm_add _ _) (ler_add (le_dist _ _ x) _).
apply: le_trans (ler_norm_sum _ _ _) _.
apply: (@le_trans _ _ (\sum_phi dist R R' * `|z x phi - z' x phi|)).
  by apply: ler_sum => phi _; rewrite normrM ler_wpmul2r ?le_dist.
rewrite -mulr_sumr ler_wpmul2l ?dist_ge0 //.
exact: (le_sup (fun x => \sum_phi `|z x phi - z' x phi|)).
Qed.

End Distances.

Section RewardDistance.
Variables (F : realFieldType) (S A Phi : finType) (W : featured F S A Phi).
Implicit Types (R : Phi -> F).

Definition reward_dist R R' : F := sup (fun x => E (features (joint W)) x (fun phi => `|R phi - R' phi|)).

Theorem reward_distance R R' : dist (expected W R) (expected W R') <= reward_dist R R'.
Proof.
apply: dist_le => [|x]; first exact: sup_ge0.
apply: le_trans (le_sup (fun x => E (features (joint W)) x (fun phi => `|R phi - R' phi|)) x).
rewrite /expected /E -sumrB; apply: le_trans (ler_norm_sum _ _ _) _.
by apply: ler_sum => phi _; rewrite -mulrBr normrM (ger0_norm (prob_ge0 _ _ _)).
Qed.

Lemma reward_dist_ge0 R R' : 0 <= reward_dist R R'.
Proof. exact: sup_ge0. Qed.

End RewardDistance.

Section Bounds.
Variables (F : realFieldType) (S A Phi I : finType) (W : featured F S A Phi) (i0 : I).
Variables (R : Phi -> F) (Rs : I -> Phi -> F) (pis : I -> S -> A) (pi pistar : S -> A).
Hypothesis sources_optimal : forall i, optimal W (pis i) (expected W (Rs i)).
Hypothesis pistar_optimal : optimal W pistar (expected W R).

Local Notation g := (discount W).
Local Notation r := (expected W R).
Local Notation rs := (fun i => expected W (Rs i)).

Let g0 : 0 <= g := discount_ge0 W.
Let h_neq0 : 1 - g != 0 := horizon_neq0 W.
Let h_inv_ge0 : 0 <= (1 - g)^-1 := horizon_inv_ge0 W.

Lemma value_xi mu : value R (xi W mu) =1 Q W mu r.
Proof. by move=> x; rewrite Q_is_sum_R_xi. Qed.

(* The left side: the value norm of xi* - xi^pi is ||Q* - Q^pi||. *)
Lemma value_dist_is_loss mu : value_dist R (xi W pistar) (xi W mu) = dist (Qstar W r) (Q W mu r).
Proof. by apply: eq_dist => x; [apply: xi_optimal_class | apply: value_xi]. Qed.

Section Xi.
Variable xit : I -> S * A -> Phi -> F.
Hypothesis pi_gpi : gpi i0 pi (fun i => value R (xit i)).

(* eps_R of T2': errors of xi~ in value under the target. *)
Definition xi_error : F := sup (fun i => value_dist R (xi W (pis i)) (xit i)).

Lemma xi_errorE : error W r pis (fun i => value R (xit i)) = xi_error.
Proof.
apply: eq_bigr => i _; rewrite distC; apply: eq_dist => // x.
by rewrite value_xi.
Qed.

Theorem sharp_xi : value_dist R (xi W pistar) (xi W pi) <=
  2%:R * g / (1 - g) * (g * minof i0 (fun i => dist r (rs i)) + xi_error).
Proof. by rewrite value_dist_is_loss -xi_errorE; exact: sharp_Q sources_optimal pi_gpi. Qed.

Theorem sharp_xi_V : dist (Vstar W r) (V W pi r) <=
  2%:R / (1 - g) * (g * minof i0 (fun i => dist r (rs i)) + xi_error).
Proof. by rewrite -xi_errorE; exact: sharp_V sources_optimal pi_gpi. Qed.

Let paper_right := 2%:R / (1 - g) * (minof i0 (fun i => reward_dist W R (Rs i)) + xi_error).

Lemma distance_le_paper : minof i0 (fun i => dist r (rs i)) <= minof i0 (fun i => reward_dist W R (Rs i)).
Proof.
have [i <-] := minof_attained i0 (fun i => reward_dist W R (Rs i)).
exact: le_trans (minof_le _ _ i) (reward_distance _ _ _).
Qed.

(* The paper's form is never tight: the left side is at most g times the right one. *)
Theorem corrected_never_tight : value_dist R (xi W pistar) (xi W pi) <= g * paper_right.
Proof.
apply: le_trans sharp_xi _; rewrite /paper_right; set D := minof i0 (fun i => reward_dist W R (Rs i)).
have -> : g * (2%:R / (1 - g) * (D + xi_error)) = 2%:R * g / (1 - g) * (D + xi_error) by field.
rewrite ler_wpmul2l ?mulr_ge0 ?ler0n // ler_add2r; apply: le_trans distance_le_paper.
rewrite ler_pimull ?(ltW (discount_lt1 W)) //.
exact: (distance_ge0 i0 r rs).
Qed.

Lemma corrected_xi : value_dist R (xi W pistar) (xi W pi) <= paper_right.
Proof.
apply: le_trans corrected_never_tight _; rewrite ler_pimull ?(ltW (discount_lt1 W)) //.
by rewrite !mulr_ge0 ?ler0n ?addr_ge0 ?sup_ge0.
Qed.

End Xi.

(** T2'' for codes *)

Section Codes.
Variables (K : finType) (z : Phi -> K -> F) (w : K -> F) (psit : I -> S * A -> K -> F).
Hypothesis pi_gpi : gpi i0 pi (fun i => value w (psit i)).

(* What the code can express of R. *)
Local Notation r' := (expected W (fun phi => \sum_k w k * z phi k)).

Definition code_error : F := sup (fun i => value_dist w (psi W z (pis i)) (psit i)).

Lemma code_errorE : error W r' pis (fun i => value w (psit i)) = code_error.
Proof.
apply: eq_bigr => i _; rewrite distC; apply: eq_dist => // x.
by rewrite -psi_read_by_w.
Qed.

Theorem code_Q : dist (Qstar W r) (Q W pi r) <=
  2%:R * g / (1 - g) * (dist r r' + g * minof i0 (fun i => dist r' (rs i)) + code_error).
Proof. by rewrite -code_errorE; exact: proxy_Q sources_optimal pi_gpi. Qed.

Theorem code_V : dist (Vstar W r) (V W pi r) <=
  2%:R / (1 - g) * (dist r r' + g * minof i0 (fun i => dist r' (rs i)) + code_error).
Proof. by rewrite -code_errorE; exact: proxy_V sources_optimal pi_gpi. Qed.

End Codes.

End Bounds.

(** The printed inequality, with its two norms as parameters *)

(* A distance of z and z' that is read with rewards. *)
Definition reading (F : realFieldType) :=
  forall X Phi : finType, (Phi -> F) -> (X -> Phi -> F) -> (X -> Phi -> F) -> F.

(* The same with two rewards: the target and a source. *)
Definition error_reading (F : realFieldType) :=
  forall X Phi : finType, (Phi -> F) -> (Phi -> F) -> (X -> Phi -> F) -> (X -> Phi -> F) -> F.

(* `left_side R` measures xi* - xi^pi; `error R R_i` measures xi^{pi_i} - xi~_i. *)
Definition paper_bound (F : realFieldType) (left_side : reading F) (error : error_reading F) : Prop :=
  forall (S A Phi I : finType) (W : featured F S A Phi) (i0 : I) (R : Phi -> F) (Rs : I -> Phi -> F)
    (pis : I -> S -> A) (xit : I -> S * A -> Phi -> F) (pi pistar : S -> A),
  (forall i, optimal W (pis i) (expected W (Rs i))) -> optimal W pistar (expected W R) ->
  gpi i0 pi (fun i => value R (xit i)) ->
  left_side _ _ R (xi W pistar) (xi W pi) <=
  2%:R / (1 - discount W) * (minof i0 (fun i => reward_dist W R (Rs i)) +
                             sup (fun i => error _ _ R (Rs i) (xi W (pis i)) (xit i))).

(* The paper's form, mended: error read under the target, both sides in N_R. *)
Theorem corrected_paper_bound (F : realFieldType) :
  paper_bound (@value_dist F) (fun X Phi R _ => @value_dist F X Phi R).
Proof. by move=> S A Phi I W i0 R Rs pis xit pi pistar opt opt_star gr; apply: corrected_xi. Qed.
