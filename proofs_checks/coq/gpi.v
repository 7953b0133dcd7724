(* Generalised policy improvement (GPI), and what it loses.

   Given: a target reward r; sources r_i, finitely many, with policies pi_i; approximations Q~_i of Q^{pi_i},
   the value of pi_i under the *target*; a policy pi that is greedy on max_i Q~_i, ties broken in any way.
   Write U = max_i Q^{pi_i}, eps = max_i ||Q~_i - Q^{pi_i}||, d_i = ||r - r_i||.

   GPI improves     Q^pi >= Q^{pi_i} - 2g eps/(1-g)                    for all i, whatever the pi_i are
   T2'              ||V* - V^pi|| <= 2/(1-g)  (g min_i d_i + eps)      if each pi_i is optimal for r_i
                    ||Q* - Q^pi|| <= 2g/(1-g) (g min_i d_i + eps)
   affine T2'       the same with d_i = ||r - b_i r_i - c_i|| for any b_i > 0 and c_i
   T2''             if the Q~_i approximate values under a proxy r' of the target:
                    ||V* - V^pi|| <= 2/(1-g)  (||r - r'|| + g min_i ||r' - r_i|| + eps)
                    ||Q* - Q^pi|| <= 2g/(1-g) (||r - r'|| + g min_i ||r' - r_i|| + eps)

   Nothing is assumed of features: rewards are expected rewards, on pairs (s, a). The lemmas `step_...` are
   the steps of the written proof. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section GPI.
Variables (F : realFieldType) (S A I : finType) (M : mdp F S A) (i0 : I).
Implicit Types (q Qt : I -> S * A -> F) (x : S * A) (s : S) (i : I).

Local Notation g := (discount M).

Let g0 : 0 <= g := discount_ge0 M.
Let h_neq0 : 1 - g != 0 := horizon_neq0 M.
Let h_inv_ge0 : 0 <= (1 - g)^-1 := horizon_inv_ge0 M.

(* max_i q_i; there is at least the source i0. *)
Definition over_sources q x : F := maxof i0 (fun i => q i x).
Definition gpi (pi : S -> A) q := greedy pi (over_sources q).

Lemma le_over_sources q i x : q i x <= over_sources q x.
Proof. exact: (le_maxof _ (fun i => q i x)). Qed.

Lemma over_sources_le_add q q' c : (forall i x, q i x <= q' i x + c) ->
  forall x, over_sources q x <= over_sources q' x + c.
Proof. by move=> qq x; rewrite -maxof_add; apply: maxof_mono => i; apply: qq. Qed.

(* First the policy whose best action is best, then that action: this is GPI, as the listings do it. *)
Theorem two_stage_choice_is_gpi q (c : S -> I) (pi : S -> A) :
  (forall s i, best M (q i) s <= best M (q (c s)) s) -> (forall s a, q (c s) (s, a) <= q (c s) (s, pi s)) ->
  gpi pi q.
Proof.
move=> policy action s a; apply: maxof_le => i.
apply: le_trans (le_best M (q i) s a) (le_trans (policy s i) _).
apply: (le_trans _ (le_over_sources q (c s) (s, pi s))).
exact: best_le (action s).
Qed.

