"""Plan -> Program: each leaf's pipeline is its way from leaf to root, probing what its node's order says.

    ((R S) T):   dR: probe S; keep (R S); probe T; emit        dT: probe (R S); emit
    (R S T), R S cached in dT:   dR: probe S; update; probe T; emit        dT: lookup; probe S; probe R; create; emit

A probe uses a hash index on all attribute classes that link what is bound with its target, else an ordered index on one column
with inequalities, else it scans. What the index does not decide is checked on each match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from watersmeet.engine.program.layout import MAX_KEYS
from watersmeet.engine.store.cache_shape import LEAST
from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery, Comparison, Side
from watersmeet.model.cache_places import Place, Step, places, way
from watersmeet.model.expr import Compare, Expr, type_of
from watersmeet.model.graph import AttributeClass, JoinGraph
from watersmeet.model.plan import Leaf, Node, Plan, Tree, leaves, nodes
from watersmeet.model.program import (
    Check,
    Create,
    Drop,
    Emit,
    End,
    IndexSpec,
    Keep,
    Lookup,
    Op,
    Probe,
    Program,
    Source,
    StoreKind,
    StoreSpec,
    Update,
)  # fmt: skip
from watersmeet.model.types import Type

CACHE_BYTES: Final = 1 << 16  # of a cache whose plan does not say
_UPKEEP: Final = (Keep, Update, Drop)  # steps of arriving tuples alone


def exact(kind: Type) -> bool:
    """Whether int64 values of this type compare as the values do (else they are hashes, good only to find candidates)."""
    return kind.name != "STRING" and not (kind.name == "DECIMAL" and kind.precision > 18)


def compile_plan(bound: BoundQuery, plan: Plan) -> Program:
    if plan.streams != frozenset(bound.aliases):
        raise PlanError(
            f"the plan joins {', '.join(sorted(plan.streams))}, but the query {', '.join(sorted(bound.aliases))}"
        )
    if plan.keep and bound.preserved is not None:
        raise PlanError(
            "with a LEFT JOIN no row can be shed: one whose partner was given up would come out as unmatched"
            "\n  leave 'keep' out of the plan"
        )
    if plan.retention:
        raise PlanError("the engine runs plans exactly; it can't do 'retain' yet\n  leave it out of the plan")
    if plan.limited and (why := undirected(bound)):
        raise PlanError(f"{why}\n  leave 'allow' out of the plan")
    if plan.limited and plan.caches:
        raise PlanError("a probe that is left out would keep caches up\n  leave 'caches' or 'allow' out of the plan")
    return _Compiler(bound, plan).program()


def undirected(bound: BoundQuery) -> str:
    """Why no probe of this query may be left out; empty if it may."""
    if bound.preserved is not None:
        return "with a LEFT JOIN no probe can be left out: the row would come out as unmatched"
    if bound.query.emit == "CHANGES":
        return "with EMIT CHANGES no probe can be left out: a result might end that has never begun"
    return ""


@dataclass
class _Store:
    name: str
    kind: StoreKind
    leaves: tuple[int, ...]
    sources: dict[Source, int] = field(default_factory=dict)
    indexes: list[IndexSpec] = field(default_factory=list)
    witnesses: tuple[int, ...] = ()
    bytes: int = 0


class _Compiler:
    def __init__(self, bound: BoundQuery, plan: Plan) -> None:
        self.bound, self.plan, self.graph = bound, plan, JoinGraph.of(bound)
        self.number = {alias: i for i, alias in enumerate(bound.aliases)}
        self.columns: list[dict[Expr, int]] = [{} for _ in bound.aliases]
        self.late: list[Expr] = []
        self.decided: list[Comparison] = []
        self._settle_columns()
        self.stores = [_Store(a, self._kind(a), (i,)) for a, i in self.number.items()]
        self.of_node: dict[Node, int] = {}
        for node in nodes(plan.root):
            if node is not plan.root:
                self.of_node[node] = len(self.stores)
                self.stores.append(_Store(str(node), "state", tuple(self.number[leaf.stream] for leaf in leaves(node))))
        self.caches = places(bound, plan)
        self.of_cache: dict[tuple[object, ...], int] = {}
        for found in self.caches:
            if found.content not in self.of_cache:
                self.of_cache[found.content] = len(self.stores)
                self.stores.append(self._cache(found))

    def _settle_columns(self) -> None:
        """Which expressions the kernel sees, and which predicates it can't decide; depends on the query alone."""
        for group in self.graph.classes:
            for side in group.members:
                self._column(side)
            if not exact(type_of(group.members[0].expr)):
                first = group.members[0]
                self.late += [Compare("=", first.expr, other.expr) for other in group.members[1:]]
        for comparison in self.graph.comparisons:
            if exact(type_of(comparison.left.expr)):
                self.decided.append(comparison)
                self._column(comparison.left)
                self._column(comparison.right)
            else:
                self.late.append(Compare(comparison.op, comparison.left.expr, comparison.right.expr))
        self.late += self.graph.residuals

    def _kind(self, alias: str) -> StoreKind:
        window = self.bound.source(alias).window
        return "pool" if window and window.partition else "ring"

    def _column(self, side: Side) -> Source:
        leaf = self.number[side.stream]
        return leaf, self.columns[leaf].setdefault(side.expr, len(self.columns[leaf]))

    def program(self) -> Program:
        arrive: list[tuple[Op, ...]] = []
        leave: list[tuple[Op, ...]] = []
        emit = self.bound.query.emit
        for alias in self.bound.aliases:
            if self.bound.source(alias).static:
                arrive.append(())
                leave.append(())
                continue
            steps: list[Op] = list(self._way(alias))
            kept = [i for i, op in enumerate(steps) if isinstance(op, _UPKEEP)]
            if emit != "DSTREAM":
                arrive.append((*steps, Emit("insert")))
            else:
                arrive.append((*steps[: kept[-1] + 1], End()) if kept else ())
            deletes = (*(op for op in steps if not isinstance(op, _UPKEEP)), Emit("delete"))
            leave.append(deletes if emit != "ISTREAM" else ())
        fill = []
        for node, store in self.of_node.items():
            driver = next(leaves(node)).stream
            probes: list[Op] = []
            for step in way(self.plan, driver):
                if node.streams <= step.have:
                    break
                probes.append(self._probe(step.have, step.target))
            fill.append((self.number[driver], (*probes, Keep(store), End())))
        stores = tuple(
            StoreSpec(s.name, s.kind, s.leaves, tuple(s.sources), tuple(s.indexes), s.witnesses, s.bytes)
            for s in self.stores
        )
        return Program(
            self.bound, self.plan, tuple(map(tuple, self.columns)), stores, tuple(arrive), tuple(leave), tuple(fill),
            tuple(self.late),
        )  # fmt: skip

    def _way(self, alias: str) -> Iterable[Op]:
        """The steps of a tuple of `alias` from its leaf to the root."""
        yield from self._tell(alias, frozenset((alias,)))
        steps = list(way(self.plan, alias))
        for at, step in enumerate(steps):
            after = steps[at + 1] if at + 1 < len(steps) else None
            cache = next((c for c in self.caches if c.covers(step)), None)
            if cache is None:
                yield from self._guard(alias, step)
                yield self._probe(step.have, step.target)
            else:
                yield from self._cached(cache, step)
            have = step.have | step.target.streams
            yield from self._tell(alias, have)
            if after is not None and after.node is not step.node:
                yield Keep(self.of_node[step.node])

    def _cached(self, cache: Place, step: Step) -> Iterable[Op]:
        """One probe of a cached segment: between lookup and creation, and by what the value of its key depends on alone."""
        store, inside = self.of_cache[cache.content], step.have & cache.segment
        checks: tuple[Check, ...] = ()
        if step.number == cache.first or step.number == cache.first + len(cache.cache.segment) - 1:
            checks = tuple(self._after_lookup(cache))
        if step.number == cache.first:
            yield Lookup(store, tuple(self._member(c, cache.prefix) for c in cache.key), checks)
        yield self._probe(step.have, step.target, inside, cache.key)
        if step.number == cache.first + len(cache.cache.segment) - 1:
            yield Create(store, checks)

    def _after_lookup(self, cache: Place) -> Iterable[Check]:
        """What must hold between prefix and segment besides the key."""
        for group in self.graph.linking(cache.prefix, cache.segment):
            if group not in cache.key:
                yield Check("=", self._member(group, cache.prefix), self._member(group, cache.segment))
        for c in self.graph.between(cache.prefix, cache.segment):
            if c in self.decided:
                yield self._check(c)

    def _tell(self, alias: str, have: frozenset[str]) -> Iterable[Op]:
        """Updates of caches that are to be told of what is joined now."""
        for content, store in self.of_cache.items():
            cache = next(c for c in self.caches if c.content == content)
            if have == cache.told and alias in cache.tellers:
                key = tuple(self._member(c, cache.segment) for c in cache.key)
                yield Update(store, key, self.number[alias], cache.told != cache.segment)

    def _guard(self, alias: str, step: Step) -> Iterable[Op]:
        """Drops for caches that are looked up by what is probed next, and are told of it."""
        for cache in self.caches:
            if alias in cache.tellers and cache.guard == step.target.streams and step.have < cache.told:
                yield Drop(self.of_cache[cache.content], tuple(self._member(c, step.have) for c in cache.key))

    def _cache(self, cache: Place) -> _Store:
        segment = tuple(sorted(self.number[s] for s in cache.segment))
        witnesses = tuple(sorted(self.number[s] for s in cache.told - cache.segment))
        name = f"cache ({' '.join(self.bound.aliases[k] for k in segment)})"
        name += "".join(f" | {self.bound.aliases[k]}" for k in witnesses)
        name += f" by {', '.join(c.name for c in cache.key) or 'nothing'}"
        given = [c.cache.bytes for c in self.caches if c.content == cache.content]
        if any(b is not None and b < LEAST for b in given):
            raise PlanError(f"{cache} has {min(b for b in given if b)} bytes; it needs at least {LEAST}")
        return _Store(
            name, "cache", segment, {self._member(c, cache.segment): i for i, c in enumerate(cache.key)}, witnesses=witnesses,
            bytes=max(CACHE_BYTES if b is None else b for b in given),
        )  # fmt: skip

    def _member(self, group: AttributeClass, among: frozenset[str]) -> Source:
        """A column of the class in one of these streams."""
        return self._column(next(m for m in group.members if m.stream in among))

    def _probe(
        self,
        have: frozenset[str],
        target: Tree,
        inside: frozenset[str] | None = None,
        key: tuple[AttributeClass, ...] = (),
    ) -> Probe:
        """`inside`: in a cached segment, what of it is bound; all before it counts by the key alone."""
        store = self.number[target.stream] if isinstance(target, Leaf) else self.of_node[target]
        there, seen = target.streams, have if inside is None else inside
        equal: list[tuple[Source, Source]] = []
        for group in self.graph.linking(have, there):
            if group in key or group.streams & seen:
                here = self._member(group, have if group in key else seen)
                equal.append((here, self._member(group, there)))
        between = frozenset(self.graph.between(seen, there))
        compare = [
            c.seen_from(next(iter({c.left.stream, c.right.stream} & there))) for c in self.decided if c in between
        ]
        checks = []
        if str(target) in self.plan.scan:
            checks = [Check("=", a, b) for a, b in equal]
            equal = []
        elif not equal:
            ranged = self._ranged(store, compare)
            if ranged:
                return ranged
        checks += [Check("=", a, b) for a, b in equal[MAX_KEYS:]]
        checks += [self._check(c) for c in compare]
        used = equal[:MAX_KEYS]
        index = self._index(store, IndexSpec(tuple(self._stored(store, b) for _, b in used)))
        return Probe(store, index, tuple(a for a, _ in used), checks=tuple(checks))

    def _ranged(self, store: int, compare: list[Comparison]) -> Probe | None:
        """Use an ordered index on the target column that has most bounds; the other comparisons are checked."""
        bounded = [c for c in compare if c.op != "<>"]
        if not bounded:
            return None
        bounds: dict[Expr, set[str]] = {}
        for c in bounded:
            bounds.setdefault(c.left.expr, set()).add(c.op[0])
        best = max(bounds, key=lambda e: len(bounds[e]))
        low = next((c for c in bounded if c.left.expr == best and c.op[0] == ">"), None)
        high = next((c for c in bounded if c.left.expr == best and c.op[0] == "<"), None)
        column = self._stored(store, self._column((low or high or bounded[0]).left))
        rest = [c for c in compare if c is not low and c is not high]
        return Probe(
            store, self._index(store, IndexSpec((column,), ordered=True)),
            low=(self._column(low.right), low.op == ">") if low else None,
            high=(self._column(high.right), high.op == "<") if high else None,
            checks=tuple(self._check(c) for c in rest),
        )  # fmt: skip

    def _check(self, c: Comparison) -> Check:
        left, right = self._column(c.left), self._column(c.right)
        if c.op in (">", ">="):
            return Check("<" if c.op == ">" else "<=", right, left)
        return Check(c.op, left, right)

    def _stored(self, store: int, source: Source) -> int:
        """The column of a store that holds a leaf's column; a state gets it if it does not have it yet."""
        if store < len(self.number):
            return source[1]
        sources = self.stores[store].sources
        return sources.setdefault(source, len(sources))

    def _index(self, store: int, spec: IndexSpec) -> int:
        indexes = self.stores[store].indexes
        if spec not in indexes:
            indexes.append(spec)
        return indexes.index(spec)
