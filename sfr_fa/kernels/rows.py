"""Sums of rows of weights, the inner loop of every layer of a network.

    outputs_o += sum over e of x_{a_e} W[a_e, o]              a_0, a_1, ...: the inputs that are not 0

Rows are added in the order of the list, each product fused into its sum where the machine can do that, so
what comes out depends on the numbers only, and not on where they are or on what else is computed.

Written as loops, a compiler stores all sums after every few rows and reads them back, which takes most of the
time for rows of some twenty numbers. In compiled code sums therefore stay in vector registers until all rows
are added: `_add_rows` says so to LLVM.
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
REGISTERS = (8, 4, 3, 2, 1)
"""So many vectors of sums are kept at a time, as many as there are left."""
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


@overload(add_rows, jit_options=INLINED)  # type: ignore[arg-type]
def _(
    inputs: Any, x: Any, active: Any, count: Any, weights: Any, row: Any, column: Any,
    outputs: Any, y: Any, size: Any,
) -> Any:  # fmt: skip
    def compiled(
        inputs: Any, x: Any, active: Any, count: Any, weights: Any, row: Any, column: Any,
        outputs: Any, y: Any, size: Any,
    ) -> Any:  # fmt: skip
        _add_rows(  # type: ignore[call-arg]
            inputs, np.intp(x), active, np.intp(count), weights, np.intp(row), np.intp(column),
            outputs, np.intp(y), np.intp(size),
        )  # fmt: skip

    return compiled


@intrinsic
def _add_rows(
    typing_context: Any, inputs: Any, x: Any, active: Any, count: Any, weights: Any, row: Any, column: Any,
    outputs: Any, y: Any, size: Any,
) -> Any:  # fmt: skip
    """`add_rows` in LLVM's terms; arrays are contiguous."""
    signature = types.void(inputs, x, active, count, weights, row, column, outputs, y, size)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def array(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position])

        x, count, row, column, y, size = (arguments[position] for position in (1, 3, 5, 6, 8, 9))
        inputs, active, weights, outputs = (array(position) for position in (0, 2, 4, 7))
        real, index = context.get_data_type(signature.args[0].dtype), x.type
        vector = ir.VectorType(real, LANES)
        alignment = context.get_abi_sizeof(real)
        width = builder.sdiv(
            builder.extract_value(weights.strides, 0), index(alignment)
        )  # numbers from one row to the next

        def register(data: Any, offset: Any, v: int) -> Any:
            place = builder.gep(data, [builder.add(offset, index(LANES * v))])
            return builder.bitcast(place, vector.as_pointer())

        def add_to(first: Any, registers: int) -> None:
            """Sums from `first` on, of so many vectors."""
            begin = builder.add(y, first)
            sums = [cgutils.alloca_once(builder, vector) for _ in range(registers)]
            for v, place in enumerate(sums):
                total = builder.load(register(outputs.data, begin, v), align=alignment)
                builder.store(total, place)
            with cgutils.for_range(builder, count) as loop:
                a = builder.load(builder.gep(active.data, [loop.index]))
                number = builder.load(builder.gep(inputs.data, [builder.add(x, a)]))
                of_row = builder.mul(builder.add(row, a), width)
                begin_of_row = builder.add(builder.add(of_row, column), first)
                one = builder.insert_element(vector(ir.Undefined), number, ir.IntType(32)(0))
                mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                repeated = builder.shuffle_vector(one, vector(ir.Undefined), mask)
                for v, place in enumerate(sums):
                    weight = builder.load(register(weights.data, begin_of_row, v), align=alignment)
                    product = builder.fmul(repeated, weight, flags=CONTRACT)
                    builder.store(builder.fadd(builder.load(place), product, flags=CONTRACT), place)
            for v, place in enumerate(sums):
                builder.store(builder.load(place), register(outputs.data, begin, v), align=alignment)

        done = cgutils.alloca_once_value(builder, index(0))
        most = index(LANES * REGISTERS[0])
        with cgutils.for_range(builder, builder.sdiv(size, most)) as loop:
            add_to(builder.mul(loop.index, most), REGISTERS[0])
        builder.store(builder.mul(builder.sdiv(size, most), most), done)
        for registers in REGISTERS[1:]:
            first = builder.load(done)
            fits = builder.icmp_signed(">=", builder.sub(size, first), index(LANES * registers))
            with builder.if_then(fits):
                add_to(first, registers)
                builder.store(builder.add(first, index(LANES * registers)), done)
        return context.get_dummy_value()

    return signature, generate
