"""What the agent tests share: small agents, a small world, and the listings once more, in plain NumPy.

`Listing` is algo:QL, algo:sfql, algo:MFXI, algo:MBXI and algo:CMFXI for linear approximators with gradients
written by hand. It shares no code with the agents; `check_follows_listing` compares the two step by step.
"""

from dataclasses import dataclass

import numpy as np
import torch

from sfr_fa.agents import AGENT_SPECS, LearnedFeatures, Transition, checkpoint, make_agent, squares
from sfr_fa.feature_codes import KernelCode
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.streams import Streams
from sfr_fa.tasks import AdditiveTask, FunctionTask, LinearTask, TableTask

STATE_DIM, NUM_ACTIONS, GAMMA = 5, 3, 0.8
VECTORS = np.array([[0, 0, 0], [1, 0, 0.5], [0.5, 1, 0], [1, 1, 1], [0, 0.5, 1]], dtype=float)
DISCRETE = DiscreteFeatures(VECTORS)
BOX = BoxFeatures(np.array([0.0, -1.0, 0.0]), np.array([1.0, 1.0, 2.0]))
FIT_POINTS = np.random.default_rng(2).uniform(BOX.low, BOX.high, (200, 3))
WIDTH = 0.7
ALPHA, ALPHA_R, BETA = 0.03, 0.05, 0.3


def bumps(phi):
    """Normalised Gaussians at VECTORS, (..., 3) -> (..., 5)."""
    z = np.exp(-((np.asarray(phi)[..., None, :] - VECTORS) ** 2).sum(-1) / (2 * WIDTH**2))
    return z / z.sum(-1, keepdims=True)


RATES = {"learning_rate": ALPHA, "reward_learning_rate": ALPHA_R, "model_learning_rate": BETA}


def small_agent(name, seed=0, space=None, **settings):
    """An agent on five-dimensional states, in float64."""
    spec = AGENT_SPECS[name]
    common = {"gamma": GAMMA, "epsilon": 0.3, "dtype": torch.float64}
    common |= {rate: RATES[rate] for rate in spec.rates}
    if spec.learns_features:
        matrix = np.random.default_rng(1).normal(0, 0.7, (2 * STATE_DIM, 3))
        common["feature_map"] = LearnedFeatures(matrix)
    if "feature_code" in spec.uses:
        common["feature_code"] = KernelCode(VECTORS, WIDTH)
    if name in ("CSFR-F", "SFR-K"):
        common["fit_points"] = FIT_POINTS
    space = space or (BOX if spec.family in ("CSFR", "SFR-K") else DISCRETE)
    return make_agent(name, STATE_DIM, NUM_ACTIONS, space, seed=seed, **(common | settings))


def some_task(name, rng):
    """A task of the most general kind that the agent can be given."""
    if name.startswith("SFR-K"):
        heights = rng.normal(size=len(VECTORS))
        return FunctionTask(lambda phi: bumps(phi) @ heights)
    if name in ("CSFR", "CSFR-R", "CSFR-F"):
        scales = rng.normal(size=3)
        return AdditiveTask(tuple(lambda x, c=c: np.sin(4 * c * x) + c for c in scales))
    if name in ("SFR", "SFR-R", "MB SFR", "MB SFR-R", "Q"):
        return TableTask(DISCRETE, rng.normal(size=DISCRETE.size))
    return LinearTask(rng.normal(size=3))


def some_features(name, rng):
    if name.startswith(("CSFR", "SFR-K")):
        return rng.uniform(BOX.low, BOX.high)
    return VECTORS[rng.integers(len(VECTORS))]


def some_state(rng):
    return rng.normal(size=STATE_DIM)


class Network(torch.nn.Module):
    """Flat layers whose output is cut into actions and values."""

    def __init__(self, shape, *layers):
        super().__init__()
        self.shape = shape
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, states):
        return self.layers(states).unflatten(-1, (self.shape.num_actions, self.shape.dimensions))


def weights_of(agent):
    """theta of each stored policy, (A, D, state)."""
    return [module.weight.detach().numpy().copy() for module in agent.policies.modules]


def set_weights(agent, policy, weight):
    with torch.no_grad():
        agent.policies.modules[policy].weight.copy_(torch.from_numpy(weight))


GOOD = {
    "state": np.ones(STATE_DIM), "action": 0, "reward": 0.5, "features": VECTORS[1],
    "next_state": np.zeros(STATE_DIM), "terminal": False,
}  # fmt: skip
"""A transition that every agent on discrete features can learn from."""


