"""The claims of qualified-plans, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from experiments.experiment import Claim, Config, Tables
from experiments.qualified_plans.figures import by_seed
from experiments.qualified_plans.prediction import cpu_predicted, errors, prices, spearman, within_queries
from experiments.qualified_plans.sets import delivered, limits
from experiments.qualified_plans.sets import prices as paper_prices
from experiments.qualified_plans.settings import random_problem
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import pareto_front

TARGET = 0.8
GAIN = 0.02  # less is under the noise of these runs


def claims(config: Config, tables: Tables) -> Iterator[Claim]:
    yield from _model(config, tables)
    yield from _sets(config, tables)
    yield from _searches(config, tables)
    yield from _predictions(tables, config["prices"]["match"])


def _rows(tables: Tables, name: str, kind: str) -> list[dict[str, Any]]:
    return [r for r in tables["sets"] if str(r["set"]) == name and r["kind"] == kind]


def _mean(tables: Tables, name: str, kind: str, column: str) -> float:
    return float(np.mean([r[column] for r in _rows(tables, name, kind)]))


def _kinds(tables: Tables, name: str) -> list[str]:
    return list(dict.fromkeys(r["kind"] for r in tables["sets"] if str(r["set"]) == name))


def _use(tables: Tables, name: str) -> str:
    """CPU and memory of each plan, as executed: mean and range over seeds."""
    said = []
    for kind in _kinds(tables, name):
        rows = _rows(tables, name, kind)
        cpu, tuples = [r["cpu_priced"] for r in rows], [r["tuples"] for r in rows]
        said.append(
            f"{kind} {rows[0]['plan']} {np.mean(cpu):.4g} CPU ({min(cpu):.4g} to {max(cpu):.4g}), {np.mean(tuples):,.0f} tuples "
            f"({min(tuples):,} to {max(tuples):,})"
        )
    return "; ".join(said)


def _fitting(tables: Tables, name: str, budget: Limits) -> list[str]:
    """Plans within the budget by what the model foretells, which the executed means agree with."""
    return [
        kind
        for kind in _kinds(tables, name)
        if budget.allow(_rows(tables, name, kind)[0]["cpu_predicted"], _rows(tables, name, kind)[0]["tuples_predicted"])
    ]


def _model(config: Config, tables: Tables) -> Iterator[Claim]:
    groups = [(n, k) for n in config["sets"] for k in _kinds(tables, n)]
    off = {
        what: [abs(_mean(tables, n, k, seen) / _mean(tables, n, k, guess) - 1) for n, k in groups]
        for what, seen, guess in (
            ("CPU", "cpu_priced", "cpu_predicted"),
            ("memory", "tuples", "tuples_predicted"),
            ("results", "results_per_s", "results_predicted"),
        )
    }
    yield Claim(
        "2.2, 2.3, equations 1 to 5",
        "the model gives the CPU and memory that plans use",
        f"{len(groups)} plans executed, means over {len(config['seeds'])} seeds: "
        + "; ".join(f"{w} off by {np.median(x):.1%} in the median, {max(x):.1%} at most" for w, x in off.items()),
        bool(max(np.median(x) for x in off.values()) < 0.05),
        "counts scatter: a rich window of one stream serves all others that pass while it lasts.",
    )
    more = [n for n in config["sets"] if _mean(tables, n, "bjtree", "tuples") > _mean(tables, n, "mjoin", "tuples")]
    yield Claim(
        "2.4", "a bjtree always needs more memory than the mjoin", f"in {len(more)} of {len(config['sets'])} sets as executed",
        len(more) == len(config["sets"]),
    )  # fmt: skip
    lost = {scale: _not_binary(config, scale) for scale in (1.0, 20.0)}
    yield Claim(
        "5.1, Algorithm 2 line 9",
        "no plan needs less CPU than the best bjtree",
        f"random settings of 4 to 6 streams: with Table 3's prices another plan needs less in {lost[1.0]:.0%}, with inserts and "
        f"deletes 20 times as dear in {lost[20.0]:.0%}",
        lost[1.0] == 0 and lost[20.0] == 0,
        "2.4 says itself that keeping a state can cost more than recomputing it; the search must not end there.",
    )


def _not_binary(config: Config, scale: float) -> float:
    base = paper_prices(config)
    costs = replace(base, insert=base.insert * scale, delete=base.delete * scale)
    found = []
    for n in (4, 5, 6):
        for number in range(20):
            problem, _ = random_problem(config["random"], costs, {"streams": n, "seed": 0, "number": number})
            node_costs = NodeCosts(problem)
            least = pareto_front(node_costs)[0].cpu
            found.append(least < node_costs.cpu(best_binary_tree(node_costs)) * (1 - 1e-9))
    return float(np.mean(found))


def _sets(config: Config, tables: Tables) -> Iterator[Claim]:
    def course(name: str, kind: str, budget: Limits) -> dict[str, Any]:
        return delivered([r for r in tables["course"] if str(r["set"]) == name and r["kind"] == kind], budget)

    def both(name: str) -> tuple[Limits, Limits]:
        return limits(config, name, "printed"), limits(config, name, "budget")

    printed, budget = both("1")
    end = {k: course("1", k, budget)["results"][-1] for k in ("mjoin", "bjtree")}
    yield Claim(
        "4.2.1, set 1",
        "mjoin and bjtree are both qualified and have similar throughput; bjtree holds far more",
        f"{_use(tables, '1')}; results delivered: {end['mjoin']:,.0f} and {end['bjtree']:,.0f}",
        _fitting(tables, "1", printed) == ["mjoin", "bjtree"] and end["mjoin"] == end["bjtree"],
    )
    printed, budget = both("2")
    yield Claim(
        "4.2.2, set 2, as printed (1 s CPU)",
        "mjoin is not qualified, bjtree is",
        f"{_use(tables, '2')}; within 1 CPU and 15,000 tuples: {', '.join(_fitting(tables, '2', printed))}",
        _fitting(tables, "2", printed) == ["bjtree"],
        "at Table 3's prices mjoin needs 0.314: costs would have to be 3.18 to 3.36 times as high.",
    )
    for name, what in (("2", "with CPU 0.305"), ("2-far", "with rates 2, 200, 1000, σ .001, .01 and CPU 0.02")):
        _, budget = both(name)
        runs = {k: course(name, k, budget) for k in ("mjoin", "bjtree")}
        gain = runs["bjtree"]["results"][-1] / runs["mjoin"]["results"][-1] - 1
        qualified = _fitting(tables, name, budget)
        yield Claim(
            f"4.2.2, set {name}, {what}",
            "only bjtree is qualified, and its throughput is more than 100 % higher",
            f"within the budget: {', '.join(qualified)}; throughput {gain:.1%} higher; tuples waiting at the end: mjoin "
            f"{runs['mjoin']['waiting'][-1]:,.0f}, bjtree {runs['bjtree']['waiting'][-1]:,.0f}",
            qualified == ["bjtree"] and gain > 1.0,
            "" if gain > 1 else "the two plans differ by 5.5 % in CPU, and throughput can't differ by more than that.",
        )
    _, budget = both("2")
    runs = {k: course("2", k, budget) for k in ("mjoin", "bjtree")}
    yield Claim(
        "4.2.2, set 2, with CPU 0.305",
        "tuples pile up in mjoin's input queues, bjtree keeps up",
        f"tuples waiting at the end: mjoin {runs['mjoin']['waiting'][-1]:,.0f}, bjtree {runs['bjtree']['waiting'][-1]:,.0f}",
        runs["mjoin"]["waiting"][-1] > 5 * max(runs["bjtree"]["waiting"][-1], 1.0),
        "in this run; bjtree has only 2.5 % of CPU to spare, so a rich stretch of the streams delays it too.",
    )
    printed, budget = both("3")
    crashed = {k: course("3", k, budget)["crashed"] for k in ("mjoin", "bjtree")}
    yield Claim(
        "4.2.3, set 3",
        "CPU suffices for both; bjtree runs out of its 30 MB at about 50 s, mjoin stays at about 12 MB",
        f"{_use(tables, '3')}; with 1,500 tuples bjtree stops at {crashed['bjtree']} s, mjoin "
        + (f"at {crashed['mjoin']} s" if crashed["mjoin"] else "never"),
        crashed["mjoin"] is None and crashed["bjtree"] is not None and abs(crashed["bjtree"] - 50) < 10,
        "who fails and why is as claimed, but a window of 15 s is full after 15 s: memory can't still be growing at 50 s. How many "
        "bytes a tuple has is not given; 12 MB for mjoin's 600 tuples make 20 kB.",
    )
    printed, budget = both("4")
    yield Claim(
        "4.2.4, set 4, as printed (1 s CPU, 30 MB)",
        "neither mjoin nor bjtree is qualified, a jtree is",
        f"{_use(tables, '4')}; within 1 CPU: {', '.join(_fitting(tables, '4', replace(printed, memory=inf))) or 'none'}",
        _fitting(tables, "4", printed) == ["jtree"],
        "16 million results a second alone cost 35.2 CPU at Table 3's price of a match.",
    )
    for name in ("4", "4-short"):
        _, budget = both(name)
        runs = {k: course(name, k, budget) for k in ("mjoin", "bjtree", "jtree")}
        crash = runs["bjtree"]["crashed"]
        ends = {k: r["results"][-1] for k, r in runs.items()}
        ahead = ends["jtree"] / ends["mjoin"] - 1
        over = _rows(tables, name, "mjoin")[0]["cpu_predicted"] / budget.cpu - 1
        yield Claim(
            f"4.2.4, set {name}, with CPU {budget.cpu:g} and {budget.memory:,.0f} tuples",
            "only the jtree is qualified; bjtree runs out of memory, and jtree has a higher throughput than mjoin",
            f"{_use(tables, name)}; within the budget: {', '.join(_fitting(tables, name, budget))}; bjtree stops at {crash} s; "
            f"delivered: {', '.join(f'{k} {x:,.0f}' for k, x in ends.items())}",
            _fitting(tables, name, budget) == ["jtree"]
            and crash is not None
            and ahead > GAIN
            and ends["mjoin"] > ends["bjtree"],
            f"jtree delivers only {ahead:.2%} more than mjoin, which the model puts {over:.1%} over the budget: less than streams of "
            "one seed and another differ by. What is kept of the claim is the memory of the bjtree and the model's verdict."
            if ahead <= GAIN
            else "",
        )
    order = {n: [_mean(tables, n, k, "cpu_thread") for k in ("mjoin", "bjtree")] for n in config["sets"]}
    agree = [n for n, (m, b) in order.items() if b < m]
    yield Claim(
        "4.2, in CPU time of this engine",
        "bjtree needs less CPU than mjoin in all sets",
        "; ".join(f"set {n}: mjoin {1e3 * m:.3g} ms, bjtree {1e3 * b:.3g} ms a second" for n, (m, b) in order.items()),
        len(agree) == len(order),
        f"only in {', '.join(agree) or 'none'}. A match in the state of an inner node costs this engine several times what one in a window "
        "costs: its members are checked for expiry one by one, and it takes the kernel's general path. Where results outnumber "
        "all else, as in sets 1, 3 and 4, that outweighs what is saved. One price for both kinds of match can't show it.",
    )


def _searches(config: Config, tables: Tables) -> Iterator[Claim]:
    rows = tables["random"]
    binding = [r for r in rows if r["budget"] == "binding"]
    wide = [r for r in rows if r["budget"] == "wide"]
    finder = [r for r in rows if r["jtree_found"] != ""]
    same = [r["jtree_found"] == r["pareto_found"] for r in finder]
    yield Claim(
        "3.3, Algorithm 1",
        "JTree-Finder finds a qualified plan if there is one",
        f"as repaired it agrees with the exact Pareto search in {sum(same)} of {len(same)} searches",
        None if not same else False,
        "as printed, line 14 tests SubPlans[n], which line 11 never fills, and returns -1 always; stopping early at smaller sizes is "
        "unsound too. Repaired (no early stop) the claim is true.",
    )

    def mean(name: str, n: int) -> float:
        return float(np.mean([r[f"{name}_ms"] for r in binding if r["streams"] == n]))

    sizes = sorted({r["streams"] for r in rows})
    last, exact = config["random"]["jtree_finder_to"], config["random"]["exact_to"]
    yield Claim(
        "6.2, Figure 13a",
        "JTree-Finder is much slower than the polynomial searches, and gives out at small N",
        f"N = {last}: JTree-Finder {mean('jtree', last):.3g} ms, state-selection {mean('selection', last):.2g}, state-removal "
        f"{mean('removal', last):.2g}; N = {sizes[-1]}: selection {mean('selection', sizes[-1]):.2g}, removal "
        f"{mean('removal', sizes[-1]):.2g}, two-layer {mean('two_layer', sizes[-1]):.2g} ms. Only non-dominated sub-plans (Pareto): "
        f"N = {last}: {mean('pareto', last):.3g} ms, N = {exact}: {mean('pareto', exact):.3g} ms",
        mean("jtree", last) > 3 * max(mean("selection", last), mean("removal", last)),
    )
    exist = [r for r in binding if r["pareto_found"] == 1]
    for name, title in (("selection", "state-selection"), ("removal", "state-removal"), ("two_layer", "two-layer")):
        each = {
            n: by_seed([r for r in exist if r["streams"] == n], f"{name}_found")
            for n in sorted({r["streams"] for r in exist})
        }
        overall = 100 * float(np.mean([r[f"{name}_found"] for r in exist]))
        goal = 95.0 if name == "two_layer" else 100.0
        yield Claim(
            f"6.2, Figure 13b, {title}",
            "finds a qualified plan in 100 % of the settings where one exists"
            if goal == 100
            else "as effective as the exhaustive search (to reach: 95 % of binding budgets at each N)",
            f"binding budgets, {len(exist)} settings with a qualified plan: {overall:.1f} %; by N "
            + ", ".join(f"{n}: {np.mean(v):.0f} ({min(v):.0f} to {max(v):.0f} by seed)" for n, v in each.items()),
            all(float(np.mean([r[f"{name}_found"] for r in exist if r["streams"] == n])) * 100 >= goal for n in each),
            "budgets between the two extremes, where both miss: the paper does not say how tight its own were."
            if overall < goal
            else "",
        )
    there = {
        n: float(
            np.mean(
                [
                    r["pareto_found"]
                    for r in rows
                    if r["budget"] == "printed" and r["streams"] == n and r["pareto_found"] != ""
                ]
            )
        )
        for n in sizes
        if n <= config["random"]["exact_to"]
    }
    yield Claim(
        "6.1, 6.2, Figure 13c",
        "with CPU_avail = 1 s qualified plans exist for various N",
        "settings with a qualified plan, by N: " + ", ".join(f"{n}: {100 * x:.0f} %" for n, x in there.items()),
        all(x > 0 for x in there.values()),
        f"with W = {config['random']['window_s']:g} s and a sparse graph; W, memory and density are not given. Selectivities uniform in "
        "(0, 1) make more results than 1 CPU can emit.",
    )
    for n in (3, 5, 10):
        pairs = [r for r in wide if r["streams"] == n and r["selection_found"] == 1 and r["removal_found"] == 1]
        if not pairs:
            continue
        less = float(np.mean([r["selection_memory"] < r["removal_memory"] * (1 - 1e-9) for r in pairs]))
        more = float(np.mean([r["selection_cpu"] > r["removal_cpu"] * (1 + 1e-9) for r in pairs]))
        alike = float(np.mean([abs(r["selection_memory"] / r["removal_memory"] - 1) < 1e-4 for r in pairs]))
        yield Claim(
            f"6.3, Figure 14, N = {n}",
            "plans of state-selection hold less and need more CPU than those of state-removal"
            if n > 3
            else "the two are mixed",
            f"{len(pairs)} settings where both found one (wide budgets): selection holds less in {less:.0%}, needs more CPU in {more:.0%}; "
            f"the same memory in {alike:.0%}",
            (less > 0.5 and more > 0.5) if n > 3 else alike > 0.3,
            "" if n == 3 else "counted over settings where both found a plan.",
        )


def _predictions(tables: Tables, match: float) -> Iterator[Claim]:
    rows = tables["predicted"]
    guess, seen = cpu_predicted(tables), [r["cpu_least"] for r in rows]
    again = [r["cpu_most"] / r["cpu_least"] - 1 for r in rows]
    rho = spearman(guess, seen)
    pairs, alike = within_queries(tables, guess, seen)
    off, tail = errors(guess, seen)
    queries = len({(r["seed"], r["query"]) for r in rows})
    each = ", ".join(f"{n} {1e9 * x:.1f} ns" for n, x in prices(tables).items())
    yield Claim(
        "4.2.5, 'confirm our cost analysis': CPU time of this engine",
        f"plans are ranked by prediction as by measurement (to reach: Spearman {TARGET})",
        f"{len(rows)} random qualified plans of {queries} queries, prices {each}: Spearman {rho:.3f}; of "
        f"{pairs} pairs of plans of one query that differ by a quarter or more, {alike / max(pairs, 1):.0%} are ranked alike; error "
        f"{off:.0%} in the median, {tail:.0%} at the 90 % quantile; repeated runs differ by {np.median(again):.0%} in the median",
        rho >= TARGET,
        "" if rho >= TARGET else "see where it is off, below.",
    )
    for what, p, m in (
        ("state tuples", "tuples_predicted", "tuples"),
        ("results per second", "results_predicted", "results"),
    ):
        kept = [r for r in rows if r[p] * (r["seconds"] if m == "results" else 1) >= 100]
        x, y = [r[p] for r in kept], [r[m] for r in kept]
        off, tail = errors(x, y)
        yield Claim(
            f"4.2.5: {what}",
            "are as predicted",
            f"{len(kept)} plans (those with 100 or more to count): error {off:.1%} in the median, {tail:.1%} at the 90 % quantile; "
            f"Spearman {spearman(x, y):.3f}",
            off < 0.05,
            ""
            if off < 0.05
            else "too few were counted: they scatter by chance, and by what the streams of a seed happen to hold.",
        )
    ratio = [g / s for g, s in zip(guess, seen, strict=True)]
    middle = {
        what: float(
            np.median([x for x, r in zip(ratio, rows, strict=True) if ("(" in r["plan"][1:]) is inner] or [np.nan])
        )
        for what, inner in (("plans with inner states", True), ("mjoins", False))
    }
    trees, flat = middle.values()
    # nearly all of set 4's work is its last matches: in a state by the bjtree, in a window by the mjoin
    nanoseconds = {
        kind: 1e9 * match * _mean(tables, "4", kind, "cpu_thread") / _mean(tables, "4", kind, "cpu_priced")
        for kind in ("mjoin", "bjtree")
    }
    yield Claim(
        "4.2.5: where the prediction of CPU is off",
        "one price for a match serves windows and states alike",
        "predicted / measured, median: " + ", ".join(f"{what} {x:.2f}" for what, x in middle.items()),
        bool(abs(trees / flat - 1) < 0.1),
        ""
        if abs(trees / flat - 1) < 0.1
        else "a match in a state takes longer than one in a window (set 4, results only counted: about "
        f"{nanoseconds['bjtree']:.0f} ns against {nanoseconds['mjoin']:.0f}), and long windows miss the cache: neither is in four prices.",
    )
