(* Identities of learning rules that hold path by path: for every path, every choice among ties and every
   sequence of step sizes, without any probability.

   Vector TD     z_{n+1}(x_n) = (1 - alpha_n) z_n(x_n) + alpha_n (c_n + g z_n(y_n)), other pairs keep their z.
                 Read by any w it is scalar TD on w.z, and it is vector TD if that holds for every w.
   Theorem 1     xi-learning bootstraps on y_n = (s_{n+1}, b_n), b_n greedy on sum_phi R xi_n. So
                 sum_phi R xi_n is the Q-learning iterate (eqn:xi_learning).
   SF and SFR    with values linear in the parameters, rewards linear in a code z of features and no clipping,
                 SF's parameters are the image sum_phi z(phi) theta_n(phi) of SFR's parameters theta_n at all
                 times if they are at the start. All decisions (action, policy to update, bootstrap, rate) may
                 depend in any way on the values so far, those of stored policies and of other tasks included:
                 GPI is covered. *)

From mathcomp Require Import all_ssreflect all_algebra ring.
From SFR Require Import maxima mdp xi.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section TemporalDifferences.
Variables (F : realFieldType) (X : finType) (g : F).
Variables (x y : nat -> X) (alpha : nat -> F).

(* At time n the pair x n moves towards c n + g q(y n). *)
Definition td (c : nat -> F) (q : nat -> X -> F) := forall n u,
  q n.+1 u = if u == x n then (1 - alpha n) * q n u + alpha n * (c n + g * q n (y n)) else q n u.

Variables (K : finType) (c : nat -> K -> F) (z : nat -> X -> K -> F).

Definition vector_td := forall k, td (fun n => c n k) (fun n u => z n u k).

Lemma td_read_by_w (w : K -> F) : vector_td -> td (fun n => \sum_k w k * c n k) (fun n => value w (z n)).
Proof.
move=> vec n u; rewrite /value; under eq_bigr do rewrite vec.
case: eqP => // _; rewrite [g * _]mulr_sumr -big_split mulr_sumr mulr_sumr -big_split.
by apply: eq_bigr => k _ /=; ring.
Qed.

Theorem vector_td_iff_every_readout :
  vector_td <-> forall w : K -> F, td (fun n => \sum_k w k * c n k) (fun n => value w (z n)).
Proof.
split=> [vec w | read k n u]; first exact: td_read_by_w.
have := read (fun k' => (k' == k)%:R) n u; rewrite /value !sum_at.
by move=> ->; case: eqP.
Qed.

End TemporalDifferences.

(** Theorem 1, path by path *)

