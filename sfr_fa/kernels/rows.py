"""Sums of rows of weights, the inner loop of every layer of a network.

    outputs_o += sum over e of x_{a_e} W[a_e, o]              a_0, a_1, ...: the inputs that are not 0

Rows are added in the order of the list, each product fused into its sum where the machine can do that, so
what comes out depends on the numbers only, and not on where they are or on what else is computed.

Written as loops, a compiler stores all sums after every few rows and reads them back, which takes most of the
time for rows of some twenty numbers. In compiled code sums therefore stay in vector registers until all rows
are added: `_sums` says so to LLVM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from sfr_fa.kernels.arrays import INLINED, Integers, Reals, part

LANES = 8
"""The length of a row is a multiple of this: a vector register of float32."""
REGISTERS = {1: (8, 4, 3, 2, 1), 3: (4, 3, 2, 1)}
"""How many vectors of sums are kept at a time: for one vector of inputs, or for three."""
CONTRACT = ("contract",)


@part(inlined=True)
def list_active(inputs: Reals, first: int, size: int, active: Integers) -> int:
    """How many of the inputs from `first` on are not 0; writes where they are, counted from there."""
    begin, count = np.uintp(first), np.uintp(0)
    for i in range(np.uintp(size)):
        active[count] = i
        # Without a branch, which nobody could predict. NaN is not 0.
        count += np.uintp(inputs[begin + i] != 0)
    return int(count)


def add_rows(
    inputs: Reals, x: int, active: Integers, count: int, weights: Reals, row: int, column: int,
    outputs: Reals, y: int, size: int,
) -> None:  # fmt: skip
    """outputs[y + o] += sum_e inputs[x + a_e] weights[row + a_e, column + o] for o < size.

    x, row, column and y are where blocks begin; size is a multiple of LANES.
    """
    for a in active[:count].tolist():
        outputs[y : y + size] += inputs[x + a] * weights[row + a, column : column + size]


def add_absolute_rows(
    inputs: Reals, x: int, active: Integers, count: int, weights: Reals, row: int, column: int,
    outputs: Reals, y: int, size: int,
) -> None:  # fmt: skip
    """`add_rows` with |W| in place of W."""
    add_rows(inputs, x, active, count, abs(weights), row, column, outputs, y, size)


def add_rows_for_three(
    inputs: Reals, x: int, apart: int, active: Integers, count: int, weights: Reals, row: int,
    outputs: Reals, y: int, results_apart: int, size: int,
) -> None:  # fmt: skip
    """`add_rows` for inputs from x, x + apart and x + 2 apart on; outputs are `results_apart` of each other.

    Each row is read once, not three times.
    """
    for c in range(3):
        add_rows(inputs, x + c * apart, active, count, weights, row, 0, outputs, y + c * results_apart, size)


def _sums(vectors: int, *, absolute: bool = False) -> Any:
    """The sums of rows, in LLVM's terms, for one vector of inputs or for three; arrays are contiguous."""

    def typed(
        typing_context: Any, inputs: Any, x: Any, apart: Any, active: Any, count: Any, weights: Any, row: Any,
        column: Any, outputs: Any, y: Any, results_apart: Any, size: Any,
    ) -> Any:  # fmt: skip
        given = (inputs, x, apart, active, count, weights, row, column, outputs, y, results_apart, size)
        return types.void(*given), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def array(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position])

        x, apart, count, row, column, y, results_apart, size = (
            arguments[position] for position in (1, 2, 4, 6, 7, 9, 10, 11)
        )
        inputs, active, weights, outputs = (array(position) for position in (0, 3, 5, 8))
        real, index = context.get_data_type(signature.args[0].dtype), x.type
        vector, alignment = ir.VectorType(real, LANES), context.get_abi_sizeof(real)
        magnitude = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector]), f"llvm.fabs.v{LANES}f{8 * alignment}"
        )
        # Numbers from one row to the next.
        width = builder.sdiv(builder.extract_value(weights.strides, 0), index(alignment))

        def register(data: Any, offset: Any, v: int) -> Any:
            place = builder.gep(data, [builder.add(offset, index(LANES * v))])
            return builder.bitcast(place, vector.as_pointer())

        def repeated(number: Any) -> Any:
            one = builder.insert_element(vector(ir.Undefined), number, ir.IntType(32)(0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return builder.shuffle_vector(one, vector(ir.Undefined), mask)

        def add_to(first: Any, registers: int) -> None:
            """Sums from `first` on, of so many vectors."""
            sums = []
            for c in range(vectors):
                begin = builder.add(builder.add(y, first), builder.mul(results_apart, index(c)))
                for v in range(registers):
                    place, total = register(outputs.data, begin, v), cgutils.alloca_once(builder, vector)
                    builder.store(builder.load(place, align=alignment), total)
                    sums.append((c, v, place, total))
            with cgutils.for_range(builder, count) as loop:
                a = builder.load(builder.gep(active.data, [loop.index]))
                begin = builder.add(builder.add(builder.mul(builder.add(row, a), width), column), first)
                loaded = [
                    builder.load(register(weights.data, begin, v), align=alignment) for v in range(registers)
                ]
                if absolute:
                    loaded = [builder.call(magnitude, [weight]) for weight in loaded]
                numbers = []
                for c in range(vectors):
                    place = builder.add(builder.add(x, a), builder.mul(apart, index(c)))
                    numbers.append(repeated(builder.load(builder.gep(inputs.data, [place]))))
                for c, v, _, total in sums:
                    product = builder.fmul(numbers[c], loaded[v], flags=CONTRACT)
                    builder.store(builder.fadd(builder.load(total), product, flags=CONTRACT), total)
            for _, _, place, total in sums:
                builder.store(builder.load(total), place, align=alignment)

        largest, *others = REGISTERS[vectors]
        most = index(LANES * largest)
        with cgutils.for_range(builder, builder.sdiv(size, most)) as loop:
            add_to(builder.mul(loop.index, most), largest)
        done = cgutils.alloca_once_value(builder, builder.mul(builder.sdiv(size, most), most))
        for registers in others:
            first = builder.load(done)
            fits = builder.icmp_signed(">=", builder.sub(size, first), index(LANES * registers))
            with builder.if_then(fits):
                add_to(first, registers)
                builder.store(builder.add(first, index(LANES * registers)), done)
        return context.get_dummy_value()

    return intrinsic(typed)


_add_to_one, _add_absolutely, _add_to_three = _sums(1), _sums(1, absolute=True), _sums(3)


def _with(sums: Any) -> Any:
    def of_types(
        inputs: Any, x: Any, active: Any, count: Any, weights: Any, row: Any, column: Any,
        outputs: Any, y: Any, size: Any,
    ) -> Any:  # fmt: skip
        def compiled(
            inputs: Any, x: Any, active: Any, count: Any, weights: Any, row: Any, column: Any,
            outputs: Any, y: Any, size: Any,
        ) -> Any:  # fmt: skip
            sums(
                inputs, np.intp(x), np.intp(0), active, np.intp(count), weights, np.intp(row),
                np.intp(column), outputs, np.intp(y), np.intp(0), np.intp(size),
            )  # fmt: skip

        return compiled

    return of_types


for _function, _of_it in ((add_rows, _add_to_one), (add_absolute_rows, _add_absolutely)):
    overload(_function, jit_options=INLINED)(_with(_of_it))  # type: ignore[arg-type]


@overload(add_rows_for_three, jit_options=INLINED)  # type: ignore[arg-type]
def _three(
    inputs: Any, x: Any, apart: Any, active: Any, count: Any, weights: Any, row: Any,
    outputs: Any, y: Any, results_apart: Any, size: Any,
) -> Any:  # fmt: skip
    def compiled(
        inputs: Any, x: Any, apart: Any, active: Any, count: Any, weights: Any, row: Any,
        outputs: Any, y: Any, results_apart: Any, size: Any,
    ) -> Any:  # fmt: skip
        _add_to_three(
            inputs, np.intp(x), np.intp(apart), active, np.intp(count), weights, np.intp(row), np.intp(0),
            outputs, np.intp(y), np.intp(results_apart), np.intp(size),
        )  # fmt: skip

    return compiled
