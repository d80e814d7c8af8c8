"""Explain: a decision in words, for someone who has read none of the papers."""

from __future__ import annotations

from math import inf

from watersmeet.model.bind import BoundQuery
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Leaf, Node, Tree, default_orders, nodes
from watersmeet.model.query import Query
from watersmeet.model.statistics import Costs, Statistics
from watersmeet.optimize.asked import ANYTHING, Asked
from watersmeet.optimize.cells import copies
from watersmeet.optimize.choose import Decision, decide
from watersmeet.optimize.cost import Limits, Part, price
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.response import response_time

ALWAYS = (
    "rates are steady averages; bursts need head room",
    "predicates are independent of each other, and values are spread evenly",
)
SHOWN = 5  # plans looked at that are listed


def explain_plan(
    query: BoundQuery | Query, stats: Statistics | None = None, budget: Budget | None = None, asked: Asked = ANYTHING
) -> str:
    """What `optimize` would choose for the same arguments, and why."""
    return explain_decision(decide(query, stats, budget, asked))


def explain_decision(d: Decision, steps: bool = False) -> str:
    """The plan with what each part does and costs, what was turned down, what was given up, and what all that rests on."""
    sections = [_refused(d)] if d.root is None else [_headline(d), _tree(d), _orders(d)]
    sections += [_given_up(d), _cells(d), _others(d), _bounds(d)]
    if steps:
        sections.append("Steps\n" + "\n".join(f"  {s.name}: {s.text}" for s in d.steps))
    sections.append(_assumptions(d))
    return "\n\n".join(s for s in sections if s) + "\n"


def refusal(d: Decision) -> str:
    """Why there is no plan, what would have come nearest, and what helps."""
    lines = [_refused(d)]
    if d.relief:
        lines.append(f"  {d.relief}")
    cpu = min((p.cpu for p in d.nearest if p.memory <= d.limits.memory), default=None)
    helps = [
        "a larger BUDGET" + (f" (CPU {cpu:.3g} would do)" if cpu and cpu > d.limits.cpu else ""),
        "shorter windows",
    ]
    if d.overload.exact:
        helps.append("ON OVERLOAD SHED to give up some results")
    elif d.overload.terms:
        helps.append("lower minimum rates (AT LEAST)")
    return "\n".join([*lines, f"  what helps: {'; '.join(helps)}"])


def shedding(d: Decision) -> str:
    """What drop boxes keep, and what that leaves of the results."""
    assert d.kept is not None
    shares = ", ".join(f"{x:.0%} of {s}" for s, x in d.kept.keep if x < 1)
    whole = price(d.problem, d.root).output_rate if d.root is not None else 0.0
    part = f", about {d.kept.results / whole:.0%} of the results" if whole else ""
    return f"ON OVERLOAD SHED keeps {shares}{part}"


def _refused(d: Decision) -> str:
    lines = [f"no plan fits {_limits(d)}"]
    if d.bounds.proves(d.limits):
        lines.append(f"  proven: any plan needs {d.bounds}")
    elif d.exhaustive:
        lines.append("  proven: all plans were looked at")
    else:
        lines.append(f"  not proven: the search found none, but the lower bounds ({d.bounds}) do not rule one out")
    lines += [f"  nearest: {_one(d, p)}" for p in d.nearest[:1]]
    return "\n".join(lines)


def _limits(d: Decision) -> str:
    parts = []
    if d.limits.cpu < inf:
        parts.append(f"CPU {number(d.limits.cpu)}")
    if d.limits.memory < inf:
        parts.append(f"MEMORY {amount(d.limits.memory, d.problem.unit)}")
    return " and ".join(parts)


def _headline(d: Decision) -> str:
    plan, bill = d.plan, d.estimate
    assert plan is not None and bill is not None
    shape = {"mjoin": "one node, no intermediate results kept", "bjtree": "a binary tree", "jtree": "a mixed tree"}
    lines = [f"Plan {plan.root}: {shape[plan.kind]}"]
    lines.append(f"  CPU     {_use(bill.cpu, d.limits.cpu, 'cores', d)}")
    lines.append(f"  memory  {_use(bill.memory, d.limits.memory, d.problem.unit, d)}")
    if d.problem.unit != "tuples":
        lines.append(f"          {number(bill.memory_tuples)} tuples")
    lines.append(f"  output  {number(bill.output_rate)} results/s{_response(d)}")
    return "\n".join(lines)


