(* Certificates: bounds on a loss from quantities that can be computed without knowing Q*.

   (a) From the model alone (MacQueen's bounds). For any U (such as max_i sum_phi R xi~_i, whatever the xi~_i
       are), pi greedy on U, D = T U - U, any m <= D(s, pi(s)) and any M >= max_a (T U)(s, a) - max_a U(s, a)
       for all s; min D and max D will do:

         max_a U(s, a) + m/(1-g) <= V^pi(s) <= V*(s) <= max_a U(s, a) + M/(1-g)
         ||V* - V^pi|| <= (M - m)/(1-g),   ||Q* - Q^pi|| <= g (M - m)/(1-g).

   (b) From solved sources. Optimal values are sublinear in the reward, so for every a_i >= 0 and every c

         V*(s) <= sum_i a_i V_i*(s) + (c + ||r - sum_i a_i r_i - c||)/(1-g),

       and the same for Q. V_i*(s) is max_a sum_phi R_i xi^{pi_i}(s, a, phi), with the maximum over a: where a
       state is never entered, pi_i may be optimal in the sense of Q and yet take a poor action there.

   (c) |Q - q| <= (residual of q)/(1-g): `Qstar_residual` and `Q_residual` in mdp.v. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp xi gpi.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** (a) *)

Section Spread.
Variables (F : realFieldType) (S A : finType) (M : mdp F S A).
Variables (r U : S * A -> F) (pi : S -> A).
Hypothesis pi_greedy : greedy pi U.

Local Notation g := (discount M).
Local Notation D := (fun x => T M r U x - U x).

Let g0 : 0 <= g := discount_ge0 M.
Let h_neq0 : 1 - g != 0 := horizon_neq0 M.
Let h_inv_ge0 : 0 <= (1 - g)^-1 := horizon_inv_ge0 M.

Section Bounds.
Variables (low high : F).
Hypothesis low_le : forall s, low <= D (s, pi s).
Hypothesis le_high : forall s, best M (T M r U) s - best M U s <= high.

Theorem V_lower s : best M U s + low / (1 - g) <= V M pi r s.
Proof.
rewrite -ler_subr_addr -ler_subl_addl -mulNr.
apply: (self_bound (D := fun s => best M U s - V M pi r s)) (discount_lt1 M) _ _ => b bound t.
have step : T M r U (t, pi t) <= V M pi r t + g * b.
  rewrite /V QE -addrA ler_add2l -mulrDr -E_addc ler_wpmul2l // E_mono // => u.
  by rewrite -ler_subl_addl.
apply: (le_by (d := V M pi r t + g * b - T M r U (t, pi t) + (D (t, pi t) - low))).
  by rewrite addr_ge0 ?subr_ge0.
by rewrite (best_greedy M t pi_greedy); ring.
Qed.

Theorem V_upper s : Vstar M r s <= best M U s + high / (1 - g).
Proof.
rewrite -ler_subl_addl.
apply: (self_bound (D := fun s => Vstar M r s - best M U s)) (discount_lt1 M) _ _ => b bound t.
have step : Vstar M r t <= best M (T M r U) t + g * b.
  apply: best_le_add => x; rewrite QstarE -addrA ler_add2l -mulrDr -E_addc ler_wpmul2l // E_mono // => u.
  by rewrite -ler_subl_addl.
rewrite ler_subl_addl addrA; apply: le_trans step _; rewrite ler_add2r.
by rewrite -ler_subl_addl.
Qed.

Theorem greedy_certificate_V : 0 <= high - low -> dist (Vstar M r) (V M pi r) <= (high - low) / (1 - g).
Proof.
move=> spread_ge0; apply: dist_Vstar_le => [|s]; first by rewrite mulr_ge0.
apply: le_trans (V_upper s) _.
apply: (le_by (d := V M pi r s - (best M U s + low / (1 - g)))); last by field.
by rewrite subr_ge0 V_lower.
Qed.

