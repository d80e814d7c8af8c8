"""Response time: how long after the arrival of its last tuple a result is there, on average over results.

A plan is seen as an open queueing system whose operators share a processor. Of such systems (separable networks; a processor that
takes turns among all that is there) queueing theory knows that what needs D seconds of work by itself takes

    R = D / (1 − U)                  U: the utilization, which is the plan's CPU C(p) of equation 12

A result is made by the work on its last tuple. An arrival of stream k needs D_k, the CPU that arrivals of k cause divided by their
rate, and a part w_k of the results have their last tuple in k:

    R(p) = Σ_k w_k · D_k / (1 − U)

>>> from watersmeet.model.plan import Plan
>>> from watersmeet.model.statistics import Costs
>>> costs = Costs(probe=0.0005, match=0, insert=0, delete=0)
>>> example_1 = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}, costs)
>>> [round(1000 * response_time(example_1, Plan.parse(p).root), 3) for p in ("((A B) C)", "(A (B C))", "((A C) B)")]
[1.429, 1.628, 8.182]

cpu: processors. With a part of one (below 1) all work takes as much longer (3.3.3); with more than one U is the mean over all, as in
the bound of section 4, and the work on one tuple is not divided. Infinite where the plan does not keep up.

Source: static-optimization 3.4, which defines response time, says that it is "not directly modelled", and appeals to queueing theory.
Departs from the paper in: it holds that the plan of least utilization has the least response time. With windows that all hold
the same number of tuples, as in its Example 1, that is so: w_k ∝ λ_k / W_k is then ∝ λ_k, and R(p) = U / ((1 − U) Σλ). Otherwise it
need not be: what counts is the work on the tuples that complete results (`tests/optimize/test_response.py` has a case).
Unclear in the paper, settled as: work on a tuple ends with its last result; time in batches, on networks and in sinks is not counted.
"""

from __future__ import annotations

from math import inf

from watersmeet.model.plan import Leaf, Node, Tree
from watersmeet.optimize.cost import pipeline
from watersmeet.optimize.problem import Problem, members


def demands(problem: Problem, root: Node) -> dict[int, float]:
    """CPU seconds per second that the arrivals of each stream cause; together they are the plan's CPU."""
    number = {name: i for i, name in enumerate(problem.names)}
    found = dict.fromkeys(range(len(problem.streams)), 0.0)
    rates, costs = problem.rates, problem.prices(root)

    def kept(mask: int) -> None:
        every = rates.made(mask, mask)
        leaving = rates.leaving(mask) / every if every else 0.0
        for k in members(mask):
            found[k] += (costs.insert + costs.delete * leaving) * rates.made(1 << k, mask)

    def visit(tree: Tree) -> int:
        if isinstance(tree, Leaf):
            mask = 1 << number[tree.stream]
        else:
            blocks = tuple(visit(i) for i in tree.inputs)
            mask = sum(blocks)
            passes = problem.root_passes if tree is root else problem.inner_passes
            for i, order in enumerate(tree.orders):
                for k in members(blocks[i]):
                    probes, matches = pipeline(problem, blocks, i, order, arriving=1 << k)
                    found[k] += passes * (costs.probe * probes + costs.match * matches)
        if tree is not root:
            kept(mask)
        return mask

    visit(root)
    return found


def response_time(problem: Problem, root: Node, cpu: float = 1.0) -> float:
    """Seconds from the arrival of a result's last tuple to the result, on average; `cpu`: processors that the plan has."""
    work = demands(problem, root)
    load = sum(work.values()) / cpu
    if load >= 1:
        return inf
    everything = problem.all
    completed = {k: problem.rates.made(1 << k, everything) for k in work}
    results = sum(completed.values())
    if not results:
        return 0.0
    alone = sum(completed[k] / results * work[k] / problem.streams[k].rate for k in work if completed[k])
    return alone / min(cpu, 1.0) / (1 - load)
