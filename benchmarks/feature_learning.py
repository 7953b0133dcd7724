"""Why Adam is written out in Numba: microseconds per iteration of feature learning, ours and PyTorch's.

20,000 transitions of 20 tasks, states of 113 numbers, h = 4, batches of 128, float32, one thread, processor
time of the fastest of several turns.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.engines import fastest
from sfr_fa.feature_learning import RewardedTransitions, learn_features

N, S, TASKS, H, BATCH, TURNS = 20_000, 113, 20, 4, 128, 3


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    states, rewards, tasks = rng.random((2, N, S)), rng.normal(size=N), rng.integers(0, TASKS, N)
    data = RewardedTransitions(states[0], states[1], rewards, tasks)
    x, r, i = (
        torch.tensor(np.concatenate(states, axis=1)).float(),
        torch.tensor(rewards).float(),
        torch.tensor(tasks),
    )
    matrix, weights = torch.randn(2 * S, H, requires_grad=True), torch.randn(TASKS, H, requires_grad=True)
    optimiser = torch.optim.Adam([matrix, weights], lr=0.003, fused=True)

    def ours(iterations: int) -> None:
        learn_features(data, H, rng, iterations=iterations, batch_size=BATCH)

    def theirs(iterations: int) -> None:
        for batch in torch.from_numpy(rng.integers(0, N, (iterations, BATCH))):
            optimiser.zero_grad()
            predicted = (torch.sigmoid(x[batch] @ matrix) * weights[i[batch]]).sum(1)
            (predicted - r[batch]).square().mean().backward()
            optimiser.step()

    ours(1)  # compiles
    numba, pytorch = fastest(TURNS, (ours, 4000), (theirs, 400))
    print(f"Feature learning: {numba:.0f} us per iteration; with torch.optim.Adam (fused) {pytorch:.0f} us.")


if __name__ == "__main__":
    main()