Theorem greedy_certificate_Q : 0 <= high - low -> dist (Qstar M r) (Q M pi r) <= g * (high - low) / (1 - g).
Proof.
move=> spread_ge0; rewrite -mulrA; apply: dist_Qstar_le => [|x]; first by rewrite !mulr_ge0.
apply: Q_loss_of_V_loss => s.
apply: le_trans (dist_upper (Vstar M r) (V M pi r) s) _; rewrite ler_add2l.
exact: greedy_certificate_V.
Qed.

(* With any other upper bound B of Q*, such as that of (b). *)
Theorem greedy_certificate_with B s : (forall x, Qstar M r x <= B x) ->
  Vstar M r s - V M pi r s <= best M B s - best M U s - low / (1 - g).
Proof.
move=> above; rewrite -addrA -opprD; apply: ler_sub (V_lower s).
exact: maxof_mono.
Qed.

End Bounds.

(* There is at least the pair x0. *)
Variable x0 : S * A.
Local Notation spread := (maxof x0 D - minof x0 D).

Let low_le s : minof x0 D <= D (s, pi s) := minof_le x0 D (s, pi s).

Let le_high s : best M (T M r U) s - best M U s <= maxof x0 D.
Proof.
rewrite ler_subl_addl; apply: best_le_add => x.
by rewrite -ler_subl_addl; apply: (le_maxof x0 D x).
Qed.

Let spread_ge0 : 0 <= spread.
Proof. by rewrite subr_ge0 (le_trans (minof_le x0 D x0)) ?(le_maxof x0 D x0). Qed.

Theorem spread_certificate_V : dist (Vstar M r) (V M pi r) <= spread / (1 - g).
Proof. exact: greedy_certificate_V low_le le_high spread_ge0. Qed.

Theorem spread_certificate_Q : dist (Qstar M r) (Q M pi r) <= g * spread / (1 - g).
Proof. exact: greedy_certificate_Q low_le le_high spread_ge0. Qed.

End Spread.

(** (b) *)

Section Combination.
Variables (F : realFieldType) (S A I : finType) (M : mdp F S A).
Variables (r : S * A -> F) (rs : I -> S * A -> F) (a : I -> F) (b : F).
Hypothesis a_ge0 : forall i, 0 <= a i.

Local Notation g := (discount M).

(* The optimal value is sublinear in the reward, ... *)
Theorem Qstar_sublinear : (forall x, r x <= \sum_i a i * rs i x + b) ->
  forall x, Qstar M r x <= \sum_i a i * Qstar M (rs i) x + b / (1 - g).
Proof.
move=> below; apply: (T_compare (M := M) (r := r)) below => y; first by rewrite -Qstar_bellman.
rewrite /T; under [X in _ <= X]eq_bigr do rewrite QstarE mulrDr.
rewrite big_split ler_add2l /=.
under [X in _ <= X]eq_bigr do rewrite mulrCA -E_scale.
rewrite -mulr_sumr -E_sum ler_wpmul2l ?discount_ge0 // E_mono // => s.
by apply: best_le => c; apply: ler_sum => i _; rewrite ler_wpmul2l // le_best.
Qed.

Theorem Vstar_sublinear : (forall x, r x <= \sum_i a i * rs i x + b) ->
  forall s, Vstar M r s <= \sum_i a i * Vstar M (rs i) s + b / (1 - g).
Proof.
move=> below s; apply: best_le => c; apply: le_trans (Qstar_sublinear below _) _.
by rewrite ler_add2r; apply: ler_sum => i _; rewrite ler_wpmul2l // le_best.
Qed.

(* One step ahead the reward itself is read, and only what comes later is bounded. *)
Theorem conical_value : (forall x, r x <= \sum_i a i * rs i x + b) ->
  forall x, Qstar M r x <= r x + \sum_i a i * (Qstar M (rs i) x - rs i x) + g * (b / (1 - g)).
Proof.
move=> below x; rewrite QstarE -addrA ler_add2l.
have -> : \sum_i a i * (Qstar M (rs i) x - rs i x) = g * E (next M) x (fun s => \sum_i a i * Vstar M (rs i) s).
  rewrite E_sum mulr_sumr; apply: eq_bigr => i _.
  by rewrite QstarE addrC addKr E_scale mulrCA.
