"""Why MB SFR falls behind: its one-step model, trained as printed, predicts collected objects far too seldom.

On the transitions of a trained SFR agent a softmax model of the next feature is trained online by SGD, on the
squared error (the paper's loss, at the paper's rates) and on cross-entropy. Printed is the predicted over the
actual frequency, in the second half, of each kind of object that is collected and of the goal: 1 is right.
"""

import gymnasium
import numpy as np

from sfr_fa.engines import make_engine
from sfr_fa.tasks import LinearTask

STEPS = 40_000
env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0")
rng = np.random.default_rng(1)
engine = make_engine("compiled", env, "SFR", seed=0)
for _ in range(6):
    engine.run_task(LinearTask([0.2, 0.2, 0.2, 0.2, 1]), steps=20_000)

states, actions, features = [], [], []
state, _ = env.reset(seed=3)
for _ in range(STEPS):
    explores = rng.random() < 0.15
    action = int(rng.integers(4)) if explores else int(engine.agent.values(state).max(axis=0).argmax())
    next_state, _, terminated, _, info = env.step(action)
    states.append(state)
    actions.append(action)
    features.append(info["feature_index"])
    state = env.reset()[0] if terminated else next_state


def squared_error(p, error):
    return 2 * p * (error - p @ error)


def cross_entropy(p, error):
    return error


observed = np.bincount(features[STEPS // 2 :], minlength=6)
shown = observed > STEPS / 2000
for loss, rate in ((squared_error, 0.2), (squared_error, 0.4), (squared_error, 0.6), (cross_entropy, 0.05)):
    theta = np.zeros((4, 6, len(state)))
    predicted = np.zeros(6)
    for t, (s, a, j) in enumerate(zip(states, actions, features, strict=True)):
        p = np.exp(theta[a] @ s)
        p /= p.sum()
        predicted += p * (t >= STEPS // 2)
        theta[a] -= rate * np.outer(loss(p, p - np.eye(6)[j]), s)
    ratios = (predicted[shown] / observed[shown])[1:]
    print(f"{loss.__name__}, rate {rate}: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
