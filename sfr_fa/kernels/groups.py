"""Bounds of a group of policies, the inner loop of the filter of linear values (`sfr_fa.kernels.gpi_filter`).

    bound_k   = max_a  sum_d v_d max(x_{k,a,d}, floor) + rho margins_{k,a} + sigma slacks_{k,a} + halves_a
    x_{k,a,d} = memory_{k,a,d} + shared_{a,d} + sum_j (along_{j,a,d} t + across_{j,a,d} |t|),  t = t_{k,a,d,j}

The policies of a group are the lanes of vectors. Written as loops of so few turns, sums would be stored
after each d, and compiled code would test before each loop whether arrays overlap, which takes longer than
the sums. So it is written for LLVM (`_generate`), with sums in registers; `bound_group` is its plain twin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, overload

from sfr_fa.kernels.arrays import INLINED, Bytes, Reals
from sfr_fa.kernels.gpi import LANES

RANK = 4
"""r, the dimensions of the basis of a cell: more of them make closer bounds, which take longer."""
CONTRACT = ("contract",)


def bound_group(
    inner: Bytes, g: int, n: int, memory: Reals, margins: Reals, slacks: Reals, along: Reals, across: Reals,
    is_box: bool, shared: Reals, halves: Reals, rho: float, sigma: float, readout: Reals, floor: float,
    of_actions: Reals, bound: Reals,
) -> float:  # fmt: skip
    """bound[n LANES + lane] of the policies of group n, and of_actions[n, a, lane]; returns the largest.

    inner (G, N, A, D, r, LANES): t of cell g; memory (N A D LANES,), margins and slacks (N A LANES,). Outputs
    with v_d = 0 do not count, whatever their numbers are. `across` counts for a box only. What is no number
    rules nothing out.
    """
    counts, (_, N, A, D, _, _) = readout != 0, inner.shape
    t = inner[g, n][:, counts].astype(memory.dtype)
    x = memory.reshape(N, A, D, LANES)[n][:, counts] + shared.reshape(A, D)[:, counts, None]
    for j in range(RANK):
        x += along[j].reshape(A, D)[:, counts, None] * t[:, :, j]
        if is_box:
            x += across[j].reshape(A, D)[:, counts, None] * abs(t[:, :, j])
    total = np.einsum("d,adk->ak", readout[counts], np.where(x < floor, floor, x))
    margins, slacks = margins.reshape(N, A, LANES), slacks.reshape(N, A, LANES)
    total += rho * margins[n] + sigma * slacks[n] + halves[:, None]
    of_actions[n] = np.where(np.isnan(total), np.inf, total)
    bounds = of_actions[n].max(axis=0)
    bound[n * LANES : (n + 1) * LANES] = bounds
    return float(bounds.max())


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The same in LLVM's terms; arrays are contiguous."""

    def array(position: int) -> Any:
        return context.make_array(signature.args[position])(context, builder, arguments[position])

    g, n, is_box, rho, sigma, floor = (arguments[position] for position in (1, 2, 8, 11, 12, 14))
    inner, memory, margins, slacks, along, across, shared, halves, readout, of_actions, bound = (
        array(position) for position in (0, 3, 4, 5, 6, 7, 9, 10, 13, 15, 16)
    )
    real, index = context.get_data_type(signature.args[3].dtype), n.type
    size = context.get_abi_sizeof(real)
    vector, bytes_ = ir.VectorType(real, LANES), ir.VectorType(ir.IntType(8), LANES)
    magnitude = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector]), f"llvm.fabs.v{LANES}f{8 * size}"
    )
    _, groups, actions, outputs, _, _ = cgutils.unpack_tuple(builder, inner.shape)
    rows = builder.mul(actions, outputs)

    def row_of(array: Any, row: Any, kind: Any = vector) -> Any:
        """Where a row of as many numbers as there are lanes begins."""
        place = builder.gep(array.data, [builder.mul(row, index(LANES))])
        return builder.bitcast(place, kind.as_pointer())

    def lanes(array: Any, row: Any) -> Any:
        return builder.load(row_of(array, row), align=size)

    def number(array: Any, place: Any) -> Any:
        return builder.load(builder.gep(array.data, [place]))

    def repeated(value: Any) -> Any:
        one = builder.insert_element(vector(ir.Undefined), value, ir.IntType(32)(0))
        return builder.shuffle_vector(one, vector(ir.Undefined), _mask([0] * LANES))

    def plus_product(total: Any, x: Any, y: Any) -> Any:
        return builder.fadd(total, builder.fmul(x, y, flags=CONTRACT), flags=CONTRACT)

    def larger(x: Any, y: Any) -> Any:
        """Neither is NaN."""
        return builder.select(builder.fcmp_ordered(">", x, y), x, y)

    best, lowest = cgutils.alloca_once_value(builder, repeated(real(-np.inf))), repeated(floor)
    with cgutils.for_range(builder, actions) as over_actions:
        a = over_actions.index
        row = builder.add(builder.mul(n, actions), a)
        total = repeated(number(halves, a))
        total = plus_product(total, repeated(sigma), lanes(slacks, row))
        total = cgutils.alloca_once_value(builder, plus_product(total, repeated(rho), lanes(margins, row)))
        with cgutils.for_range(builder, outputs) as over_outputs:
            d = over_outputs.index
            v = number(readout, d)
            with builder.if_then(builder.fcmp_unordered("!=", v, real(0.0))):
                common = builder.add(builder.mul(a, outputs), d)
                of_group = builder.add(builder.mul(row, outputs), d)
                of_cell = builder.add(builder.mul(builder.mul(g, groups), rows), of_group)
                x = builder.fadd(repeated(number(shared, common)), lanes(memory, of_group))
                places = [builder.add(builder.mul(index(j), rows), common) for j in range(RANK)]
                quanta = []
                for j, place in enumerate(places):
                    t_row = builder.add(builder.mul(of_cell, index(RANK)), index(j))
                    quanta.append(builder.sitofp(builder.load(row_of(inner, t_row, bytes_), align=1), vector))
                    x = plus_product(x, repeated(number(along, place)), quanta[j])
                extreme = cgutils.alloca_once_value(builder, x)
                with builder.if_then(is_box):
                    for t, place in zip(quanta, places, strict=True):
                        x = plus_product(x, repeated(number(across, place)), builder.call(magnitude, [t]))
                    builder.store(x, extreme)
                x = builder.load(extreme)
                clipped = builder.select(builder.fcmp_ordered("<", x, lowest), lowest, x)
                builder.store(plus_product(builder.load(total), repeated(v), clipped), total)
        value = builder.load(total)
        is_number = builder.fcmp_ordered("ord", value, value)
        value = builder.select(is_number, value, repeated(real(np.inf)))
        builder.store(value, row_of(of_actions, row), align=size)
        builder.store(larger(value, builder.load(best)), best)
    top = builder.load(best)
    builder.store(top, row_of(bound, n), align=size)
    apart = LANES // 2
    while apart:
        others = builder.shuffle_vector(top, top, _mask([(lane + apart) % LANES for lane in range(LANES)]))
        top = larger(top, others)
        apart //= 2
    return builder.extract_element(top, ir.IntType(32)(0))


