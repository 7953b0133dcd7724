"""The examples run as they stand, without a warning, and show what they say."""

import re

import pytest

from tests.commands import ROOT, printed_by

CAST_OF_BOUNDS = "ignore::UserWarning:gymnasium.spaces.box"
"""Deep-sea-treasure declares the bounds of its rewards in float64 for a float32 space."""


def run(name, *expected_warnings, folder=ROOT / "examples"):
    filters = [word for warning in ("error", *expected_warnings) for word in ("-W", warning)]
    return printed_by(*filters, folder / name)


@pytest.mark.slow
def test_transfer_helps():
    """SFR meets the new reward function with what it has learned; Q starts afresh."""
    output = run("transfer.py")
    reward = {name: float(value) for name, value in re.findall(r"(\w+): total reward (-?\d+)", output)}
    assert reward["SFR"] > 3 * abs(reward["Q"])


@pytest.mark.slow
def test_an_environment_of_ones_own():
    """At the end falling into holes is what pays, and the agent does it."""
    rewards = [float(value) for value in re.findall(r"total reward ([+-]\d+)", run("own_environment.py"))]
    assert len(rewards) == 3
    assert rewards[2] > 100


@pytest.mark.slow
def test_a_world_of_ones_own_runs_at_the_speed_of_compiled_code():
    """The paths of both engines are compared in tests/fa/test_engines.py."""
    rewards, times = (
        [float(number) for number in re.findall(pattern, run("own_world.py"))]
        for pattern in (r": (\S+) per 1,000 steps", r"(\S+) microseconds per step")
    )
    assert min(rewards[:3]) > 10
    compiled, reference = times
    assert reference > 50 * compiled


@pytest.mark.slow
def test_a_joint_utility_is_expressed_by_bumps_and_not_by_sums():
    joint, additive = (int(share) for share in re.findall(r"express (\d+)%", run("joint_utility.py")))
    assert joint > 90
    assert additive < 50


def worth(output):
    """Of the lines on the new reward: what GPI is worth, the optimum, what it loses, what T2' allows."""
    pattern = r"worth (\S+) at the start, the optimum (\S+); it loses (\S+) at worst, T2' allows (\S+)"
    return [[float(number) for number in line] for line in re.findall(pattern, output)]


@pytest.mark.slow
def test_frozen_lake_within_its_bound():
    """With 6,000 steps per task xi is only roughly right, and GPI on it nearly optimal where it starts."""
    exact, learned = worth(run("frozen_lake.py"))
    for gpi, optimum, loss, allowed in (exact, learned):
        assert optimum - 0.05 < gpi <= optimum
        assert loss <= allowed
    assert exact[3] < learned[3]


@pytest.mark.slow
def test_frozen_lake_without_chance_is_learned_exactly(tmp_path):
    text = (ROOT / "examples" / "frozen_lake.py").read_text()
    changed = text.replace("success_rate=0.9", "is_slippery=False").replace("rate=0.1", "rate=0.5")
    (tmp_path / "dry_lake.py").write_text(changed.replace("steps=6000", "steps=3000"))
    output = run("dry_lake.py", folder=tmp_path)
    assert [float(error) for error in re.findall(r"error of xi (\S+);", output)] == [0.0, 0.0]
    assert [line[:3] for line in worth(output)] == [[0.509, 0.509, 0.0]] * 2


@pytest.mark.slow
def test_deep_sea_treasure_with_a_utility_that_is_not_linear():
    """One treasure of use is worth 1; policies of earlier tasks lead to one in most episodes."""
    [per_episode] = re.findall(r"(\S+) per episode", run("deep_sea_treasure.py", CAST_OF_BOUNDS))
    assert float(per_episode) > 0.4


@pytest.mark.parametrize(
    ("name", "page"), [("transfer.py", "docs/practitioner.md"), ("deep_sea_treasure.py", "README.md")]
)
def test_pages_show_the_examples_that_are_tested(name, page):
    assert (ROOT / "examples" / name).read_text() in (ROOT / page).read_text()
