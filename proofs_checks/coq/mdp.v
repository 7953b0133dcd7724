(* Finite Markov decision processes with expected rewards r(s, a), over any real field.

   Given: finite S and A, a kernel p(s' | s, a), a discount g in [0, 1), and for a policy pi : S -> A

     (T q)(s, a)    = r(s, a) + g E[max_b q(s', b)]
     (T^pi q)(s, a) = r(s, a) + g E[q(s', pi(s'))].

   Proved: T^pi has exactly one fixed point Q^pi, by inverting I - g P^pi, and T exactly one, Q*. It is the
   value of an optimal policy, which is found among the finitely many policies; no policy, randomised ones
   included, has a larger value. Both operators are monotone and contract by g. W <= T^pi W implies W <= Q^pi.
   Rewards that differ by at most c change values by at most c/(1-g), and q is within residual/(1-g) of the
   fixed point. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Record kernel (F : realFieldType) (X Y : finType) := Kernel {
  prob :> X -> Y -> F;
  prob_ge0 : forall x y, 0 <= prob x y;
  prob_sum1 : forall x, \sum_y prob x y = 1
}.

Section Expectation.
Variables (F : realFieldType) (X Y : finType) (K : kernel F X Y).
Implicit Types (f h : Y -> F).

Definition E x f : F := \sum_y K x y * f y.

Lemma eq_E x f h : f =1 h -> E x f = E x h.
Proof. by move=> fh; apply: eq_bigr => y _; rewrite fh. Qed.

Lemma E_mono x f h : (forall y, f y <= h y) -> E x f <= E x h.
Proof. by move=> fh; apply: ler_sum => y _; rewrite ler_wpmul2l ?prob_ge0. Qed.

Lemma E_const x c : E x (fun=> c) = c.
Proof. by rewrite /E -mulr_suml prob_sum1 mul1r. Qed.

Lemma E_scale x b f : E x (fun y => b * f y) = b * E x f.
Proof. by rewrite /E mulr_sumr; apply: eq_bigr => y _; rewrite mulrCA. Qed.

Lemma E_add x f h : E x (fun y => f y + h y) = E x f + E x h.
Proof. by rewrite /E -big_split; apply: eq_bigr => y _; rewrite mulrDr. Qed.

Lemma E_addc x f c : E x (fun y => f y + c) = E x f + c.
Proof. by rewrite E_add E_const. Qed.

Lemma E_sum (I : finType) x (f : I -> Y -> F) : E x (fun y => \sum_i f i y) = \sum_i E x (f i).
Proof.
rewrite /E exchange_big; apply: eq_bigr => y _; rewrite mulr_sumr.
by [].
Qed.

Lemma E_le x f c : (forall y, f y <= c) -> E x f <= c.
Proof. by move=> fc; rewrite -(E_const x c); apply: E_mono. Qed.

End Expectation.

(* The kernel that goes to f x for sure. *)
Section Sure.
Variables (F : realFieldType) (X Y : finType) (f : X -> Y).

Definition sure_prob x y : F := (y == f x)%:R.

Lemma sure_ge0 x y : 0 <= sure_prob x y.
Proof. exact: ler0n. Qed.

Lemma sum_at (h : Y -> F) z : \sum_y (y == z)%:R * h y = h z.
Proof.
rewrite (bigD1 z) //= eqxx mul1r big1 ?addr0 // => y /negPf ->.
by rewrite mul0r.
Qed.

Lemma sure_sum1 x : \sum_y sure_prob x y = 1.
Proof. by rewrite -(sum_at (fun=> 1) (f x)); apply: eq_bigr => y _; rewrite mulr1. Qed.

Definition sure : kernel F X Y := Kernel sure_ge0 sure_sum1.

Lemma E_sure x (h : Y -> F) : E sure x h = h (f x).
Proof. exact: sum_at. Qed.

End Sure.

(* `some_action` says that there is one; no statement depends on which. *)
Record mdp (F : realFieldType) (S A : finType) := MDP {
  next : kernel F (prod_finType S A) S;
  discount : F;
  discount_ge0 : 0 <= discount;
  discount_lt1 : discount < 1;
  some_action : A
}.

Section Values.
Variables (F : realFieldType) (S A : finType) (M : mdp F S A).
Implicit Types (pi mu : S -> A) (r q W : S * A -> F) (x : S * A) (s : S) (a : A).

Local Notation g := (discount M).
Local Notation EV := (E (next M)).

Let g0 : 0 <= g := discount_ge0 M.
Let g1 : g < 1 := discount_lt1 M.

Lemma horizon_gt0 : 0 < 1 - g.
Proof. by rewrite subr_gt0. Qed.

Lemma horizon_neq0 : 1 - g != 0.
Proof. by rewrite lt0r_neq0 ?horizon_gt0. Qed.

Lemma horizon_inv_ge0 : 0 <= (1 - g)^-1.
Proof. by rewrite invr_ge0 ltW ?horizon_gt0. Qed.

(** Operators *)

Definition best q s : F := maxof (some_action M) (fun a => q (s, a)).
Definition T r q x : F := r x + g * EV x (best q).
Definition Tpi pi r q x : F := r x + g * EV x (fun s => q (s, pi s)).
Definition greedy pi q := forall s a, q (s, a) <= q (s, pi s).

Lemma le_best q s a : q (s, a) <= best q s.
Proof. exact: (le_maxof _ (fun a => q (s, a))). Qed.

Lemma best_le q s c : (forall a, q (s, a) <= c) -> best q s <= c.
Proof. exact: maxof_le. Qed.

Lemma eq_best q q' : q =1 q' -> best q =1 best q'.
Proof. by move=> e s; apply: eq_maxof. Qed.

Lemma best_greedy pi q s : greedy pi q -> best q s = q (s, pi s).
Proof. by move=> gr; apply: maxof_eq => a; apply: gr. Qed.

Lemma greedy_exists q : exists pi, greedy pi q.
Proof.
exists (fun s => [arg max_(a > some_action M) q (s, a)]%O) => s a.
exact: (le_maxof _ (fun a => q (s, a))).
Qed.

Lemma best_le_add q q' b : (forall x, q x <= q' x + b) -> forall s, best q s <= best q' s + b.
Proof. by move=> le s; rewrite -maxof_add; apply: maxof_mono => a; apply: le. Qed.

Lemma Tpi_le_T pi r q x : Tpi pi r q x <= T r q x.
Proof. by rewrite ler_add2l ler_wpmul2l // E_mono // => s; apply: le_best. Qed.

Lemma Tpi_greedy pi r q x : greedy pi q -> Tpi pi r q x = T r q x.
Proof. by move=> gr; congr (_ + _ * _); apply: eq_E => s; rewrite (best_greedy s gr). Qed.

Lemma T_le_add r r' q q' b c : (forall x, r x <= r' x + c) -> (forall x, q x <= q' x + b) ->
  forall x, T r q x <= T r' q' x + (c + g * b).
Proof.
move=> rr qq x; rewrite addrACA ler_add // -mulrDr -E_addc ler_wpmul2l // E_mono //.
exact: best_le_add.
Qed.

Lemma Tpi_le_add pi r r' q q' b c : (forall x, r x <= r' x + c) -> (forall x, q x <= q' x + b) ->
  forall x, Tpi pi r q x <= Tpi pi r' q' x + (c + g * b).
Proof. by move=> rr qq x; rewrite addrACA ler_add // -mulrDr -E_addc ler_wpmul2l // E_mono. Qed.

Lemma T_mono r q q' : (forall x, q x <= q' x) -> forall x, T r q x <= T r q' x.
Proof. by move=> le x; rewrite ler_add2l ler_wpmul2l // E_mono // => s; apply: maxof_mono. Qed.

Lemma Tpi_mono pi r q q' : (forall x, q x <= q' x) -> forall x, Tpi pi r q x <= Tpi pi r q' x.
Proof. by move=> le x; rewrite ler_add2l ler_wpmul2l // E_mono. Qed.

