"""The one textual syntax of plans.

plan   := tree clause*
tree   := '(' input input+ ')'              input := name | tree
clause := 'orders' '{' input ':' input+ ; ... '}'      probe orders that differ from left to right
        | 'caches' '{' input ':' input+ ['|' input+] ['/' size] ; ... '}'   cached segments of an input's pipeline; those
                                                       whose partners they must have, if not all; bytes, such as 64 KB
        | 'keep'   '{' name ':' fraction ; ... '}'     drop boxes
        | 'allow'  ['newest'] '{' input '/' input ':' fraction ; ... '}'   probe allowances of half-way joins
        | 'scan'   '{' input ; ... '}'                 inputs that may have no index
        | 'retain' name '{' name ':' tuples ; ... '}'  what bounded state keeps
        | 'cells'  '{' attribute ':' share ; ... '}'   HyperCube shares
        | 'cost'   '{' 'cpu' ':' x ; 'memory' ':' x ; 'output' ':' x '}'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from watersmeet.errors import PlanError, QueryError
from watersmeet.model.budget import parse_bytes
from watersmeet.model.plan import Cache, Leaf, Node, Plan, Retention, Tree, default_orders, nodes
from watersmeet.model.query import MAX_SOURCES
from watersmeet.model.types import quoted

_T = TypeVar("_T")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[(){}:;/|]|[^\s(){}:;/|`]+)")


def plan_text(plan: Plan) -> str:
    parts = [str(plan.root)]

    def clause(word: str, entries: Iterable[str]) -> None:
        found = list(entries)
        if found:
            parts.append(f"{word} {{{'; '.join(found)}}}")

    orders = []
    for node in nodes(plan.root):
        for i, order in enumerate(node.orders):
            if order != default_orders(len(node.inputs))[i]:
                orders.append(f"{node.inputs[i]}: {' '.join(str(node.inputs[j]) for j in order)}")
    clause("orders", orders)
    clause("caches", map(str, plan.caches))
    clause("keep", (f"{quoted(s)}: {x!r}" for s, x in plan.keep))
    clause("allow newest" if plan.newest else "allow", (f"{a}/{b}: {x!r}" for a, b, x in plan.allow))
    clause("scan", plan.scan)
    if plan.retention:
        inside = "; ".join(f"{quoted(s)}: {k}" for s, k in plan.retention.tuples)
        parts.append(f"retain {quoted(plan.retention.policy)} {{{inside}}}")
    clause("cells", (f"{quoted(a)}: {n}" for a, n in plan.cells))
    estimates = (("cpu", plan.cpu), ("memory", plan.memory_tuples), ("output", plan.output_rate))
    clause("cost", (f"{n}: {x!r}" for n, x in estimates if x is not None))
    return " ".join(parts)


def parse_plan(text: str) -> Plan:
    return _Parser(text).plan()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, at = text, [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if not found:
                raise PlanError(f"can't read the plan at {text[at:][:20]!r}")
            self.tokens.append(found[1])
            at = found.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise PlanError(f"plan: expected {expected or 'more'!r}, found {token or 'the end'!r} in {self.text!r}")
        self.at += 1
        return token

    def name(self) -> str:
        token = self.take()
        if token in "(){}:;/|":
            raise PlanError(f"plan: expected a name, found {token!r} in {self.text!r}")
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def tree(self, depth: int = 0) -> Tree:
        if self.peek() != "(":
            return Leaf(self.name())
        if depth == MAX_SOURCES:
            raise PlanError(f"a plan has at most {MAX_SOURCES} joins within each other: so many streams can be joined")
        self.take("(")
        inputs = []
        while self.peek() != ")":
            inputs.append(self.tree(depth + 1))
        self.take(")")
        return Node(tuple(inputs))

    def number(self) -> float:
        token = self.take()
        try:
            return float(token)
        except ValueError:
            raise PlanError(f"plan: expected a number, found {token!r}") from None

    def count(self) -> int:
        value = self.number()
        if not value.is_integer():
            raise PlanError(f"plan: expected a whole number, found {value!r}")
        return int(value)

    def entries(self) -> Iterable[None]:
        self.take("{")
        while self.peek() != "}":
            yield None
            if self.peek() != "}":
                self.take(";")
        self.take("}")

    def inputs_after(self, mark: str) -> tuple[str, ...]:
        self.take(mark)
        found = []
        while self.peek() not in (";", "}", "|", "/", ""):
            found.append(str(self.tree()))
        return tuple(found)

    def cache(self) -> Cache:
        pipeline, segment = str(self.tree()), self.inputs_after(":")
        witnesses = self.inputs_after("|") if self.peek() == "|" else ()
        if self.peek() != "/":
            return Cache(pipeline, segment, witnesses)
        self.take("/")
        size = f"{self.take()} {self.take()}"
        try:
            return Cache(pipeline, segment, witnesses, parse_bytes(size))
        except QueryError:
            raise PlanError(f"plan: expected an amount of memory such as 64 KB, found {size!r}") from None

    def plan(self) -> Plan:
        root = self.tree()
        if isinstance(root, Leaf):
            raise PlanError(f"a plan begins with a join such as (A B C), not {self.text!r}")
        orders: dict[str, tuple[str, ...]] = {}
        made: dict[str, object] = {}
        while self.peek():
            word = self.name()
            if word in made or (word == "orders" and orders):
                raise PlanError(f"plan: '{word}' occurs twice")
            if word == "orders":
                for _ in self.entries():
                    at = str(self.tree())
                    orders[at] = self.inputs_after(":")
            elif word == "caches":
                made[word] = tuple(self.cache() for _ in self.entries())
            elif word in ("keep", "cells"):
                value: Callable[[], float] = self.number if word == "keep" else self.count
                made[word] = tuple((self.name(), self.colon(value)) for _ in self.entries())
            elif word == "allow":
                made["newest"] = self.peek() == "newest"
                if made["newest"]:
                    self.take()
                made[word] = tuple(self.allowance() for _ in self.entries())
            elif word == "scan":
                made[word] = tuple(str(self.tree()) for _ in self.entries())
            elif word == "retain":
                policy = self.name()
                made["retention"] = Retention(
                    policy, tuple((self.name(), self.colon(self.count)) for _ in self.entries())
                )
            elif word == "cost":
                fields = {"cpu": "cpu", "memory": "memory_tuples", "output": "output_rate"}
                for _ in self.entries():
                    name = self.name()
                    if name not in fields:
                        raise PlanError(f"plan: cost has no '{name}'; known: {', '.join(fields)}")
                    made[fields[name]] = self.colon(self.number)
            else:
                raise PlanError(
                    f"plan: unknown clause '{word}'; known: orders, caches, keep, allow, scan, retain, cells, cost"
                )
        return Plan(_ordered(root, orders), **made)  # type: ignore[arg-type]

    def colon(self, value: Callable[[], _T]) -> _T:
        self.take(":")
        return value()

    def allowance(self) -> tuple[str, str, float]:
        pipeline = str(self.tree())
        self.take("/")
        target = str(self.tree())
        self.take(":")
        return pipeline, target, self.number()


def _ordered(root: Node, orders: dict[str, tuple[str, ...]]) -> Node:
    """The tree with the probe orders of the `orders` clause put in."""
    left = dict(orders)

    def visit(tree: Tree) -> Tree:
        if isinstance(tree, Leaf):
            return tree
        names = [str(i) for i in tree.inputs]
        made = list(default_orders(len(names)))
        for i, name in enumerate(names):
            if name in left:
                wanted = left.pop(name)
                unknown = [w for w in wanted if w not in names]
                if unknown:
                    raise PlanError(f"orders: {unknown[0]} is not beside {name} in {tree}")
                made[i] = tuple(names.index(w) for w in wanted)
        return Node(tuple(visit(i) for i in tree.inputs), tuple(made))

    result = visit(root)
    assert isinstance(result, Node)
    if left:
        raise PlanError(f"orders: there is no pipeline {next(iter(left))} in {root}")
    return result
