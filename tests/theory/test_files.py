"""Files: what a user writes is read exactly; what is wrong is named."""

import json
from fractions import Fraction

import pytest
from hypothesis import given

from sfr_theory.arithmetic import fraction
from sfr_theory.errors import InputError
from sfr_theory.files import load_problem, problem_from_json, problem_to_json, save_problem
from tests.refusals import refused
from tests.strategies import problems

ROW = {"state": 0, "action": 0, "next_state": 0, "feature": 0, "probability": 1}
MDP = {"gamma": "9/10", "num_features": 1, "transitions": [ROW]}
PROBLEM = {**MDP, "target": ["1"], "sources": [["1/2"]]}


def with_row(**changes):
    return {**PROBLEM, "transitions": [{**ROW, **changes}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a list; expected an object"),
        ({k: v for k, v in PROBLEM.items() if k != "gamma"}, '"gamma" is missing'),
        ({k: v for k, v in PROBLEM.items() if k != "sources"}, '"sources" is missing'),
        ({**PROBLEM, "rewards": []}, '"rewards" is not a known key'),
        ({**PROBLEM, "gamma": 1}, "gamma.*less than 1"),
        ({**PROBLEM, "gamma": None}, "gamma: None is not a number"),
        ({**PROBLEM, "num_features": 0}, "num_features is 0"),
        ({**PROBLEM, "num_features": True}, "num_features is True"),
        ({**PROBLEM, "num_features": 10**9}, "at most 10000000 are read"),
        ({**PROBLEM, "transitions": []}, "transitions.*at least one"),
        ({**PROBLEM, "transitions": [1]}, r"transitions\[0\].*object with the keys state, action"),
        ({**PROBLEM, "transitions": [{**ROW, "reward": 1}]}, r"transitions\[0\] must be an object"),
        (with_row(state=10**9), "at most 10000000 are read"),
        (with_row(state=10**20), "at most 10000000 are read"),
        ({**PROBLEM, "target": ["x" * 5000]}, r"target\[0\]: 'xxx[^ ]{0,80} is not a number"),
        (with_row(state=1), "state 0, action 0 has no transition"),
        (with_row(state=-1), r"transitions\[0\]: state.*at least 0"),
        (with_row(state=0.5), r"transitions\[0\]: state.*whole number"),
        (with_row(next_state=1), r"transitions\[0\]: next_state.*between 0 and 0"),
        (with_row(feature=1), r"transitions\[0\]: feature.*between 0 and 0"),
        (with_row(probability="1/2"), "state 0, action 0.* 1/2.*sum to 1"),
        (with_row(probability=0.9), "sum to 9/10"),
        (with_row(probability="-1"), r"transitions\[0\]: probability.*negative"),
        (with_row(probability="one"), r"transitions\[0\]: probability: 'one' is not a number"),
        (with_row(probability=float("nan")), "probability: nan is not a finite number"),
        ({**PROBLEM, "target": ["1", "2"]}, "target gives 2 rewards"),
        ({**PROBLEM, "target": "1"}, "target.*list"),
        ({**PROBLEM, "target": ["x"]}, r"target\[0\]: 'x' is not a number"),
        ({**PROBLEM, "sources": []}, "sources is empty"),
        ({**PROBLEM, "sources": ["1"]}, r"sources\[0\].*list"),
        ({**PROBLEM, "sources": [["1"], ["1", "2"]]}, "sources.*entry 0.*entry 1"),
        ({**PROBLEM, "approximations": [[["1"]]]}, r"approximations\[0\]\[0\]\[0\] is text"),
        ({**PROBLEM, "approximations": [[[["1", "2"]]]]}, "approximations has shape"),
        ({**PROBLEM, "feature_vectors": [["1"], ["2"]]}, "feature_vectors has 2 rows"),
    ],
)
def test_bad_content(content, message, tmp_path):
    with pytest.raises(InputError, match=message):
        problem_from_json(content)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content))
    with refused("bad.json:"):
        load_problem(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"is not JSON \(line 1, column 2\)"),
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not text"),
        (b"[" * 100_000, "nested too deeply|is not JSON"),
        (b"[" + b"1" * 5000 + b"]", "holds a number that is too long"),
        (b'{"gamma": 0, "gamma": 1}', 'the key "gamma" stands twice'),
    ],
)
def test_files_that_are_not_json(content, message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_problem(path)


def test_text_is_read_exactly_and_decimals_as_they_stand():
    problem = problem_from_json({**PROBLEM, "gamma": 0.9, "target": [0.1]})
    assert fraction(problem.mdp.gamma) == Fraction(9, 10)
    assert fraction(problem.target[0]) == Fraction(1, 10)


def test_decimals_that_cannot_sum_to_one_are_normalised_and_text_is_not():
    thirds = [{**ROW, "feature": f, "probability": 0.3333333333} for f in range(3)]
    content = {
        **PROBLEM,
        "num_features": 3,
        "transitions": thirds,
        "target": [1, 2, 3],
        "sources": [[1, 2, 3]],
    }
    assert fraction(problem_from_json(content).mdp.kernel[0, 0, 0, 0]) == Fraction(1, 3)
    with refused("sum to"):
        problem_from_json(
            {**content, "transitions": [{**row, "probability": "0.3333333333"} for row in thirds]}
        )


def test_outcomes_listed_twice_add_up():
    halves = [{**ROW, "probability": "1/2"}, {**ROW, "probability": "1/2"}]
    assert problem_from_json({**PROBLEM, "transitions": halves}).mdp.kernel[0, 0, 0, 0] == 1


@given(problems(with_vectors=True))
def test_json_round_trip(problem):
    again = problem_from_json(json.loads(json.dumps(problem_to_json(problem, "a comment"))))
    assert again.mdp == problem.mdp
    assert (again.target == problem.target).all()
    assert (again.sources == problem.sources).all()
    assert (again.approximations is None) == (problem.approximations is None)
    if problem.approximations is not None:
        assert (again.approximations == problem.approximations).all()


def test_files_round_trip(tmp_path):
    problem = problem_from_json(PROBLEM)
    save_problem(problem, tmp_path / "new" / "problem.json", "why")
    assert load_problem(tmp_path / "new" / "problem.json").mdp == problem.mdp
    assert json.loads((tmp_path / "new" / "problem.json").read_text())["comment"] == "why"
