"""The coupled model: what a tree with expiring states gives when only some probes are made, and the best choice of them.

A state of an inner node holds what probes have put there. If fewer probes are made, it holds less, and whoever probes
it finds less. With x_{k,v} the part of stream k's combinations that are let into node v:

    g_k(v) = g_k(i) · x_{k,v} · Π s(t)        of the combinations over v that k completes, those that are made
    s(v)   = Σ_k share_k(v) · g_k(v)          of the combinations over v that are alive, those that are in its state
    output = Σ_k r_k(root) · g_k(root),       CPU = fixed + Σ_v Σ_k r_k(i) · g_k(i) · x_{k,v} · c_i(s)

i is the input of v that k is in, t are the inputs it probes, s = 1 for windows. share_k(v) is the part of the live
combinations over v whose youngest member is of k, as ages are even over T = W / λ:

    share_k = ∫ 1/T_k · Π_{i ≠ k} (1 − a/T_i) da      from 0 to the shortest T

GrePP takes the states for full. In a tree it can give all to C in ((A B) C), forecast 500 results a second, and get
none, since nobody fills (A B). In an MJoin there are no inner states, both models are the same, and GrePP is optimal.

Output and CPU are sums of products without any x twice, so each is linear in each x. The search takes the gradient of
both and solves the linear problem in a box around the point, which is a continuous knapsack (fill in falling order of
∂output/∂CPU); if that gives more, it moves there, else it halves the box. It starts from the answers of all other
policies, so it is never below them in this model; there may be other local optima.

>>> from watersmeet.adapt.direction.half_joins import join_tree
>>> from watersmeet.model.plan import Plan
>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> rates, joins = {"A": 100, "B": 100, "C": 50}, {("A", "B"): 0.01, ("B", "C"): 0.01}
>>> p = Problem.of(rates, 1000, joins, Costs(0.001, 0, 0, 0))
>>> model = Coupled(join_tree(p, Plan.parse("((A B) C)")))
>>> whole = model.at(np.ones(model.count))
>>> round(whole.output_rate), round(whole.cpu, 3)
(25000, 2.25)
>>> only_c = [1.0 if stream == "C" else 0.0 for stream, _ in model.places]
>>> model.at(np.array(only_c)).output_rate
0.0

Source: none; jaqpot 4.1 assumes full states (docs/internals/papers.md, clash 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.adapt.direction.assignment import Assignment
from watersmeet.adapt.direction.half_joins import HalfJoin, JoinTree

LEAST_GAIN = 1e-6  # of the output: less is no progress
LEAST_BOX = 1 / 64
STEPS = 60  # of the search from one start
OVER = 1e-12  # of the capacity: rounding


@dataclass(frozen=True)
class Value:
    """What a choice of probes gives: results and CPU seconds per second."""

    output_rate: float
    cpu: float


class Coupled:
    """The model of one plan. places: (stream, input of the half-way join) of each x, in the order of the vectors."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        moving = {w.stream for w in tree.windows if w.rate}
        self.places: list[tuple[str, str]] = []
        self.at_half: list[Any] = []  # for each half-way join the numbers of its x
        for half in tree.halves:
            mine = [(s, half.input) for s in half.streams if s in moving]
            self.at_half.append(np.arange(len(self.places), len(self.places) + len(mine)))
            self.places += mine
        self.count = len(self.places)
        self.number = {place: i for i, place in enumerate(self.places)}
        rate = {(w.stream, w.stream): w.rate for w in tree.windows}
        self.rates = np.zeros(self.count)  # r_k(i): what comes if all probes are made
        self.after: list[Any] = []  # for each half-way join where its streams' x at the next one are, −1: at the root
        for half, places in zip(tree.halves, self.at_half, strict=True):
            for i in places:
                stream = self.places[i][0]
                self.rates[i] = rate[stream, half.input]
                rate[stream, half.node] = self.rates[i] * half.productivity
        for half, places in zip(tree.halves, self.at_half, strict=True):
            self.after.append(
                np.array([self.number.get((self.places[i][0], half.node), -1) for i in places], dtype=int)
            )
        self.shares = _shares(tree)

    def at(self, x: Any) -> Value:
        """Output and CPU of a choice."""
        return self._forward(x)[0]

    def tidied(self, x: Any) -> Any:
        """The same choice, with 1 where nothing comes."""
        return np.where(self._forward(x)[1] > 0, x, 1.0)

    def _forward(self, x: Any) -> tuple[Value, Any, dict[str, float]]:
        """The value, g by place, and s by state."""
        g, full = np.ones(self.count), {w.stream: 1.0 for w in self.tree.windows}
        full |= {node: 0.0 for node, _ in self.tree.states}
        cpu, output = self.tree.fixed, 0.0
        for half, places, after in zip(self.tree.halves, self.at_half, self.after, strict=True):
            let_in = g[places] * x[places]
            made, cost = _chain(half, full)
            flow = float(self.rates[places] @ let_in)
            cpu += flow * cost
            if half.node == self.tree.root:
                output += flow * half.productivity * made
            else:
                g[after] = let_in * made
                full[half.node] += float(self.shares[half.node, half.input] @ let_in) * made
        return Value(output * self.tree.residual, cpu), g, full

    def gradients(self, x: Any) -> tuple[Value, Any, Any]:
        """The value, ∂output/∂x and ∂CPU/∂x: the sums of products above, followed backwards."""
        value, g, full = self._forward(x)
        found = []
        for of_output in (True, False):
            dx, dg = np.zeros(self.count), np.zeros(self.count)
            ds = dict.fromkeys(full, 0.0)
            for half, places, after in zip(
                reversed(self.tree.halves), reversed(self.at_half), reversed(self.after), strict=True
            ):
                let_in = g[places] * x[places]
                made, cost = _chain(half, full)
                d_let_in = np.zeros(len(places))
                d_made = d_cost = 0.0
                if half.node != self.tree.root:
                    back = dg[after] + self.shares[half.node, half.input] * ds[half.node]
                    d_let_in += back * made
                    d_made += float(back @ let_in)
                elif of_output:
                    worth = self.rates[places] * (half.productivity * self.tree.residual)
                    d_let_in += worth * made
                    d_made += float(worth @ let_in)
                if not of_output:
                    d_let_in += self.rates[places] * cost
                    d_cost += float(self.rates[places] @ let_in)
                dx[places], dg[places] = d_let_in * g[places], d_let_in * x[places]
                for step in half.steps:
                    if step.target in self.tree.operators:
                        d_chain = _chain_gradient(half, full, step.target)
                        ds[step.target] += d_made * d_chain[0] + d_cost * d_chain[1]
            found.append(dx)
        return value, found[0], found[1]

    def vector(self, given: Assignment) -> Any:
        """The x of an assignment: tuples let in, as a part of those that come."""
        x, come = np.zeros(self.count), dict[tuple[str, str], float]()
        come |= {(w.stream, w.stream): w.rate for w in self.tree.windows}
        allowed = {(s, at): tuples for s, at, tuples in given.allowed}
        for half, places in zip(self.tree.halves, self.at_half, strict=True):
            for i in places:
                stream = self.places[i][0]
                here, let_in = come[stream, half.input], allowed.get((stream, half.input), 0.0)
                x[i] = min(let_in / here, 1.0) if here else 1.0
                come[stream, half.node] = here * x[i] * half.productivity
        return x

    def scaled(self, x: Any, capacity: float) -> Any:
        """The largest multiple of x, at most x itself, that fits the capacity."""
        if self.at(x).cpu <= capacity * (1 + OVER):
            return x
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.at(x * middle).cpu <= capacity else (low, middle)
        return x * low

    def best(self, capacity: float, starts: Iterable[Any]) -> Any:
        """The best x found: a search from every start, from all at the same part, and from full states with thin roots."""
        at_root = np.array([self.tree.by_input[at].node == self.tree.root for _, at in self.places])
        own = [np.ones(self.count), np.where(at_root, 0.05, 1.0)]
        found = [self._climb(self.scaled(x, capacity), capacity) for x in (*starts, *own)]
        return max(found, key=lambda x: self.at(x).output_rate)

    def _climb(self, x: Any, capacity: float) -> Any:
        box = 0.5
        for _ in range(STEPS):
            value, d_output, d_cpu = self.gradients(x)
            if value.cpu > capacity * (1 + OVER):  # windows alone are above it
                return np.zeros(self.count)
            low, high = np.maximum(x - box, 0), np.minimum(x + box, 1)
            left = capacity - value.cpu + float(d_cpu @ (x - low))
            with np.errstate(divide="ignore", invalid="ignore"):
                worth = np.where(d_output > 0, d_output / d_cpu, -1.0)
            to = low.copy()
            for i in np.argsort(-worth, kind="stable"):
                if worth[i] < 0 or left <= 0:
                    break
                to[i] = min(high[i], low[i] + left / d_cpu[i]) if d_cpu[i] > 0 else high[i]
                left -= d_cpu[i] * (to[i] - low[i])
            to = self.scaled(to, capacity)
            if self.at(to).output_rate > value.output_rate * (1 + LEAST_GAIN):
                x = to
            else:
                box /= 2
                if box < LEAST_BOX:
                    break
        return x