Section Pathwise.
Variables (F : realFieldType) (S A Phi : finType) (M : mdp F S A) (R : Phi -> F).
Variables (x : nat -> S * A) (s' : nat -> S) (alpha : nat -> F) (phat : nat -> Phi -> F).

Local Notation g := (discount M).

(* Q-learning on the rewards sum_phi R phat_n, from q0. *)
Fixpoint q_learning (q0 : S * A -> F) n : S * A -> F :=
  if n is m.+1 then
    let q := q_learning q0 m in
    fun u => if u == x m
             then (1 - alpha m) * q u + alpha m * (\sum_phi R phi * phat m phi + g * best M q (s' m))
             else q u
  else q0.

Theorem pathwise (b : nat -> A) (z : nat -> S * A -> Phi -> F) :
  vector_td g x (fun n => (s' n, b n)) alpha phat z ->
  (forall n a, value R (z n) (s' n, a) <= value R (z n) (s' n, b n)) ->
  forall n, value R (z n) =1 q_learning (value R (z 0%N)) n.
Proof.
move=> learns greedy_b; elim=> [//|n IH] u.
rewrite (td_read_by_w R learns) /= -!IH; case: eqP => // _.
congr (_ * _ + _ * (_ + _ * _)); rewrite -(eq_best M IH).
by apply/esym; apply: (maxof_eq _ (f := fun a => value R (z n) (s' n, a))); apply: greedy_b.
Qed.

End Pathwise.

(** SF learning is the image of SFR learning *)

Section LinearLearners.
Variables (F : realFieldType) (I X J Task : finType) (code : X -> J -> F) (g : F).
(* I: policies. X: pairs (s, a), with the inputs `code x` of the linear maps. J: inputs. *)

(* One update: of which policy, at which pair, bootstrapped on which, with which step size, what was seen. *)
Record event (Phi : finType) := Event {
  policy : I; pair : X; bootstrap : X; rate : F; seen : Phi -> F
}.

Definition parameters (K : finType) := I -> J -> K -> F.

Section Learner.
Variables (Phi K : finType) (observe : (Phi -> F) -> K -> F) (w : Task -> K -> F).
Implicit Types (theta : parameters K).

Definition predict theta i u k : F := \sum_j theta i j k * code u j.

(* Semi-gradient step on the squared error, summed over k. *)
Definition update (e : event Phi) theta : parameters K := fun i j k =>
  if i == policy e
  then theta i j k + rate e * (observe (seen e) k + g * predict theta i (bootstrap e) k
                               - predict theta i (pair e) k) * code (pair e) j
  else theta i j k.

(* Q of every policy at every pair under every task. *)
Definition table theta : {ffun Task * I * X -> F} :=
  [ffun t => \sum_k w t.1.1 k * predict theta t.1.2 t.2 k].

(* The parameters and the tables so far, latest first, after n updates. `world` is everything else: the
   environment with its randomness, exploration, GPI, ties, step sizes. *)
Fixpoint learn (world : seq {ffun Task * I * X -> F} -> event Phi) theta0 n :=
  if n is m.+1 then
    let: (theta, history) := learn world theta0 m in
    let history' := table theta :: history in
    (update (world history') theta, history')
  else (theta0, [::]).

End Learner.

Variables (Phi K : finType) (z : Phi -> K -> F) (R : Task -> Phi -> F) (w : Task -> K -> F).
Hypothesis linear_rewards : forall t phi, R t phi = \sum_k w t k * z phi k.

(* SFR sees an estimate of p(phi | s, a), such as the indicator of phi; SF sees what the code makes of it. *)
Definition sfr_learn := learn (fun p : Phi -> F => p) R.
Definition sf_learn := learn (fun (p : Phi -> F) k => \sum_phi z phi k * p phi) w.

Definition image (theta : parameters Phi) : parameters K := fun i j k => \sum_phi z phi k * theta i j phi.

Definition is_image (W : parameters K) (theta : parameters Phi) := forall i j k, W i j k = image theta i j k.

Lemma predict_image W theta i u k : is_image W theta ->
  predict W i u k = \sum_phi z phi k * predict theta i u phi.
Proof.
move=> im; rewrite /predict; under eq_bigr do rewrite im mulr_suml.
rewrite exchange_big; apply: eq_bigr => phi _; rewrite mulr_sumr.
by apply: eq_bigr => j _; rewrite mulrA.
Qed.

Lemma table_image W theta : is_image W theta -> table w W = table R theta.
Proof.
move=> im; apply/ffunP => t; rewrite !ffunE.
under eq_bigr do rewrite (predict_image _ _ _ im) mulr_sumr.
rewrite exchange_big; apply: eq_bigr => phi _; rewrite linear_rewards mulr_suml.
by apply: eq_bigr => k _; rewrite mulrA.
Qed.

Theorem sf_is_image_of_sfr world W0 theta0 n : is_image W0 theta0 ->
  is_image (sf_learn world W0 n).1 (sfr_learn world theta0 n).1 /\
  (sf_learn world W0 n).2 = (sfr_learn world theta0 n).2.
Proof.
move=> im0; rewrite /sf_learn /sfr_learn; elim: n => [//|n] /=.
case: (learn _ w world W0 n) => W h; case: (learn _ R world theta0 n) => theta h' /= [im ->].
rewrite (table_image im); split=> // i j k; rewrite /image /update.
set e := world _; case: eqP => _; last exact: im.
rewrite im !(predict_image _ _ _ im) /image.
rewrite [g * _]mulr_sumr -big_split -sumrB mulr_sumr mulr_suml -big_split.
by apply: eq_bigr => phi _ /=; ring.
Qed.

End LinearLearners.
