import mo_gymnasium
import numpy as np

from sfr_fa.engines import make_engine
from sfr_fa.environments.adapters import FeaturesFromVectorReward, OneHot
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask

sea = OneHot(mo_gymnasium.make("deep-sea-treasure-v0"))
treasures = DiscreteFeatures.observed(sea, steps=20_000, seed=0)  # its vector rewards: (treasure, -1)
env = FeaturesFromVectorReward(sea, LinearTask([1, 1]), treasures)
engine = make_engine("reference", env, "SFR", seed=0, gamma=0.99, epsilon=0.3, learning_rate=0.25)
for weights in ([1, 0], [1, 1], [1, 4]):
    engine.run_task(LinearTask(weights), steps=2000)
# A utility that no weights can state and no task had, zero-shot: only treasures from 8 to 16 are of use.
result = engine.evaluate(lambda phi: np.where(abs(phi[..., 0] - 12) <= 4, 1.0, -0.02), episode_steps=100)
print(f"{result.returns.mean():.2f} per episode, by policies {result.gpi_shares}")
