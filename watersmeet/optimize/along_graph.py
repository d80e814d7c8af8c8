"""Along the graph: the plan when nothing is known about the streams. An MJoin keeps least, and each tuple probes next what it joins.

>>> from watersmeet.lang import parse
>>> from watersmeet.model.bind import bind
>>> text = "CREATE STREAM {} (a BIGINT, b BIGINT, ts TIMESTAMP);"
>>> query = "SELECT R.a FROM R [ROWS 9], S [ROWS 9], T [ROWS 9] WHERE R.a = S.a AND S.b = T.b"
>>> str(along_graph(bind(parse("".join(map(text.format, "RST")) + query))))
'(R S T) orders {T: S R}'
"""

from __future__ import annotations

from watersmeet.model.bind import BoundQuery
from watersmeet.model.graph import JoinGraph
from watersmeet.model.plan import Leaf, Node, Plan


def along_graph(bound: BoundQuery, kind: str = "mjoin") -> Plan:
    """The MJoin, or with `kind="xjoin"` the binary tree, that joins each stream after one that it has a predicate with."""
    graph, aliases = JoinGraph.of(bound), list(bound.aliases)
    if kind != "xjoin":
        orders = tuple(tuple(aliases.index(s) for s in _from(graph, a)[1:]) for a in aliases)
        return Plan(Node(tuple(Leaf(a) for a in aliases), orders))
    return Plan.left_deep(_from(graph, aliases[0]))


def _from(graph: JoinGraph, start: str) -> list[str]:
    """All streams beginning with `start`, each after one that it joins where there is one, in FROM order."""
    order = [start]
    while len(order) < len(graph.streams):
        left = [s for s in graph.streams if s not in order]
        near = [s for s in left if graph.neighbours(s) & set(order)]
        order.append((near or left)[0])
    return order