def _chain(half: HalfJoin, full: dict[str, float]) -> tuple[float, float]:
    """What is left of the results of each tuple let in, and what it costs, with states this full."""
    made, come, cost = 1.0, 1.0, 0.0
    for step in half.steps:
        s = full[step.target]
        cost += come * (step.probe + step.match * s)
        come *= step.fanout * s
        made *= s
    return made, cost + come * half.keep


def _chain_gradient(half: HalfJoin, full: dict[str, float], target: str) -> tuple[float, float]:
    """The derivatives of both by how full the target is: they are linear in it."""
    one, none = (_chain(half, {**full, target: s}) for s in (1.0, 0.0))
    return one[0] - none[0], one[1] - none[1]


def _shares(tree: JoinTree) -> dict[tuple[str, str], Any]:
    """share_k(v) of the moving streams of each input of each inner node, by (node, input)."""
    turnover = {w.stream: w.turnover for w in tree.windows}
    moving = {w.stream for w in tree.windows if w.rate}
    found: dict[tuple[str, str], Any] = {}
    for node, halves in tree.operators.items():
        streams = [s for h in halves for s in h.streams]
        nu = np.array([turnover[s] for s in streams])
        ages, weights = np.polynomial.legendre.leggauss(len(streams) // 2 + 1)
        a = (ages + 1) / (2 * nu.max()) if nu.max() else ages * 0
        younger = 1 - np.outer(a, nu)
        density = nu * younger.prod(axis=1, keepdims=True) / younger
        share = weights @ density / (2 * nu.max()) if nu.max() else nu
        by_stream = dict(zip(streams, share, strict=True))
        for h in halves:
            found[node, h.input] = np.array([by_stream[s] for s in h.streams if s in moving])
    return found
