import gymnasium

from sfr_fa.engines import make_engine
from sfr_fa.tasks import FunctionTask, LinearTask

env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0")
# Features are (orange, blue, box, triangle, goal). A new reward function that is not linear in them:
orange_boxes_and_blue_triangles = FunctionTask(
    lambda phi: (phi[..., 0] - phi[..., 1]) * (phi[..., 2] - phi[..., 3]) + phi[..., 4]
)
for name in ("SFR", "Q"):
    engine = make_engine("compiled", env, name, streams=0, gamma=0.95, epsilon=0.15, learning_rate=0.005)
    for weights in ([1, -1, 0, 0, 1], [0, 0, 1, -1, 1], [-1, 1, 0, 0, 1]):
        engine.run_task(LinearTask(weights), steps=20_000)
    result = engine.run_task(orange_boxes_and_blue_triangles, steps=20_000)
    print(f"{name}: total reward {result.total_reward:.0f} on the new task")
    if name == "SFR":  # every stored policy, valued under yet another reward function
        print(engine.agent.values(env.reset()[0], LinearTask([0, 0, 0, 1, 0])))
