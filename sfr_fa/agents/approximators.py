"""Function approximators: modules (batch, state) -> (batch, A, D).

    LinearPerAction      value(s, a)_d = s . theta_{a,d}, theta ~ N(0, 0.01^2)      object collection
    FeatureSubnetworks   for each group (feature dimension) of D a network of its own, two hidden layers of
                         20 ReLU units; the entries of a group and the actions share them        racer
    SharedNetwork        one network for all of D, whose last layer may learn faster than the others

Any other `nn.Module` of that shape will do: pass a function (ValueShape, Generator) -> module. It must give
the same answer for the same input (no dropout; a probe refuses it), and its buffers are taken for constants.

A set of features that grows adds entries to D. A module takes part in that if it has `grown(name, values,
shape)`: a parameter, or what an optimiser remembers of it, as it is for a larger shape, 0 in all that is new.

GPI evaluates all K stored policies at once. A module may offer `apply_stacked` for parameters with a leading
axis K; otherwise `torch.func.vmap` does it, some ten times slower for small modules, or a loop for a few of
them. Both modules below write their formula once, for any leading axes.

A new policy starts as a copy of the last one, so exact ties between policies are common, and the first of
them must win on every machine. Products are therefore summed by `sum`, which treats equal rows alike to the
bit. Matrix products do not: how BLAS rounds a row depends on its place and on its address in memory. Modules
of your own may use them; rounding then breaks ties between copies, harmlessly, but not on every machine
alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from sfr_fa.arrays import INITIAL_DEVIATION, positive_integer, positive_number


@dataclass(frozen=True)
class ValueShape:
    """What a module maps: a state to D = groups * size values for each action."""

    state_dim: int
    num_actions: int
    groups: int
    size: int

    @property
    def dimensions(self) -> int:
        return self.groups * self.size


Approximator = Callable[[ValueShape, np.random.Generator], nn.Module]


class LinearPerAction(nn.Module):
    """value(s, a)_d = s . theta_{a,d}; `weight` has shape (A, D, state)."""

    def __init__(self, shape: ValueShape, rng: np.random.Generator) -> None:
        super().__init__()
        size = (shape.num_actions, shape.dimensions, shape.state_dim)
        self.weight = nn.Parameter(torch.from_numpy(rng.normal(0.0, INITIAL_DEVIATION, size)))

    @staticmethod
    def grown(name: str, values: Tensor, shape: ValueShape) -> Tensor:
        """(A, D, state) with rows of zeros."""
        return nn.functional.pad(values, (0, 0, 0, shape.dimensions - values.shape[-2]))

    @staticmethod
    def apply_stacked(parameters: Mapping[str, Tensor], states: Tensor) -> Tensor:
        """(..., A, D, state), (batch, state) -> (..., batch, A, D)."""
        return (parameters["weight"][..., None, :, :, :] * states[:, None, None, :]).sum(-1)

    def forward(self, states: Tensor) -> Tensor:
        return self.apply_stacked({"weight": self.weight}, states)


class FeatureSubnetworks(nn.Module):
    """One network of ReLU layers for each group; its last layer gives (A, size) values.

    `weights[l]` has shape (groups, out, in) and `biases[l]` (groups, 1, out). Both are drawn from
    U(-1/sqrt(in), 1/sqrt(in)), layer by layer, weights first.
    """

    def __init__(
        self, shape: ValueShape, rng: np.random.Generator, hidden: tuple[int, ...] = (20, 20)
    ) -> None:
        super().__init__()
        self.shape = shape
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for units in hidden:
            positive_integer(units, "hidden")
        widths = (shape.state_dim, *hidden, shape.num_actions * shape.size)
        for inputs, outputs in itertools.pairwise(widths):
            bound = inputs**-0.5
            weight = rng.uniform(-bound, bound, (shape.groups, outputs, inputs))
            bias = rng.uniform(-bound, bound, (shape.groups, 1, outputs))
            self.weights.append(nn.Parameter(torch.from_numpy(weight)))
            self.biases.append(nn.Parameter(torch.from_numpy(bias)))

    def grown(self, name: str, values: Tensor, shape: ValueShape) -> Tensor:
        """The last layer with units of zeros, some for each action; the others stay."""
        kind, layer = name.split(".")
        if int(layer) < len(self.weights) - 1:
            return values
        axis = -2 if kind == "weights" else -1
        of_actions = values.movedim(axis, -1).unflatten(-1, (shape.num_actions, -1))
        more = nn.functional.pad(of_actions, (0, shape.size - of_actions.shape[-1]))
        return more.flatten(-2).movedim(-1, axis).contiguous()

    def apply_stacked(self, parameters: Mapping[str, Tensor], states: Tensor) -> Tensor:
        """(..., groups, out, in), (batch, state) -> (..., batch, A, D)."""
        layers = len(self.weights)
        activation = states  # (..., groups, batch, in) after the first layer
        for layer in range(layers):
            weight, bias = parameters[f"weights.{layer}"], parameters[f"biases.{layer}"]
            activation = (weight[..., None, :, :] * activation[..., None, :]).sum(-1) + bias
            if layer < layers - 1:
                activation = activation.relu()
        values = activation.unflatten(-1, (self.shape.num_actions, self.shape.size))
        return values.movedim(-4, -2).flatten(-2)

    def forward(self, states: Tensor) -> Tensor:
        return self.apply_stacked(dict(self.named_parameters()), states)


class SharedNetwork(FeatureSubnetworks):
    """One network of two hidden ReLU layers for all entries of a cumulant.

    Its head starts near zero, weights and biases from N(0, 0.01^2), and learns `head_rate` times as fast as
    the layers below: a code of many entries, most of them near zero, has small gradients there.
    """

    def __init__(
        self,
        shape: ValueShape,
        rng: np.random.Generator,
        hidden: tuple[int, ...] = (128, 128),
        head_rate: float = 1.0,
    ) -> None:
        super().__init__(replace(shape, groups=1, size=shape.dimensions), rng, hidden)
        self.head_rate = positive_number(head_rate, "head_rate")
        for head in (self.weights[-1], self.biases[-1]):
            head.data = torch.from_numpy(rng.normal(0.0, INITIAL_DEVIATION, tuple(head.shape)))

    def parameter_groups(self) -> Iterable[Any]:
        """For an optimiser: the layers below, and the head with its multiple of their rate."""
        below = [*self.weights[:-1], *self.biases[:-1]]
        head = [self.weights[-1], self.biases[-1]]
        return [{"params": below}, {"params": head, "times": self.head_rate}]


def sgd_step(loss: Tensor, module: nn.Module, rate: float) -> None:
    """theta <- theta - rate * gradient of the loss, without the imports of torch's optimisers."""
    module.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter.add_(parameter.grad, alpha=-rate)


def offers_stacked(module: nn.Module) -> bool:
    """Whether a module can apply K parameter sets by itself."""
    return hasattr(type(module), "apply_stacked")  # asked of the type: a module is slow to say what it lacks


def stacked_values(module: nn.Module, parameters: Mapping[str, Tensor], states: Tensor) -> Tensor:
    """The values of K parameter sets of one module: (K, ...), (batch, state) -> (K, batch, A, D)."""
    if offers_stacked(module):
        result: Tensor = module.apply_stacked(parameters, states)  # type: ignore[operator]
        return result
    return vmap(lambda one: functional_call(module, one, (states,)))(dict(parameters))
