(* Successor feature representations, and the operator of Proposition 2.

   Given: finite S, A and Phi, a joint kernel p(s', phi | s, a), a discount g in [0, 1), R : Phi -> F. Write

     r(s, a)         = sum_phi R(phi) p(phi | s, a)                        expected reward
     xi^pi(s, a, phi) = p(phi | s, a) + g E[xi^pi(s', pi(s'), phi)]         its one solution
     value R z       = sum_phi R(phi) z(s, a, phi)                         what z is worth under R
     T_xi z          = p + g E[z(s', b(s'), .)], b greedy on value R z      eqn:txi_definition

   Proved: Q^pi = value R xi^pi for every R; xi^pi >= 0 has the mass 1/(1-g) and is the sum of
   g^k p(phi_{t+k}). On classes of equal value T_xi is the Bellman operator, whatever b takes of tied actions.
   So it is well defined there, contracts by g, and its one fixed point is the class of xi*. With a fixed
   policy it contracts xi itself. For a code z : Phi -> F^K, psi^pi = sum_phi z(phi) xi^pi are its successor
   features, and w.psi^pi = Q^pi where R = w.z (Theorem 3). *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Marginals.
Variables (F : realFieldType) (X S Phi : finType) (p : kernel F X (prod_finType S Phi)).

Definition state_prob x s : F := \sum_phi p x (s, phi).
Definition feature_prob x phi : F := \sum_s p x (s, phi).

Lemma state_prob_ge0 x s : 0 <= state_prob x s.
Proof. by apply: sumr_ge0 => phi _; apply: prob_ge0. Qed.

Lemma feature_prob_ge0 x phi : 0 <= feature_prob x phi.
Proof. by apply: sumr_ge0 => s _; apply: prob_ge0. Qed.

Lemma state_prob_sum1 x : \sum_s state_prob x s = 1.
Proof. by rewrite pair_big /= -(prob_sum1 p x); apply: eq_bigr => -[]. Qed.

Lemma feature_prob_sum1 x : \sum_phi feature_prob x phi = 1.
Proof. by rewrite exchange_big state_prob_sum1. Qed.

Definition states : kernel F X S := Kernel state_prob_ge0 state_prob_sum1.
Definition features : kernel F X Phi := Kernel feature_prob_ge0 feature_prob_sum1.

Lemma E_states x (f : S -> F) : E states x f = E p x (fun y => f y.1).
Proof.
rewrite /E (eq_bigr (fun s => \sum_phi p x (s, phi) * f s)) => [|s _]; last by rewrite mulr_suml.
by rewrite pair_big /=; apply: eq_bigr => -[].
Qed.

Lemma E_features x (f : Phi -> F) : E features x f = E p x (fun y => f y.2).
Proof.
rewrite /E (eq_bigr (fun phi => \sum_s p x (s, phi) * f phi)) => [|phi _]; last by rewrite mulr_suml.
by rewrite exchange_big pair_big /=; apply: eq_bigr => -[].
Qed.

End Marginals.

Lemma features_sure (F : realFieldType) (X S Phi : finType) (f : X -> S * Phi) x phi :
  features (sure F f) x phi = (phi == (f x).2)%:R.
Proof.
have -> : features (sure F f) x phi = E (features (sure F f)) x (fun k => (k == phi)%:R).
  by rewrite /E; under eq_bigr do rewrite mulrC; rewrite sum_at.
by rewrite E_features E_sure eq_sym.
Qed.

(* An MDP that shows features; forgetting them leaves an MDP. *)
Record featured (F : realFieldType) (S A Phi : finType) := Featured {
  joint : kernel F (prod_finType S A) (prod_finType S Phi);
  gamma : F;
  gamma_ge0 : 0 <= gamma;
  gamma_lt1 : gamma < 1;
  an_action : A
}.

Definition dynamics (F : realFieldType) (S A Phi : finType) (W : featured F S A Phi) : mdp F S A :=
  MDP (states (joint W)) (gamma_ge0 W) (gamma_lt1 W) (an_action W).
Coercion dynamics : featured >-> mdp.

Definition value (F : realFieldType) (X Phi : finType) (R : Phi -> F) (z : X -> Phi -> F) x : F :=
  \sum_phi R phi * z x phi.

Section Xi.
Variables (F : realFieldType) (S A Phi : finType) (W : featured F S A Phi).
Implicit Types (pi b : S -> A) (R : Phi -> F) (z : S * A -> Phi -> F) (x : S * A) (s : S) (phi : Phi).