def continue_for(agent, name, rng, steps):
    """The actions of some steps in a world of noise."""
    actions = []
    for _ in range(steps):
        state = some_state(rng)
        actions.append(agent.act(state))
        features, terminal = some_features(name, rng), bool(rng.random() < 0.2)
        agent.learn(Transition(state, actions[-1], float(rng.normal()), features, some_state(rng), terminal))
    return actions


def started(name, tasks=1, seed=0, **settings):
    """An agent that has learned a little in each of some tasks."""
    agent, rng = small_agent(name, seed, **settings), np.random.default_rng(4)
    for _ in range(tasks):
        agent.start_task(some_task(name, rng))
        continue_for(agent, name, rng, 4)
    return agent


def everything(agent):
    """All that the next steps depend on, as comparable bytes."""
    arrays = {}
    state = {
        "library": agent.policies.state_dict(),
        "readouts": [readout.state_dict() for readout in agent.readouts],
        "cumulant": agent.cumulant.state_dict(),
        "weights": agent.streams.weights.bit_generator.state,
        "exploration": agent.streams.exploration.bit_generator.state,
        "counts": [counts.tolist() for counts in agent.gpi_counts_by_task],
        "steps": agent.steps_learned,
    }
    tree = checkpoint.pack(state, arrays)
    return str(tree), {name: array.tobytes() for name, array in arrays.items()}


# --- The listings in NumPy ------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@dataclass
class LinearModel:
    w: np.ndarray

    def __call__(self, phi):
        return phi @ self.w

    def learn(self, phi, reward):
        self.w = self.w + ALPHA_R * 2 * (reward - phi @ self.w) * phi


@dataclass
class MlpModel:
    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: float

    def __call__(self, phi):
        return np.maximum(0, phi @ self.W1.T + self.b1) @ self.W2 + self.b2

    def learn(self, phi, reward):
        hidden = self.W1 @ phi + self.b1
        error = 2 * (reward - self(phi))
        back = self.W2 * (hidden > 0)
        self.W2 = self.W2 + ALPHA_R * error * np.maximum(0, hidden)
        self.b2 = self.b2 + ALPHA_R * error
        self.W1 = self.W1 + ALPHA_R * error * np.outer(back, phi)
        self.b1 = self.b1 + ALPHA_R * error * back


