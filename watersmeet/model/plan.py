"""Plan: a join tree whose nodes have two or more inputs, a probe order for each input, and what is done to stay in budget.

One node over all streams is an MJoin; two inputs everywhere is a binary tree (bjtree, XJoin); all between is a jtree. The
text form (`str`, `Plan.parse`; grammar in plan_text.py) is the only plan syntax there is: tests, explain and logs use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from watersmeet.errors import PlanError
from watersmeet.model.budget import bytes_text
from watersmeet.model.types import quoted


@dataclass(frozen=True)
class Leaf:
    """A stream or table of FROM, by alias."""

    stream: str

    @property
    def streams(self) -> frozenset[str]:
        return frozenset((self.stream,))

    def __str__(self) -> str:
        return quoted(self.stream)


@dataclass(frozen=True)
class Node:
    """A join of two or more inputs. `orders[i]`: the other inputs, by position, in the order that a tuple of input i probes.

    A query over one stream has the plan (A): one node with one input, which probes nothing.

    The state of every node but the root is kept (a pinned, complete cache of the join below it).
    """

    inputs: tuple[Tree, ...]
    orders: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        n = len(self.inputs)
        if n == 0 or (n == 1 and not isinstance(self.inputs[0], Leaf)):
            raise PlanError(f"a join node needs at least two inputs: {self}")
        if sum(len(i.streams) for i in self.inputs) != len(self.streams):
            raise PlanError(f"a stream occurs twice in {self}")
        if not self.orders:
            object.__setattr__(self, "orders", default_orders(n))
        if len(self.orders) != n or any(
            sorted(o) != [j for j in range(n) if j != i] for i, o in enumerate(self.orders)
        ):
            raise PlanError(f"each probe order of {self} must name all other inputs once")

    @property
    def streams(self) -> frozenset[str]:
        return frozenset().union(*(i.streams for i in self.inputs))

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.inputs))})"


Tree: TypeAlias = Leaf | Node


def default_orders(n: int) -> tuple[tuple[int, ...], ...]:
    """Probe orders as written: all others from left to right."""
    return tuple(tuple(j for j in range(n) if j != i) for i in range(n))


def nodes(tree: Tree) -> Iterator[Node]:
    """The join nodes, children before parents."""
    if isinstance(tree, Node):
        for child in tree.inputs:
            yield from nodes(child)
        yield tree


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The leaves from left to right."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for child in tree.inputs:
            yield from leaves(child)


@dataclass(frozen=True)
class Cache:
    """A cache of the join of `segment` in the pipeline of tuples of `pipeline` (inputs of one node, by their text).

    witnesses: of the join only what has partners in these other inputs need be there (a globally-consistent cache).
    bytes: of memory; None: as much as the engine gives by default.
    """

    pipeline: str
    segment: tuple[str, ...]
    witnesses: tuple[str, ...] = ()
    bytes: int | None = None

    def __post_init__(self) -> None:
        if len(self.segment) < 1:
            raise PlanError(f"the cache in {self.pipeline}'s pipeline names no segment")
        if self.bytes is not None and self.bytes < 1:
            raise PlanError(f"the cache in {self.pipeline}'s pipeline has no memory")

    def __str__(self) -> str:
        text = f"{self.pipeline}: {' '.join(self.segment)}"
        if self.witnesses:
            text += f" | {' '.join(self.witnesses)}"
        return text if self.bytes is None else f"{text} / {bytes_text(self.bytes)}"


@dataclass(frozen=True)
class Retention:
    """What bounded state keeps: a policy by name and the tuples each stream may hold (none given: the policy divides)."""

    policy: str
    tuples: tuple[tuple[str, int], ...] = ()


def _beside(inputs: dict[str, Node], target: str) -> Iterator[Tree]:
    """The inputs of its node beside the one with this text."""
    if target in inputs:
        yield from (i for i in inputs[target].inputs if str(i) != target)


def _holds(tree: Tree, text: str) -> bool:
    """Whether the input with this text is the tree or lies below it."""
    return str(tree) == text or (isinstance(tree, Node) and any(_holds(i, text) for i in tree.inputs))


@dataclass(frozen=True)
class Plan:
    """How a query is run. allow: (pipeline, target, fraction): a tuple on its way from an input, or a stream below it, may probe the target
    only so often; newest: allowances go to the newest rows of each piece of input, else they are spread evenly.
    Estimates (`cpu`, `memory_tuples`, `output_rate`) are None where no statistics were at hand.

    >>> plan = Plan.parse("((A B) C D) orders {C: D (A B)} keep {A: 0.5}")
    >>> plan.kind, plan.drop
    ('jtree', {'A': 0.5})
    >>> Plan.parse(str(plan)) == plan
    True
    """

    root: Node
    caches: tuple[Cache, ...] = ()
    keep: tuple[tuple[str, float], ...] = ()
    allow: tuple[tuple[str, str, float], ...] = ()
    newest: bool = False
    retention: Retention | None = None
    scan: tuple[str, ...] = ()
    cells: tuple[tuple[str, int], ...] = ()
    cpu: float | None = None
    memory_tuples: float | None = None
    output_rate: float | None = None

    def __post_init__(self) -> None:
        streams = self.root.streams
        if len(streams) > 1 and any(len(n.inputs) == 1 for n in nodes(self.root)):
            raise PlanError(f"a join node needs at least two inputs: {self.root}")
        for stream, fraction in self.keep:
            if stream not in streams:
                raise PlanError(f"keep names '{stream}', which is not in the plan")
            if not 0 <= fraction <= 1:
                raise PlanError(f"keep of '{stream}' is {fraction}; it must be 0 to 1")
        inputs = {str(i): n for n in nodes(self.root) for i in n.inputs}
        for cache in self.caches:
            node = inputs.get(cache.pipeline)
            if node is None:
                raise PlanError(f"there is no pipeline {cache.pipeline} in {self.root}")
            at = [str(i) for i in node.inputs].index(cache.pipeline)
            order = [str(node.inputs[j]) for j in node.orders[at]]
            size = len(cache.segment)
            if not any(tuple(order[k : k + size]) == cache.segment for k in range(len(order))):
                raise PlanError(
                    f"{' '.join(cache.segment)} is no segment of {cache.pipeline}'s pipeline ({' '.join(order)})"
                )
            for witness in cache.witnesses:
                if witness in cache.segment or witness not in (*order, cache.pipeline):
                    raise PlanError(f"{witness} is no input beside {' '.join(cache.segment)} in {node}")
        for pipeline, target, fraction in self.allow:
            if pipeline not in inputs or not any(_holds(i, pipeline) for i in _beside(inputs, target)):
                raise PlanError(f"allow {pipeline}/{target}: no such half-way join in {self.root}")
            if not 0 <= fraction <= 1:
                raise PlanError(f"allow {pipeline}/{target} is {fraction}; it must be 0 to 1")
        for stream in self.scan:
            if stream not in inputs:
                raise PlanError(f"scan names '{stream}', which is not in the plan")

    @property
    def kind(self) -> str:
        if all(isinstance(i, Leaf) for i in self.root.inputs):
            return "mjoin"
        return "bjtree" if all(len(n.inputs) == 2 for n in nodes(self.root)) else "jtree"

    @property
    def limited(self) -> bool:
        """Whether allowances leave probes out."""
        return any(fraction < 1 for _, _, fraction in self.allow)

    def allowance(self, stream: str, target: frozenset[str]) -> float:
        """Which part of the tuples that come from an arrival of a stream may probe the input of these streams."""
        by_text = {str(i): i for n in nodes(self.root) for i in n.inputs}
        found = (x for a, b, x in self.allow if stream in by_text[a].streams and by_text[b].streams == target)
        return min(found, default=1.0)

    @property
    def drop(self) -> dict[str, float]:
        """Fraction kept per stream; streams not named are kept whole."""
        return dict(self.keep)

    @property
    def streams(self) -> frozenset[str]:
        return self.root.streams

    @property
    def bare(self) -> Plan:
        """The plan without its estimates."""
        return replace(self, cpu=None, memory_tuples=None, output_rate=None)

    def with_estimates(self, cpu: float, memory_tuples: float, output_rate: float) -> Plan:
        return replace(self, cpu=cpu, memory_tuples=memory_tuples, output_rate=output_rate)

    def __str__(self) -> str:
        from watersmeet.model.plan_text import plan_text

        return plan_text(self)

    @staticmethod
    def parse(text: str) -> Plan:
        from watersmeet.model.plan_text import parse_plan

        return parse_plan(text)

    @staticmethod
    def mjoin(streams: tuple[str, ...] | list[str]) -> Plan:
        """The MJoin that probes in the order given."""
        return Plan(Node(tuple(Leaf(s) for s in streams)))

    @staticmethod
    def left_deep(streams: tuple[str, ...] | list[str]) -> Plan:
        """(((A B) C) D): the binary tree that joins in the order given."""
        tree: Tree = Leaf(streams[0])
        for stream in streams[1:]:
            tree = Node((tree, Leaf(stream)))
        return Plan(Node((tree,)) if isinstance(tree, Leaf) else tree)
