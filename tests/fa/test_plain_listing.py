"""The yardstick of the benchmark computes what the agents compute."""

import numpy as np
import pytest
import torch

from benchmarks import growth
from benchmarks.engines import OBJECTS, RACER, plain_listing
from benchmarks.plain_listing import LinearXi
from sfr_fa.engines import Streams


def weights_of(xi):
    """All weights of a module of the plain listing, in the order of the library's parameters."""
    if isinstance(xi, LinearXi):
        return xi.layer.weight.detach().flatten()
    layers = [[network[2 * layer] for network in xi.networks] for layer in range(3)]
    weights = [torch.stack([linear.weight.detach() for linear in layer]).flatten() for layer in layers]
    biases = [torch.stack([linear.bias.detach() for linear in layer]).flatten() for layer in layers]
    return torch.cat(weights + biases)


@pytest.mark.parametrize("setting", [OBJECTS, RACER], ids=["SFR", "CSFR"])
def test_the_plain_listing_walks_the_path_of_the_reference(setting):
    """In float64, with policies that differ, so that rounding breaks no ties."""
    engines = [setting.engine("reference", Streams.spawn(4), dtype=torch.float64) for _ in range(2)]
    tasks = [setting.task(np.random.default_rng(seed)) for seed in range(3)]
    for engine in engines:
        noise = np.random.default_rng(8)
        for task in tasks:
            engine.start_task(task)
            for stack in engine.agent.policies.parameters.values():
                stack[-1] += torch.from_numpy(noise.normal(0, 0.15, stack[-1].shape))
    plain, reference = plain_listing(setting, engines[0], tasks[-1]), engines[1]

    walk = reference.continue_task(260)
    assert plain.run(260) == walk.actions.tolist()
    assert walk.episodes > 1 or setting is OBJECTS
    assert reference.agent.gpi_counts[:-1].sum() > 0
    stacks = reference.agent.policies.parameters
    names = sorted(stacks, key=lambda name: name.startswith("biases"))
    for k, xi in enumerate(plain.xi):
        expected = torch.cat([stacks[name][k].flatten() for name in names])
        np.testing.assert_allclose(weights_of(xi), expected, rtol=0, atol=1e-10, err_msg=f"policy {k}")


def test_the_growth_of_a_step_is_measured_with_and_without_the_filter(tmp_path):
    sizes = (1, 12)
    measured = growth.measure(growth.Options(learn_steps=20, steps=200, repeats=2), sizes)
    for times in (measured.full, measured.filtered, measured.tasks, measured.start):
        assert tuple(times) == sizes
        assert min(times.values()) > 0
    assert measured.close[1] == 1
    assert 1 <= measured.close[12] <= 12
    growth.plot(measured, str(tmp_path / "growth.png"))
    assert (tmp_path / "growth.png").stat().st_size > 5000
    steps = {1: 1.0, 300: 6.0, 1000: 11.0, 3000: 30.0}
    rows = growth.reached(growth.Growth(filtered=steps, full=steps, start={3000: 19.0}))
    assert [round(row.measured, 3) for row in rows] == [6, 1.833, 5, 19]
    assert [row.reached for row in rows] == [False, True, False, True]
