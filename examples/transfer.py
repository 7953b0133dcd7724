import gymnasium
import numpy as np

from sfr_fa.engines import make_engine
from sfr_fa.tasks import FunctionTask, LinearTask

env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0")
# Features are (orange, blue, box, triangle, goal). A new reward function that is not linear in them:
orange_boxes_and_blue_triangles = FunctionTask(
    lambda phi: (phi[..., 0] - phi[..., 1]) * (phi[..., 2] - phi[..., 3]) + phi[..., 4]
)
for name in ("Q", "SFR"):
    totals = []
    for seed in range(20):
        engine = make_engine("compiled", env, name, seed=seed)
        for weights in ([1, -1, 0, 0, 1], [0, 0, 1, -1, 1], [-1, 1, 0, 0, 1]):
            engine.run_task(LinearTask(weights), steps=20_000)
        totals.append(engine.run_task(orange_boxes_and_blue_triangles, steps=20_000).total_reward)
    print(f"{name}: total reward {np.mean(totals):.0f} on the new task, mean of {len(totals)} seeds")
# Every policy that SFR has stored, valued under yet another reward function:
print(engine.agent.values(env.reset()[0], LinearTask([0, 0, 0, 1, 0])))