Lemma eq_T r q q' : q =1 q' -> T r q =1 T r q'.
Proof. by move=> e x; congr (_ + _ * _); apply: eq_E; apply: eq_best. Qed.

Lemma T_addc r q c x : T r (fun y => q y + c) x = T r q x + g * c.
Proof.
rewrite /T -addrA -mulrDr -E_addc; congr (_ + _ * _); apply: eq_E => s.
exact: (maxof_add _ (fun a => q (s, a))).
Qed.

Lemma Tpi_addc pi r q c x : Tpi pi r (fun y => q y + c) x = Tpi pi r q x + g * c.
Proof. by rewrite /Tpi -addrA -mulrDr -E_addc. Qed.

(* T and T^pi contract by g. *)
Lemma norm_le_add (u v c : F) : (`|u - v| <= c) = (u <= v + c) && (v <= u + c).
Proof. by rewrite ler_distl ler_subl_addr andbC. Qed.

Theorem T_contracts r q q' : dist (T r q) (T r q') <= g * dist q q'.
Proof.
apply: dist_le => [|x]; first by rewrite mulr_ge0 ?dist_ge0.
rewrite norm_le_add -[g * _]add0r; apply/andP; split; apply: T_le_add => y; rewrite ?addr0 //.
  exact: dist_upper.
by rewrite distC dist_upper.
Qed.

Theorem Tpi_contracts pi r q q' : dist (Tpi pi r q) (Tpi pi r q') <= g * dist q q'.
Proof.
apply: dist_le => [|x]; first by rewrite mulr_ge0 ?dist_ge0.
rewrite norm_le_add -[g * _]add0r; apply/andP; split; apply: Tpi_le_add => y; rewrite ?addr0 //.
  exact: dist_upper.
by rewrite distC dist_upper.
Qed.

(** Comparison *)

Lemma T_compare r r' W W' c : (forall x, W x <= T r W x) -> (forall x, T r' W' x <= W' x) ->
  (forall x, r x <= r' x + c) -> forall x, W x <= W' x + c / (1 - g).
Proof.
move=> sub super rr x; rewrite -ler_subl_addl.
apply: (self_bound (D := fun x => W x - W' x)) g1 _ _ => b bound y.
have WW z : W z <= W' z + b by rewrite -ler_subl_addl.
rewrite ler_subl_addl; apply: le_trans (sub y) (le_trans (T_le_add rr WW y) _).
by rewrite ler_add2r.
Qed.

Lemma Tpi_compare pi r r' W W' c : (forall x, W x <= Tpi pi r W x) -> (forall x, Tpi pi r' W' x <= W' x) ->
  (forall x, r x <= r' x + c) -> forall x, W x <= W' x + c / (1 - g).
Proof.
move=> sub super rr x; rewrite -ler_subl_addl.
apply: (self_bound (D := fun x => W x - W' x)) g1 _ _ => b bound y.
have WW z : W z <= W' z + b by rewrite -ler_subl_addl.
rewrite ler_subl_addl; apply: le_trans (sub y) (le_trans (Tpi_le_add pi rr WW y) _).
by rewrite ler_add2r.
Qed.

Lemma le_of_compare (u v : F) : u <= v + 0 / (1 - g) -> u <= v.
Proof. by rewrite mul0r addr0. Qed.

(** The value of a policy *)

(* I - g P^pi as a matrix that acts on rows of values. *)
Definition bellman_matrix pi : 'M[F]_#|prod_finType S A| :=
  \matrix_(j, i) ((j == i)%:R - g * EV (enum_val i) (fun s => (j == enum_rank (s, pi s))%:R)).

Lemma bellman_matrixE pi (v : 'rV[F]_#|prod_finType S A|) i :
  (v *m bellman_matrix pi) 0 i = v 0 i - g * EV (enum_val i) (fun s => v 0 (enum_rank (s, pi s))).
Proof.
rewrite mxE.
under eq_bigr do rewrite mxE mulrBr.
rewrite sumrB; congr (_ - _).
  by under eq_bigr do rewrite mulrC; rewrite sum_at.
under eq_bigr do rewrite mulrCA; rewrite -mulr_sumr; congr (_ * _).
under eq_bigr do rewrite -E_scale; rewrite -E_sum; apply: eq_E => s.
by under eq_bigr do rewrite mulrC; rewrite sum_at.
Qed.

Lemma bellman_matrix_unit pi : bellman_matrix pi \in unitmx.
Proof.
rewrite -row_free_unit; apply: inj_row_free => v v0.
pose q x := v 0 (enum_rank x).
have qE x : q x = Tpi pi (fun=> 0) q x.
  have := bellman_matrixE pi v (enum_rank x); rewrite v0 mxE enum_rankK => /esym/eqP.
  by rewrite subr_eq0 => /eqP; rewrite /Tpi add0r.
have z x : 0 = Tpi pi (fun=> 0) (fun=> 0) x by rewrite /Tpi E_const mulr0 addr0.
apply/rowP => i; rewrite mxE -(enum_valK i) -/(q _); apply/eqP; rewrite eq_le.
have zero_le W W' x : (forall y, W y = Tpi pi (fun=> 0) W y) -> (forall y, W' y = Tpi pi (fun=> 0) W' y) ->
    W x <= W' x.
  move=> e e'; apply: le_of_compare.
  by apply: (Tpi_compare (pi := pi) (r := fun=> 0) (r' := fun=> 0)) => y; rewrite -?e -?e' ?addr0.
by rewrite (zero_le q (fun=> 0)) // (zero_le (fun=> 0) q).
Qed.

Definition Q pi r x : F := ((\row_i r (enum_val i)) *m invmx (bellman_matrix pi)) 0 (enum_rank x).

(* Values of policies exist, ... *)
Theorem Q_bellman pi r x : Q pi r x = Tpi pi r (Q pi r) x.
Proof.
have := bellman_matrixE pi ((\row_i r (enum_val i)) *m invmx (bellman_matrix pi)) (enum_rank x).
rewrite mulmxKV ?bellman_matrix_unit // mxE enum_rankK => e.
by rewrite {1}/Q /Tpi e subrK.
Qed.

(* ... below and above are decided by one application of T^pi, ... *)
Lemma le_Q pi r W : (forall x, W x <= Tpi pi r W x) -> forall x, W x <= Q pi r x.
Proof.
move=> sub x; apply: le_of_compare.
by apply: (Tpi_compare sub (r' := r)) => y; rewrite ?addr0 -?Q_bellman.
Qed.

Lemma Q_le pi r W : (forall x, Tpi pi r W x <= W x) -> forall x, Q pi r x <= W x.
Proof.
move=> super x; apply: le_of_compare.
by apply: (Tpi_compare (r := r) _ super) => y; rewrite ?addr0 -?Q_bellman.
Qed.

(* ... and there is only one. *)
Theorem Q_unique pi r q : (forall x, q x = Tpi pi r q x) -> q =1 Q pi r.
Proof. by move=> e x; apply/eqP; rewrite eq_le le_Q 1?Q_le // => y; rewrite -e. Qed.

Lemma eq_Q pi r r' : r =1 r' -> Q pi r =1 Q pi r'.
Proof. by move=> e; apply: Q_unique => x; rewrite Q_bellman /Tpi e. Qed.

Lemma Q_perturb pi r r' c : (forall x, r x <= r' x + c) -> forall x, Q pi r x <= Q pi r' x + c / (1 - g).
Proof. by apply: (@Tpi_compare pi) => x; rewrite -Q_bellman. Qed.

(* The value is linear in the reward. *)
Theorem Q_linear (I : finType) pi (w : I -> F) (c : I -> S * A -> F) x :
  Q pi (fun y => \sum_i w i * c i y) x = \sum_i w i * Q pi (c i) x.
Proof.
apply/esym; move: x; apply: Q_unique => x.
under eq_bigr do rewrite Q_bellman mulrDr; rewrite big_split; congr (_ + _).
under eq_bigr do rewrite mulrCA -E_scale; rewrite -mulr_sumr -E_sum.
by [].
Qed.

Lemma Q_const pi c x : Q pi (fun=> c) x = c / (1 - g).
Proof.
apply/esym; move: x; apply: (Q_unique (q := fun=> c / (1 - g))) => x.
by rewrite /Tpi E_const; field; rewrite horizon_neq0.
Qed.

Lemma Q_affine pi r b c x : Q pi (fun y => b * r y + c) x = b * Q pi r x + c / (1 - g).
Proof.
apply/esym; move: x; apply: Q_unique => x.
by rewrite {1}Q_bellman /Tpi E_addc E_scale; field; rewrite horizon_neq0.
Qed.

(* The value is the discounted sum of expected rewards: n of them, and the rest. (P^pi h)(s, a) is the
   expectation of h one step later. *)
Definition Ppi pi (h : S * A -> F) x : F := EV x (fun s => h (s, pi s)).

Theorem Q_series pi r n x :
  Q pi r x = \sum_(k < n) g ^+ k * iter k (Ppi pi) r x + g ^+ n * iter n (Ppi pi) (Q pi r) x.
Proof.
elim: n x => [|n IH] x; first by rewrite big_ord0 expr0 mul1r add0r.
rewrite Q_bellman big_ord_recl expr0 mul1r -addrA; congr (_ + _).
rewrite (@eq_E _ _ _ _ _ _ _ (fun s => IH (s, pi s))) E_add E_sum mulrDr mulr_sumr E_scale; congr (_ + _).
  by apply: eq_bigr => k _; rewrite E_scale mulrA -exprS lift0 iterS.
by rewrite mulrA -exprS iterS.
Qed.

Lemma Ppi_le n pi h c : (forall x, h x <= c) -> forall x, iter n (Ppi pi) h x <= c.
Proof. by elim: n => [//|n IH] hc x; rewrite iterS; apply: E_le => s; apply: IH. Qed.

Lemma Ppi_ge n pi h c : (forall x, c <= h x) -> forall x, c <= iter n (Ppi pi) h x.
Proof.
elim: n => [//|n IH] hc x; rewrite iterS -(E_const (next M) x c).
by apply: E_mono => s; apply: IH.
Qed.

(* Policy improvement. *)
Lemma Q_improves pi mu r : (forall s, Q pi r (s, pi s) <= Q pi r (s, mu s)) -> forall x, Q pi r x <= Q mu r x.
Proof.
move=> better; apply: le_Q => x; rewrite {1}Q_bellman.
by rewrite ler_add2l ler_wpmul2l // E_mono.
Qed.

(** Optimal policies *)

Definition best_policy r : {ffun S -> A} := [arg max_(pi > [ffun=> some_action M]) \sum_x Q pi r x]%O.
Definition Qstar r : S * A -> F := Q (best_policy r) r.

Theorem Qstar_bellman r x : Qstar r x = T r (Qstar r) x.
Proof.
have [mu gr] := greedy_exists (Qstar r); pose nu : {ffun S -> A} := [ffun s => mu s].
have grn : greedy nu (Qstar r) by move=> s a; rewrite ffunE.
have above y : Qstar r y <= Q nu r y by apply: Q_improves => s; apply: grn.
have : \sum_y Q nu r y <= \sum_y Qstar r y.
  exact: (le_maxof _ (fun pi : {ffun S -> A} => \sum_y Q pi r y)).
rewrite -subr_le0 -sumrB => sum_le.
have same : Q nu r =1 Qstar r.
  move=> y; apply/eqP; rewrite -subr_eq0; apply/eqP; move: y isT.
  have pos y : true -> 0 <= Q nu r y - Qstar r y by rewrite subr_ge0.
  move=> y _; apply: (@psumr_eq0P _ _ xpredT _ pos) => //.
  by apply/eqP; rewrite eq_le sum_le sumr_ge0.
by rewrite -same Q_bellman -(Tpi_greedy _ _ grn) /Tpi; congr (_ + _ * _); apply: eq_E => s; rewrite same.
Qed.

Lemma le_Qstar r W : (forall x, W x <= T r W x) -> forall x, W x <= Qstar r x.
Proof.
move=> sub x; apply: le_of_compare.
by apply: (T_compare sub (r' := r)) => y; rewrite ?addr0 -?Qstar_bellman.
Qed.

Lemma Qstar_le r W : (forall x, T r W x <= W x) -> forall x, Qstar r x <= W x.
Proof.
move=> super x; apply: le_of_compare.
by apply: (T_compare (r := r) _ super) => y; rewrite ?addr0 -?Qstar_bellman.
Qed.

Theorem Qstar_unique r q : (forall x, q x = T r q x) -> q =1 Qstar r.
Proof. by move=> e x; apply/eqP; rewrite eq_le le_Qstar 1?Qstar_le // => y; rewrite -e. Qed.

Lemma eq_Qstar r r' : r =1 r' -> Qstar r =1 Qstar r'.
Proof. by move=> e; apply: Qstar_unique => x; rewrite Qstar_bellman /T e. Qed.

Theorem Q_le_Qstar pi r x : Q pi r x <= Qstar r x.
Proof. by apply: le_Qstar => y; rewrite {1}Q_bellman Tpi_le_T. Qed.

(* Randomising does not help: mu(s, a) >= 0 sums to 1 over a, and q is its value. *)
Theorem randomised_le_Qstar (mu : kernel F S A) r q :
  (forall x, q x = r x + g * EV x (fun s => E mu s (fun a => q (s, a)))) -> forall x, q x <= Qstar r x.
Proof.
move=> e; apply: le_Qstar => x; rewrite {1}e ler_add2l ler_wpmul2l // E_mono // => s.
by apply: E_le => a; apply: le_best.
Qed.

Definition optimal pi r := forall mu x, Q mu r x <= Q pi r x.

Lemma optimalP pi r : optimal pi r <-> Q pi r =1 Qstar r.
Proof.
split=> [opt x | e mu x]; last by rewrite e Q_le_Qstar.
by apply/eqP; rewrite eq_le Q_le_Qstar opt.
Qed.

Lemma greedy_optimal pi r q : (forall x, q x = T r q x) -> greedy pi q -> optimal pi r.
Proof.
move=> e gr; apply/optimalP => x; rewrite -(Qstar_unique e); apply/esym; move: x.
by apply: Q_unique => x; rewrite Tpi_greedy.
Qed.

Theorem optimal_exists r : exists pi, optimal pi r.
Proof. by exists (best_policy r) => mu x; apply: Q_le_Qstar. Qed.

(* Scale and shift of the reward leave a policy optimal. *)
Lemma optimal_affine pi r b c : 0 < b -> optimal pi r -> optimal pi (fun x => b * r x + c).
Proof. by move=> b0 opt mu x; rewrite !Q_affine ler_add2r ler_wpmul2l ?(ltW b0). Qed.

(** State values *)

Definition V pi r s : F := Q pi r (s, pi s).
Definition Vstar r s : F := best (Qstar r) s.

Lemma V_le_Vstar pi r s : V pi r s <= Vstar r s.
Proof. exact: le_trans (Q_le_Qstar pi r _) (le_best _ _ _). Qed.

Lemma QstarE r x : Qstar r x = r x + g * EV x (Vstar r).
Proof. by rewrite {1}Qstar_bellman. Qed.

Lemma QE pi r x : Q pi r x = r x + g * EV x (V pi r).
Proof. by rewrite {1}Q_bellman. Qed.

(* The first reward is the same: a loss in V costs g times as much in Q. *)
Lemma Q_loss_of_V_loss pi r c : (forall s, Vstar r s <= V pi r s + c) ->
  forall x, Qstar r x <= Q pi r x + g * c.
Proof.
by move=> loss x; rewrite QstarE QE -addrA ler_add2l -mulrDr -E_addc ler_wpmul2l // E_mono.
Qed.

Lemma Qstar_perturb r r' c : (forall x, r x <= r' x + c) -> forall x, Qstar r x <= Qstar r' x + c / (1 - g).
Proof. by apply: T_compare => x; rewrite -Qstar_bellman. Qed.

Lemma Vstar_perturb r r' c : (forall x, r x <= r' x + c) -> forall s, Vstar r s <= Vstar r' s + c / (1 - g).
Proof. by move=> rr; apply: best_le_add; apply: Qstar_perturb. Qed.

(** Residuals *)

Lemma residual_bound (q q' : S * A -> F) c : 0 <= c -> (forall x, q x <= q' x + c / (1 - g)) ->
  (forall x, q' x <= q x + c / (1 - g)) -> dist q q' <= c / (1 - g).
Proof.
move=> c0 up down; apply: dist_le => [|x]; first by rewrite mulr_ge0 ?horizon_inv_ge0.
by rewrite norm_le_add up down.
Qed.

Lemma T_shift r c q x : T (fun y => r y + c) q x = T r q x + c.
Proof. by rewrite /T addrAC. Qed.

Lemma Tpi_shift pi r c q x : Tpi pi (fun y => r y + c) q x = Tpi pi r q x + c.
Proof. by rewrite /Tpi addrAC. Qed.

(* |Q* - q| <= residual of q / (1-g), ... *)
Theorem Qstar_residual r q : dist (Qstar r) q <= dist (T r q) q / (1 - g).
Proof.
set c := dist (T r q) q; apply: residual_bound => // [|x|x]; first exact: dist_ge0.
  apply: (T_compare (r := r) (r' := fun y => r y - c)) => y; rewrite ?subrK //.
    by rewrite -Qstar_bellman.
  by rewrite T_shift ler_subl_addr dist_upper.
apply: (T_compare (r := fun y => r y + c) (r' := r)) => y //; last by rewrite -Qstar_bellman.
by rewrite T_shift /c distC dist_upper.
Qed.

(* ... and the same for the value of a policy. *)
Theorem Q_residual pi r q : dist (Q pi r) q <= dist (Tpi pi r q) q / (1 - g).
Proof.
set c := dist (Tpi pi r q) q; apply: residual_bound => // [|x|x]; first exact: dist_ge0.
  apply: (Tpi_compare (pi := pi) (r := r) (r' := fun y => r y - c)) => y; rewrite ?subrK //.
    by rewrite -Q_bellman.
  by rewrite Tpi_shift ler_subl_addr dist_upper.
apply: (Tpi_compare (pi := pi) (r := fun y => r y + c) (r' := r)) => y //; last by rewrite -Q_bellman.
by rewrite Tpi_shift /c distC dist_upper.
Qed.

(* Iterating T converges to Q*, at the rate g^n. *)
Theorem value_iteration r q n : dist (iter n (T r) q) (Qstar r) <= g ^+ n * dist q (Qstar r).
Proof.
elim: n => [|n IH]; first by rewrite expr0 mul1r.
rewrite iterS exprS -mulrA; apply: le_trans (ler_wpmul2l g0 IH).
rewrite -(@eq_dist _ _ (T r (iter n (T r) q)) _ (T r (Qstar r))) //; first exact: T_contracts.
by move=> x; rewrite -Qstar_bellman.
Qed.

End Values.
