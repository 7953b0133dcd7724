"""The catalogue is complete and consistent; its verdicts are computed elsewhere."""

import ast
from pathlib import Path

import pytest

import sfr_theory.catalogue
from proofs_checks import ledger
from sfr_theory import check_convergence
from sfr_theory.bounds import STATEMENTS
from sfr_theory.catalogue import CATALOGUE, COVERAGE, EXPERIMENTS, PLACES, SECTIONS, UNCHECKED
from sfr_theory.claims import CheckResult, Claim, Gravity, Kind, Method, Outcome, Verdict

MENDED = (
    ("bg/q-learning-printed", "bg/q-learning-corrected"),
    ("bg/psi-bellman-printed", "bg/psi-bellman-corrected"),
    ("prop1/printed", "prop1/corrected"),
    ("thm1/printed", "thm1/corrected"),
    ("thm2/printed", "thm2/corrected"),
    ("thm2/printed-value-norm", "thm2/sharp"),
    ("tent/printed-misbracketed", "tent/partition"),
    ("alg/csfr-listing-printed", "alg/csfr-listing-corrected"),
    ("alg/linear-model-fitting-printed", "alg/linear-model-fitting-corrected"),
)
HOLDS = {Verdict.PROVED, Verdict.SUPPORTED}


def test_ids_are_unique() -> None:
    ids = [claim.id for section in SECTIONS for claim in section.claims]
    assert len(ids) == len(set(ids)) == len(CATALOGUE) >= 60


def test_sentences_are_unique_and_short() -> None:
    sentences = [claim.sentence for claim in CATALOGUE.values()]
    assert len(set(sentences)) == len(sentences)
    assert max(map(len, sentences)) <= 120


def test_every_place_of_the_paper_is_covered_by_entries_that_exist() -> None:
    for place, names in COVERAGE.items():
        assert names, place
        assert set(names) <= set(CATALOGUE), place


def test_claims_name_all_places_and_no_others() -> None:
    named = {claim.label or claim.about for claim in CATALOGUE.values()} - {""}
    assert named == set(PLACES)


@pytest.mark.parametrize(("printed", "corrected"), MENDED)
def test_what_is_false_as_printed_is_there_as_corrected(printed: str, corrected: str) -> None:
    assert CATALOGUE[printed].expected in {Verdict.REFUTED, Verdict.NEEDS_ASSUMPTION}
    assert CATALOGUE[corrected].expected in HOLDS


EMPIRICAL = {claim.id for claim in EXPERIMENTS.claims}


def test_every_claim_has_a_proof_a_reason_or_is_empirical() -> None:
    proofs = set(ledger.collect())
    assert proofs <= set(CATALOGUE), "a proof of a claim that is not in the catalogue"
    assert set(UNCHECKED) <= set(CATALOGUE), "a reason for a claim that is not in the catalogue"
    assert not proofs & set(UNCHECKED), "a claim with both a proof and a reason why it has none"
    assert not EMPIRICAL & (proofs | set(UNCHECKED)), "results decide it"
    assert set(CATALOGUE) - proofs - set(UNCHECKED) == EMPIRICAL


def test_not_checked_is_expected_exactly_where_there_is_a_reason() -> None:
    expected = {claim.id for claim in CATALOGUE.values() if claim.expected is Verdict.NOT_CHECKED}
    assert expected - EMPIRICAL == set(UNCHECKED)
    assert all(UNCHECKED.values())


def test_every_check_and_bound_is_of_a_claim_in_the_catalogue() -> None:
    assert set(STATEMENTS) | set(check_convergence.CHECKS) <= set(CATALOGUE)


def test_dependencies_are_claims_and_have_no_circle() -> None:
    waiting = {claim.id: set(claim.depends_on) for claim in CATALOGUE.values()}
    assert set().union(*waiting.values()) <= set(CATALOGUE)
    while free := [name for name, others in waiting.items() if not others & set(waiting)]:
        for name in free:
            del waiting[name]
    assert not waiting, "these rest on each other"


def test_what_is_proved_rests_on_what_is_proved() -> None:
    """Otherwise no run could find it as expected."""
    for claim in CATALOGUE.values():
        if claim.expected is Verdict.PROVED:
            assert {CATALOGUE[other].expected for other in claim.depends_on} <= {Verdict.PROVED}, claim.id


def test_the_papers_errors_have_a_gravity_and_ours_a_kind() -> None:
    with pytest.raises(ValueError, match="gravity"):
        Claim("a/b", "eq:x", "x", Verdict.REFUTED)
    with pytest.raises(ValueError, match="gravity"):
        Claim("a/b", "eq:x", "x", Verdict.PROVED, gravity=Gravity.SLIP)
    with pytest.raises(ValueError, match="label"):
        Claim("a/b", "", "x", Verdict.PROVED)
    with pytest.raises(ValueError, match="label"):
        Claim("a/b", "eq:x", "x", Verdict.PROVED, Kind.CORRECTION)


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("verdict", Verdict)
def test_no_method_says_more_than_it_can(method: Method, verdict: Verdict) -> None:
    """Only proofs prove; only instances and runs support; only results reproduce; anything may be open."""
    proof = {Method.COQ, Method.SYMBOLIC, Method.SMT, Method.EXACT}
    allowed = {
        Verdict.PROVED: proof,
        Verdict.SUPPORTED: {Method.INSTANCES, Method.SIMULATION},
        Verdict.REFUTED: {*proof, Method.COUNTEREXAMPLE, Method.INSTANCES},
        Verdict.NEEDS_ASSUMPTION: {*proof, Method.COUNTEREXAMPLE, Method.RESULTS},
        Verdict.REPRODUCED: {Method.RESULTS},
        Verdict.NOT_REPRODUCED: {Method.RESULTS},
    }.get(verdict, set(Method))
    claim, result = CATALOGUE["xi/mass"], CheckResult(verdict, "because")
    if method in allowed:
        assert Outcome(claim, result, method).result is result
    else:
        with pytest.raises(ValueError, match="xi/mass"):
            Outcome(claim, result, method)


def test_a_weaker_method_is_expected_to_find_less() -> None:
    assert Method.SMT.at_best(Verdict.PROVED) is Verdict.PROVED
    assert Method.INSTANCES.at_best(Verdict.PROVED) is Verdict.SUPPORTED
    assert Method.INSTANCES.at_best(Verdict.REFUTED) is Verdict.REFUTED
    assert Method.SIMULATION.at_best(Verdict.REFUTED) is Verdict.INCONCLUSIVE


def test_the_catalogue_is_data() -> None:
    tree = ast.parse(Path(sfr_theory.catalogue.__file__).read_text())
    ours = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("sfr_", "proofs_"))
    }
    assert ours == {"sfr_theory.claims"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