Local Notation g := (discount W).
Local Notation p := (features (joint W)).

Let g0 : 0 <= g := discount_ge0 W.

Definition expected R x : F := E p x R.
Definition xi pi x phi : F := Q W pi (fun y => p y phi) x.

(* The Bellman equation of xi, under the joint kernel, ... *)
Theorem xi_bellman pi x phi :
  xi pi x phi = E (joint W) x (fun y => (y.2 == phi)%:R + g * xi pi (y.1, pi y.1) phi).
Proof.
rewrite E_add E_scale {1}/xi Q_bellman /Tpi E_states; congr (_ + _).
rewrite -(E_features (joint W) x (fun f => (f == phi)%:R)) /E.
by under eq_bigr do rewrite mulrC; rewrite sum_at.
Qed.

(* ... which has one solution. *)
Theorem xi_unique pi z :
  (forall x phi, z x phi = p x phi + g * E (states (joint W)) x (fun s => z (s, pi s) phi)) ->
  forall x phi, z x phi = xi pi x phi.
Proof. by move=> e x phi; apply: (Q_unique (M := W) (q := fun y => z y phi)) => y; apply: e. Qed.

(* eqn:xi_definition, for every reward: xi of a policy transfers to all of them. *)
Theorem Q_is_sum_R_xi pi R x : Q W pi (expected R) x = \sum_phi R phi * xi pi x phi.
Proof.
rewrite -(Q_linear W pi R (fun phi y => p y phi) x); apply: eq_Q => y.
by apply: eq_bigr => phi _; rewrite mulrC.
Qed.

Theorem xi_mass pi x : \sum_phi xi pi x phi = 1 / (1 - g).
Proof.
have one : expected (fun=> 1) =1 (fun=> 1) by move=> y; rewrite /expected E_const.
rewrite -(Q_const W pi 1 x) -(eq_Q W pi one).
by rewrite Q_is_sum_R_xi; apply: eq_bigr => phi _; rewrite mul1r.
Qed.

Theorem xi_ge0 pi x phi : 0 <= xi pi x phi.
Proof.
apply: (le_Q (M := W) (W := fun=> 0)) => y.
by rewrite /Tpi E_const mulr0 addr0 prob_ge0.
Qed.

(* eqn:xi_definition as a series: the first n terms miss at most g^n/(1-g). *)
Theorem xi_series pi n x phi :
  let terms := \sum_(k < n) g ^+ k * iter k (Ppi W pi) (fun y => p y phi) x in
  terms <= xi pi x phi <= terms + g ^+ n / (1 - g).
Proof.
have xi_le y : xi pi y phi <= 1 / (1 - g).
  by rewrite -(xi_mass pi y) (bigD1 phi) //= ler_addl sumr_ge0 // => f _; apply: xi_ge0.
have gn : 0 <= g ^+ n by rewrite exprn_ge0.
rewrite /= /xi (Q_series W pi _ n x) ler_addl ler_add2l -[(1 - g)^-1]mul1r; apply/andP; split.
  by rewrite mulr_ge0 //; apply: Ppi_ge => y; apply: xi_ge0.
by rewrite ler_wpmul2l //; apply: Ppi_le.
Qed.

(** The operator of Proposition 2 *)

Definition Txi b z x phi : F := p x phi + g * E (states (joint W)) x (fun s => z (s, b s) phi).

(* With a fixed policy, whatever R is, it is the Bellman operator of that policy on values, ... *)
Lemma value_Txi R b z x : value R (Txi b z) x = Tpi W b (expected R) (value R z) x.
Proof.
rewrite /value /Txi; under eq_bigr do rewrite mulrDr; rewrite big_split; congr (_ + _).
  by apply: eq_bigr => phi _; rewrite mulrC.
by rewrite E_sum mulr_sumr; apply: eq_bigr => phi _; rewrite E_scale mulrCA.
Qed.

(* ... and with greedy actions it is T, whichever of tied actions is taken. *)
Theorem Txi_is_bellman R b z x : greedy b (value R z) -> value R (Txi b z) x = T W (expected R) (value R z) x.
Proof. by move=> gr; rewrite value_Txi; apply: Tpi_greedy. Qed.

Theorem Txi_well_defined R b b' z z' : greedy b (value R z) -> greedy b' (value R z') ->
  value R z =1 value R z' -> value R (Txi b z) =1 value R (Txi b' z').
Proof. by move=> gr gr' e x; rewrite !Txi_is_bellman //; apply: eq_T. Qed.

