"""Plans: one textual syntax that prints and parses; trees and clauses that make no sense are refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import watersmeet as wm
from watersmeet.model.plan import Cache, Leaf, Node, Plan, Retention, leaves, nodes
from watersmeet.testing import random_plan, random_query

NAMES = ("A", "B", "two words", "select", "orders", "keep", "back`tick", "semi;colon", "a/b", "(", "é")


def test_plan_prints_and_parses_back_whatever_is_in_it() -> None:
    for seed in range(500):
        rng = Random(seed)
        plan = _decorated(rng, random_plan(rng, random_query(rng)))
        assert Plan.parse(str(plan)) == plan, str(plan)


def test_plan_prints_and_parses_back_with_odd_names() -> None:
    for seed in range(300):
        rng = Random(seed)
        tree = _tree(rng, rng.sample(NAMES, rng.randint(2, len(NAMES))))
        plan = _decorated(rng, Plan(tree))
        assert Plan.parse(str(plan)) == plan, str(plan)


def _tree(rng: Random, names: list[str]) -> Node:
    inputs: list[Leaf | Node] = [Leaf(name) for name in names]
    while len(inputs) > 4:
        size = rng.randint(2, 3)
        inputs = [*inputs[size:], Node(tuple(inputs[:size]))]
    return Node(tuple(inputs))


def _decorated(rng: Random, plan: Plan) -> Plan:
    """The plan with every clause that it may have, each with some chance."""
    streams = sorted(plan.streams)
    caches, allow = [], []
    for node in nodes(plan.root):
        for i, order in enumerate(node.orders):
            names = [str(node.inputs[j]) for j in order]
            if rng.random() < 0.3:
                begin = rng.randrange(len(names))
                segment = tuple(names[begin : rng.randint(begin + 1, len(names))])
                others = [str(j) for j in node.inputs if str(j) not in segment]
                witnesses = tuple(rng.sample(others, rng.randrange(len(others) + 1)))
                caches.append(Cache(str(node.inputs[i]), segment, witnesses, rng.choice((None, 7, 64_000, 1 << 20))))
            if rng.random() < 0.3:
                allow.append((str(node.inputs[i]), names[0], rng.random()))
    return replace(
        plan, caches=tuple(caches), allow=tuple(allow), keep=tuple((s, rng.random()) for s in streams if rng.random() < 0.3),
        scan=tuple(str(leaf) for leaf in leaves(plan.root) if rng.random() < 0.3),
        retention=Retention("heeb", tuple((s, rng.randrange(100)) for s in streams)) if rng.random() < 0.3 else None,
        cells=((f"{streams[0]}.a", 4),) if rng.random() < 0.3 else (), cpu=rng.choice((None, rng.random() * 1e-7)),
        memory_tuples=rng.choice((None, 12.5)), output_rate=rng.choice((None, 1e300)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(A B)", "mjoin"),
        ("(A B C D)", "mjoin"),
        ("((A B) C)", "bjtree"),
        ("((A B) (C D))", "bjtree"),
        ("((A B) C D)", "jtree"),
        ("(((A B C) D) E)", "jtree"),
    ],
)
def test_plan_kind(text: str, kind: str) -> None:
    assert Plan.parse(text).kind == kind
    assert str(Plan.parse(text)) == text


def test_plan_probe_orders_are_from_left_to_right_unless_given() -> None:
    plan = Plan.parse("(A B C) orders {B: C A}")
    assert plan.root.orders == ((1, 2), (2, 0), (0, 1))
    assert str(plan) == "(A B C) orders {B: C A}"
    assert str(Plan.parse("(A B C) orders {B: A C}")) == "(A B C)"


def test_plan_shorthands() -> None:
    assert str(Plan.mjoin(["A", "B", "C"])) == "(A B C)"
    assert str(Plan.left_deep(["A", "B", "C", "D"])) == "(((A B) C) D)"
    assert Plan.parse("(A B) keep {A: 0.25}").drop == {"A": 0.25}
    assert Plan.parse("(A B)").with_estimates(0.5, 10, 3.0).cpu == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected"),
        ("A", "begins with a join"),
        ("((A) B)", "at least two inputs"),
        ("((A B))", "at least two inputs"),
        ("(A B", "the end"),
        ("(A B))", "expected|clause"),
        ("(A A)", "occurs twice"),
        ("((A B) A)", "occurs twice"),
        ("(A B) nonsense {A: 1}", "unknown clause 'nonsense'"),
        ("(A B) keep {C: 0.5}", "'C', which is not in the plan"),
        ("(A B) keep {A: 1.5}", "must be 0 to 1"),
        ("(A B) keep {A: half}", "expected a number"),
        ("(A B) keep {A: 0.5} keep {B: 0.5}", "occurs twice"),
        ("(A B C) orders {A: B}", "must name all other inputs once"),
        ("(A B C) orders {A: B B}", "must name all other inputs once"),
        ("(A B C) orders {A: B D}", "not beside"),
        ("(A B C) orders {D: A B}", "no pipeline D"),
        ("(A B C) caches {A: C B}", "no segment"),
        ("(A B C) caches {D: A}", "no pipeline D"),
        ("(A B C) caches {A: }", "no segment"),
        ("(A B C) caches {A: B | B}", "B is no input beside B"),
        ("(A B C) caches {A: B / 64 XB}", "such as 64 KB"),
        ("(A B C) caches {A: B / 0 KB}", "no memory"),
        ("(A B) allow {A/C: 0.5}", "no such half-way join"),
        ("(A B) allow {A/B: 2}", "must be 0 to 1"),
        ("(A B) scan {C}", "'C', which is not in the plan"),
        ("(A B) cells {a: 1.5}", "whole number"),
        ("(A B) cells {a: inf}", "whole number"),
        ("(A B) retain x {A: nan}", "whole number"),
        ("(A B) cost {x: 1}", "cost has no 'x'"),
        ("(A B) keep A", "expected"),
        ("(A `B", "can't read"),
    ],
)
def test_plan_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(wm.PlanError, match=message):
        Plan.parse(text)


def test_plan_text_that_is_noise_is_refused_and_never_breaks() -> None:
    rng = Random(1)
    whole = "((A B) C D) orders {C: D (A B)} caches {D: C} keep {A: 0.5} allow {A/B: 1.0} scan {A} retain heeb {A: 3}"
    for _ in range(2_000):
        cut = rng.randrange(len(whole))
        noise = "".join(rng.choice("(){}:;/` AB01.") for _ in range(rng.randint(0, 4)))
        text = whole[:cut] + noise + whole[rng.randrange(cut, len(whole)) :]
        try:
            plan = Plan.parse(text)
        except wm.PlanError:
            continue
        assert Plan.parse(str(plan)) == plan
