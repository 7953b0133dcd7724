"""The stored policies: one module and one optimiser each, all parameters in one stack.

Policy k is an `nn.Module` that an optimiser of the user's choice trains in place. The optimiser is made when
the policy first learns in Python: compiled code needs none, and torch's first one costs a second or two of
imports. Parameters are views of row k of one tensor for each parameter, so that GPI reads all K policies in a
single batched pass and nothing is ever copied between the two. What takes the views apart (a copy, a pickle,
`module.double().float()`) is noticed, and the modules, which hold the weights that are trained, are stacked
again.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sfr_fa.agents.approximators import Approximator, ValueShape, offers_stacked, stacked_values
from sfr_theory.errors import InputError

FEW = 6
"""Up to this many modules are faster one by one than stacked by torch.func.vmap."""

OptimiserFactory = Callable[[Iterable[nn.Parameter]], Optimizer]


class PolicyLibrary:
    """K policies; row k of every stack belongs to policy k."""

    def __init__(
        self, approximator: Approximator, shape: ValueShape, optimiser: OptimiserFactory, dtype: torch.dtype
    ) -> None:
        self.approximator = approximator
        self.shape = shape
        self.optimiser = optimiser
        self._dtype = dtype
        self.modules: list[nn.Module] = []
        self._optimisers: dict[int, Optimizer] = {}
        self._rate: float | None = None
        """That of all policies, where it is not the optimiser's own."""
        self._stacks: dict[str, Tensor] = {}
        self._views: list[nn.Parameter] = []
        self._addresses: list[int] = []
        """Each parameter of each module, and where its place in the stack is."""
        self.is_plain_sgd = _is_plain_sgd(optimiser) or self._probe_optimiser()
        """Whether each step is theta <- theta - rate * gradient, which compiled code makes by itself."""

    def __getstate__(self) -> dict[str, Any]:
        """Modules with storage of their own: each view would drag the whole stack along."""
        # Copied together, optimisers keep training the parameters of the modules.
        modules, optimisers = copy.deepcopy((self.modules, self._optimisers))
        own = {"modules": modules, "_optimisers": optimisers, "_stacks": {}, "_views": [], "_addresses": []}
        return self.__dict__ | own

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._link()

    def __len__(self) -> int:
        return len(self.modules)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """All policies' parameters, each (K, ...)."""
        if list(map(Tensor.data_ptr, self._views)) != self._addresses:
            self._link()
        return {name: stack[: len(self)] for name, stack in self._stacks.items()}

    def add_fresh(self, rng: np.random.Generator) -> None:
        """A policy with newly drawn weights."""
        self._append(self._new_module(rng))

    def add_copy_of_last(self) -> None:
        """theta_i <- theta_{i-1}; the optimiser starts without memory."""
        self._append(copy.deepcopy(self.modules[-1]))

    def restart(self, rng: np.random.Generator) -> None:
        """A policy with newly drawn weights in place of all others."""
        module = self._new_module(rng)
        self.modules, self._optimisers, self._stacks = [], {}, {}
        self._append(module)

    def values(self, states: Tensor, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """value_k(s_b, a) of all policies, or of other parameters (K, ...): (B, state) -> (K, B, A, D)."""
        with torch.no_grad():
            if parameters is None and len(self) <= FEW and not offers_stacked(self.modules[0]):
                return torch.stack([module(states) for module in self.modules])
            return stacked_values(self.modules[0], parameters or self.parameters, states)

    def optimiser_of(self, policy: int) -> Optimizer:
        """What trains a policy, made when it is first asked for."""
        if policy not in self._optimisers:
            module = self.modules[policy]
            # A module may let some of its parameters learn faster than others.
            groups = getattr(module, "parameter_groups", module.parameters)
            optimiser = self.optimiser(groups())
            own_rate = optimiser.param_groups[0].get("lr", 0.0)
            _set_rate(optimiser, own_rate if self._rate is None else self._rate)
            self._optimisers[policy] = optimiser
        return self._optimisers[policy]

    def set_rate(self, rate: float) -> None:
        """All policies learn at this rate from now on."""
        self._rate = rate
        for optimiser in self._optimisers.values():
            _set_rate(optimiser, rate)

    def check_can_grow(self) -> None:
        """Refuse an approximator whose modules cannot take in more entries."""
        with torch.random.fork_rng(devices=[]):
            template = self._new_module(np.random.default_rng(0))
        if not hasattr(template, "grown"):
            raise InputError(
                f"{type(template).__name__} cannot take in new features; give it grown(name, values, shape) "
                f"as in sfr_fa.agents.approximators, or declare all features, without grow"
            )

    def grow(self, shape: ValueShape) -> None:
        """More entries for every value, all 0; what was learned stays."""
        for k, module in enumerate(self.modules):
            grown: Any = module.grown
            for name, parameter in module.named_parameters():
                remembered = self._optimisers[k].state.get(parameter, {}) if k in self._optimisers else {}
                for key, value in remembered.items():
                    if isinstance(value, Tensor) and value.shape == parameter.shape:
                        remembered[key] = grown(name, value, shape)
                parameter.grad = None
                parameter.data = grown(name, parameter.detach(), shape)
            module.shape = shape  # type: ignore[assignment]
        self.shape, self._stacks = shape, {}
        self._link()

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters,
            "buffers": [dict(module.named_buffers()) for module in self.modules],
            # Of those that remember something: plain SGD does not, and K of them are not worth their time.
            "optimisers": {
                k: optimiser.state_dict()
                for k, optimiser in sorted(self._optimisers.items())
                if any(optimiser.state.values())
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all policies by saved ones; the parameters must be those of this approximator."""
        parameters: Mapping[str, Tensor] = state["parameters"]
        optimiser_states: Mapping[int, Mapping[str, Any]] = state["optimisers"]
        buffers: Sequence[Mapping[str, Tensor]] = state["buffers"]
        with torch.random.fork_rng(devices=[]):
            template = self._new_module(np.random.default_rng(0))
        expected = {name: tuple(p.shape) for name, p in template.named_parameters()} if parameters else {}
        found = {name: tuple(stack.shape[1:]) for name, stack in parameters.items()}
        if expected != found:
            raise InputError(f"the saved networks have parameters {found}; this agent's have {expected}")
        expected = {name: tuple(b.shape) for name, b in template.named_buffers()}
        for saved in buffers:
            found = {name: tuple(buffer.shape) for name, buffer in saved.items()}
            if expected != found:
                raise InputError(f"the saved networks have buffers {found}; this agent's have {expected}")
        loaded = PolicyLibrary(self.approximator, self.shape, self.optimiser, self._dtype)
        for k, of_module in enumerate(buffers):
            module = copy.deepcopy(template)
            with torch.no_grad():
                for name, parameter in module.named_parameters():
                    parameter.copy_(parameters[name][k])
                for name, buffer in module.named_buffers():
                    buffer.copy_(of_module[name])
            loaded._append(module)
            if k in optimiser_states:
                optimiser = loaded.optimiser_of(k)
                rate = optimiser.param_groups[0].get("lr", 0.0)
                optimiser.load_state_dict(dict(optimiser_states[k]))
                _set_rate(optimiser, rate)  # not the one that was saved
        self.__dict__.update(loaded.__dict__)

    def _new_module(self, rng: np.random.Generator) -> nn.Module:
        module = self.approximator(self.shape, rng)
        if not isinstance(module, nn.Module):
            raise InputError(f"the approximator returned {module!r}; it must be a torch.nn.Module")
        module = module.to(self._dtype)
        self._probe(module)
        return module

    def _probe(self, module: nn.Module) -> None:
        """Refuse a module that fails on one state, alone as in learning or stacked as in GPI."""
        parameters = {name: parameter[None] for name, parameter in module.named_parameters()}
        if not parameters:
            raise InputError("the approximator has no parameters; there is nothing to learn")
        state = torch.linspace(-1, 1, self.shape.state_dim, dtype=self._dtype)[None]
        with torch.no_grad():
            try:
                output = module(state)
                answers = [stacked_values(module, parameters, state) for _ in range(2)]
            except Exception as error:
                raise InputError(
                    f"the approximator fails on a batch of states of shape (1, {self.shape.state_dim}), "
                    f"alone or stacked by torch.func.vmap: {error}"
                ) from error
        needed = (1, self.shape.num_actions, self.shape.dimensions)
        for result, shape in ((output, needed), (answers[0], (1, *needed))):
            if not isinstance(result, Tensor):
                raise InputError(f"the approximator returns {type(result).__name__}; it must return a tensor")
            if result.shape != shape:
                raise InputError(
                    f"the approximator maps a batch of one state to shape {tuple(result.shape)}; this agent "
                    f"needs {shape}: one row for each action, one column for each entry of the cumulant"
                )
        if not torch.equal(*answers):
            raise InputError(
                "the approximator gives two answers to one state; it must not draw random numbers (dropout)"
            )

    def _probe_optimiser(self) -> bool:
        """Refuse what cannot train: one step on a parameter of no consequence. Whether it is plain SGD."""
        parameter = nn.Parameter(torch.zeros(2, 2, dtype=self._dtype))
        try:
            optimiser = self.optimiser([parameter])
            settings = dict(optimiser.param_groups[0])
            optimiser.zero_grad()
            parameter.sum().backward()
            # LBFGS alone asks for a function that computes the loss again, which an online step cannot offer.
            optimiser.step()
        except Exception as error:
            raise InputError(f"the optimiser cannot make a plain step(): {error}") from error
        plain = torch.optim.SGD([parameter], lr=settings.get("lr", 0.0)).param_groups[0]
        return type(optimiser) is torch.optim.SGD and settings == plain

    def _append(self, module: nn.Module) -> None:
        self.modules.append(module)
        self._link(len(self) - 1)

    def _link(self, first: int = 0) -> None:
        """Make the parameters of modules views of the stacks; what they hold goes into their rows.

        Modules before the first are linked already, unless the stacks are too short and have to be made anew.
        """
        # Twice the room whenever it is short, so that K policies cost O(K) copies in all.
        room = 1 << (len(self) - 1).bit_length()
        if not self._stacks or min(map(len, self._stacks.values())) < room:
            first = 0
        if first == 0:
            self._views, self._addresses = [], []
        for k, module in enumerate(self.modules[first:], first):
            for name, parameter in module.named_parameters():
                if name not in self._stacks or len(self._stacks[name]) < room:
                    self._stacks[name] = torch.zeros((room, *parameter.shape), dtype=self._dtype)
                row = self._stacks[name][k]
                if parameter.data_ptr() != row.data_ptr():
                    row.copy_(parameter.detach())
                    parameter.grad = None
                    parameter.data = row
                self._views.append(parameter)
                self._addresses.append(row.data_ptr())


def _set_rate(optimiser: Optimizer, rate: float) -> None:
    """Learn at this rate from now on; each group multiplies it by its own factor."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("times", 1.0)


def _is_plain_sgd(factory: OptimiserFactory) -> bool:
    """Whether it is torch's SGD with nothing but a rate; for others one has to be made."""
    return isinstance(factory, functools.partial) and (
        (factory.func, factory.args, factory.keywords.keys()) == (torch.optim.SGD, (), {"lr"})
    )


NewTask = Callable[[PolicyLibrary, np.random.Generator], None]
"""What happens to the stored policies when a task starts; the last policy is the one to be learned."""


@dataclass(frozen=True)
class CopyPrevious:
    """Keep all policies; the new one starts as a copy of the last (all agents but Q)."""

    first_weights: Callable[[ValueShape, np.random.Generator], Tensor] | None = None
    """Linear weights (A, D, state) of the very first policy, in place of those that its module draws."""

    def __call__(self, library: PolicyLibrary, rng: np.random.Generator) -> None:
        if len(library):
            library.add_copy_of_last()
        elif self.first_weights is None:
            library.add_fresh(rng)
        else:
            library.add_fresh(np.random.default_rng(0))
            if "weight" not in library.parameters:
                raise InputError("initial_weights are for linear values; networks have the paper's")
            library.parameters["weight"][0].copy_(self.first_weights(library.shape, rng))


copy_previous = CopyPrevious()


def start_afresh(library: PolicyLibrary, rng: np.random.Generator) -> None:
    """Forget the old policy; the new one starts at random (algo:QL)."""
    library.restart(rng)
