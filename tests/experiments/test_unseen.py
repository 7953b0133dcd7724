"""New rewards, zero-shot: values that are right correlate with returns, and the command prints its table."""

import json

import numpy as np
import pytest

from experiments import unseen
from sfr_fa.engines import make_engine
from sfr_fa.environments.racer import Racer
from sfr_fa.feature_codes import KernelCode
from sfr_fa.interactions import sample_parity_task
from tests.refusals import refused


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.FitWarning")
def test_values_are_compared_with_what_follows(monkeypatch):
    """Values that are the returns have a correlation of 1 and no error."""
    rng = np.random.default_rng(0)
    code = KernelCode(rng.random((5, 3)), 0.3)
    engine = make_engine("reference", Racer(), "SFR-K", feature_code=code, fit_points=rng.random((50, 3)))
    monkeypatch.setattr(unseen, "HORIZON", 10)
    tasks = [sample_parity_task(rng) for _ in range(2)]
    for task in tasks:
        engine.run_task(task, 3)
    discounts = engine.agent.gamma ** np.arange(unseen.HORIZON)
    environment, returns = Racer(), {}
    for i in range(4):
        for policy in range(2):
            start, features = unseen.followed(
                engine, environment, policy, i % 3, np.random.default_rng((7, i))
            )
            assert features.shape == (unseen.HORIZON, 3)
            returns[start.tobytes(), policy] = [task.reward(features) @ discounts for task in tasks]
    assert len(returns) == 8  # four places, the same for both policies

    def values(scale, shift):
        def read(state, task):
            j = next(j for j, other in enumerate(tasks) if other is task)
            row = [scale * returns[state.tobytes(), policy][j] + shift for policy in range(2)]
            return np.repeat(np.array(row)[:, None], 3, axis=1)

        return read

    monkeypatch.setattr(engine.agent, "values", values(1, 0))
    np.testing.assert_allclose(unseen.valued(engine, tasks, 4, 7), (1, 0), atol=1e-12)
    monkeypatch.setattr(engine.agent, "values", values(-2, 1))
    correlation, error = unseen.valued(engine, tasks, 4, 7)
    assert np.isclose(correlation, -1)
    assert error > 1


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(unseen, "EPISODES", 1)
    monkeypatch.setattr(unseen, "HORIZON", 5)
    monkeypatch.setattr(unseen, "AGENTS", ("SFR-K",))
    path = tmp_path / "unseen.json"
    small = {"tasks": 1, "steps": 5, "new": 1, "starts": 2, "seeds": 1, "engine": "reference"}
    assert unseen.main(unseen.Options(**small, json=str(path))) == 0
    rows, out = json.loads(path.read_text())["rows"], capsys.readouterr().out
    assert [row["kind"] for row in rows] == ["additive", "mixed", "parity"]
    for row in rows:
        numbers = (row[name] for name in ("random", "zero_shot", "correlation", "error"))
        assert f"| {row['kind']} | SFR-K | {' | '.join(f'{x:.2f}' for x in numbers)} |" in out


def test_bad_options():
    with refused("--starts", "at least 2"):
        unseen.main(unseen.Options(starts=1))
