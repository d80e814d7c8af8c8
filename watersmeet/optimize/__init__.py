"""optimize: a plan within a CPU and a memory budget, and the best approximation when there is none.

    query + statistics ─ from_query ─▶ Problem ─ rates, cost ─▶ what any plan would cost
    Problem ─ mjoin_order, binary_tree, two_layer, pareto ─▶ qualified plans ─ policy ─▶ Plan
    none fits ─ bounds: proof or not ─▶ NoQualifiedPlan, or which_plan + drop_boxes ─▶ Plan that keeps less

`choose` ties it together: `optimize` gives the plan, `decide` the plan with its reasons, `explain_plan` the reasons
as text.
"""

from watersmeet.optimize.asked import Asked
from watersmeet.optimize.choose import Decision, decide, optimize
from watersmeet.optimize.explain import explain_decision, explain_plan

__all__ = ["Asked", "Decision", "decide", "explain_decision", "explain_plan", "optimize"]
