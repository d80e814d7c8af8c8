"""Two-layer: a qualified plan in polynomial time, if hill climbing from the mjoin or from the binary tree meets one.

Layer one finds the plan of least memory, an mjoin, and a plan of little CPU, the best binary tree, each by minimising
one thing. If either is within both limits, that is it. Layer two goes from the mjoin towards more states
(state_selection.py), then from the binary tree towards fewer (state_removal.py), then both ways with larger groups
(group_selection.py). The first qualified plan is taken.

costs: prices of the nodes. limits: CPU_avail, Mem_avail. aim: climb towards these tighter limits instead and keep
every qualified plan met, so that a policy has more to choose from.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> costs = NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> for cpu, memory in ((37, 5_000), (35.3, 80_000), (35.9, 50_000), (35.9, 20_000), (36, 3_000)):
...     found = two_layer(costs, Limits(cpu, memory))
...     print(found.by, found.qualified[0].shape if found.qualified else None)
mjoin (0, 1, 2, 3)
binary tree ((0, 1), (2, 3))
state-selection ((0, 1), 2, 3)
none None
none None

Source: qualified-plans 5.1, Algorithm 2.
Departs from the paper in: line 9 gives up when the binary tree needs too much CPU, but a jtree may need less (C_i +
C_d large: the test `binary_tree_is_not_least` has one): only bounds that prove it (bounds.py) end the search.
Group-selection is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.group_selection import Effort, excess, group_selection
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.state_removal import state_removal
from watersmeet.optimize.state_selection import state_selection


@dataclass(frozen=True)
class TwoLayer:
    """What was found: the qualified plans, by which step the first was found, and all plans that were looked at on the way."""

    qualified: tuple[Candidate, ...]
    by: str
    seen: tuple[tuple[str, Candidate], ...]


def two_layer(costs: NodeCosts, limits: Limits, aim: Limits | None = None) -> TwoLayer:
    """The first qualified plan, or all that are met on the way to `aim`."""
    seen: list[tuple[str, Candidate]] = []
    found: list[tuple[str, Candidate]] = []
    for by, plan in _search(costs, limits, aim or limits, seen):
        seen.append((by, plan))
        if limits.allow(plan.cpu, plan.memory):
            found.append((by, plan))
            if aim is None:
                break
    return TwoLayer(tuple(p for _, p in found), found[0][0] if found else "none", tuple(seen))


def _search(
    costs: NodeCosts, limits: Limits, aim: Limits, seen: list[tuple[str, Candidate]]
) -> Iterator[tuple[str, Candidate]]:
    # 2: P_mjoin = Find_MJoin_Ordering(JG)    3, 4: if it is within Mem_avail and CPU_avail return P_mjoin
    shape = tuple(range(len(costs.problem.streams)))
    mjoin = Candidate(costs.cpu(shape), costs.memory(shape), shape)
    yield "mjoin", mjoin
    # 5: else return -1: no plan needs less memory than the mjoin
    if not limits.allow(0.0, mjoin.memory):
        return
    # 6: P_bjtree = Find_BJTree_Ordering(JG)    7, 8: if it is within both return P_bjtree
    tree = best_binary_tree(costs)
    binary = Candidate(costs.cpu(tree), costs.memory(tree), tree)
    yield "binary tree", binary
    # 11: P = State_Selection(JG, CPU_avail, Mem_avail, P_mjoin)
    for plan in state_selection(costs, aim)[1:]:
        yield "state-selection", plan
    # 14: P = State_Removal(JG, CPU_avail, Mem_avail, P_bjtree)
    for plan in state_removal(costs, aim, tree)[1:]:
        yield "state-removal", plan
    effort = Effort()
    for start in (mjoin, min((p for _, p in seen), key=lambda p: excess(aim, p))):
        for plan in group_selection(costs, aim, start, effort)[1:]:
            yield "group-selection", plan