class Listing:
    """The listing of an agent; weights are taken from the agent where the listing draws them at random."""

    def __init__(self, name, agent):
        self.name, self.agent = name, agent
        self.theta = []
        self.tasks = []  # a task, or the learned model of one
        if name.startswith("MB"):
            self.model = agent.cumulant.model.weight.detach().numpy().copy()
        self.clips = name.startswith(("SFR", "MB", "CSFR")) and not name.startswith("SFR-K")
        if name.startswith("CSFR"):
            box = agent.feature_map.space
            self.centres = [box.low[k] + np.arange(11) * (box.high[k] - box.low[k]) / 10 for k in range(3)]

    def start_task(self, task):
        if self.name == "Q":
            self.theta, self.tasks = [], []
        if self.theta:
            self.theta.append(self.theta[-1].copy())
        else:
            self.theta.append(weights_of(self.agent)[0])
        if self.name.endswith(("-R", "-h")):
            initial = {
                name: value.numpy().copy()
                for name, value in self.agent.readouts[-1].state_dict()["model"].items()
            }
            if set(initial) == {"weight"}:
                self.tasks.append(LinearModel(initial["weight"]))
            else:
                W1, b1, W2, b2 = (
                    initial[f"{layer}.{p}"] for layer in ("hidden", "output") for p in ("weight", "bias")
                )
                self.tasks.append(MlpModel(W1, b1, W2[0], float(b2[0])))
        else:
            self.tasks.append(task)

    def features(self, step):
        if self.name.endswith("-h"):
            return sigmoid(self.agent.feature_map.matrix.T @ np.concatenate([step.state, step.next_state]))
        return np.asarray(step.features)

    def readout(self, k):
        task = self.tasks[k]
        if self.name == "Q":
            return np.ones(1)
        if self.name.startswith("SF-") or self.name == "SF":
            return task.w if isinstance(task, LinearModel) else task.weights
        if self.name == "SFR-K-R":
            return task.w
        if self.name in ("SFR-K", "CSFR-F"):
            return self.fitted(task)
        if self.name.startswith("CSFR"):
            if isinstance(task, LinearModel):
                return np.concatenate([task.w[j] * self.centres[j] for j in range(3)])
            return np.concatenate([task.component(j, self.centres[j]) for j in range(3)])
        return task(VECTORS) if isinstance(task, (LinearModel, MlpModel)) else task.reward(VECTORS)

    def fitted(self, task):
        """min over v of |R - C v|^2 + 0.001 |v|^2, as plain least squares with rows for the ridge."""
        codes = np.array([self.cumulant(None, phi) for phi in FIT_POINTS])
        rows = np.concatenate([codes, np.sqrt(1e-3) * np.eye(codes.shape[1])])
        rewards = np.concatenate([task.reward(FIT_POINTS), np.zeros(codes.shape[1])])
        return np.linalg.lstsq(rows, rewards, rcond=None)[0]

    def q(self, k, state, task):
        values = self.theta[k] @ state  # (A, D)
        if self.clips:
            values = np.maximum(0, values)
        return values @ self.readout(task)

    def gpi(self, state):
        i = len(self.theta) - 1
        q = np.array([self.q(k, state, i) for k in range(i + 1)])
        c = int(q.max(axis=1).argmax())
        return c, int(q[c].argmax())

    def act(self, state, explore, which):
        c, action = self.gpi(state)
        return c, int(which * NUM_ACTIONS) if explore < self.agent.epsilon else action

    def cumulant(self, step, phi):
        if self.name == "Q":
            return np.array([step.reward])
        if self.name.startswith("SF-") or self.name == "SF":
            return phi
        if self.name.startswith("CSFR"):
            tents = []
            for k in range(3):
                delta = self.centres[k][1] - self.centres[k][0]
                tents += [max(0.0, 1 - abs(x - phi[k]) / delta) for x in self.centres[k]]
            return np.array(tents)
        if self.name.startswith("SFR-K"):
            return bumps(phi)
        observed = (phi == VECTORS).all(axis=1).astype(float)
        if not self.name.startswith("MB"):
            return observed

        def softmax():
            exponentials = np.exp(self.model[step.action] @ step.state)
            return exponentials / exponentials.sum()

        p = softmax()
        slope = p - observed  # eq:sf_model_update
        if self.agent.cumulant.rule is squares:  # as listed
            slope = 2 * slope @ (np.diag(p) - np.outer(p, p))
        self.model[step.action] = self.model[step.action] - BETA * np.outer(slope, step.state)
        return softmax()

    def learn(self, step, c):
        i, s, a, s_next = len(self.theta) - 1, step.state, step.action, step.next_state
        phi = self.features(step)
        if isinstance(self.tasks[i], (LinearModel, MlpModel)):
            self.tasks[i].learn(bumps(phi) if self.name == "SFR-K-R" else phi, step.reward)
        cumulant = self.cumulant(step, phi)
        discount = 0.0 if step.terminal else GAMMA
        _, next_action = self.gpi(s_next)
        moves = [(i, next_action)]
        if c != i:
            moves.append((c, int(self.q(c, s_next, c).argmax())))
        for k, next_action in moves:
            target = cumulant + discount * self.theta[k][next_action] @ s_next
            error = target - self.theta[k][a] @ s
            self.theta[k][a] = self.theta[k][a] + ALPHA * 2 * np.outer(error, s)


def check_follows_listing(name, tasks=3, steps=40, **settings):
    """Agent and listing choose the same actions and have the same weights after every step.

    Both round differently, at some 1e-16 per step, and SGD at these rates does not amplify it: 1e-10 is
    generous for rounding and far below any effect of a changed formula (tests/meta plants some).
    """
    agent = small_agent(name, **settings)
    listing = Listing(name, agent)
    rng = np.random.default_rng(7)
    uniforms = Streams.spawn(0).exploration.random((tasks, steps, 2))
    sources = set()
    for i in range(tasks):
        task = some_task(name, rng)
        agent.start_task(task)
        listing.start_task(task)
        state = some_state(rng)
        for t in range(steps):
            action = agent.act(state)
            c, expected_action = listing.act(state, *uniforms[i, t])
            assert action == expected_action, f"task {i}, step {t}: action {action}, not {expected_action}"
            sources.add((i, c))
            features = some_features(name, rng)
            reward = float(rng.normal())
            step = Transition(state, action, reward, features, some_state(rng), bool(rng.random() < 0.15))
            agent.learn(step)
            listing.learn(step, c)
            np.testing.assert_allclose(
                np.array(weights_of(agent)), np.array(listing.theta), rtol=0, atol=1e-10,
                err_msg=f"weights differ in task {i}, step {t}",
            )  # fmt: skip
            np.testing.assert_allclose(
                agent.readouts[-1].vector.numpy(), listing.readout(len(listing.theta) - 1), atol=1e-10
            )
            state = some_state(rng) if step.terminal else step.next_state
    if name != "Q":
        # The comparison says something about source policies only if GPI has used them.
        assert any(c < i for i, c in sources), "GPI never chose an earlier policy"
