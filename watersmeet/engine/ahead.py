"""Look ahead: ask for the cache lines that the next rows of a stream will need, while this one is being processed.

A probe into windows that are larger than the cache waits for memory at every step: for the bucket, for each record of its chain, for
the second probe's bucket, for each record of that chain. The rows to come are known, so a *walker* goes before each of them: it takes
the steps that the row's first two probes will take, one at a time, some rows apart, and asks for what the next step will look at.

    16 rows ahead     buckets of all probes and indexes whose key is the row's own
    every second row  one step: bucket -> record -> (a match) bucket of the second probe -> record -> next record ... and back

Nothing here changes what the kernel does; it is on only when the arena is larger than the cache. A walker may stand on a tuple
that has left meanwhile: all it finds there is a place in the arena, and the worst it can do is to ask for a line that nobody needs.
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
    INNER,
    KEY0,
    KIND,
    LINK,
    NKEYS,
    OP_KEY0,
    OP_NKEYS,
    ORDERED,
    OUTER,
    PIPE,
    PROBE,
    RIM,
    ROWS_IN,
    SHIFT,
    STATE,
    TARGET,
    WAITS,
)  # fmt: skip
from watersmeet.engine.stores import record

SETS_OUT, STEP = 16, 2  # a walker sets out so many rows before its row, and takes a step every so many rows

# what a walker waits for
_NOTHING, _BUCKET, _RECORD, _SECOND_BUCKET, _SECOND_RECORD = 0, 1, 2, 3, 4


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
def ask_for(m: Words, h: Words, S: Words, I: Words, x: int, s: int, id: int) -> None:
    """The lines of a record that hold its key and its link."""
    r = record(S, s, id)
    prefetch(m, r + I[x, KEY0])
    prefetch(h, 2 * r + I[x, LINK])


@inlined
def step(
    m: Words, h: Words, S: Words, I: Words, O: Words, W: Words, T: Words, data: Words, s: int, pc: int, row: int
) -> None:
    """The walker of a row takes one step: what it waited for is here."""
    w = s * RIM + (row & (RIM - 1))
    waits = W[w, WAITS]
    if waits == _NOTHING:
        return
    target, x = O[pc, TARGET], O[pc, INDEX]
    id = -1
    if waits == _BUCKET:
        id = h[head_of(I, x, own_key(S, O, T, data, s, pc, row))]
    else:
        id = W[w, OUTER]
        r = record(S, target, id)
        if waits == _RECORD:
            after = pc + 1
            leaf = O[after, OP_KEY0]
            if (
                O[after, CODE] == PROBE
                and O[after, OP_NKEYS] == 1
                and (leaf == s or (leaf == target and S[target, KIND] != STATE))
                and m[r + I[x, KEY0]] == own_key(S, O, T, data, s, pc, row)
            ):
                key = own_key(S, O, T, data, s, after, row) if leaf == s else m[r + O[after, OP_KEY0 + 1]]
                place = head_of(I, O[after, INDEX], key)
                prefetch(h, place)
                W[w, INNER] = place
                W[w, WAITS] = _SECOND_BUCKET
                return
        else:
            second, y = O[pc + 1, TARGET], O[pc + 1, INDEX]
            inner = W[w, INNER]
            inner = h[inner] if waits == _SECOND_BUCKET else h[2 * record(S, second, inner) + I[y, LINK]]
            if inner >= S[second, FLOOR]:
                ask_for(m, h, S, I, y, second, inner)
                W[w, INNER] = inner
                W[w, WAITS] = _SECOND_RECORD
                return
        id = h[2 * r + I[x, LINK]]
    W[w, WAITS] = _NOTHING
    if id >= S[target, FLOOR]:
        ask_for(m, h, S, I, x, target, id)
        W[w, OUTER] = id
        W[w, WAITS] = _RECORD


@inlined
def look_ahead(
    m: Words, h: Words, S: Words, I: Words, O: Words, W: Words, T: Words, data: Words, s: int, at: int
) -> None:
    """Row `at` of stream `s` is next: walk on before those behind it."""
    pc, rows = S[s, PIPE], T[s, ROWS_IN]
    leads = pc >= 0 and O[pc, CODE] == PROBE and O[pc, OP_NKEYS] == 1
    row = at + SETS_OUT
    if row < rows:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            if I[x, NKEYS] == 1 and I[x, ORDERED] == 0:
                prefetch(h, head_of(I, x, data[T[s, COLS_IN] + (I[x, KEY0] - S[s, COL0]) * rows + row]))
        if leads:
            prefetch(h, head_of(I, O[pc, INDEX], own_key(S, O, T, data, s, pc, row)))
            W[s * RIM + (row & (RIM - 1)), WAITS] = _BUCKET
    if leads:
        for k in range(1, SETS_OUT // STEP):
            if at + k * STEP < rows:
                step(m, h, S, I, O, W, T, data, s, pc, at + k * STEP)
