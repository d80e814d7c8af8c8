"""JTree-Finder: all qualified plans, by keeping every sub-plan of every set of streams that is within the limits.

Exhaustive, and the number of plans explodes (26, 236, 2752, 39208 for 4 to 7 streams): it is the paper's baseline and
the yardstick for pareto.py, which finds the same non-dominated plans. Use that one.

costs: prices of the nodes. limits: CPU_avail and Mem_avail. max_plans: give up beyond so many sub-plans.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> costs = NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> [p.shape for p in jtree_finder(costs, Limits(cpu=35.9, memory=50_000))]
[((0, 1), 2, 3)]
>>> len(jtree_finder(costs, Limits()))
26

Source: qualified-plans 3.3, Algorithm 1.
Departs from the paper in: line 14 tests SubPlans[n], which line 11 never fills, so that it always returns -1: the
test is left out. It is unsound for smaller sizes too: a qualified plan need not contain a sub-plan of every size (a
bushy plan of 4 streams has none of 3). Cartesian products are part of the space, as printed.
Unclear in the paper, settled as: Generate_Plans gives each partition's node its best probe orders and combines all
sub-plans below.
"""

from __future__ import annotations

from itertools import combinations, product
from math import inf

from watersmeet.errors import PlanError
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.shape import partitions

MAX_PLANS = 200_000


def jtree_finder(costs: NodeCosts, limits: Limits, max_plans: int = MAX_PLANS) -> list[Candidate]:
    """All plans within the limits, cheapest CPU first."""
    n = len(costs.problem.streams)
    # 1: SubPlans[] = ∅    2: Add all input streams in U to SubPlans[1]
    sub_plans: dict[tuple[int, ...], list[Candidate]] = {
        (s,): [Candidate(costs.upkeep(1 << s), costs.holding(1 << s), s)] for s in range(n)
    }
    kept = n
    # 3: for pSize = 2 to |U|    4: for all V ⊆ U and |V| = pSize
    for size in range(2, n + 1):
        for streams in combinations(range(n), size):
            found: list[Candidate] = []
            # 5: PT ← Find all distinct partitions of V    6: for each partition PT[i] ∈ PT
            for parts in partitions(streams):
                if len(parts) == 1:
                    continue
                blocks = tuple(sum(1 << s for s in part) for part in parts)
                node_cpu = costs.node_cpu(blocks)
                own = costs.holding(sum(blocks)) if size < n else 0.0
                # 7: P = Generate_Plans(PT[i], SubPlans[])
                for chosen in product(*(sub_plans[tuple(sorted(part))] for part in parts)):
                    cpu = node_cpu + sum(c.cpu for c in chosen)
                    memory = own + sum(c.memory for c in chosen)
                    # 9: if (Memory(P_i) ≤ Mem_avail) AND (CPU(P_i) ≤ CPU_avail)   11, 13: add P_i
                    if limits.allow(cpu, memory) and cpu < inf:
                        found.append(Candidate(cpu, memory, tuple(c.shape for c in chosen)))
                        kept += 1
                        if kept > max_plans:
                            raise PlanError(f"JTree-Finder holds {max_plans:,} sub-plans and gives up: use pareto")
            sub_plans[streams] = found
    # 15: return Q
    return sorted(sub_plans[tuple(range(n))], key=lambda c: (c.cpu, c.memory))
