(* Maxima over finite types, in any real field.

     sup f          the maximum of a function f >= 0 over a finite type; 0 if the type is empty
     dist f h       sup |f - h|, the distance of two functions in the maximum norm
     maxof i f      the maximum of any function over a type that has an element i
     minof i f      its minimum

   A real field need not be complete. What replaces completeness is `self_bound`: if every bound B of D
   gives D <= c + g B, then D <= c/(1-g). Uniqueness of fixed points, comparison of values and perturbation
   of rewards all follow from it. *)

From mathcomp Require Import all_ssreflect all_algebra ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Maxima.
Variables (F : realFieldType) (X : finType).
Implicit Types (f h : X -> F) (x : X) (b c : F).

(* There is no linear arithmetic for real fields here: an inequality is proved by naming what its sides
   differ by. *)
Lemma le_by (d b c : F) : 0 <= d -> c - b = d -> b <= c.
Proof. by move=> d0 e; rewrite -subr_ge0 e. Qed.

Lemma le_of_eq (b c : F) : b = c -> b <= c.
Proof. by move=> ->. Qed.

Definition sup f : F := \big[Num.max/0]_x f x.

Lemma sup_ge0 f : 0 <= sup f.
Proof.
rewrite /sup; elim: (index_enum X) => [|y l IH]; first by rewrite big_nil.
by rewrite big_cons le_maxr IH orbT.
Qed.

Lemma le_sup f x : f x <= sup f.
Proof.
rewrite /sup; have := mem_index_enum x; elim: (index_enum X) => [|y l IH] //.
rewrite inE big_cons le_maxr => /orP[/eqP->|/IH->]; last by rewrite orbT.
by rewrite lexx.
Qed.

Lemma sup_le f c : 0 <= c -> (forall x, f x <= c) -> sup f <= c.
Proof.
move=> c0 fc; apply: (big_ind (fun b => b <= c)) => // b b' bc b'c.
by rewrite le_maxl bc.
Qed.

(* The two halves of "c is the maximum of f". *)
Lemma sup_eq f c x : 0 <= c -> (forall y, f y <= c) -> f x = c -> sup f = c.
Proof. by move=> c0 fc fx; apply/eqP; rewrite eq_le sup_le //= -{1}fx le_sup. Qed.

Definition dist f h : F := sup (fun x => `|f x - h x|).

Lemma dist_ge0 f h : 0 <= dist f h.
Proof. exact: sup_ge0. Qed.

Lemma le_dist f h x : `|f x - h x| <= dist f h.
Proof. exact: (le_sup (fun x => `|f x - h x|)). Qed.

Lemma dist_le f h c : 0 <= c -> (forall x, `|f x - h x| <= c) -> dist f h <= c.
Proof. exact: sup_le. Qed.

Lemma eq_dist f f' h h' : f =1 f' -> h =1 h' -> dist f h = dist f' h'.
Proof. by move=> ef eh; apply: eq_bigr => x _; rewrite ef eh. Qed.

Lemma distC f h : dist f h = dist h f.
Proof. by apply: eq_bigr => x _; rewrite distrC. Qed.

Lemma distff f : dist f f = 0.
Proof. by apply/eqP; rewrite eq_le dist_ge0 dist_le // => x; rewrite subrr normr0. Qed.

Lemma dist_eq0 f h : dist f h = 0 -> f =1 h.
Proof.
by move=> e x; apply/eqP; rewrite -subr_eq0 -normr_le0 -e le_dist.
Qed.

Lemma dist_lower f h x : h x - dist f h <= f x.
Proof. by have := le_dist f h x; rewrite ler_distl => /andP[]. Qed.

Lemma dist_upper f h x : f x <= h x + dist f h.
Proof. by have := le_dist f h x; rewrite ler_distl => /andP[]. Qed.

(* Where one function is above the other, one inequality bounds the distance. *)
Lemma dist_le_above f h c : 0 <= c -> (forall x, h x <= f x) -> (forall x, f x <= h x + c) -> dist f h <= c.
Proof.
move=> c0 hf fh; apply: dist_le => // x.
by rewrite ger0_norm ?subr_ge0 // ler_subl_addl.
Qed.

Definition maxof (i : X) f : F := f [arg max_(x > i) f x]%O.
Definition minof (i : X) f : F := f [arg min_(x < i) f x]%O.

Lemma le_maxof i f x : f x <= maxof i f.
Proof. by rewrite /maxof; case: arg_maxP => // y _; apply. Qed.

Lemma minof_le i f x : minof i f <= f x.
Proof. by rewrite /minof; case: arg_minP => // y _; apply. Qed.

Lemma maxof_le i f c : (forall x, f x <= c) -> maxof i f <= c.
Proof. by move=> fc; apply: fc. Qed.

Lemma le_minof i f c : (forall x, c <= f x) -> c <= minof i f.
Proof. by move=> cf; apply: cf. Qed.

Lemma maxof_attained i f : exists x, f x = maxof i f.
Proof. by exists [arg max_(x > i) f x]%O. Qed.

Lemma minof_attained i f : exists x, f x = minof i f.
Proof. by exists [arg min_(x < i) f x]%O. Qed.

Lemma maxof_eq i f x : (forall y, f y <= f x) -> maxof i f = f x.
Proof. by move=> fx; apply/eqP; rewrite eq_le maxof_le // le_maxof. Qed.

Lemma eq_maxof i f h : f =1 h -> maxof i f = maxof i h.
Proof.
move=> fh; have [x e] := maxof_attained i h; rewrite -e -fh; apply: maxof_eq => y.
by rewrite !fh e le_maxof.
Qed.

Lemma maxof_mono i f h : (forall x, f x <= h x) -> maxof i f <= maxof i h.
Proof. by move=> fh; apply: maxof_le => x; apply: le_trans (fh x) (le_maxof i h x). Qed.

Lemma maxof_add i f c : maxof i (fun x => f x + c) = maxof i f + c.
Proof.
have [x e] := maxof_attained i f; rewrite (@maxof_eq _ _ x) /= ?e // => y.
by rewrite ler_add2r le_maxof.
Qed.

Lemma maxof_scale i f b : 0 <= b -> maxof i (fun x => b * f x) = b * maxof i f.
Proof.
move=> b0; have [x e] := maxof_attained i f; rewrite (@maxof_eq _ _ x) /= ?e // => y.
by rewrite ler_wpmul2l // le_maxof.
Qed.

(* |max f - max h| <= max |f - h| *)
Theorem max_difference i f h : `|maxof i f - maxof i h| <= dist f h.
Proof.
rewrite ler_distl ler_subl_addr -!maxof_add; apply/andP; split; apply: maxof_mono => x.
  by rewrite -ler_subl_addr dist_lower.
exact: dist_upper.
Qed.

(* In place of completeness. *)
Lemma self_bound (D : X -> F) g c :
  g < 1 -> (forall b, (forall x, D x <= b) -> forall x, D x <= c + g * b) -> forall x, D x <= c / (1 - g).
Proof.
move=> g1 step x; apply: le_trans (le_maxof x D x) _.
have [y e] := maxof_attained x D.
have := step _ (le_maxof x D) y; rewrite e => b_le.
by rewrite ler_pdivl_mulr ?subr_gt0 // mulrBr mulr1 ler_subl_addr mulrC.
Qed.

End Maxima.