Section Target.
Variables (r : S * A -> F) (pis : I -> S -> A) (Qt : I -> S * A -> F) (pi : S -> A) (eps : F).
Hypothesis error_le : forall i x, `|Qt i x - Q M (pis i) r x| <= eps.
Hypothesis pi_gpi : gpi pi Qt.

Let U := over_sources (fun i => Q M (pis i) r).

Lemma step_greedy s a : U (s, a) <= U (s, pi s) + 2%:R * eps.
Proof.
have up x : over_sources Qt x <= U x + eps.
  by apply: over_sources_le_add => i y; have := error_le i y; rewrite norm_le_add => /andP[].
have down x : U x <= over_sources Qt x + eps.
  by apply: over_sources_le_add => i y; have := error_le i y; rewrite norm_le_add => /andP[].
apply: le_trans (down _) _; have -> : 2%:R * eps = eps + eps by ring.
by rewrite addrA ler_add2r; apply: le_trans (pi_gpi s a) (up _).
Qed.

Lemma step_improvement x : T M r U x <= Tpi M pi r U x + g * (2%:R * eps).
Proof.
rewrite -addrA ler_add2l -mulrDr -E_addc ler_wpmul2l // E_mono // => s.
by apply: best_le => a; apply: step_greedy.
Qed.

Lemma step_monotone x : U x <= T M r U x.
Proof.
apply: maxof_le => i; rewrite Q_bellman; apply: le_trans (Tpi_le_T _ _ _ _ _) _.
by apply: T_mono => y; apply: (le_over_sources (fun i => Q M (pis i) r)).
Qed.

Lemma step_telescoping x : T M r U x <= Q M pi r x + g * (2%:R * eps) / (1 - g).
Proof.
set k := g * (2%:R * eps).
apply: (Tpi_compare (pi := pi) (r := fun y => r y + k) (r' := r)) => y //; last by rewrite -Q_bellman.
rewrite Tpi_shift; apply: le_trans (step_improvement y) _.
by rewrite ler_add2r; apply: Tpi_mono => z; apply: step_monotone.
Qed.

Lemma U_le_Qstar x : U x <= Qstar M r x.
Proof. by apply: maxof_le => i; apply: Q_le_Qstar. Qed.

(* GPI's improvement theorem, with the sharp factor g. *)
Theorem gpi_improves_approximately i x : Q M (pis i) r x <= Q M pi r x + 2%:R * g / (1 - g) * eps.
Proof.
apply: le_trans (le_over_sources (fun i => Q M (pis i) r) i x) _.
apply: le_trans (step_monotone x) (le_trans (step_telescoping x) _).
by rewrite ler_add2l; apply: le_of_eq; field.
Qed.

Lemma step_contraction x : Qstar M r x <= T M r U x + g * dist (Qstar M r) U.
Proof.
rewrite {1}Qstar_bellman -[g * dist _ _]add0r.
by apply: T_le_add => y; rewrite ?addr0 // dist_upper.
Qed.

(* For V: what U loses, and what GPI loses on U. *)
Lemma step_value c s : (forall x, Qstar M r x <= U x + c) ->
  Vstar M r s <= V M pi r s + (c + 2%:R * eps / (1 - g)).
Proof.
move=> loss; have U_best : best M U s <= U (s, pi s) + 2%:R * eps by apply: best_le => a; apply: step_greedy.
have Q_large := le_trans (step_monotone (s, pi s)) (step_telescoping (s, pi s)).
apply: le_trans (best_le_add M loss s) _.
apply: le_trans (_ : U (s, pi s) + 2%:R * eps + c <= _); first by rewrite ler_add2r.
apply: le_trans (_ : Q M pi r (s, pi s) + g * (2%:R * eps) / (1 - g) + 2%:R * eps + c <= _).
  by rewrite !ler_add2r.
by apply: le_of_eq; rewrite /V; field.
Qed.

End Target.

(* A source policy under the target. That pi_i is optimal for r_i says Q^{pi_i} = Q* under r_i. It does not
   say V^{pi_i} = V* in states that are never entered (nor anywhere for g = 0); g times the expectation of the
   two agrees, which is enough. *)
Lemma step_transfer (r ri : S * A -> F) (pi : S -> A) d :
  optimal M pi ri -> (forall x, `|r x - ri x| <= d) ->
  forall x, Qstar M r x <= Q M pi r x + 2%:R * g * d / (1 - g).
Proof.
move=> /optimalP opt near x.
have up y : r y <= ri y + d by have := near y; rewrite norm_le_add => /andP[].
have down y : ri y <= r y + d by have := near y; rewrite norm_le_add => /andP[].
have source : g * E (next M) x (Vstar M ri) = g * E (next M) x (V M pi ri).
  by apply: (addrI (ri x)); rewrite -QstarE -QE opt.
have to_source : g * E (next M) x (Vstar M r) <= g * E (next M) x (Vstar M ri) + g * (d / (1 - g)).
  by rewrite -mulrDr -E_addc ler_wpmul2l // E_mono //; apply: Vstar_perturb.
have back : g * E (next M) x (V M pi ri) <= g * E (next M) x (V M pi r) + g * (d / (1 - g)).
  by rewrite -mulrDr -E_addc ler_wpmul2l // E_mono // => s; apply: Q_perturb.
rewrite QstarE QE -addrA ler_add2l; apply: le_trans to_source _; rewrite source.
apply: le_trans (_ : g * E (next M) x (V M pi r) + g * (d / (1 - g)) + g * (d / (1 - g)) <= _).
  by rewrite ler_add2r.
by rewrite -addrA ler_add2l; apply: le_of_eq; field.
Qed.

