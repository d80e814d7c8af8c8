"""Random plans: any join tree over the streams of a query, with any probe orders."""

from __future__ import annotations

from random import Random

from watersmeet.model.plan import Leaf, Node, Plan, Tree
from watersmeet.model.query import Query


def random_plan(rng: Random, query: Query, kind: str | None = None) -> Plan:
    """A plan of the kind asked for ("mjoin", "bjtree" or "jtree"), or of any: tree and probe orders at random.

    >>> from watersmeet.testing.queries import random_query
    >>> query = random_query(Random(1), streams=4)
    >>> [random_plan(Random(2), query, kind).kind for kind in ("mjoin", "bjtree")]
    ['mjoin', 'bjtree']
    """
    kind = kind or rng.choice(("mjoin", "bjtree", "jtree", "jtree"))
    root = _tree(rng, list(query.aliases), kind)
    return Plan(Node((root,)) if isinstance(root, Leaf) else root)


def _tree(rng: Random, streams: list[str], kind: str) -> Tree:
    if len(streams) == 1:
        return Leaf(streams[0])
    streams = rng.sample(streams, len(streams))
    parts = {"mjoin": len(streams), "bjtree": 2}.get(kind) or rng.randint(2, len(streams))
    cuts = sorted(rng.sample(range(1, len(streams)), parts - 1))
    groups = [streams[a:b] for a, b in zip([0, *cuts], [*cuts, len(streams)], strict=True)]
    orders = [rng.sample([j for j in range(parts) if j != i], parts - 1) for i in range(parts)]
    return Node(tuple(_tree(rng, group, kind) for group in groups), tuple(map(tuple, orders)))
