"""Unmatched: the rows of the preserved stream of a LEFT JOIN, until it is known whether a result had them.

    enter window ─▶ pending, numbered ─▶ done, once a result had it ─▶ leaves its window: comes out alone if it is not done

The kernel knows nothing of this: a row's number travels with its payload, and is looked at where results are gathered, after every
predicate. When a row leaves follows from the window alone (docs/semantics.md, "Unmatched rows"), so every plan gives the same rows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from watersmeet.data import flat
from watersmeet.engine.program.layout import FAR
from watersmeet.model.window import Window

NUMBER: Final = "_wm_number"  # column: the number of a row of the preserved stream, one of its own


class Unmatched:
    """window: of the preserved stream. kept: the columns of it that results need, and its numbers.

    pending: the rows that are in the window, in its order; beside them when they came, their numbers, whether WHERE lets them through,
    and the hashes of their partition. done: for each number from `base` on, whether a result had it, or it has come out.
    """

    def __init__(self, window: Window, kept: pa.Schema) -> None:
        self.window, self.pending = window, kept.empty_table()
        self.ts = self.numbers = np.zeros(0, np.int64)
        self.shown = self.done = np.zeros(0, bool)
        self.partition = np.zeros((2, 0), np.int64)
        self.base = self.next = 0
        self.numbered = False  # whether the numbers are given here

    def enter(self, table: pa.Table, ts: Any, shown: Any, partition: tuple[Any, Any] | None) -> pa.Table:
        """Rows enter the window, in its order. Returns them with their numbers: the next ones, unless they have some."""
        n = table.num_rows
        if NUMBER not in table.column_names:
            table = table.append_column(NUMBER, pa.array(np.arange(self.next, self.next + n)))
            self.numbered = True
        if n == 0:
            return table
        numbers = flat(table.column(NUMBER)).to_numpy()
        self.next = max(self.next, int(numbers.max()) + 1)
        self.done = np.concatenate([self.done, np.zeros(max(0, self.next - self.base - len(self.done)), bool)])
        self.pending = pa.concat_tables([self.pending, table.select(self.pending.column_names)])
        self.ts, self.shown = np.concatenate([self.ts, ts]), np.concatenate([self.shown, shown])
        self.numbers = np.concatenate([self.numbers, numbers])
        if partition is not None:
            self.partition = np.concatenate([self.partition, np.stack(partition)], axis=1)
        return table

    def match(self, numbers: Any) -> None:
        """Results had these rows."""
        at = numbers - self.base
        self.done[at[at >= 0]] = True

    def leave(self, clock: int, ended: bool) -> tuple[pa.Table, Any]:
        """The rows that come out alone, since they leave by this time and no result had them, and when. At the end all leave."""
        leaves = self._leaves()
        gone = np.ones(len(leaves), bool) if ended else leaves <= clock
        at = self.numbers - self.base
        alone = gone & self.shown & (at >= 0)
        alone[alone] = ~self.done[at[alone]]
        made = self.pending.filter(pa.array(alone)), np.minimum(leaves[alone], clock)
        self.done[at[gone & (at >= 0)]] = True
        if gone.any():
            stay = ~gone
            self.pending = self.pending.filter(pa.array(stay)).combine_chunks()
            self.ts, self.numbers, self.shown = self.ts[stay], self.numbers[stay], self.shown[stay]
            self.partition = self.partition[:, stay] if self.window.partition else self.partition
        if self.numbered:
            self.forget()
        return made

    def _leaves(self) -> Any:
        """When each pending row leaves; FAR: that is not known yet."""
        size, window, n = self.window.size, self.window, len(self.ts)
        if window.kind == "RANGE":
            return self.ts + size + 1
        leaves = np.full(n, FAR)
        if window.kind == "UNBOUNDED" or n <= size:
            return leaves
        if not window.partition:
            leaves[:-size] = self.ts[size:]
            return leaves
        a, b = self.partition
        by = np.lexsort((np.arange(n), b, a))
        pushed, pusher = by[:-size], by[size:]
        same = (a[pushed] == a[pusher]) & (b[pushed] == b[pusher])
        leaves[pushed[same]] = self.ts[pusher[same]]
        return leaves

    def forget(self, waiting: int = FAR) -> None:
        """All numbers below those of pending rows, and below `waiting`, the lowest of rows that are still to enter, are done."""
        low = min(waiting, self.next, int(self.numbers.min(initial=FAR)))
        if low > self.base:
            self.done, self.base = self.done[low - self.base :].copy(), int(low)

    @property
    def bytes(self) -> int:
        arrays = self.ts.nbytes + self.numbers.nbytes + self.shown.nbytes + self.done.nbytes + self.partition.nbytes
        return int(self.pending.nbytes) + int(arrays)