def _mask(lanes: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)


def _typed(
    typing_context: Any, inner: Any, g: Any, n: Any, memory: Any, margins: Any, slacks: Any, along: Any,
    across: Any, is_box: Any, shared: Any, halves: Any, rho: Any, sigma: Any, readout: Any, floor: Any,
    of_actions: Any, bound: Any,
) -> Any:  # fmt: skip
    given = (
        inner, g, n, memory, margins, slacks, along, across, is_box, shared, halves, rho, sigma, readout,
        floor, of_actions, bound,
    )  # fmt: skip
    return memory.dtype(*given), _generate


_bound_group: Any = intrinsic(_typed)


@overload(bound_group, jit_options=INLINED)  # type: ignore[arg-type]
def _compiled(
    inner: Any, g: Any, n: Any, memory: Any, margins: Any, slacks: Any, along: Any, across: Any,
    is_box: Any, shared: Any, halves: Any, rho: Any, sigma: Any, readout: Any, floor: Any, of_actions: Any,
    bound: Any,
) -> Any:  # fmt: skip
    def compiled(
        inner: Any, g: Any, n: Any, memory: Any, margins: Any, slacks: Any, along: Any, across: Any,
        is_box: Any, shared: Any, halves: Any, rho: Any, sigma: Any, readout: Any, floor: Any,
        of_actions: Any, bound: Any,
    ) -> Any:  # fmt: skip
        real = memory.dtype.type
        return _bound_group(
            inner, np.intp(g), np.intp(n), memory, margins, slacks, along, across, is_box, shared, halves,
            real(rho), real(sigma), readout, real(floor), of_actions, bound,
        )  # fmt: skip

    return compiled
