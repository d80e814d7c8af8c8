"""Case: one seeded test input with all that a test of an engine needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import pyarrow as pa

from watersmeet.model.plan import Plan
from watersmeet.model.query import Query
from watersmeet.oracle import oracle
from watersmeet.testing.plans import random_plan
from watersmeet.testing.preserving import preserving
from watersmeet.testing.queries import random_query
from watersmeet.testing.streams import random_batches, random_streams


@dataclass(frozen=True)
class Case:
    """A query, rows for its streams, a plan, and the rows once more in batches that are within each stream's lateness."""

    seed: int
    query: Query
    streams: dict[str, pa.Table]
    plan: Plan
    batches: list[dict[str, pa.Table]]

    @cached_property
    def expected(self) -> pa.Table:
        """What the oracle says."""
        return oracle(self.query, self.streams)

    def __str__(self) -> str:
        """All that is needed to see what went wrong, and how to have the case again."""
        lines = [f"watersmeet.testing.random_case({self.seed})", str(self.query), f"plan {self.plan}"]
        for name, table in self.streams.items():
            lines.append(f"{name}: {table.num_rows} rows ({', '.join(table.column_names)})")
            lines += [f"  {', '.join(map(_shown, row.values()))}" for row in table.to_pylist()]
        return "\n".join(lines)


def _shown(value: object) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)


def random_case(
    seed: int,
    *,
    rows: int | None = None,
    results: float | None = None,
    preserves: bool = False,
    over: int | None = None,
) -> Case:
    """The case of a seed; `rows` for each stream and `results` as in `random_streams`; `preserves`: with a LEFT JOIN; `over`: how many
    streams and tables.

    >>> case = random_case(7)
    >>> case.query == random_case(7).query, case.streams == random_case(7).streams
    (True, True)
    """
    rng = Random(seed)
    query = random_query(rng, streams=over)
    if preserves:
        query = preserving(rng, query)
    streams = random_streams(rng, query, rows=rows, results=results)
    batches = random_batches(rng, query, streams)
    plan = random_plan(rng, query)
    plain = all(
        d.static or (d.timestamp == "ts" and not d.lateness_us and d.idle_us is None) for d in query.declarations
    )
    if plain and rng.random() < 0.5:
        query = replace(query, declarations=())  # the tables themselves say what their columns are
    return Case(seed, query, streams, plan, batches)
