"""How fast the theory checks are, against the obvious way to do the same with an outside solver.

The problems: Garnet MDPs with S = 20, A = 4, F = 6, five sources and a target, all statements but one. The
plain way loops over them: QuantEcon's policy iteration for every task, NumPy solves for xi, the same bounds.
Both solve the same problems in the same run and must agree on what they find; the ratio of their times is
what counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from quantecon.markov import DiscreteDP
from rich.console import Console
from rich.table import Table

from sfr_theory import cli
from sfr_theory.arithmetic import exact_array
from sfr_theory.bound_runs import Chunk, Plan, check_chunk, run_chunks
from sfr_theory.bounds import STATEMENTS, SolvedProblem
from sfr_theory.certificates import Ceiling
from sfr_theory.mdp import FiniteMDP
from sfr_theory.random_mdp import ProblemBatch, Shape, dyadic, garnet
from sfr_theory.solve import optimal

SHAPE = Shape(states=20, actions=4, features=6, tasks=5)
# A certificate by linear programmes would measure their solver, which both ways call in the same way.
MEASURED = tuple(name for name in STATEMENTS if name != "certificate/sources-value")
PLAN = Plan(mdps=10_000, shape=SHAPE, families=("garnet",), statements=MEASURED)
PLAIN = 100
Result = TypeVar("Result")


def timed(function: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def plain_loop(batch: ProblemBatch) -> dict[str, list[float]]:
    """Left sides of every statement, one problem at a time."""
    lefts: dict[str, list[float]] = {name: [] for name in MEASURED}
    for b in range(len(batch)):
        mdp, target, sources = batch.mdps[b], batch.target[b], batch.sources[b]
        rewards = np.vstack([target, sources])
        policies = [
            DiscreteDP(mdp.feature_probability @ reward, mdp.transition, mdp.gamma)
            .solve(method="policy_iteration")
            .sigma
            for reward in rewards
        ]
        xi = np.stack([plain_xi(mdp, policy) for policy in policies])
        approximations = xi[1:] + batch.perturbation[b]
        vectors = mdp.linear_features
        linear = vectors @ np.linalg.lstsq(vectors, target, rcond=None)[0]
        gpi = [(approximations @ reward).max(axis=0).argmax(axis=-1) for reward in (target, linear)]
        evaluation = SolvedProblem(
            gamma=mdp.gamma,
            transition=mdp.transition,
            feature_probability=mdp.feature_probability,
            target=target,
            sources=sources,
            optimal_xi=xi[0],
            source_xi=xi[1:],
            approximations=approximations,
            gpi_policy=gpi[0],
            gpi_xi=plain_xi(mdp, gpi[0]),
            linear_reward=linear,
            linear_gpi_policy=gpi[1],
            linear_gpi_xi=plain_xi(mdp, gpi[1]),
            ceiling=Ceiling(
                mdp.gamma,
                mdp.feature_probability @ target,
                np.stack([mdp.feature_probability @ source for source in sources]),
                np.stack([xi_i @ source for xi_i, source in zip(xi[1:], sources, strict=True)]),
            ),
        )
        for name in MEASURED:
            lefts[name].append(float(STATEMENTS[name](evaluation).left))
    return lefts


def plain_xi(mdp: FiniteMDP, policy: np.ndarray) -> np.ndarray:
    states = np.arange(mdp.num_states)
    on_policy = np.linalg.solve(
        np.eye(mdp.num_states) - mdp.gamma * mdp.transition[states, policy],
        mdp.feature_probability[states, policy],
    )
    return mdp.feature_probability + mdp.gamma * mdp.transition @ on_policy


def timed_pool(cores: int) -> tuple[int, float, float]:
    """The plan's problems: how many came after the workers' first results, their time, the whole time."""
    start = time.perf_counter()
    work = PLAN.chunks()
    results = run_chunks(work, cores)
    for _ in range(cores):
        next(results)
    running = time.perf_counter()
    rest = sum(1 for _ in results)
    end = time.perf_counter()
    return rest * work[-1].count, end - running, end - start


def bound_checks() -> Table:
    """Problems checked per second, ours and the plain loop."""
    chunk = Chunk(PLAN, "garnet", PLAIN, (0, 0, 0))
    plain_loop(replace(chunk, count=2).draw())  # compile QuantEcon
    batch = chunk.draw()
    slow, slow_time = timed(lambda: plain_loop(batch))
    fast, fast_time = timed(lambda: check_chunk(chunk))
    for name in MEASURED:
        np.testing.assert_allclose(fast.terms[name].left, slow[name], atol=1e-9, err_msg=name)
    cores = os.cpu_count() or 1
    steady, steady_time, whole_time = timed_pool(cores)
    columns = cli.numbers("problems", "seconds", "problems/s", "ratio")
    table = cli.table(f"check_gpi_bound: {SHAPE}, all statements", "how", *columns)
    plain_rate = PLAIN / slow_time
    for how, count, seconds in (
        ("plain loop, QuantEcon, one core", PLAIN, slow_time),
        ("batched, one core", PLAIN, fast_time),
        (f"batched, {cores} processes, once they run", steady, steady_time),
        (f"batched, {cores} processes, start-up included", PLAN.mdps, whole_time),
    ):
        rate = count / seconds
        table.add_row(how, f"{count:,}", f"{seconds:.2f}", f"{rate:,.0f}", f"{rate / plain_rate:.1f}")
    return table


def exact_optimum() -> Table:
    """Milliseconds for one optimal policy in rational arithmetic."""
    columns = cli.numbers("states", "milliseconds", "iterations")
    table = cli.table("Exact optimal policy, A = 3, F = 6", *columns)
    rng = np.random.default_rng(0)
    for states in (10, 20, 40):
        mdp = garnet(rng, 1, Shape(states, 3, 6, 1), 0.9)[0].to_exact()
        reward = exact_array(dyadic(rng, (6,)))
        # The marginals are sums over the kernel, computed once for each MDP.
        optimal(mdp, reward)
        solution, seconds = timed(lambda mdp=mdp, reward=reward: optimal(mdp, reward))  # type: ignore[misc]
        table.add_row(str(states), f"{1e3 * seconds:.1f}", str(solution.iterations))
    return table


def main() -> None:
    console = Console()
    console.print(bound_checks())
    console.print(exact_optimum())


if __name__ == "__main__":
    main()
