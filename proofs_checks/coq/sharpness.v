(* Small examples: what is attained, and what is false.

   (1) T2' and T2'' are attained, for V and for Q, for every g in [0, 1), every distance d, error e and misfit
       rho of the proxy, with two states. An action is the state that it leads to:

         state  action   proxy r'    target r           source r_1    pi* pi_1  pi (GPI)
         0      stay: 0  0           -rho               0                        x
         0      go: 1    2e          2e + rho           2e + d         x    x
         1      leave: 0 2e          2e + rho           2e + d              x
         1      stay: 1  2e + 2d     2e + 2d + rho      2e + d         x         x

       Q~ is wrong by +e at (0, stay) and by -e at (0, go), which makes a tie. So no constant of T2' can be
       smaller.

   (2) The printed Theorem 2 is false in each reading: if the error is measured under R_i, even in the larger
       norm A_{R_i} and with the smaller norm N_R on the left; and with A_R on the left even for exact xi~.
       One state, an action shows the feature of its name, g = 1/2.

   (3) Learning that bootstraps on GPI actions of frozen stored values (T1-GPI): one state, R = (1, 0), stored
       values (0, m) with m > 1. For all step sizes in [0, 1] and every path the error of Q stays at least
       g/(1-g), and the bound g eta/(1-g)^2 is m times that: its constant is sharp for every g. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp xi gpi transfer learning.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Solving an MDP whose next state is known: guess V, check one equation in each state *)

Section Deterministic.
Variables (F : realFieldType) (S A : finType) (M : mdp F S A) (f : S * A -> S).
Hypothesis next_sure : forall x (h : S -> F), E (next M) x h = h (f x).

Local Notation g := (discount M).

Lemma solve_policy (v : S -> F) pi r : (forall s, r (s, pi s) + g * v (f (s, pi s)) = v s) ->
  Q M pi r =1 (fun x => r x + g * v (f x)) /\ V M pi r =1 v.
Proof.
move=> ok; have QE : Q M pi r =1 (fun x => r x + g * v (f x)).
  move=> x; apply/esym; move: x; apply: Q_unique => x.
  by rewrite /Tpi next_sure ok.
by split=> // s; rewrite /V QE ok.
Qed.

Lemma solve_optimal (v : S -> F) pi r : (forall s a, r (s, a) + g * v (f (s, a)) <= v s) ->
  (forall s, r (s, pi s) + g * v (f (s, pi s)) = v s) ->
  [/\ optimal M pi r, Qstar M r =1 (fun x => r x + g * v (f x)) & Vstar M r =1 v].
Proof.
move=> le_v ok; pose q x := r x + g * v (f x).
have gr : greedy pi q by move=> s a; rewrite /q ok.
have bestE s : best M q s = v s by rewrite (best_greedy M s gr) /q ok.
have fixed x : q x = T M r q x by rewrite /T next_sure bestE.
split; first exact: greedy_optimal gr.
  by move=> x; rewrite -(Qstar_unique fixed).
by move=> s; rewrite -bestE; apply: eq_best => x; rewrite -(Qstar_unique fixed).
Qed.

End Deterministic.

Section OneSource.
Variables (F : realFieldType) (S A : finType) (M : mdp F S A).

Lemma distance_one (r r1 : S * A -> F) : distance (I := unit_finType) tt r (fun=> r1) = dist r r1.
Proof. by []. Qed.

Lemma sup_one (f : unit -> F) : 0 <= f tt -> sup (X := unit_finType) f = f tt.
Proof. by move=> f0; apply: (@sup_eq _ _ _ _ tt) => // -[]. Qed.

Lemma error_one r pi1 (Qt : S * A -> F) :
  error (I := unit_finType) M r (fun=> pi1) (fun=> Qt) = dist Qt (Q M pi1 r).
Proof. by rewrite /error sup_one ?dist_ge0. Qed.

End OneSource.

(** (1) Attained *)

Section Attained.
Variables (F : realFieldType) (g d e rho : F).
Hypotheses (g0 : 0 <= g) (g1 : g < 1) (d0 : 0 <= d) (e0 : 0 <= e) (rho0 : 0 <= rho).

