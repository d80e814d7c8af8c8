"""Plan -> Program: each leaf's pipeline is its way from leaf to root, probing what its node's order says.

    ((R S) T):   dR: probe S; keep (R S); probe T; emit        dT: probe (R S); emit

A probe uses a hash index on all attribute classes that link what is bound with its target, else an ordered index on one column
with inequalities, else it scans. What the index does not decide is checked on each match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from watersmeet.engine.program.layout import MAX_KEYS
from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery, Comparison, Side
from watersmeet.model.expr import Compare, Expr, type_of
from watersmeet.model.graph import JoinGraph
from watersmeet.model.plan import Leaf, Node, Plan, Tree, leaves, nodes
from watersmeet.model.program import Check, Emit, End, IndexSpec, Keep, Op, Probe, Program, Source, StoreKind, StoreSpec
from watersmeet.model.types import Type


def exact(kind: Type) -> bool:
    """Whether int64 values of this type compare as the values do (else they are hashes, good only to find candidates)."""
    return kind.name != "STRING" and not (kind.name == "DECIMAL" and kind.precision > 18)


def compile_plan(bound: BoundQuery, plan: Plan) -> Program:
    if plan.streams != frozenset(bound.aliases):
        raise PlanError(
            f"the plan joins {', '.join(sorted(plan.streams))}, but the query {', '.join(sorted(bound.aliases))}"
        )
    asked = {"allow": plan.allow, "caches": plan.caches, "retain": plan.retention}
    given_up = [name for name, value in asked.items() if value]
    if given_up:
        raise PlanError(f"the engine runs plans exactly; it can't do '{given_up[0]}' yet\n  leave it out of the plan")
    return _Compiler(bound, plan).program()


@dataclass
class _Store:
    name: str
    kind: StoreKind
    leaves: tuple[int, ...]
    sources: list[Source] = field(default_factory=list)
    indexes: list[IndexSpec] = field(default_factory=list)


class _Compiler:
    def __init__(self, bound: BoundQuery, plan: Plan) -> None:
        self.bound, self.plan, self.graph = bound, plan, JoinGraph.of(bound)
        self.number = {alias: i for i, alias in enumerate(bound.aliases)}
        self.columns: list[list[Expr]] = [[] for _ in bound.aliases]
        self.late: list[Expr] = []
        self.decided: list[Comparison] = []
        self._settle_columns()
        self.stores = [_Store(a, self._kind(a), (i,)) for a, i in self.number.items()]
        self.of_node: dict[Node, int] = {}
        for node in nodes(plan.root):
            if node is not plan.root:
                self.of_node[node] = len(self.stores)
                self.stores.append(_Store(str(node), "state", tuple(self.number[leaf.stream] for leaf in leaves(node))))

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
        if side.expr not in self.columns[leaf]:
            self.columns[leaf].append(side.expr)
        return leaf, self.columns[leaf].index(side.expr)

    def program(self) -> Program:
        arrive: list[tuple[Op, ...]] = []
        leave: list[tuple[Op, ...]] = []
        deletes = self.bound.query.emit == "DSTREAM"
        for alias in self.bound.aliases:
            steps: list[Op] = list(self._way(alias))
            if self.bound.source(alias).static:
                arrive.append(())
                leave.append(())
                continue
            if not deletes:
                arrive.append((*steps, Emit()))
                leave.append(())
                continue
            kept = [i for i, op in enumerate(steps) if isinstance(op, Keep)]
            arrive.append((*steps[: kept[-1] + 1], End()) if kept else ())
            leave.append((*(op for op in steps if not isinstance(op, Keep)), Emit()))
        fill = []
        for node, store in self.of_node.items():
            driver = next(leaves(node)).stream
            probes: list[Op] = []
            for op in self._way(driver):
                if isinstance(op, Keep) and op.store == store:
                    break
                if not isinstance(op, Keep):
                    probes.append(op)
            fill.append((self.number[driver], (*probes, Keep(store), End())))
        stores = tuple(StoreSpec(s.name, s.kind, s.leaves, tuple(s.sources), tuple(s.indexes)) for s in self.stores)
        return Program(
            self.bound, self.plan, tuple(map(tuple, self.columns)), stores, tuple(arrive), tuple(leave), tuple(fill),
            tuple(self.late),
        )  # fmt: skip

    def _way(self, alias: str) -> Iterable[Op]:
        """The probes and keeps of a tuple of `alias` from its leaf to the root."""
        below: Tree = Leaf(alias)
        have = {alias}
        for node in self._path(alias):
            for j in node.orders[node.inputs.index(below)]:
                target = node.inputs[j]
                yield self._probe(frozenset(have), target)
                have |= target.streams
            if node is not self.plan.root:
                yield Keep(self.of_node[node])
            below = node

    def _path(self, alias: str) -> list[Node]:
        """The nodes above a leaf, lowest first."""
        return [n for n in nodes(self.plan.root) if alias in n.streams]

    def _probe(self, have: frozenset[str], target: Tree) -> Probe:
        store = self.number[target.stream] if isinstance(target, Leaf) else self.of_node[target]
        there = target.streams
        equal: list[tuple[Source, Source]] = []
        for group in self.graph.linking(have, there):
            here = next(m for m in group.members if m.stream in have)
            other = next(m for m in group.members if m.stream in there)
            equal.append((self._column(here), self._column(other)))
        compare = [
            c.seen_from(next(iter({c.left.stream, c.right.stream} & there)))
            for c in self.decided
            if c in self.graph.between(have, there)
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
        columns = [c.left.expr for c in bounded]
        best = max(columns, key=lambda e: len({c.op[0] for c in bounded if c.left.expr == e}))
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
        if source not in sources:
            sources.append(source)
        return sources.index(source)

    def _index(self, store: int, spec: IndexSpec) -> int:
        indexes = self.stores[store].indexes
        if spec not in indexes:
            indexes.append(spec)
        return indexes.index(spec)
