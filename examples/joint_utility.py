"""A utility of two features at once in someone else's environment: MountainCar, "return to the valley"."""

import functools
import warnings

import gymnasium
import numpy as np

from sfr_fa.agents import FitWarning, SharedNetwork
from sfr_fa.engines import make_engine
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.feature_codes import KernelCode
from sfr_fa.feature_spaces import BoxFeatures, observed_features
from sfr_fa.tasks import ProductTask

# Position and velocity, both scaled to [0, 1]; the valley is at 0.39, and 0.5 is standing still. Moving right
# pays on the left of the valley, moving left on its right: neither feature tells anything by itself.
car = gymnasium.wrappers.RescaleObservation(
    gymnasium.make("MountainCar-v0"), np.zeros(2, np.float32), np.ones(2, np.float32)
)
returning = ProductTask([1.0, 1.0], [[0.25, 0.65], [0.53, 0.35]], [[60.0, 60.0], [60.0, 60.0]])
env = WithFeatures(car, lambda s, a, after, info: after, BoxFeatures([0, 0], [1, 1]), returning)

# On features of your own: observe some, place bumps among them, and fit rewards to them. Pushes last a while.
rng = np.random.default_rng(0)
pushes = iter(np.repeat(rng.choice([0, 2], 200), 15))
observed = observed_features(env, steps=3000, seed=0, policy=lambda state: next(pushes))
code = KernelCode.observed(observed, size=40, rng=rng)
network = functools.partial(SharedNetwork, hidden=(32, 32), head_rate=10)
settings = {"fit_points": observed, "approximator": network, "gamma": 0.95, "learning_rate": 0.002}
engine = make_engine("reference", env, "SFR-K", feature_code=code, **settings)
reward = engine.run_task(returning, steps=1000).total_reward / 1000
print(f"SFR-K: reward {reward:.2f} per step")

# What no learning can make up for: the part of the utility that a code cannot express.
warnings.simplefilter("ignore", FitWarning)
additive = make_engine("reference", env, "CSFR-F", **settings)
for name, agent in (("bumps", engine.agent), ("sums over dimensions", additive.agent)):
    fit = agent.readout_rule.known.fit(returning)
    print(f"{name} express {1 - (fit.rms / fit.spread) ** 2:.0%} of the utility's variance")
