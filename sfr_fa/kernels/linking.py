"""How the parts of a loop are compiled: into the loop, and for nobody else.

Numba makes a library of every function. It links into it those that it calls, optimises all of it, what it
calls once more, and generates machine code, which for a part of a loop is never run: the loop has a copy of
it. So a part is a library that is linked only; what was written in many functions is optimised and turned
into machine code once, in the loop.

Code that is linked into a library is kept for whoever links that library, as it is, with all its arguments.
Nobody links a loop, so its parts are its own: LLVM drops what they do not use, most of all the arrays of the
tuples that every call passes on, dozens in a filter. Their symbols are private, which no object file names:
under a name that another library has, too, one of the two would be called in place of the other.

Parts that may add in another order (`fastmath`) are optimised by themselves, too. The order is chosen when a
sum is vectorised; it is chosen there, before the code is copied, so that whoever calls the part gets the same
bits.

`pipeline_class` is how Numba lets a function have a compiler of its own.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """The code of a part, to be linked into others."""

    def __init__(self, codegen: Any, name: str, *, optimised: bool, inlined: bool) -> None:
        super().__init__(codegen, name)
        self._optimised, self._inlined = optimised, inlined

    def add_ir_module(self, ir_module: Any) -> None:
        if self._inlined:
            for function in ir_module.functions:
                if not function.is_declaration:
                    function.attributes.add("alwaysinline")
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        if self._optimised:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """No machine code but for the environments of functions, which Numba fills in at once."""
        self._finalize_dynamic_globals()
        environments = [
            str(variable)
            for variable in self._final_module.global_variables
            if variable.name.startswith("_ZN08NumbaEnv")
        ]
        self._codegen._add_module(binding.parse_assembly("\n".join(environments)))
        self._finalize_specific()
        self._finalized = True


class PartCompiler(Compiler):
    """Numba's compiler, with a library that is linked only."""

    inlined = False

    def define_pipelines(self) -> Any:
        state = self.state
        state["library"] = PartLibrary(
            state.targetctx.codegen(),
            state.func_id.func_qualname,
            optimised=bool(state.flags.fastmath),
            inlined=self.inlined,
        )
        return super().define_pipelines()


class InlinedCompiler(PartCompiler):
    """For parts that are inlined wherever they are called.

    Numba's option `forceinline` is inherited: parts would be compiled twice, for inlined callers and others.
    """

    inlined = True


class LoopLibrary(JITCodeLibrary):
    """The code of a loop, whose parts nobody else calls."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.linkonce_odr:
                function.linkage = "private"
        super()._optimize_final_module()

    def _finalize_dynamic_globals(self) -> None:
        """What Numba must not store: also the pointers through which functions call themselves.

        They are set when a function is compiled, and not when it is loaded.
        """
        super()._finalize_dynamic_globals()
        pointers = self._codegen._rtlinker.PREFIX
        self._dynamic_globals += [
            variable.name
            for variable in self._final_module.global_variables
            if variable.name.startswith(pointers)
        ]


class LoopCompiler(Compiler):
    """Numba's compiler, with a library that has its parts for itself."""

    def define_pipelines(self) -> Any:
        state = self.state
        state["library"] = LoopLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state["library"].enable_object_caching()
        return super().define_pipelines()