Theorem Txi_contracts_classes R b b' z z' : greedy b (value R z) -> greedy b' (value R z') ->
  dist (value R (Txi b z)) (value R (Txi b' z')) <= g * dist (value R z) (value R z').
Proof.
move=> gr gr'; apply: le_trans (T_contracts W (expected R) _ _).
by apply: le_of_eq; apply: eq_dist => x; rewrite Txi_is_bellman.
Qed.

Theorem Txi_fixed_point R b z : greedy b (value R z) ->
  (value R (Txi b z) =1 value R z <-> value R z =1 Qstar W (expected R)).
Proof.
move=> gr; split=> [fixed | e x]; last by rewrite Txi_is_bellman // e Qstar_bellman; apply: eq_T.
by apply: Qstar_unique => x; rewrite -(Txi_is_bellman x gr) fixed.
Qed.

(* The class of xi* is that fixed point, and xi* itself does not move. *)
Theorem xi_optimal_class pi R : optimal W pi (expected R) -> value R (xi pi) =1 Qstar W (expected R).
Proof. by move=> /optimalP opt x; rewrite -opt Q_is_sum_R_xi. Qed.

Lemma Txi_xi pi x phi : Txi pi (xi pi) x phi = xi pi x phi.
Proof. by rewrite /xi [RHS]Q_bellman. Qed.

(* For a fixed policy the operator contracts xi itself, in the maximum norm over (s, a, phi). *)
Theorem Txi_policy_contracts b z z' :
  dist (fun y : (S * A) * Phi => Txi b z y.1 y.2) (fun y => Txi b z' y.1 y.2) <=
  g * dist (fun y : (S * A) * Phi => z y.1 y.2) (fun y => z' y.1 y.2).
Proof.
apply: dist_le => [|[x phi] /=]; first by rewrite mulr_ge0 ?dist_ge0.
apply: le_trans (le_dist (Tpi W b (fun y => p y phi) (z^~ phi)) (Tpi W b (fun y => p y phi) (z'^~ phi)) x) _.
apply: le_trans (Tpi_contracts _ _ _ _ _) _; rewrite ler_wpmul2l //.
apply: dist_le => [|y]; first exact: dist_ge0.
exact: (le_dist (fun y : (S * A) * Phi => z y.1 y.2) (fun y => z' y.1 y.2) (y, phi)).
Qed.

(* Proposition 1: if R is not 0, every q is the value of some z, such as this one. *)
Theorem every_q_has_a_xi R phi (q : S * A -> F) : R phi != 0 ->
  value R (fun x f => q x * R f / \sum_k R k ^+ 2) =1 q.
Proof.
move=> R0 x; have norm_neq0 : \sum_k R k ^+ 2 != 0.
  rewrite gt_eqF // (bigD1 phi) //= ltr_spaddl ?sumr_ge0 // => [|k _]; last exact: sqr_ge0.
  by rewrite lt_def sqrf_eq0 R0 sqr_ge0.
rewrite /value (eq_bigr (fun f => q x / (\sum_k R k ^+ 2) * R f ^+ 2)) => [|f _].
  by rewrite -mulr_sumr divfK.
by move: (\sum_k _)^-1 => n; ring.
Qed.

(** Codes of features: successor features *)

Section Codes.
Variables (K : finType) (z : Phi -> K -> F).

Definition psi pi x k : F := Q W pi (expected (z^~ k)) x.

Theorem psi_is_image_of_xi pi x k : psi pi x k = \sum_phi z phi k * xi pi x phi.
Proof. exact: Q_is_sum_R_xi. Qed.

(* w.psi is exactly the value under the reward w.z: Theorem 3, where R = w.z. *)
Theorem psi_read_by_w pi (w : K -> F) x :
  \sum_k w k * psi pi x k = Q W pi (expected (fun phi => \sum_k w k * z phi k)) x.
Proof.
rewrite -Q_linear; apply: eq_Q => y; rewrite /expected E_sum.
by apply: eq_bigr => k _; rewrite E_scale.
Qed.

End Codes.

(* The one-hot code of discrete features: its psi is xi, and every reward is linear in it. *)
Theorem one_hot_psi_is_xi pi x phi : psi (fun f k => (f == k)%:R) pi x phi = xi pi x phi.
Proof. by rewrite psi_is_image_of_xi; apply: sum_at. Qed.

Theorem one_hot_rewards_are_linear R phi : R phi = \sum_k R k * (phi == k)%:R.
Proof. by under eq_bigr do rewrite mulrC eq_sym; rewrite sum_at. Qed.

End Xi.
