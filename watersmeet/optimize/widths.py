"""Widths: bytes of a tuple in its window and of an entry of an inner state, where the budget is in bytes.

What the engine lays out (`watersmeet/engine/program/layout.py`), slot by slot, in whole words of 8 bytes:

    window   timestamp 8 | join keys 8 each | a link of 4 for each index      buckets: 4 for each index     payload of the row, in Arrow
    state    a reference of 4 for each member | join keys 8 each | a link of 4 for each index                buckets: 4 for each index

There is more room than there are tuples. Slots of a window are a power of two that the highest number of tuples so far fits in, 1 to 2 for
each tuple; a state grows by half when more than three quarters of it are alive, so it has 1.3 to 2 for each live entry. Payload is let
go in pieces, and small pieces are merged: of a window below 65,536 tuples there lie 1 to 6 times as many rows as it holds, of a larger
one as many more as a piece has. What is planned for was measured: the middle of some thirty windows and a dozen states. An index is
counted for each join key; which ones there are depends on the plan. Payload is what SELECT and the predicates on complete
combinations look at, and PARTITION BY columns that are hashed.

`tests/optimize/test_widths.py` holds it to the engine within a factor of 1.5, for whole plans and for each inner state; the factors were
fitted to its plans, whose windows hold 600 to 5,000 tuples.
"""

from __future__ import annotations

from math import ceil

from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.expr import Column, Expr, type_of, walk
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Statistics

COLUMN_BYTES = {
    "BIGINT": 8.0, "DOUBLE": 8.0, "TIMESTAMP": 8.0, "DATE": 4.0, "BOOLEAN": 0.125, "DECIMAL": 16.0, "STRING": 24.0,
}  # fmt: skip
UNKNOWN_ROW_BYTES = 64.0
WORD = 8.0
LINK = 4.0  # of an index, and its bucket, and a reference to a member
WINDOW_ROOM = 1.5  # slots for each tuple of a window
STATE_ROOM = 1.85  # slots for each live entry of a state
PIECE = 65_536  # rows of payload from which on pieces are not merged any more
DIRECTORY_BYTES = 32.0 * 2.8  # of each partition: the directory is a quarter to half full


def row_bytes(bound: BoundQuery, source: BoundSource, stats: Statistics, window: float, said: list[str]) -> float:
    """Payload and slot of one row of a stream whose window holds so many tuples, in bytes.

    >>> from watersmeet.optimize.sketch import planned
    >>> from watersmeet.lang import parse
    >>> query = planned(parse('''
    ...     CREATE STREAM orders (id BIGINT, name STRING, ts TIMESTAMP); CREATE STREAM payments (id BIGINT, ts TIMESTAMP);
    ...     SELECT o.id, o.name FROM orders [ROWS 9] AS o, payments [ROWS 9] AS p WHERE o.id = p.id'''))
    >>> said = []
    >>> row_bytes(query, query.source("o"), Statistics(), 9.0, said), said
    (138.0, ['a row of o has 32 bytes of payload, going by its column types'])
    >>> round(row_bytes(query, query.source("o"), Statistics(), 1e7, []), 1)
    74.4
    """
    alias = source.alias
    partitioned = source.window is not None and bool(source.window.partition)
    slot = WINDOW_ROOM * _slot(bound, source)
    room = 1 + 2 * min(1.0, PIECE / max(window, 1.0))
    if partitioned and source.window is not None:
        slot += DIRECTORY_BYTES / max(source.window.size, 1)
        room = 1.5 + PIECE / 2 / max(window, 1.0)
    elif source.static:
        room = 1.0
    if alias in stats.row_bytes:
        payload = stats.row_bytes[alias]
    elif not source.schema.fields:
        payload = UNKNOWN_ROW_BYTES
        said.append(f"a row of {alias} has {payload:g} bytes of payload")
    else:
        wanted = _needed(bound, alias)
        payload = sum(COLUMN_BYTES[f.type.name] for f in source.schema.fields if f.name in wanted)
        said.append(f"a row of {alias} has {payload:g} bytes of payload, going by its column types")
    return payload * room + slot


def entry_bytes(members: int, keys: int) -> float:
    """One live entry of an inner state: references to its members, its join keys, and their indexes.

    >>> round(entry_bytes(2, 1), 1), round(entry_bytes(3, 2), 1)
    (51.8, 88.8)
    """
    return STATE_ROOM * (WORD * (ceil(members / 2) + keys + ceil(keys / 2)) + LINK * keys)


def _slot(bound: BoundQuery, source: BoundSource) -> float:
    graph, alias = JoinGraph.of(bound), source.alias
    hashed = {m.expr for c in graph.classes for m in c.members if m.stream == alias}
    compared = {s.expr for c in graph.comparisons for s in (c.left, c.right) if s.stream == alias and _exact(s.expr)}
    partitioned = source.window is not None and bool(source.window.partition)
    ordered = len(compared - hashed)
    links = (2 if partitioned else 1) * len(hashed) + 3 * ordered
    words = (3 if partitioned else 1) + len(hashed | compared) + ceil(links / 2)
    return WORD * words + LINK * len(hashed)


def _needed(bound: BoundQuery, alias: str) -> set[str]:
    """The columns that results, and predicates decided on complete combinations, look at."""
    graph = JoinGraph.of(bound)
    looked_at: list[Expr] = [e for _, e in bound.outputs] + list(graph.residuals)
    looked_at += [m.expr for c in graph.classes for m in c.members if not _exact(m.expr)]
    looked_at += [s.expr for c in graph.comparisons for s in (c.left, c.right) if not _exact(s.expr)]
    return _proof(bound.source(alias)) | {
        n.name for e in looked_at for n in walk(e) if isinstance(n, Column) and n.stream == alias
    }


def _proof(source: BoundSource) -> set[str]:
    """The PARTITION BY columns if they are hashed: rows must show which partition they are of."""
    by = source.window.partition if source.window is not None else ()
    fields = [f for name in by if (f := source.schema.find(name)) is not None]
    hashed = len(fields) > 1 or any(not _exact(Column(source.alias, f.name, f.type)) for f in fields)
    return {f.name for f in fields} if hashed else set()


def _exact(expr: Expr) -> bool:
    """Whether the kernel can decide by the key alone; else it only finds candidates, which are compared on the payload."""
    kind = type_of(expr)
    return kind.name != "STRING" and not (kind.name == "DECIMAL" and kind.precision > 18)