(** T2', in values: any bounds d of one distance and eps of all errors will do *)

Section Sharp.
Variables (r : S * A -> F) (rs : I -> S * A -> F) (pis : I -> S -> A) (Qt : I -> S * A -> F) (pi : S -> A).
Variables (d eps : F) (i : I).
Hypothesis source_optimal : optimal M (pis i) (rs i).
Hypothesis distance_le : forall x, `|r x - rs i x| <= d.
Hypothesis error_le : forall j x, `|Qt j x - Q M (pis j) r x| <= eps.
Hypothesis pi_gpi : gpi pi Qt.

Theorem sharp_V_values s : Vstar M r s <= V M pi r s + 2%:R / (1 - g) * (g * d + eps).
Proof.
apply: le_trans (step_value error_le pi_gpi s (c := 2%:R * g * d / (1 - g)) _) _ => [x|].
  apply: le_trans (step_transfer source_optimal distance_le x) _; rewrite ler_add2r.
  exact: (le_over_sources (fun i => Q M (pis i) r)).
by rewrite ler_add2l; apply: le_of_eq; field.
Qed.

Theorem sharp_Q_values x : Qstar M r x <= Q M pi r x + 2%:R * g / (1 - g) * (g * d + eps).
Proof.
have -> : 2%:R * g / (1 - g) * (g * d + eps) = g * (2%:R / (1 - g) * (g * d + eps)) by field.
exact: Q_loss_of_V_loss sharp_V_values x.
Qed.

End Sharp.

(** T2', in norms *)

Definition error r (pis : I -> S -> A) Qt : F := sup (fun i => dist (Qt i) (Q M (pis i) r)).
Definition distance r (rs : I -> S * A -> F) : F := minof i0 (fun i => dist r (rs i)).

Lemma le_error r pis Qt i x : `|Qt i x - Q M (pis i) r x| <= error r pis Qt.
Proof. exact: le_trans (le_dist _ _ x) (le_sup (fun i => dist (Qt i) (Q M (pis i) r)) i). Qed.

Lemma error_ge0 r pis Qt : 0 <= error r pis Qt.
Proof. exact: sup_ge0. Qed.

Lemma distance_ge0 r rs : 0 <= distance r rs.
Proof. by apply: le_minof => i; apply: dist_ge0. Qed.

(* One side of each norm is free, for no policy beats Q*. *)
Lemma dist_Qstar_le r pi c : 0 <= c -> (forall x, Qstar M r x <= Q M pi r x + c) ->
  dist (Qstar M r) (Q M pi r) <= c.
Proof. by move=> c0; apply: dist_le_above => // x; apply: Q_le_Qstar. Qed.

Lemma dist_Vstar_le r pi c : 0 <= c -> (forall s, Vstar M r s <= V M pi r s + c) ->
  dist (Vstar M r) (V M pi r) <= c.
Proof. by move=> c0; apply: dist_le_above => // s; apply: V_le_Vstar. Qed.

Section Norms.
Variables (r : S * A -> F) (rs : I -> S * A -> F) (pis : I -> S -> A) (Qt : I -> S * A -> F) (pi : S -> A).
Hypothesis sources_optimal : forall i, optimal M (pis i) (rs i).
Hypothesis pi_gpi : gpi pi Qt.

(* The loss in V, and g times it, the loss in Q. *)
Lemma losses c : 0 <= c -> (forall s, Vstar M r s <= V M pi r s + 2%:R / (1 - g) * c) ->
  dist (Vstar M r) (V M pi r) <= 2%:R / (1 - g) * c /\ dist (Qstar M r) (Q M pi r) <= 2%:R * g / (1 - g) * c.
Proof.
move=> c0 loss; have B0 : 0 <= 2%:R / (1 - g) * c by rewrite !mulr_ge0 ?ler0n.
split; first exact: dist_Vstar_le.
have -> : 2%:R * g / (1 - g) * c = g * (2%:R / (1 - g) * c) by field.
by apply: dist_Qstar_le => [|x]; [rewrite mulr_ge0 | apply: Q_loss_of_V_loss].
Qed.

Lemma sharp_losses s : Vstar M r s <= V M pi r s + 2%:R / (1 - g) * (g * distance r rs + error r pis Qt).
Proof.
have [i e] := minof_attained i0 (fun i => dist r (rs i)); rewrite /distance -e.
by apply: (sharp_V_values (sources_optimal i)) => // [x|j x]; [apply: le_dist | apply: le_error].
Qed.

Let total_ge0 : 0 <= g * distance r rs + error r pis Qt.
Proof. by rewrite addr_ge0 ?mulr_ge0 ?distance_ge0 ?error_ge0. Qed.

Theorem sharp_V : dist (Vstar M r) (V M pi r) <= 2%:R / (1 - g) * (g * distance r rs + error r pis Qt).
Proof. by case: (losses total_ge0 sharp_losses). Qed.

Theorem sharp_Q : dist (Qstar M r) (Q M pi r) <= 2%:R * g / (1 - g) * (g * distance r rs + error r pis Qt).
Proof. by case: (losses total_ge0 sharp_losses). Qed.

End Norms.

(** d_i up to scale and shift of the source reward *)

Section Affine.
Variables (r : S * A -> F) (rs : I -> S * A -> F) (pis : I -> S -> A) (Qt : I -> S * A -> F) (pi : S -> A).
Variables (b c : I -> F).
Hypothesis sources_optimal : forall i, optimal M (pis i) (rs i).
Hypothesis pi_gpi : gpi pi Qt.
Hypothesis scale_gt0 : forall i, 0 < b i.

Let affine i x : F := b i * rs i x + c i.

Let affine_optimal i : optimal M (pis i) (affine i).
Proof. exact: optimal_affine. Qed.

Theorem sharp_V_affine : dist (Vstar M r) (V M pi r) <=
  2%:R / (1 - g) * (g * distance r (fun i x => b i * rs i x + c i) + error r pis Qt).
Proof. exact: sharp_V affine_optimal pi_gpi. Qed.

Theorem sharp_Q_affine : dist (Qstar M r) (Q M pi r) <=
  2%:R * g / (1 - g) * (g * distance r (fun i x => b i * rs i x + c i) + error r pis Qt).
Proof. exact: sharp_Q affine_optimal pi_gpi. Qed.

End Affine.

(** T2'': GPI reads a proxy r' of the target *)

Section Proxy.
Variables (r r' : S * A -> F) (rs : I -> S * A -> F) (pis : I -> S -> A) (Qt : I -> S * A -> F) (pi : S -> A).
Hypothesis sources_optimal : forall i, optimal M (pis i) (rs i).
Hypothesis pi_gpi : gpi pi Qt.

Let rho := dist r r'.
Let total := rho + g * distance r' rs + error r' pis Qt.

Let total_ge0 : 0 <= total.
Proof. by rewrite !addr_ge0 ?mulr_ge0 ?distance_ge0 ?error_ge0 ?dist_ge0. Qed.

Lemma proxy_losses s : Vstar M r s <= V M pi r s + 2%:R / (1 - g) * total.
Proof.
have to_proxy : Vstar M r s <= Vstar M r' s + rho / (1 - g).
  by apply: Vstar_perturb => x; apply: dist_upper.
have back : V M pi r' s <= V M pi r s + rho / (1 - g).
  by apply: Q_perturb => x; rewrite /rho distC dist_upper.
apply: le_trans to_proxy _.
set B := 2%:R / (1 - g) * (g * distance r' rs + error r' pis Qt).
apply: le_trans (_ : V M pi r' s + B + rho / (1 - g) <= _).
  by rewrite ler_add2r; apply: (sharp_losses r' sources_optimal pi_gpi s).
apply: (le_by (d := V M pi r s + rho / (1 - g) - V M pi r' s)); first by rewrite subr_ge0.
by rewrite /total /B; field.
Qed.

Theorem proxy_V :
  dist (Vstar M r) (V M pi r) <= 2%:R / (1 - g) * (dist r r' + g * distance r' rs + error r' pis Qt).
Proof. by case: (losses total_ge0 proxy_losses). Qed.

Theorem proxy_Q :
  dist (Qstar M r) (Q M pi r) <= 2%:R * g / (1 - g) * (dist r r' + g * distance r' rs + error r' pis Qt).
Proof. by case: (losses total_ge0 proxy_losses). Qed.

(* The bound for linear rewards (eq:gpi_guarantee), where GPI reads any linear reward r': T2'', weakened. *)
Theorem linear_gpi_bound : dist (Qstar M r) (Q M pi r) <=
  2%:R / (1 - g) * (dist r r' + distance r' rs + error r' pis Qt).
Proof.
set slack := dist r r' + (1 + g) * distance r' rs + error r' pis Qt.
apply: le_trans proxy_Q _; apply: (le_by (d := 2%:R * slack)); last by rewrite /slack; field.
by rewrite mulr_ge0 ?ler0n // !addr_ge0 ?mulr_ge0 ?addr_ge0 ?ler01 ?distance_ge0 ?error_ge0 ?dist_ge0.
Qed.

End Proxy.

(* GPI on exact values is at least as good as every source, whatever the sources are. *)
Theorem gpi_improves r (pis : I -> S -> A) (pi : S -> A) : gpi pi (fun i => Q M (pis i) r) ->
  forall i x, Q M (pis i) r x <= Q M pi r x.
Proof.
move=> pi_gpi i x.
have exact_values j y : `|Q M (pis j) r y - Q M (pis j) r y| <= 0 by rewrite subrr normr0.
by have := gpi_improves_approximately exact_values pi_gpi i x; rewrite mulr0 addr0.
Qed.

End GPI.
