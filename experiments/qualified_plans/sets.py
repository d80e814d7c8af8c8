"""The four experiment sets of Section 4: their plans, and what each takes in the steady state, executed.

CPU is measured twice: what the engine counted (matches, inserts, deletes), priced with Table 3, and CPU time of the thread here. The
paper's machine took the former; ours is some hundred times faster. What a plan delivers under a limit of either is in
under_limit.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from experiments.counting import steady
from experiments.experiment import Config, Part, Row, Setting, one_by_one
from experiments.streams import query, streams
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.cost import Estimate, Limits, price
from watersmeet.optimize.jtree_finder import jtree_finder
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.shape import Shape, inner


def prices(config: Config) -> Costs:
    return Costs(**config["prices"], source="qualified-plans, Table 3")


def edges(one: Config) -> dict[tuple[str, str], float]:
    return {(pair[0], pair[1]): s for pair, s in one["selectivity"].items()}


def problem(config: Config, name: str) -> Problem:
    one = config["sets"][name]
    windows = {s: r * one["window_s"] for s, r in one["rate"].items()}
    return Problem.of(one["rate"], windows, edges(one), prices(config))


def limits(config: Config, name: str, which: str) -> Limits:
    budget = config["sets"][name][which]
    return Limits(budget["cpu"], budget["tuples"])


def shapes(config: Config, name: str) -> dict[str, Shape]:
    """The best mjoin, the best binary tree, and for four streams the jtree that JTree-Finder finds between them."""
    costs = NodeCosts(problem(config, name))
    n = len(costs.problem.streams)
    found: dict[str, Shape] = {"mjoin": tuple(range(n)), "bjtree": best_binary_tree(costs)}
    for plan in jtree_finder(costs, Limits()):
        nodes = list(inner(plan.shape))
        if 1 < len(nodes) < n - 1:
            found["jtree"] = plan.shape
            break
    return found


def plan_of(config: Config, name: str, kind: str) -> tuple[Plan, Estimate]:
    costs = NodeCosts(problem(config, name))
    root = costs.tree(shapes(config, name)[kind])
    return Plan(root), price(costs.problem, root)


def text_of(one: Config) -> str:
    names = list(one["rate"])
    window = f"[RANGE {round(one['window_s'] * 1e6)} MICROSECONDS]"
    return query(names, dict.fromkeys(names, window), list(edges(one)))


def set_settings(config: Config) -> Iterator[Setting]:
    for name in config["sets"]:
        for kind in shapes(config, name):
            for seed in config["seeds"]:
                yield {"set": name, "kind": kind, "seed": seed}


def one_set(config: Config, setting: Setting) -> list[Row]:
    """The steady state of one plan: after the windows are full."""
    one = config["sets"][setting["set"]]
    plan, bill = plan_of(config, setting["set"], setting["kind"])
    warm, length = one["window_s"], one["seconds"] - one["window_s"]
    tables = streams(one["rate"], edges(one), one["seconds"], setting["seed"])
    done = steady(text_of(one), tables, plan, warm, length, gather=False)
    return [
        {
            "plan": str(plan.root), "cpu_predicted": bill.cpu, "cpu_priced": done.work(prices(config)) / length,
            "cpu_thread": done.cpu_s / length, "tuples_predicted": bill.memory, "tuples": done.tuples,
            "results_predicted": bill.output_rate, "results_per_s": done.results / length,
        }
    ]  # fmt: skip


SETS = Part("sets", set_settings, one_by_one(one_set))
