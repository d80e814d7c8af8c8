"""What a query means, as code (docs/semantics.md says the same in words): brute force, nothing shared with the engine."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pyarrow as pa

from watersmeet.data.plain_rows import Row, Rows, Tables, plain_batches, plain_results
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery
from watersmeet.model.conditions import Conditions, Tuple
from watersmeet.model.evaluate import order_key
from watersmeet.model.query import Query


def oracle(text: str | Query, data: Tables | Iterable[Tables]) -> pa.Table:
    """The results of a query over whole tables, {stream name: table}, or over an iterable of batches of that form."""
    return results_and_late(text, data)[0]


def results_and_late(text: str | Query, data: Tables | Iterable[Tables]) -> tuple[pa.Table, list[tuple[str, Row]]]:
    """The results, and the rows that came too late to take part, each with the name of its stream."""
    bound, tables, batches = plain_batches(parse(text) if isinstance(text, str) else text, data)
    rows, late = _on_time(bound, batches)
    conditions, now, began = Conditions(bound), -inf, list[tuple[float, str, dict[str, Tuple]]]()
    windows: dict[str, list[Tuple]] = {alias: [] for alias in bound.aliases}
    for new in (arrivals := _in_global_order(bound, tables | rows, conditions)):
        now, window = new.ts, bound.source(new.alias).window
        # It enters its window, and those whose time is over leave theirs: ts + size + 1 (RANGE), or pushed out (ROWS).
        if window and window.kind == "RANGE":
            new.leaves = new.ts + window.size + 1
        same = [t for t in windows[new.alias] if t.partition == new.partition]
        if window and window.kind == "ROWS" and len(same) == window.size:
            same[0].leaves = now
        windows[new.alias].append(new)
        windows = {alias: [t for t in held if t.leaves > now] for alias, held in windows.items()}
        # Results begin: it with one tuple from each other window, if all predicates hold.
        made = [{new.alias: new}] if window and new.selected else []
        for alias, joins in conditions.steps(new.alias):
            made = [{**m, alias: t} for m in made for t in windows[alias] if t.selected and joins(t, m)]
        began += [(now, "insert", members) for members in made]
    ended = [(min(t.leaves for t in members.values()), "delete", members) for _, _, members in began]
    changes = {"ISTREAM": began, "DSTREAM": ended, "CHANGES": began + ended}[bound.query.emit]
    # A result ends when its first tuple leaves. Residual predicates are evaluated on what is about to be emitted only.
    emitted = [change for change in changes if change[0] <= now and conditions.residual(change[2])]
    # A tuple of the preserved stream (LEFT JOIN) that was in none comes out alone when it leaves, at the latest at the end.
    in_results = {t for _, _, members in emitted for t in members.values()}
    emitted += [(min(t.leaves, now), "insert", {t.alias: t}) for t in arrivals if t.shown and t not in in_results]
    return plain_results(bound, emitted), late


def _in_global_order(bound: BoundQuery, rows: Rows, conditions: Conditions) -> list[Tuple]:
    """By timestamp, then position in FROM, then the declared columns in their order (sorting keeps the order of equals)."""
    made = []
    for source in bound.sources:
        tied = sorted(rows[source.stream], key=lambda row: [order_key(value) for value in row.values()])
        made += [conditions.arrive(source, row) for row in tied]
    return sorted(made, key=lambda t: t.ts)


def _on_time(bound: BoundQuery, batches: list[Rows]) -> tuple[Rows, list[tuple[str, Row]]]:
    """The rows of each stream that are not late, and those that are: below the watermark of the batch before."""
    streams = {s.stream: s for s in bound.sources if s.window}
    rows: Rows = {name: [] for name in streams}
    late: list[tuple[str, Row]] = []
    high, low, watermark = dict.fromkeys(streams, -inf), inf, -inf
    for batch in batches:
        for name, came in batch.items():
            times = [row[streams[name].timestamp] for row in came]
            rows[name] += [row for row, ts in zip(came, times, strict=True) if ts >= watermark]
            late += [(name, row) for row, ts in zip(came, times, strict=True) if ts < watermark]
            high[name], low = max([high[name], *times]), min([low, *times])
        # A stream that lies too far behind the furthest is idle and not waited for; before its first row it stands at `low`.
        top = max(high.values())
        awaited = [s for n, s in streams.items() if s.idle_us is None or top - max(high[n], low) <= s.idle_us]
        watermark = max(watermark, min(high[s.stream] - s.lateness_us for s in awaited))
    return rows, late