Let two_states : mdp F bool_finType bool_finType := MDP (sure F (fun x : bool * bool => x.2)) g0 g1 true.
Let proxy (x : bool * bool) : F := if x.1 then (if x.2 then 2%:R * e + 2%:R * d else 2%:R * e)
                                   else (if x.2 then 2%:R * e else 0).
Let target (x : bool * bool) : F := proxy x + (if x.1 || x.2 then rho else - rho).
Let source (x : bool * bool) : F := if x.1 || x.2 then 2%:R * e + d else 0.
Let wrong (x : bool * bool) : F := if x.1 then 0 else if x.2 then - e else e.

Let next_sure x (h : bool -> F) : E (next two_states) x h = h x.2.
Proof. exact: E_sure. Qed.

Let h_neq0 : 1 - g != 0.
Proof. exact: (horizon_neq0 two_states). Qed.

Let h_inv_ge0 : 0 <= (1 - g)^-1.
Proof. exact: (horizon_inv_ge0 two_states). Qed.

Let same_reward (b v w : F) : b + v - (b + w) = v - w.
Proof. by ring. Qed.

Let twice_ge0 (b : F) : 0 <= b -> 0 <= 2%:R * b.
Proof. by move=> b0; rewrite mulr_ge0 ?ler0n. Qed.

(* pi_1 = negb goes and leaves; it is optimal for the source, ... *)
Let source_value (s : bool) : F := (2%:R * e + d) / (1 - g).

Lemma negb_optimal : optimal two_states negb source.
Proof.
have [] // := @solve_optimal _ _ _ two_states _ next_sure source_value negb source.
- case=> [] []; rewrite /source /source_value /=; [by apply: le_of_eq; field.. | ].
  by apply: (le_by (d := 2%:R * e + d)); [rewrite addr_ge0 ?twice_ge0 | field].
- by case; rewrite /source /source_value /=; field.
Qed.

(* ... and earns 2e at every step under the proxy. *)
Lemma negb_Q : Q two_states negb proxy =1 (fun x => proxy x + g * (2%:R * e / (1 - g))).
Proof.
have [] // := @solve_policy _ _ _ two_states _ next_sure (fun=> 2%:R * e / (1 - g)) negb proxy.
by case; rewrite /proxy /=; field.
Qed.

(* pi = id stays where it is. *)
Let gpi_value (s : bool) : F := if s then (2%:R * e + 2%:R * d + rho) / (1 - g) else - rho / (1 - g).

Lemma id_Q : Q two_states id target =1 (fun x => target x + g * gpi_value x.2) /\
  V two_states id target =1 gpi_value.
Proof.
apply: (@solve_policy _ _ _ two_states _ next_sure gpi_value id target).
by case; rewrite /target /proxy /gpi_value /=; field.
Qed.

(* pi* goes to 1 and stays there. *)
Let best_value (s : bool) : F := if s then (2%:R * e + 2%:R * d + rho) / (1 - g)
                                 else (2%:R * e + 2%:R * d + rho) / (1 - g) - 2%:R * d.

Lemma target_solved : Qstar two_states target =1 (fun x => target x + g * best_value x.2) /\
  Vstar two_states target =1 best_value.
Proof.
have [] // := @solve_optimal _ _ _ two_states _ next_sure best_value (fun=> true) target.
- case=> [] []; rewrite /target /proxy /best_value /=.
  + by apply: le_of_eq; field.
  + apply: (le_by (d := 2%:R * d + g * (2%:R * d))); last by field.
    by rewrite addr_ge0 ?mulr_ge0 ?ler0n.
  + by apply: le_of_eq; field.
  + apply: (le_by (d := 2%:R * e + 2%:R * rho + g * (2%:R * d))); last by field.
    by rewrite !addr_ge0 ?mulr_ge0 ?ler0n.
- by case; rewrite /target /proxy /best_value /=; field.
Qed.

Let Qt (x : bool * bool) : F := Q two_states negb proxy x + wrong x.

