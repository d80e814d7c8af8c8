"""Random queries with a LEFT JOIN, made from others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from watersmeet.model.expr import Literal, streams_of
from watersmeet.model.query import Query
from watersmeet.model.types import BOOLEAN


def preserving(rng: Random, query: Query) -> Query:
    """The same query with one of its streams preserved: conditions go to ON, but some on that stream alone stay in WHERE. A query without
    conditions gets one.

    >>> from watersmeet.testing.queries import random_query
    >>> query = preserving(Random(1), random_query(Random(1), streams=3, shape="chain"))
    >>> query.preserved == query.sources[0].alias, bool(query.on)
    (True, True)
    """
    first = rng.choice([s for s in query.sources if s.window])
    alone = [c for c in query.where if streams_of(c) == {first.alias} and rng.random() < 0.5]
    on = tuple(c for c in query.where if c not in alone)
    sources = (first, *(s for s in query.sources if s is not first))
    return replace(
        query, sources=sources, where=tuple(alone), on=on or (Literal(True, BOOLEAN),), preserves=True, emit="ISTREAM"
    )
