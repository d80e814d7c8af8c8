"""Claims of qualified-plans, Sections 2 and 4: the model, and the four experiment sets as they were executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.experiment import Claim, Config, Tables
from experiments.qualified_plans.sets import limits, prices
from experiments.qualified_plans.settings import random_problem
from experiments.qualified_plans.under_limit import ends, gain, qualified, span, tell
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import pareto_front

GAIN = 0.02  # less is under the noise of these runs


def set_claims(config: Config, tables: Tables) -> Iterator[Claim]:
    """The claims, in the order of the paper."""
    yield from _model(config, tables)
    yield from _set_1(config, tables)
    yield from _set_2(config, tables)
    yield from _set_3(config, tables)
    yield from _set_4(config, tables)
    yield from _cpu_time(config, tables)


def rows_of(tables: Tables, name: str, kind: str) -> list[dict[str, Any]]:
    return [r for r in tables["sets"] if str(r["set"]) == name and r["kind"] == kind]


def mean_of(tables: Tables, name: str, kind: str, column: str) -> float:
    return float(np.mean([r[column] for r in rows_of(tables, name, kind)]))


def _kinds(tables: Tables, name: str) -> list[str]:
    return list(dict.fromkeys(r["kind"] for r in tables["sets"] if str(r["set"]) == name))


def _use(tables: Tables, name: str) -> str:
    """CPU and memory of each plan, as executed: mean and range over seeds."""
    said = []
    for kind in _kinds(tables, name):
        rows = rows_of(tables, name, kind)
        cpu, tuples = [r["cpu_priced"] for r in rows], [r["tuples"] for r in rows]
        said.append(
            f"{kind} {rows[0]['plan']} {np.mean(cpu):.4g} CPU ({min(cpu):.4g} to {max(cpu):.4g}), {np.mean(tuples):,.0f} tuples "
            f"({min(tuples):,} to {max(tuples):,})"
        )
    return "at Table 3's prices, in the steady state: " + "; ".join(said)


def _model(config: Config, tables: Tables) -> Iterator[Claim]:
    groups = [(n, k) for n in config["sets"] for k in _kinds(tables, n)]
    off = {
        what: [abs(mean_of(tables, n, k, seen) / mean_of(tables, n, k, guess) - 1) for n, k in groups]
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
    more = [n for n in config["sets"] if mean_of(tables, n, "bjtree", "tuples") > mean_of(tables, n, "mjoin", "tuples")]
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
    base = prices(config)
    costs = replace(base, insert=base.insert * scale, delete=base.delete * scale)
    found = []
    for n in (4, 5, 6):
        for number in range(20):
            problem, _ = random_problem(config["random"], costs, {"streams": n, "seed": 0, "number": number})
            node_costs = NodeCosts(problem)
            least = pareto_front(node_costs)[0].cpu
            found.append(least < node_costs.cpu(best_binary_tree(node_costs)) * (1 - 1e-9))
    return float(np.mean(found))


def _with(config: Config, name: str, which: str = "budget") -> str:
    budget = limits(config, name, which)
    return f"CPU {budget.cpu:g} at Table 3's prices, {budget.memory:,.0f} tuples"


def _scaled(tables: Tables, name: str) -> str:
    """What the budget is in CPU time here."""
    rows = next(iter(ends(tables, name, "here").values()))
    scale, cpu = [1e3 * r["scale"] for r in rows], [1e3 * r["cpu"] for r in rows]
    return f"a second at Table 3's prices is {span(scale)} ms of CPU time here, the budget {span(cpu)} ms a second"


def _set_1(config: Config, tables: Tables) -> Iterator[Claim]:
    for view in ("table 3", "here"):
        found = ends(tables, "1", view)
        same = all(a["results"] == b["results"] for a, b in zip(found["mjoin"], found["bjtree"], strict=True))
        more = min(b["tuples"] / a["tuples"] for a, b in zip(found["mjoin"], found["bjtree"], strict=True))
        yield Claim(
            f"4.2.1, set 1, {_place(config, '1', view)}",
            "mjoin and bjtree are both qualified and have similar throughput; bjtree holds far more",
            f"{_told(tables, '1', view)}; bjtree holds at least {more:.1f} times as much",
            qualified(tables, "1", view) == ["mjoin", "bjtree"] and same and more > 1.5,
        )


def _place(config: Config, name: str, view: str) -> str:
    if view == "here":
        return "in CPU time of this engine"
    return f"{'as printed' if view == 'printed' else 'executed'} with {_with(config, name, 'printed' if view == 'printed' else 'budget')}"


def _told(tables: Tables, name: str, view: str) -> str:
    return f"{tell(tables, name, view)}; {_scaled(tables, name) if view == 'here' else _use(tables, name)}"


def _set_2(config: Config, tables: Tables) -> Iterator[Claim]:
    fit = qualified(tables, "2", "printed")
    yield Claim(
        f"4.2.2, set 2, {_place(config, '2', 'printed')}",
        "mjoin is not qualified, bjtree is",
        _told(tables, "2", "printed"),
        fit == ["bjtree"],
        "at Table 3's prices mjoin needs 0.314: costs would have to be 3.18 to 3.36 times as high.",
    )
    for name in ("2", "2-far"):
        for view in ("table 3", "here"):
            more = gain(tables, name, view, "bjtree", "mjoin")
            only = qualified(tables, name, view) == ["bjtree"]
            yield Claim(
                f"4.2.2, set {name}, {_place(config, name, view)}",
                "only bjtree keeps up, tuples pile up in mjoin's queues, and bjtree's throughput is more than 100 % higher",
                f"{_told(tables, name, view)}; bjtree's throughput is higher by {span([100 * g for g in more])} %",
                only and min(more) > 1.0,
                _why_2(tables, name, view),
            )


def _why_2(tables: Tables, name: str, view: str) -> str:
    if name != "2":
        return ""
    if view == "here":
        mjoin, bjtree = (1e3 * mean_of(tables, "2", k, "cpu_thread") for k in ("mjoin", "bjtree"))
        return (
            f"this engine takes {mjoin:.2g} ms a second for mjoin and {bjtree:.2g} for bjtree: nearly all work is the last "
            "match, which costs more in a state than in a window. No budget lets bjtree keep up and mjoin not; set 2-far is a case "
            "that shows here."
        )
    return (
        "the two plans differ by 5.5 % in CPU, hardly more than streams of one seed and another do: who falls behind, and how far, depends "
        "on the seed, and throughput can't differ by more than the CPU does."
    )


def _set_3(config: Config, tables: Tables) -> Iterator[Claim]:
    for view in ("table 3", "here"):
        found = ends(tables, "3", view)
        stops = [r["stopped_s"] for r in found["bjtree"] if r["stopped_s"] != ""]
        case = "mjoin" in qualified(tables, "3", view) and len(stops) == len(found["bjtree"])
        yield Claim(
            f"4.2.3, set 3, {_place(config, '3', view)}: who fails",
            "mjoin keeps up within the memory, bjtree runs out of it",
            f"{_told(tables, '3', view)}; mjoin holds {span([r['tuples'] for r in found['mjoin']])} tuples at the end",
            case,
        )
    stops = [r["stopped_s"] for r in ends(tables, "3", "table 3")["bjtree"] if r["stopped_s"] != ""]
    yield Claim(
        "4.2.3, set 3: when",
        "bjtree runs out of its 30 MB at about 50 s, mjoin stays at about 12 MB",
        f"with 20 kB a tuple bjtree stops after {span(stops) if stops else 'never'} s",
        bool(stops) and all(abs(s - 50) < 10 for s in stops),
        "a window of 15 s is full after 15 s: memory can't still be growing at 50 s. How many bytes a tuple has is not given; 12 MB for "
        "mjoin's 600 tuples make 20 kB.",
    )


def _set_4(config: Config, tables: Tables) -> Iterator[Claim]:
    yield Claim(
        f"4.2.4, set 4, {_place(config, '4', 'printed')}",
        "neither mjoin nor bjtree is qualified, a jtree is",
        _told(tables, "4", "printed"),
        qualified(tables, "4", "printed") == ["jtree"],
        "16 million results a second alone cost 35.2 CPU at Table 3's price of a match.",
    )
    for name in ("4", "4-short", "4-far"):
        for view in ("table 3", "here"):
            found = ends(tables, name, view)
            ahead = gain(tables, name, view, "jtree", "mjoin")
            crashed = all(r["stopped_s"] != "" for r in found["bjtree"])
            least = min(a["results"] - b["results"] for a, b in zip(found["mjoin"], found["bjtree"], strict=True))
            yield Claim(
                f"4.2.4, set {name}, {_place(config, name, view)}",
                "only the jtree keeps up; bjtree runs out of memory; jtree has a higher throughput than mjoin",
                f"{_told(tables, name, view)}; jtree's throughput is higher than mjoin's by {span([100 * g for g in ahead])} %",
                qualified(tables, name, view) == ["jtree"] and crashed and min(ahead) > GAIN and least > 0,
                _why_4(config, tables, name, view),
            )


def _why_4(config: Config, tables: Tables, name: str, view: str) -> str:
    if name == "4-far":
        return ""
    if view == "here":
        each = {k: 1e3 * mean_of(tables, name, k, "cpu_thread") for k in ("mjoin", "jtree", "bjtree")}
        return (
            "this engine takes "
            + ", ".join(f"{x:.3g} ms a second for {k}" for k, x in each.items())
            + ": the more of the last matches "
            "are found in states, the more CPU, so no budget lets the jtree keep up and mjoin not. Set 4-far is a case that shows here."
        )
    over = rows_of(tables, name, "mjoin")[0]["cpu_predicted"] / limits(config, name, "budget").cpu - 1
    if over > GAIN:
        return ""
    return (
        f"the model puts mjoin {over:.1%} over the budget and the jtree as little under it: less than streams of one seed and "
        "another differ by, so who keeps up is chance. What is left of the claim is the memory of the bjtree."
    )


def _cpu_time(config: Config, tables: Tables) -> Iterator[Claim]:
    order = {n: [mean_of(tables, n, k, "cpu_thread") for k in ("mjoin", "bjtree")] for n in config["sets"]}
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
