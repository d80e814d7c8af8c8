"""Where the caches of a plan sit: what each is looked up by, who keeps it up, and whether that is enough.

A cache holds, for keys it has been asked for, the join of a *segment* X of a pipeline. It is looked up just before X. To stay right it must
be *told* of every new combination of X, and pipelines of X's members compute those anyway, if they join X before all else:

    Definition 3.2, prefix invariant: the pipeline of each member of X joins the other members of X first

Else a *globally-consistent* cache may serve, which need only hold what of X has partners in some *witnesses* Y: members of X and Y join
X and Y before all else, and what they find is told. It holds all combinations that could become part of a result.

Source: Babu, Munagala, Widom, Motwani, "Adaptive Caching for Continuous Queries", 3.2 and 6.
Departs from the paper in: a table never changes, so its pipeline need not join X first. Where the pipeline that looks up, R_i, is itself
among the witnesses, Section 6 loses results: r of R_i creates (u, {}) and leaves; s of X comes, meets no R_i, and so nobody is told; the
next r finds (u, {}). Here a tuple that meets no R_i drops the entry of its key. For that the key alone must decide who meets whom in
R_i, and must be known when R_i is probed. Where it is not so, there is no such cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.graph import AttributeClass, JoinGraph
from watersmeet.model.plan import Cache, Leaf, Node, Plan, Tree, nodes

MOST_KEYS: Final = 4  # classes that make up a key; what else links prefix and segment is checked after a lookup


@dataclass(frozen=True)
class Step:
    """One probe on a leaf's way to the root: what is joined so far (`have`) meets `target`, the `number`th of its node's order."""

    node: Node
    below: Tree
    number: int
    have: frozenset[str]
    target: Tree


def way(plan: Plan, alias: str) -> Iterator[Step]:
    """The probes of a tuple of `alias`, in order."""
    below: Tree = Leaf(alias)
    have = frozenset((alias,))
    for node in (n for n in nodes(plan.root) if alias in n.streams):
        for number, j in enumerate(node.orders[node.inputs.index(below)]):
            yield Step(node, below, number, have, node.inputs[j])
            have |= node.inputs[j].streams
        below = node


@dataclass(frozen=True)
class Place:
    """A cache of a plan, and what follows from the query.

    first: number of the segment's first probe in the pipeline's order in `node`.
    segment: the streams of X; told: those of X and Y, whose combinations it is told of.
    guard: the streams of the pipeline that looks up, if they are among the witnesses.
    key: classes of attributes that link what is bound before the segment with the segment.
    """

    cache: Cache
    node: Node
    first: int
    prefix: frozenset[str]
    segment: frozenset[str]
    told: frozenset[str]
    guard: frozenset[str]
    key: tuple[AttributeClass, ...]

    @property
    def content(self) -> tuple[object, ...]:
        """Caches of one content are one store, with one upkeep (Definition 4.1), in however many pipelines they are looked up."""
        return self.segment, self.told, self.guard, self.key

    @property
    def tellers(self) -> frozenset[str]:
        """The streams whose tuples keep it up."""
        return self.told - self.guard

    def covers(self, step: Step) -> bool:
        """Whether this cache answers in place of a probe."""
        return (
            step.node is self.node
            and str(step.below) == self.cache.pipeline
            and self.first <= step.number < self.first + len(self.cache.segment)
        )

    def __str__(self) -> str:
        return f"the cache of {' '.join(self.cache.segment)} in {self.cache.pipeline}'s pipeline"


def place(bound: BoundQuery, plan: Plan, cache: Cache) -> Place:
    """Find the place of a cache; PlanError says why there is none.

    >>> from watersmeet.lang import parse
    >>> from watersmeet.model.bind import bind
    >>> columns = "a BIGINT, ts TIMESTAMP"
    >>> text = ";".join(f"CREATE STREAM {r} ({columns}) FROM '{r}' FORMAT csv" for r in "RST")
    >>> query = parse(text + "; SELECT R.a FROM R [ROWS 1], S [ROWS 1], T [ROWS 1] WHERE R.a = S.a AND S.a = T.a")
    >>> plan = Plan.parse("(R S T) orders {S: T R; T: S R} caches {R: S T}")
    >>> [str(c) for c in place(bind(query), plan, plan.caches[0]).key]
    ['R.a = S.a = T.a']
    >>> place(bind(query), Plan.parse("(R S T) caches {R: S T}"), plan.caches[0])
    Traceback (most recent call last):
        ...
    watersmeet.errors.PlanError: the cache of S T in R's pipeline would not be kept up: S's pipeline does not join S, T before all else
    """
    graph = JoinGraph.of(bound)
    inputs = {str(i): (n, i) for n in nodes(plan.root) for i in n.inputs}
    node, below = inputs[cache.pipeline]
    order = [node.inputs[j] for j in node.orders[node.inputs.index(below)]]
    first = [str(t) for t in order].index(cache.segment[0])
    prefix = below.streams.union(*(t.streams for t in order[:first]))
    segment = frozenset[str]().union(*(t.streams for t in order[first : first + len(cache.segment)]))
    told = segment.union(*(inputs[w][1].streams for w in cache.witnesses))
    guard = below.streams if cache.pipeline in cache.witnesses else frozenset[str]()
    found = Place(cache, node, first, prefix, segment, told, guard, graph.linking(prefix, segment)[:MOST_KEYS])
    for alias in sorted(found.tellers):
        if not bound.source(alias).static:
            _is_told_by(found, plan, alias)
    if guard:
        _is_guarded(found, graph)
    return found


def _is_told_by(found: Place, plan: Plan, alias: str) -> None:
    steps = list(way(plan, alias))
    if found.told not in [*(s.have for s in steps), plan.streams]:
        raise PlanError(
            f"{found} would not be kept up: {alias}'s pipeline does not join {', '.join(sorted(found.told))} before all else"
        )
    for step in steps:
        if step.target.streams == found.guard and not all(c.streams & step.have for c in found.key):
            raise PlanError(
                f"{found} would not be kept up: {alias}'s pipeline meets {found.cache.pipeline} before it knows the key"
            )


def _is_guarded(found: Place, graph: JoinGraph) -> None:
    if graph.between(found.guard, found.tellers) or any(
        c not in found.key for c in graph.linking(found.guard, found.tellers)
    ):
        raise PlanError(
            f"{found} would not be kept up: its key does not decide alone who meets whom in {found.cache.pipeline}"
        )


def places(bound: BoundQuery, plan: Plan) -> tuple[Place, ...]:
    """The places of all caches of a plan; PlanError if one is not legal or two can't be together."""
    found = tuple(place(bound, plan, cache) for cache in plan.caches)
    for k, one in enumerate(found):
        for other in found[k + 1 :]:
            reason = conflict(bound, plan, one, other)
            if reason:
                raise PlanError(reason)
    return found


def conflict(bound: BoundQuery, plan: Plan, one: Place, other: Place) -> str | None:
    """Why two caches can't be in a plan together; None: they can."""
    if one.node is other.node and one.cache.pipeline == other.cache.pipeline:
        if one.first < other.first + len(other.cache.segment) and other.first < one.first + len(one.cache.segment):
            return f"{one} overlaps {other}"
    for kept, used in ((one, other), (other, one)):
        for alias in kept.tellers:
            if not bound.source(alias).static and _hides(plan, alias, kept, used):
                return f"{used} would hide from {kept} what {alias}'s pipeline must tell it"
    return None


def _hides(plan: Plan, alias: str, kept: Place, used: Place) -> bool:
    """Whether lookups in `used` keep the pipeline of `alias` from telling `kept` all that it must be told."""
    for step in way(plan, alias):
        if not used.covers(step):
            continue
        if step.number > used.first and step.have == kept.told:
            return True  # a hit skips the place where it would be told
        if kept.guard and step.target.streams == kept.guard:
            return True  # a hit skips the place where an entry would be dropped
        partners = used.told - used.segment - used.guard
        if step.have < kept.told and not partners <= kept.tellers:
            return True  # a hit may lack combinations that have partners nowhere, which `kept` must have
    return False