def _response(d: Decision) -> str:
    """How long results take, where it is said how much CPU there is."""
    if d.budget is None or d.budget.cpu is None or d.root is None or not d.thinned.rates.output:
        return ""
    takes = response_time(d.thinned, d.root, d.budget.cpu)
    if takes == inf:
        return ", ever later: the plan does not keep up"
    return f", each {duration(takes)} after its last tuple on average (without batching)"


def _use(used: float, limit: float, unit: str, d: Decision) -> str:
    if limit == inf:
        return amount(used, unit)
    over = "" if Limits(limit).allow(used, 0.0) else ": MORE THAN THERE IS" + (f" ({d.relief})" if d.relief else "")
    return f"{amount(used, unit)} of {amount(limit, unit)} ({used / limit:.0%}){over}"


def _tree(d: Decision) -> str:
    bill = d.estimate
    assert bill is not None and d.root is not None
    parts = {id(p.tree): p for p in bill.parts}
    rows = [("part", "out/s", "kept", "CPU", "memory", "probes/s", "matches/s")]
    byte = d.problem.unit == "bytes"

    def visit(tree: Tree, depth: int) -> None:
        p: Part = parts[id(tree)]
        label = "  " * depth + (str(tree) if isinstance(tree, Leaf) else f"join {tree}")
        kept = "-" if tree is d.root else number(p.state)
        memory = "-" if tree is d.root else (amount(p.memory, "bytes") if byte else number(p.memory))
        work = ("", "") if isinstance(tree, Leaf) else (number(p.probes), number(p.matches))
        rows.append((label, number(p.rate), kept, number(p.cpu), memory, *work))
        if isinstance(tree, Node):
            for child in tree.inputs:
                visit(child, depth + 1)

    visit(d.root, 0)
    totals = amount(bill.memory, "bytes") if byte else number(bill.memory)
    rows.append(("total", "", number(bill.memory_tuples), number(bill.cpu), totals, "", ""))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]).rstrip()
        for r in rows
    ]
    legend = "  out/s: tuples per second that come out; kept: tuples held for later ones to meet; CPU: seconds of work per second"
    return "\n".join([*("  " + line for line in lines), legend])


def _orders(d: Decision) -> str:
    assert d.root is not None
    lines = []
    for node in nodes(d.root):
        if len(node.inputs) > 2 and node.orders != default_orders(len(node.inputs)):
            for tree, order in zip(node.inputs, node.orders, strict=True):
                lines.append(f"  a tuple of {tree} looks in {', then '.join(str(node.inputs[j]) for j in order)}")
    return "Probe orders\n" + "\n".join(lines) if lines else ""


def _given_up(d: Decision) -> str:
    lines = []
    if d.kept is not None:
        dropped = [f"{s} {x:.4g}" for s, x in d.kept.keep if x < 1]
        share = d.kept.results / d.kept.of if d.kept.of else 1.0
        lines.append(f"  drop boxes keep, of the tuples that arrive: {', '.join(dropped) or 'all'}")
        lines.append(f"  throughput kept: {number(d.kept.results)} of {number(d.kept.of)} results/s ({share:.1%})")
        cheapest = min((p for _, p in d.seen), key=lambda p: p.cpu)
        if d.chosen is not None and cheapest.shape != d.chosen.shape:
            lines.append(f"  {d.costs.tree(cheapest.shape)} is cheaper before dropping, but would keep no more")
    if d.retention is not None:
        held = ", ".join(f"{s} {k}" for s, k in d.retention.tuples)
        lines.append(f"  windows hold at most, by policy {d.retention.policy}: {held} tuples")
    if d.relief and not lines:
        lines.append(f"  {d.relief}")
    return "Given up\n" + "\n".join(lines) if lines else ""


def _cells(d: Decision) -> str:
    shares = d.problem.shares
    if not shares:
        return ""
    grid = " x ".join(f"{s.count} by {s.name}" for s in shares)
    each = ", ".join(f"{n} {c}" for n, c in copies(d.problem, shares).items())
    return f"Cells\n  {d.problem.cells} cells: {grid}\n  copies of each tuple: {each}; they are in the CPU and memory above"


