"""algo:MFXI and algo:CMFXI as a reader of the listings would write them in PyTorch, nothing done for speed.

One module for each stored policy, a loop over the policies for every maximum, autograd and `torch.optim.SGD`
for every update. It is the yardstick of `benchmarks.engines`; a test compares it with our agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

Info = dict[str, Any]


class LinearXi(nn.Module):
    """xi(s, a, phi) = s . theta_{a,phi}: (state,) -> (A, D)."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.shape = weight.shape[:2]
        self.layer = nn.utils.skip_init(
            nn.Linear, weight.shape[2], weight.shape[0] * weight.shape[1], bias=False
        )
        self.layer.weight = nn.Parameter(weight.reshape(-1, weight.shape[2]).clone())

    def forward(self, state: Tensor) -> Tensor:
        values: Tensor = self.layer(state).reshape(self.shape)
        return values

    @staticmethod
    def of_policy(parameters: Mapping[str, Tensor], k: int, num_actions: int) -> LinearXi:
        """Policy k of a library of `LinearPerAction` modules."""
        return LinearXi(parameters["weight"][k])


class SubnetworksXi(nn.Module):
    """A network for each feature dimension, whose bins share its hidden layers: (state,) -> (A, n U)."""

    def __init__(self, networks: Sequence[nn.Module], num_actions: int) -> None:
        super().__init__()
        self.networks, self.num_actions = nn.ModuleList(networks), num_actions

    def forward(self, state: Tensor) -> Tensor:
        return torch.cat([network(state).reshape(self.num_actions, -1) for network in self.networks], dim=1)

    @staticmethod
    def of_policy(parameters: Mapping[str, Tensor], k: int, num_actions: int) -> SubnetworksXi:
        """Policy k of a library of `FeatureSubnetworks` modules with two hidden layers."""
        networks = []
        for g in range(parameters["weights.0"].shape[1]):
            layers = []
            for layer in range(3):
                weight, bias = parameters[f"weights.{layer}"][k, g], parameters[f"biases.{layer}"][k, g, 0]
                linear = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0])
                linear.weight, linear.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
                layers += [linear, nn.ReLU()]
            networks.append(nn.Sequential(*layers[:-1]))
        return SubnetworksXi(networks, num_actions)


@dataclass
class PlainListing:
    """The listing for its current task i, the last one."""

    environment: gymnasium.Env[Any, Any]
    xi: list[nn.Module]
    """A module for each stored policy."""
    rewards: list[Tensor]
    """(D,): for each task its rewards at the features, or at the bins."""
    cumulant: Callable[[Info], np.ndarray]
    """What xi sums up, of the `info` of a step: (D,)."""
    gamma: float
    epsilon: float
    alpha: float
    exploration: np.random.Generator

    def __post_init__(self) -> None:
        self.optimisers = [torch.optim.SGD(xi.parameters(), lr=self.alpha) for xi in self.xi]

    def q(self, k: int, state: Tensor, task: int) -> Tensor:
        """sum_phi max(0, xi_k(s, a, phi)) R(phi): (A,)."""
        with torch.no_grad():
            return (self.xi[k](state).clamp(min=0) * self.rewards[task]).sum(dim=-1)

    def update(self, k: int, state: Tensor, action: int, target: Tensor) -> None:
        """SGD on sum_phi (y - xi_k(s_t, a_t, phi))^2."""
        loss = (target - self.xi[k](state)[action]).square().sum()
        self.optimisers[k].zero_grad()
        loss.backward()
        self.optimisers[k].step()

    def target(self, k: int, cumulant: Tensor, discount: float, next_state: Tensor, action: int) -> Tensor:
        """y = c_t + gamma_t xi_k(s_{t+1}, abar, phi)."""
        with torch.no_grad():
            return cumulant + discount * self.xi[k](next_state)[action]

    def run(self, steps: int) -> list[int]:
        """Learn for a number of steps; returns the actions. A step that is cut off counts as terminal."""
        i = len(self.xi) - 1
        dtype = self.rewards[i].dtype
        actions: list[int] = []
        new_episode = True
        for _ in range(steps):
            if new_episode:
                observation, _ = self.environment.reset()
                state = torch.tensor(observation, dtype=dtype)
                new_episode = False

            # GPI policy c, and its action with probability 1 - epsilon
            c = int(torch.stack([self.q(k, state, i).max() for k in range(i + 1)]).argmax())
            explore, which = self.exploration.random(2)
            num_actions = len(self.q(c, state, i))
            action = int(which * num_actions) if explore < self.epsilon else int(self.q(c, state, i).argmax())
            actions.append(action)

            # Take the action
            observation, _, terminated, truncated, info = self.environment.step(action)
            next_state = torch.tensor(observation, dtype=dtype)
            cumulant = torch.tensor(self.cumulant(info), dtype=dtype)
            new_episode = terminated or truncated
            discount = 0.0 if new_episode else self.gamma

            # Update xi_i towards the GPI action of task i
            q = torch.stack([self.q(k, next_state, i) for k in range(i + 1)])
            next_action = int(q.max(dim=0).values.argmax())
            self.update(i, state, action, self.target(i, cumulant, discount, next_state, next_action))

            # Update xi_c towards its own action
            if c != i:
                next_action = int(self.q(c, next_state, c).argmax())
                self.update(c, state, action, self.target(c, cumulant, discount, next_state, next_action))
            state = next_state
        return actions
