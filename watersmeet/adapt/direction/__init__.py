"""Join direction: which probes to make when there is not CPU for all of them (jaqpot).

half_joins    a plan as half-way joins, with what each gives and costs
paths         input paths, φ, division of resources along them;  productivity: their table
discrete      the knapsack of whole paths;  grepp: the continuous one;  heuristics: five that look at half-way joins
coupled       trees whose states hold what probes put there, optimised by search
direct        one question, all policies: `direct(problem, plan, capacity, policy)`
"""

from __future__ import annotations

from watersmeet.adapt.direction.direct import POLICIES, Direction, direct

__all__ = ["POLICIES", "Direction", "direct"]
