"""The stored policies: one module and one optimiser each, all parameters in one stack.

Policy k is an `nn.Module` that an optimiser of the user's choice trains in place. Its parameters are views of
row k of one tensor for each parameter, so that GPI reads all K policies in a single batched pass and nothing
is ever copied between the two.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sfr_fa.agents.approximators import Approximator, ValueShape, stacked_values
from sfr_theory.errors import InputError

OptimiserFactory = Callable[[Iterable[nn.Parameter]], Optimizer]


class PolicyLibrary:
    """K policies; row k of every stack belongs to policy k."""

    def __init__(
        self, approximator: Approximator, shape: ValueShape, optimiser: OptimiserFactory, dtype: torch.dtype
    ) -> None:
        self.approximator = approximator
        self._shape = shape
        self.optimiser = optimiser
        self._dtype = dtype
        self.modules: list[nn.Module] = []
        self.optimisers: list[Optimizer] = []
        self._stacks: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.modules)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """All policies' parameters, each (K, ...)."""
        return {name: stack[: len(self)] for name, stack in self._stacks.items()}

    def add_fresh(self, rng: np.random.Generator) -> None:
        """A policy with newly drawn weights."""
        self._append(self._new_module(rng))

    def add_copy_of_last(self) -> None:
        """theta_i <- theta_{i-1}; the optimiser starts without memory."""
        self._append(copy.deepcopy(self.modules[-1]))

    def clear(self) -> None:
        self.modules, self.optimisers, self._stacks = [], [], {}

    def values(self, state: Tensor) -> Tensor:
        """value_k(s, a) of all policies: (state,) -> (K, A, D)."""
        with torch.no_grad():
            return stacked_values(self.modules[0], self.parameters, state[None])[:, 0]

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all policies by saved ones; the parameters must be those of this approximator."""
        parameters: Mapping[str, Tensor] = state["parameters"]
        optimiser_states: Sequence[Mapping[str, Any]] = state["optimisers"]
        with torch.random.fork_rng(devices=[]):
            template = self._new_module(np.random.default_rng(0))
        expected = {name: tuple(p.shape) for name, p in template.named_parameters()} if parameters else {}
        found = {name: tuple(stack.shape[1:]) for name, stack in parameters.items()}
        if expected != found:
            raise InputError(f"the saved networks have parameters {found}; this agent's have {expected}")
        loaded = PolicyLibrary(self.approximator, self._shape, self.optimiser, self._dtype)
        for k, optimiser_state in enumerate(optimiser_states):
            module = copy.deepcopy(template)
            with torch.no_grad():
                for name, parameter in module.named_parameters():
                    parameter.copy_(parameters[name][k])
            loaded._append(module)
            loaded.optimisers[k].load_state_dict(dict(optimiser_state))
        self.modules, self.optimisers, self._stacks = loaded.modules, loaded.optimisers, loaded._stacks

    def _new_module(self, rng: np.random.Generator) -> nn.Module:
        module = self.approximator(self._shape, rng)
        if not isinstance(module, nn.Module):
            raise InputError(f"the approximator returned {module!r}; it must be a torch.nn.Module")
        module = module.to(self._dtype)
        needed = (1, self._shape.num_actions, self._shape.dimensions)
        with torch.no_grad():
            try:
                output = module(torch.zeros(1, self._shape.state_dim, dtype=self._dtype))
            except RuntimeError as error:
                raise InputError(
                    f"the approximator fails on a batch of states of shape (1, {self._shape.state_dim}): "
                    f"{error}"
                ) from None
        if output.shape != needed:
            raise InputError(
                f"the approximator maps a batch of one state to shape {tuple(output.shape)}; this agent "
                f"needs {needed}: one row for each action, one column for each entry of the cumulant"
            )
        return module

    def _append(self, module: nn.Module) -> None:
        k = len(self)
        for name, parameter in module.named_parameters():
            stack = self._stacks.get(name)
            if stack is None or len(stack) == k:
                # Twice the room, so that K policies cost O(K) copies in all.
                larger = torch.zeros((max(1, 2 * k), *parameter.shape), dtype=self._dtype)
                if stack is not None:
                    larger[:k] = stack
                self._stacks[name] = larger
        self.modules.append(module)
        for index, stored in enumerate(self.modules):
            for name, parameter in stored.named_parameters():
                row = self._stacks[name][index]
                if parameter.data_ptr() != row.data_ptr():
                    row.copy_(parameter.detach())
                    parameter.data = row
        self.optimisers.append(self.optimiser(module.parameters()))


NewTask = Callable[[PolicyLibrary, np.random.Generator], None]
"""What happens to the stored policies when a task starts; the last policy is the one to be learned."""


def copy_previous(library: PolicyLibrary, rng: np.random.Generator) -> None:
    """Keep all policies; the new one starts as a copy of the last (all agents but Q)."""
    if len(library):
        library.add_copy_of_last()
    else:
        library.add_fresh(rng)


def start_afresh(library: PolicyLibrary, rng: np.random.Generator) -> None:
    """Forget the old policy; the new one starts at random (algo:QL)."""
    library.clear()
    library.add_fresh(rng)
