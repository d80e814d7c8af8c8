"""Look ahead: ask for the cache lines that the next rows of a stream will need, while this one is being processed.

A probe into a window that is larger than the cache waits for memory four times: for the bucket, for the record it leads to, and for
both again one step further. The rows to come are known, so their lines are asked for in four stages, each some rows closer:

    far       bucket of every probe and index whose key is the row's own
    middle    the record that the first bucket leads to
    near      the bucket that the second probe will look at, if that record matches
    nearest   the record behind it

Nothing here changes what the kernel does; it is on only when the arena is larger than the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from watersmeet.engine.compiled import Words, inlined
from watersmeet.engine.hashing import scatter
from watersmeet.engine.layout import (
    BUCKETS,
    CODE,
    COL0,
    COLS_IN,
    FLOOR,
    HEADS_AT,
    INDEX,
    INDEX_FROM,
    INDEX_TO,
    KEY0,
    NKEYS,
    OP_KEY0,
    OP_NKEYS,
    ORDERED,
    PIPE,
    PROBE,
    ROWS_IN,
    SHIFT,
    TARGET,
)  # fmt: skip
from watersmeet.engine.stores import record

FAR_ROWS, MIDDLE_ROWS, NEAR_ROWS, NEAREST_ROWS = 24, 16, 10, 5


def _prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of `array[at]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        made = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], made)
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(function, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Callable[[Words, int], None] = intrinsic(_prefetch)  # type: ignore[assignment]


@inlined
def head_of(I: Words, x: int, key: int) -> int:
    return I[x, HEADS_AT] + ((scatter(key) >> I[x, SHIFT]) & I[x, BUCKETS])


@inlined
def own_key(S: Words, O: Words, T: Words, data: Words, s: int, pc: int, at: int) -> int:
    """The key of a probe that takes it from the row itself."""
    return data[T[s, COLS_IN] + (O[pc, OP_KEY0 + 1] - S[s, COL0]) * T[s, ROWS_IN] + at]


@inlined
def look_ahead(m: Words, h: Words, S: Words, I: Words, O: Words, T: Words, data: Words, s: int, at: int) -> None:
    """Row `at` of stream `s` is next: prefetch for those behind it."""
    pc, rows = S[s, PIPE], T[s, ROWS_IN]
    if at + FAR_ROWS < rows:
        row = at + FAR_ROWS
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            if I[x, NKEYS] == 1 and I[x, ORDERED] == 0:
                prefetch(h, head_of(I, x, data[T[s, COLS_IN] + (I[x, KEY0] - S[s, COL0]) * rows + row]))
        if pc < 0:
            return
        p = pc
        while O[p, CODE] == PROBE:
            if O[p, OP_NKEYS] == 1 and O[p, OP_KEY0] == s:
                prefetch(h, head_of(I, O[p, INDEX], own_key(S, O, T, data, s, p, row)))
            p += 1
    if pc < 0 or O[pc, CODE] != PROBE or O[pc, OP_NKEYS] != 1:
        return
    target, x = O[pc, TARGET], O[pc, INDEX]
    if at + MIDDLE_ROWS < rows:
        p = pc
        while O[p, CODE] == PROBE:
            if O[p, OP_NKEYS] == 1 and O[p, OP_KEY0] == s:
                id = h[head_of(I, O[p, INDEX], own_key(S, O, T, data, s, p, at + MIDDLE_ROWS))]
                if id >= S[O[p, TARGET], FLOOR]:
                    prefetch(m, record(S, O[p, TARGET], id))
            p += 1
    after = pc + 1
    if O[after, CODE] != PROBE or O[after, OP_NKEYS] != 1 or O[after, OP_KEY0] != target:
        return
    if at + NEAR_ROWS < rows:
        key = own_key(S, O, T, data, s, pc, at + NEAR_ROWS)
        id = h[head_of(I, x, key)]
        if id >= S[target, FLOOR]:
            r = record(S, target, id)
            if m[r + I[x, KEY0]] == key:
                prefetch(h, head_of(I, O[after, INDEX], m[r + O[after, OP_KEY0 + 1]]))
    if at + NEAREST_ROWS < rows:
        key = own_key(S, O, T, data, s, pc, at + NEAREST_ROWS)
        id = h[head_of(I, x, key)]
        if id >= S[target, FLOOR]:
            r = record(S, target, id)
            if m[r + I[x, KEY0]] == key:
                id = h[head_of(I, O[after, INDEX], m[r + O[after, OP_KEY0 + 1]])]
                if id >= S[O[after, TARGET], FLOOR]:
                    prefetch(m, record(S, O[after, TARGET], id))
