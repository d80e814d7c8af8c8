"""What the kernel works on: arrays that belong together, as named tuples. Compiled code sees through them at no cost.

The columns of the two-dimensional tables are named in layout.py.
"""

from __future__ import annotations

from typing import NamedTuple

from watersmeet.engine.native.mark import Bytes, Halves, Table, Words


class Memory(NamedTuple):
    """All stores. `words` and `halves` are one arena, seen as int64 and as int32."""

    words: Words
    halves: Halves
    stores: Table  # a row for each store: windows first, then states, then caches
    indexes: Table  # a row for each index
    members: Words  # the leaves of each store, one after the other
    sources: Table  # where the columns of states come from: (leaf, word)


class Steps(NamedTuple):
    """All pipelines."""

    ops: Table  # a row for each step, those of one pipeline in a row
    checks: Table  # what a probe's matches must satisfy
    counters: Table  # what came to each step, and what it found


class Frame(NamedTuple):
    """Where the tuple that is under way stands in its pipeline, depth first."""

    keys: Table  # for each op the key it probes with
    cursor: Words  # for each op where its chain goes on
    bound: Words  # for each leaf the tuple that is bound
    pending: Table  # for each lookup what is found after a miss


class Group(NamedTuple):
    """Rows that go through their pipelines together."""

    notes: Table  # a row for each: what it is, and what it may meet in each window
    lists: Table  # the partial results of each stream and level
    walk: Table  # those that walk along chains


class Given(NamedTuple):
    """The rows that have been given, by column."""

    streams: Table  # a row for each stream: where its columns lie, and how far it has come
    values: Words
    flags: Bytes  # whether a row can join
