"""One-step models: what they predict against what happens, by the library's own rules."""

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments import calibration
from experiments.calibration import RATES, Calibration, RecordedWalk, calibrations, predictions, read
from experiments.rows import to_csv
from sfr_fa.agents import delta_rule, squares
from tests.refusals import refused

PUBLISHED = Path("results") / calibration.TABLE


def chance(steps, frequencies, seed=0):
    """A walk in one state in which features come by chance."""
    features = np.random.default_rng(seed).choice(len(frequencies), steps, p=frequencies)
    names = ("nothing", "box", "goal")[: len(frequencies)]
    return RecordedWalk(np.ones((steps, 1)), np.zeros(steps, dtype=int), features, names)


@pytest.mark.parametrize("rule", [delta_rule, squares])
def test_models_learn_by_the_rules_of_the_agents(rule):
    rng = np.random.default_rng(1)
    walk = RecordedWalk(
        rng.random((20, 3)), rng.integers(2, size=20), rng.integers(3, size=20), ("nothing", "a", "b")
    )
    name = {delta_rule: "delta rule", squares: "squares"}[rule]
    found = predictions(walk)[name, RATES[1]]
    theta = torch.zeros(2, 3, 3, dtype=torch.float64, requires_grad=True)
    for t in range(20):
        logits = theta[walk.actions[t]] @ torch.from_numpy(walk.states[t])
        np.testing.assert_allclose(found[t], torch.softmax(logits, 0).detach(), atol=1e-12)
        (gradient,) = torch.autograd.grad(rule(logits, int(walk.features[t])), theta)
        theta = (theta - RATES[1] * gradient).detach().requires_grad_()


def test_frequencies_and_bins_count_the_second_half():
    walk = chance(4000, (0.9, 0.06, 0.04))
    rows = [row for row in calibrations(walk) if (row.rule, row.rate) == ("delta rule", RATES[0])]
    features = {row.name: row for row in rows if row.kind == "feature"}
    for k, name in enumerate(walk.names):
        assert features[name].count == (walk.features[2000:] == k).sum()
        assert features[name].observed == features[name].count / 2000
        assert features[name].predicted == pytest.approx(features[name].observed, rel=0.1)
    bins = [row for row in rows if row.kind == "bin"]
    assert sum(row.count for row in bins) == 2000
    something = sum(row.count * row.observed for row in bins)
    assert something == pytest.approx((walk.features[2000:] > 0).sum())


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [Calibration("squares", 0.4, "feature", "box", 7, 0.25, 0.5)]
    (tmp_path / "t.csv").write_bytes(to_csv(Calibration, rows))
    assert read(tmp_path / "t.csv") == rows
    assert read(tmp_path / "absent.csv") == []
    (tmp_path / "t.csv").write_text("rule,rate\nsquares,much\n")
    with refused("t.csv", "experiments.calibration"):
        read(tmp_path / "t.csv")


def test_what_was_published_shows_the_reason():
    """docs/results.md: as printed, objects are predicted with a fraction of their frequency at every rate."""
    rows = read(PUBLISHED)
    for rate in RATES:
        assert max(calibration.of_objects(rows, "squares", rate)) < 0.2
        assert max(abs(ratio - 1) for ratio in calibration.of_objects(rows, "delta rule", rate)) < 0.05


def test_the_command_writes_the_table(tmp_path, capsys):
    output = tmp_path / "model.csv"
    options = calibration.Options(str(output), tasks=1, task_steps=50, steps=60)
    assert calibration.main(options) == 0
    assert {row.rule for row in read(output)} == set(calibration.RULES)
    assert str(output) in capsys.readouterr().out