def _others(d: Decision) -> str:
    """The other plans: those that fit and were not preferred, then the nearest misses."""
    names: dict[object, str] = {}
    plans: dict[object, Candidate] = {}
    for by, plan in d.seen:
        names.setdefault(plan.shape, by)
        plans.setdefault(plan.shape, plan)
    if d.chosen is not None:
        plans.pop(d.chosen.shape, None)
    fitting = [p for p in plans.values() if d.limits.allow(p.cpu, p.memory)]
    fitting.sort(key=lambda p: p.memory if d.policy == "least_memory" else p.cpu)
    misses = [plans[p.shape] for p in d.nearest if p.shape in plans]
    always = [
        p for p in plans.values() if names[p.shape] in ("mjoin", "binary tree") and p not in misses + fitting[:SHOWN]
    ]
    lines = []
    for plan in [*fitting[:SHOWN], *misses, *(p for p in always if p not in fitting)]:
        lines.append(f"  {_one(d, plan)} [{names[plan.shape]}]")
    if len(fitting) > SHOWN:
        lines.append(f"  and {len(fitting) - SHOWN} more that fit")
    title = "Other plans" if not misses and not always else "Other plans, and the nearest misses"
    return f"{title}\n" + "\n".join(lines) if lines else ""


def _one(d: Decision, p: Candidate) -> str:
    use = f"{d.costs.tree(p.shape)} needs {number(p.cpu)} CPU and {amount(p.memory, d.problem.unit)}"
    why = []
    if not Limits(d.limits.cpu).allow(p.cpu, 0.0):
        why.append(f"{p.cpu / d.limits.cpu - 1:.1%} too much CPU")
    if not Limits(memory=d.limits.memory).allow(0.0, p.memory):
        why.append(f"{p.memory / d.limits.memory - 1:.1%} too much memory")
    if not why and d.chosen is not None:
        more = [
            w for w, a, b in (("CPU", p.cpu, d.chosen.cpu), ("memory", p.memory, d.chosen.memory)) if a > b * (1 + 1e-9)
        ]
        why.append(f"fits; more {' and '.join(more)}" if more else "fits")
    return f"{use}: {', '.join(why)}"


def _bounds(d: Decision) -> str:
    if d.root is None:
        return ""
    if d.qualified:
        found = "all plans were considered" if d.exhaustive else "found by hill climbing: a better plan may exist"
    else:
        found = (
            "so none fits"
            if d.bounds.proves(d.limits)
            else "all were considered"
            if d.exhaustive
            else "none was found that fits"
        )
    return f"Any plan needs {d.bounds}; {found}"


def _assumptions(d: Decision) -> str:
    c: Costs = d.problem.costs
    source = "default: `watersmeet calibrate` measures this machine's" if c.source == Costs().source else c.source
    prices = f"prices ({source}): " + ", ".join(
        f"{n} {x * 1e9:.4g} ns"
        for n, x in (("probe", c.probe), ("match", c.match), ("insert", c.insert), ("delete", c.delete))
    )
    if d.problem.grouped and c.together != 1:
        prices += f"; in a plan of one node, where rows go in groups, {c.together:.0%} of that"
    return "Assumptions\n" + "\n".join(f"  - {a}" for a in (*d.assumptions, prices, *ALWAYS))


def number(value: float) -> str:
    """Four digits that say something, with thousands set apart.

    >>> number(202500.0), number(0.461806), number(3.0), number(1234.56), number(0.0)
    ('202,500', '0.4618', '3', '1,235', '0')
    """
    if value == inf:
        return "infinite"
    if value and abs(value) < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def amount(value: float, unit: str) -> str:
    """A number with its unit; bytes in kB, MB, GB.

    >>> amount(64e6, "bytes"), amount(1500, "tuples")
    ('64 MB', '1,500 tuples')
    """
    if unit != "bytes":
        return f"{number(value)} {unit}"
    for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{number(value / size)} {name}"
    return f"{number(value)} B"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(0.00142857), duration(2.5), duration(3.4e-7)
    ('1.429 ms', '2.5 s', '0.34 µs')
    """
    for name, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{number(seconds / size)} {name}"
    return f"{number(seconds / 1e-6)} µs"


__all__ = ["explain_decision", "explain_plan", "refusal"]