rewrite -mulrDr ler_wpmul2l ?discount_ge0 // -E_addc E_mono // => s.
exact: Vstar_sublinear.
Qed.

End Combination.

(* ... so solved sources bound the target from above. *)
Section Sources.
Variables (F : realFieldType) (S A I : finType) (M : mdp F S A).
Variables (r : S * A -> F) (rs : I -> S * A -> F) (a : I -> F) (c : F).
Hypothesis a_ge0 : forall i, 0 <= a i.

Local Notation g := (discount M).
Local Notation combination := (fun x => \sum_i a i * rs i x + c).

Let below x : r x <= \sum_i a i * rs i x + (c + dist r combination).
Proof. by rewrite addrA; apply: (dist_upper r combination). Qed.

Theorem source_certificate_Q x :
  Qstar M r x <= \sum_i a i * Qstar M (rs i) x + (c + dist r combination) / (1 - g).
Proof. exact: Qstar_sublinear. Qed.

Theorem source_certificate_V s :
  Vstar M r s <= \sum_i a i * Vstar M (rs i) s + (c + dist r combination) / (1 - g).
Proof. exact: Vstar_sublinear. Qed.

(* With GPI on exact values, whose V^pi(s) is at least max_i max_a Q^{pi_i}(s, a): what it loses in s. *)
Theorem source_certificate_loss (i0 : I) (pis : I -> S -> A) (pi : S -> A) s :
  gpi i0 pi (fun i => Q M (pis i) r) ->
  Vstar M r s - V M pi r s <= \sum_i a i * Vstar M (rs i) s + (c + dist r combination) / (1 - g) -
    maxof i0 (fun i => best M (Q M (pis i) r) s).
Proof.
move=> pi_gpi; apply: ler_sub (source_certificate_V s) _.
apply: maxof_le => i; apply: best_le => b.
apply: le_trans (le_over_sources i0 (fun i => Q M (pis i) r) i (s, b)) (le_trans (pi_gpi s b) _).
by apply: maxof_le => j; apply: gpi_improves.
Qed.

End Sources.

(* (a) and (b) together: V* from the sources, V^pi from the residual of U. B is at every pair at least what
   some multipliers of that pair give; the smallest such B is a linear programme for each pair. *)
Section SourcesAndResidual.
Variables (F : realFieldType) (S A I : finType) (M : mdp F S A).
Variables (r U B : S * A -> F) (rs : I -> S * A -> F) (pi : S -> A) (low top : F).

Local Notation g := (discount M).

Hypothesis pi_greedy : greedy pi U.
Hypothesis low_le : forall s, low <= T M r U (s, pi s) - U (s, pi s).
Hypothesis B_covers : forall x, exists a b, [/\ forall i, 0 <= a i,
  forall y, r y <= \sum_i a i * rs i y + b
  & r x + \sum_i a i * (Qstar M (rs i) x - rs i x) + g * (b / (1 - g)) <= B x].
Hypothesis le_top : forall s, best M B s - best M U s <= top.

Theorem sources_certificate_V : 0 <= top - low / (1 - g) ->
  dist (Vstar M r) (V M pi r) <= top - low / (1 - g).
Proof.
move=> right_ge0; apply: dist_Vstar_le => // s.
have above x : Qstar M r x <= B x.
  have [a [b [a_ge0 below leB]]] := B_covers x.
  by apply: le_trans leB; apply: conical_value.
rewrite -ler_subl_addl; apply: le_trans (greedy_certificate_with pi_greedy low_le s above) _.
by rewrite ler_add2r.
Qed.

End SourcesAndResidual.

(* V_i* of a solved source, read off xi: the maximum over actions. *)
Theorem Vstar_from_xi (F : realFieldType) (S A Phi : finType) (W : featured F S A Phi)
    (pi : S -> A) (R : Phi -> F) s :
  optimal W pi (expected W R) -> Vstar W (expected W R) s = best W (value R (xi W pi)) s.
Proof. by move=> opt; apply: eq_best => x; rewrite (xi_optimal_class opt). Qed.