Lemma id_gpi : gpi (I := unit_finType) tt id (fun=> Qt).
Proof.
have one x : over_sources (I := unit_finType) tt (fun=> Qt) x = Qt x by [].
move=> s a; rewrite !one /Qt !negb_Q /proxy /wrong; case: s a => [] [] //=.
  apply: (le_by (d := 2%:R * d)); last by ring.
  exact: twice_ge0.
by apply: le_of_eq; ring.
Qed.

Let total := rho + g * d + e.

Lemma loss_V : dist (Vstar two_states target) (V two_states id target) = 2%:R / (1 - g) * total.
Proof.
have B0 : 0 <= 2%:R / (1 - g) * total by rewrite !mulr_ge0 ?ler0n // !addr_ge0 ?mulr_ge0.
have [_ VsE] := target_solved; have [_ VE] := id_Q.
have loss : best_value false - gpi_value false = 2%:R / (1 - g) * total.
  by rewrite /best_value /gpi_value /total; field.
apply: (@sup_eq _ _ _ _ false) => // [s|]; rewrite VsE VE; last by rewrite loss ger0_norm.
by case: s; [rewrite subrr normr0 | rewrite loss ger0_norm].
Qed.

Lemma loss_Q : dist (Qstar two_states target) (Q two_states id target) = 2%:R * g / (1 - g) * total.
Proof.
have B0 : 0 <= 2%:R * g / (1 - g) * total by rewrite !mulr_ge0 ?ler0n // !addr_ge0 ?mulr_ge0.
have [QsE _] := target_solved; have [QE _] := id_Q.
have loss : g * best_value false - g * gpi_value false = 2%:R * g / (1 - g) * total.
  by rewrite /best_value /gpi_value /total; field.
apply: (@sup_eq _ _ _ _ (false, false)) => // [[s a]|]; rewrite QsE QE same_reward /=.
  by case: a; [rewrite subrr normr0 | rewrite loss ger0_norm].
by rewrite loss ger0_norm.
Qed.

(* The three terms are as large as they should be. *)
Lemma misfit : dist target proxy = rho.
Proof.
have diff x : target x - proxy x = if x.1 || x.2 then rho else - rho by rewrite /target addrC addKr.
apply: (@sup_eq _ _ _ _ (true, true)) => // [x|]; rewrite diff; last by rewrite ger0_norm.
by case: ifP => _; rewrite ?normrN ger0_norm.
Qed.

Lemma source_distance : dist proxy source = d.
Proof.
have diff x : proxy x - source x = if x.1 then (if x.2 then d else - d) else (if x.2 then - d else 0).
  by case: x => [[] []]; rewrite /proxy /source /=; ring.
apply: (@sup_eq _ _ _ _ (true, true)) => // [[[] []]|]; by rewrite diff /= ?normrN ?normr0 ?ger0_norm.
Qed.

Lemma source_error : dist Qt (Q two_states negb proxy) = e.
Proof.
have diff x : Qt x - Q two_states negb proxy x = wrong x by rewrite /Qt addrC addKr.
apply: (@sup_eq _ _ _ _ (false, false)) => // [[[] []]|];
  by rewrite diff /wrong /= ?normrN ?normr0 ?ger0_norm.
Qed.

(* T2'' *)
Theorem proxy_attained :
  exists (M : mdp F bool_finType bool_finType) (r r' r1 : bool * bool -> F) (pi1 pi : bool -> bool)
    (Qt : bool * bool -> F),
  [/\ discount M = g, optimal M pi1 r1 & gpi (I := unit_finType) tt pi (fun=> Qt)] /\
  [/\ dist r r' = rho, dist r' r1 = d & dist Qt (Q M pi1 r') = e] /\
  dist (Vstar M r) (V M pi r) = 2%:R / (1 - g) * (rho + g * d + e) /\
  dist (Qstar M r) (Q M pi r) = 2%:R * g / (1 - g) * (rho + g * d + e).
Proof.
exists two_states, target, proxy, source, negb, id, Qt; split; [split | split].
- by [].
- exact: negb_optimal.
- exact: id_gpi.
- by split; [apply: misfit | apply: source_distance | apply: source_error].
- by split; [apply: loss_V | apply: loss_Q].
Qed.

End Attained.

(* T2' is the case rho = 0. *)
Theorem sharp_attained (F : realFieldType) (g d e : F) : 0 <= g -> g < 1 -> 0 <= d -> 0 <= e ->
  exists (M : mdp F bool_finType bool_finType) (r r1 : bool * bool -> F) (pi1 pi : bool -> bool)
    (Qt : bool * bool -> F),
  [/\ discount M = g, optimal M pi1 r1 & gpi (I := unit_finType) tt pi (fun=> Qt)] /\
  [/\ dist r r1 = d & dist Qt (Q M pi1 r) = e] /\
  dist (Vstar M r) (V M pi r) = 2%:R / (1 - g) * (g * d + e) /\
  dist (Qstar M r) (Q M pi r) = 2%:R * g / (1 - g) * (g * d + e).
Proof.
move=> g0 g1 d0 e0.
have [M [r [r' [r1 [pi1 [pi [Qt]]]]]]] := proxy_attained g0 g1 d0 e0 (lexx 0).
move=> [hyps [[/dist_eq0 same dE eE]]]; rewrite add0r => losses.
exists M, r, r1, pi1, pi, Qt; do 3!split=> //; first by rewrite -dE; apply: eq_dist.
by rewrite -eE; apply: eq_dist => //; apply: eq_Q.
Qed.

(* So no smaller constants will do, in front of the distance or of the error, at any g. *)
Theorem sharp_constants_are_best (F : realFieldType) (g a b : F) : 0 <= g -> g < 1 ->
  (forall (M : mdp F bool_finType bool_finType) (r r1 : bool * bool -> F) (pi1 pi : bool -> bool)
     (Qt : bool * bool -> F),
   discount M = g -> optimal M pi1 r1 -> gpi (I := unit_finType) tt pi (fun=> Qt) ->
   dist (Vstar M r) (V M pi r) <= a * dist r r1 + b * dist Qt (Q M pi1 r)) ->
  2%:R * g / (1 - g) <= a /\ 2%:R / (1 - g) <= b.
Proof.
move=> g0 g1 bound; split.
  have [M [r [r1 [pi1 [pi [Qt [[gE opt gr] [[dE eE] [loss _]]]]]]]]] := sharp_attained g0 g1 ler01 (lexx 0).
  have := bound _ r _ _ _ _ gE opt gr; rewrite loss dE eE mulr0 mulr1 !addr0 mulr1.
  by rewrite mulrAC.
have [M [r [r1 [pi1 [pi [Qt [[gE opt gr] [[dE eE] [loss _]]]]]]]]] := sharp_attained g0 g1 (lexx 0) ler01.
by have := bound _ r _ _ _ _ gE opt gr; rewrite loss dE eE !mulr0 !mulr1 !add0r mulr1.
Qed.

(** (2) The printed theorem *)

Section Printed.
Variable F : realFieldType.

Let half : F := 2%:R^-1.

Let half_ge0 : 0 <= half.
Proof. by rewrite invr_ge0 ler0n. Qed.

Let half_lt1 : half < 1.
Proof. by rewrite invf_lt1 ?ltr1n ?ltr0n. Qed.

Let half_horizon : 1 - half != 0.
Proof. by rewrite subr_eq0 eq_sym lt_eqF. Qed.

(* One state; action j shows feature j. *)
Let world : featured F unit_finType bool_finType bool_finType :=
  Featured (sure F (fun x : unit * bool => (tt, x.2))) half_ge0 half_lt1 true.

Let next_sure x (h : unit -> F) : E (next world) x h = h tt.
Proof. by rewrite E_states E_sure. Qed.

Let expectedE (R : bool -> F) (x : unit * bool) : expected world R x = R x.2.
Proof. by rewrite /expected E_features E_sure. Qed.

(* The policy that always takes j shows j for ever. *)
Let xiE (j : bool) (x : unit * bool) phi : xi world (fun=> j) x phi = (phi == x.2)%:R + (phi == j)%:R.
Proof.
apply/esym; move: x phi; apply: xi_unique => x phi.
rewrite E_states E_sure features_sure /=; congr (_ + _).
set t : F := (_ == j)%:R; rewrite (_ : half * (t + t) = t) //.
by rewrite -mulr2n -mulr_natl mulrA mulVf ?mul1r ?pnatr_eq0.
Qed.

(* It is optimal for a reward whose maximum is at j. *)
Let always_optimal (R : bool -> F) j : (forall k, R k <= R j) -> optimal world (fun=> j) (expected world R).
Proof.
move=> R_max; pose v := R j / (1 - half).
have [] // := @solve_optimal _ _ _ world (fun=> tt) next_sure (fun=> v) (fun=> j) (expected world R).
  move=> s a; rewrite expectedE; apply: (@le_trans _ _ (R j + half * v)); first by rewrite ler_add2r R_max.
  by apply: le_of_eq; rewrite /v; field.
by move=> s; rewrite expectedE /= /v; field.
Qed.

Let reward_dist_self (R : bool -> F) : reward_dist world R R = 0.
Proof.
apply/eqP; rewrite eq_le sup_ge0 andbT; apply: sup_le => // x.
by apply: E_le => phi; rewrite subrr normr0.
Qed.

(* Two sources, R_j = 1 at feature j; the target is R_true. xi~ of the other source is wrong only at the
   feature that its own reward does not see. *)
Let Rs (j phi : bool) : F := (phi == j)%:R.
Let wrong_xi (j : bool) (x : unit * bool) phi : F :=
  xi world (fun=> j) x phi + (if [&& ~~ j, ~~ x.2 & phi] then 3%:R else 0).

Let Rs_max j k : Rs j k <= Rs j j.
Proof. by rewrite /Rs eqxx lern1 leq_b1. Qed.

Let invisible j phi x : Rs j phi * (xi world (fun=> j) x phi - wrong_xi j x phi) = 0.
Proof.
rewrite /wrong_xi /Rs; case: j phi => [] []; rewrite /= ?andbF ?mul0r // ?addr0 subrr mulr0 //.
Qed.

Let value_true (z : unit * bool -> bool -> F) x : value (Rs true) z x = z x true.
Proof. by rewrite /value sum_at. Qed.

Let false_is_gpi : gpi (I := bool_finType) true (fun=> false) (fun j => value (Rs true) (wrong_xi j)).
Proof.
move=> s a; set q := fun j => _; have three : q false (s, false) = 3%:R.
  by rewrite /q value_true /wrong_xi xiE /= !add0r.
apply: le_trans (le_over_sources _ q false _); rewrite three; apply: maxof_le => j.
by rewrite /q value_true /wrong_xi xiE /= -!natrD; case: j; case: a; rewrite /= ?addr0 -?natrD ler_nat.
Qed.

Theorem printed_false_error_under_source :
  ~ paper_bound (@value_dist F) (fun X Phi _ Ri => @absolute_dist F X Phi Ri).
Proof.
move=> claim.
have := claim _ _ _ _ world true (Rs true) Rs (fun j _ => j) wrong_xi (fun=> false) (fun=> true).
move=> /(_ (fun j => always_optimal (Rs_max j)) (always_optimal (Rs_max true)) false_is_gpi).
have no_distance : minof true (fun j => reward_dist world (Rs true) (Rs j)) <= 0.
  by rewrite -(reward_dist_self (Rs true)); apply: (minof_le _ (fun j => reward_dist world (Rs true) (Rs j))).
have no_error : sup (fun j => absolute_dist (Rs j) (xi world (fun=> j)) (wrong_xi j)) <= 0.
  apply: sup_le => // j; apply: sup_le => // x; rewrite big1 // => phi _.
  by rewrite invisible normr0.
have loss : 1 <= value_dist (Rs true) (xi world (fun=> true)) (xi world (fun=> false)).
  apply: le_trans (le_dist _ _ (tt, true)); rewrite !value_true !xiE /= addr0 addrK.
  by rewrite normr1.
move=> /(le_trans loss) bound; have : 1 <= 0 :> F; last by rewrite ler10.
apply: le_trans bound _; rewrite mulr_ge0_le0 ?mulr_ge0 ?ler0n ?(horizon_inv_ge0 world) //.
by rewrite -[0]addr0 ler_add.
Qed.

(* As printed, with the norms of the text, A_R and A_{R_i}, ... *)
Theorem printed_false_in_text :
  ~ paper_bound (@absolute_dist F) (fun X Phi _ Ri => @absolute_dist F X Phi Ri).
Proof.
move=> claim; apply: printed_false_error_under_source => S A Phi I W i0 R Rs' pis xit pi pistar.
move=> opt opt_star gr.
exact: le_trans (value_dist_le_absolute _ _ _) (claim _ _ _ _ _ _ _ _ _ _ _ _ opt opt_star gr).
Qed.

(* ... and with the norm of Corollary 1, N_R and N_{R_i}. *)
Theorem printed_false_in_value_norm :
  ~ paper_bound (@value_dist F) (fun X Phi _ Ri => @value_dist F X Phi Ri).
Proof.
move=> claim; apply: printed_false_error_under_source => S A Phi I W i0 R Rs' pis xit pi pistar.
move=> opt opt_star gr.
apply: le_trans (claim _ _ _ _ _ _ _ _ _ _ _ _ opt opt_star gr) _.
rewrite ler_wpmul2l ?mulr_ge0 ?ler0n ?horizon_inv_ge0 // ler_add2l.
apply: sup_le => [|i]; first exact: sup_ge0.
apply: le_trans (value_dist_le_absolute _ _ _) _.
exact: (le_sup (fun i => absolute_dist (Rs' i) (xi W (pis i)) (xit i))).
Qed.

(* With the absolute norm on the left it is false for exact xi~, however their error is measured: two policies
   of equal value differ in that norm. *)
Theorem printed_false_absolute_norm (error : error_reading F) :
  (forall X Phi R R' z, error X Phi R R' z z = 0) -> ~ paper_bound (@absolute_dist F) error.
Proof.
move=> exact_error claim; pose one (phi : bool) : F := 1; pose xit (j : unit) := xi world (fun=> true).
have opt j : optimal world (fun=> j) (expected world one) by apply: always_optimal.
have same x y : value one (xi world (fun=> true)) x = value one (xi world (fun=> true)) y.
  rewrite /value /one; under eq_bigr do rewrite mul1r; under [RHS]eq_bigr do rewrite mul1r.
  by rewrite !xi_mass.
have gr : gpi (I := unit_finType) tt (fun=> false) (fun j => value one (xit j)).
  by move=> s a; apply: le_of_eq; rewrite /over_sources /maxof /xit; apply: same.
have := claim _ _ _ _ world tt one (fun=> one) (fun _ _ => true) xit (fun=> false) (fun=> true).
move=> /(_ (fun=> opt true) (opt true) gr); rewrite sup_one ?exact_error // addr0.
have -> : minof (X := unit_finType) tt (fun=> reward_dist world one one) = 0 by exact: reward_dist_self.
rewrite mulr0 => bound; have : 2%:R <= 0 :> F; last by rewrite lern0.
apply: le_trans bound; apply: le_trans (le_sup (fun x => _) (tt, true)).
by rewrite big_bool /one !mul1r !xiE /= !addr0 !add0r addrK normrN normr1 -mulr2n.
Qed.

End Printed.

(** (3) Frozen over-estimates *)

Section Frozen.
Variables (F : realFieldType) (g m : F).
Hypotheses (g0 : 0 <= g) (g1 : g < 1) (m1 : 1 < m).

(* One state; action true pays 1, action false 0. *)
Let one_state : mdp F unit_finType bool_finType := MDP (sure F (fun _ : unit * bool => tt)) g0 g1 true.
Let pay (x : unit * bool) : F := if x.2 then 1 else 0.
Let stored (x : unit * bool) : F := if x.2 then 0 else m.

Let next_sure x (h : unit -> F) : E (next one_state) x h = h tt.
Proof. exact: E_sure. Qed.

Let h_neq0 : 1 - g != 0.
Proof. exact: (horizon_neq0 one_state). Qed.

Lemma pay_solved x : Qstar one_state pay x = pay x + g / (1 - g).
Proof.
have [||_ -> _ //] := @solve_optimal _ _ _ one_state _ next_sure (fun=> (1 - g)^-1) (fun=> true) pay.
  case=> [] []; rewrite /pay /=; first by apply: le_of_eq; field.
  by apply: (le_by (d := 1)); [apply: ler01 | field].
by case; rewrite /pay /=; field.
Qed.

(* eta of the stored values: max (M - TM)^+. *)
Lemma frozen_eta : sup (fun x => Num.max (stored x - T one_state pay stored x) 0) = (1 - g) * m.
Proof.
have m0 : 0 <= m by apply: ltW; apply: lt_trans m1.
have bestE s : best one_state stored s = m.
  by rewrite (@best_greedy _ _ _ one_state (fun=> false)) // => t []; rewrite /stored.
have TE x : T one_state pay stored x = pay x + g * m by rewrite /T next_sure bestE.
have c0 : 0 <= (1 - g) * m by rewrite mulr_ge0 // subr_ge0 ltW.
have last : stored (tt, false) - T one_state pay stored (tt, false) = (1 - g) * m.
  by rewrite TE /stored /pay /=; ring.
apply: (@sup_eq _ _ _ _ (tt, false)) => // [[[] []]|]; rewrite ?last.
- rewrite TE /stored /pay /= le_maxl c0 andbT; apply: le_trans c0.
  by rewrite sub0r oppr_le0 addr_ge0 ?ler01 ?mulr_ge0.
- by rewrite le_maxl c0 lexx.
- by apply/max_idPl.
Qed.

Variables (x : nat -> unit * bool) (b : nat -> bool) (alpha : nat -> F) (q : nat -> unit * bool -> F).
Hypothesis rates : forall n, 0 <= alpha n <= 1.
Hypothesis start : forall u, q 0%N u = 0.
(* The bootstrap is a GPI action: greedy on the larger of stored and learned values. *)
Hypothesis bootstrap_gpi : forall n a,
  Num.max (stored (tt, a)) (q n (tt, a)) <= Num.max (stored (tt, b n)) (q n (tt, b n)).
Hypothesis learns : td g x (fun n => (tt, b n)) alpha (fun n => pay (x n)) q.

Lemma frozen_bounds n : q n (tt, false) = 0 /\ 0 <= q n (tt, true) <= 1.
Proof.
elim: n => [|n [q_false /andP[q_ge0 q_le1]]]; first by rewrite !start lexx ler01.
have b_false : b n = false.
  have := bootstrap_gpi n false; case: (b n) => //; rewrite /stored /= q_false.
  by rewrite le_maxl !le_maxr !leNgt (lt_trans ltr01 m1) (le_lt_trans q_le1 m1).
have /andP[a0 a1] := rates n.
rewrite !learns b_false q_false !mulr0 !addr0 add0r; case: (x n) => [[] []]; rewrite /pay /= ?mulr0 ?mulr1.
  split=> //; rewrite addr_ge0 ?mulr_ge0 ?subr_ge0 //=.
  apply: (le_by (d := (1 - alpha n) * (1 - q n (tt, true)))); last by ring.
  by rewrite mulr_ge0 ?subr_ge0.
by rewrite q_ge0.
Qed.

(* The error never falls below g/(1-g), where T1-GPI's bound is g eta/(1-g)^2 = m g/(1-g). *)
Theorem frozen_overestimates_do_harm n : g / (1 - g) <= dist (Qstar one_state pay) (q n).
Proof.
have [q_false _] := frozen_bounds n; apply: le_trans (le_dist _ _ (tt, false)).
by rewrite pay_solved q_false /pay /= add0r subr0 ler_norm.
Qed.

Theorem frozen_bound_is_sharp :
  g * sup (fun x => Num.max (stored x - T one_state pay stored x) 0) / (1 - g) ^+ 2 = m * (g / (1 - g)).
Proof. by rewrite frozen_eta; field. Qed.

End Frozen.
