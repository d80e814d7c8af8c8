"""Rates: how many tuples flow, and how many are held, anywhere in any plan (static-optimization 3.2, equations 1 to 6).

Everything follows from one quantity. An arrival of stream k makes combinations over a set P of streams at the rate

    D(k, P) = λ_k · Π_{i ∈ P, i ≠ k} W_i · Π f        over the predicates within P                               (5)

and the combinations over P that are alive at a moment number

    |P| = Π_{i ∈ P} W_i · Π f                                                                                     (6)

Equations 3 and 4 are the case of two streams. Where every f is the same in both directions, D(k, P) = ν_k · |P| with
the turnover ν_k = λ_k / W_k, and the rate at which the arrivals of a set J make P is ν_J · |P|. A table has ν = 0: it
joins and costs nothing by itself.

*One class of equal attributes* R.a = S.a = T.a gives n − 1 factors for n members, not n(n−1)/2. The members are
ordered by falling sum of their selectivities (rising number of distinct values), and each but the first contributes
the least of its selectivities with the earlier ones that are present. So two members give exactly their selectivity,
more members never give more combinations per tuple, and if f_ij = 1 / max(d_i, d_j) the result is System R's d_min /
Π d.

*Asymmetric selectivities* f_ij (i probes j) and f_ji. A result made by an arrival of k uses f_kj for the predicates
at k. For the others the last of the two members may have been either, and |{i, j}| must hold both kinds: with T = W /
λ, i came last in the fraction T_j / 2T_i of the live pairs if T_i ≥ T_j, else in 1 − T_i / 2T_j. The mean of f_ij and
f_ji with these weights is used.

*Cells.* A combination is copied along every dimension of the HyperCube that none of its members has an attribute of.

>>> from watersmeet.optimize.problem import Problem
>>> r = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}).rates
>>> r.size(0b011), r.made(0b011, 0b011), r.made(0b111, 0b111)
(50.0, 150.0, 1000.0)

Source: static-optimization 3.1, 3.2; tuple- and time-based windows differ only in W (3.1), tables have W = rows
(section 4).
Departs from the paper in: classes, asymmetric selectivities of more than two streams, cells, comparisons apart from
equalities.
"""

from __future__ import annotations

from collections.abc import Callable

from watersmeet.optimize.problem import Predicate, Problem, members


class Rates:
    """The rates and sizes of one problem, each computed once."""

    def __init__(self, problem: Problem) -> None:
        n = len(problem.streams)
        self.problem = problem
        self.turnover = [s.turnover for s in problem.streams]
        self.expiring = sum(1 << k for k, s in enumerate(problem.streams) if s.expires)
        self.symmetric = problem.symmetric
        self.equal = [[1.0] * n for _ in range(n)]  # mean selectivity of the two-stream equalities
        self.toward = [[1.0] * n for _ in range(n)]  # [i][j]: of i probing j
        self.compared = [[1.0] * n for _ in range(n)]
        self.hash_links = [0] * n
        self.compare_links = [0] * n
        self.classes: list[AttributeOrder] = []
        for p in problem.predicates:
            if p.hashed and len(p.members) > 2:
                self.classes.append(AttributeOrder(p, self.mean))
                for s in p.members:
                    self.hash_links[s] |= p.mask & ~(1 << s)
                continue
            for i, j, f, g in p.pairs:
                mean = self.mean(i, j, f, g)
                table, links = (self.equal, self.hash_links) if p.hashed else (self.compared, self.compare_links)
                table[i][j] *= mean
                table[j][i] *= mean
                links[i] |= 1 << j
                links[j] |= 1 << i
                if p.hashed:
                    self.toward[i][j] *= f
                    self.toward[j][i] *= g
        self.equalities_only = not any(self.compare_links)
        self._equal_size: dict[int, float] = {0: 1.0}
        self._passed: dict[int, float] = {0: 1.0}
        self._size: dict[int, float] = {}
        self._sum: dict[int, float] = {0: 0.0}

    def mean(self, i: int, j: int, f: float, g: float) -> float:
        """The selectivity of live pairs, given that of i probing j and of j probing i."""
        if f == g:
            return f
        a, b = self.turnover[i], self.turnover[j]  # T = 1 / ν; a table never comes last
        if a == 0 or b == 0:
            return g if a == 0 else f
        last_i = a / (2 * b) if a <= b else 1 - b / (2 * a)
        return last_i * f + (1 - last_i) * g

    def size(self, streams: int) -> float:
        """|P|: combinations over the set that are alive, in all cells (equations 4 and 6)."""
        found = self._size.get(streams)
        if found is None:
            found = self.matched(streams)
            if not self.equalities_only:
                found *= self.passed(streams)
            self._size[streams] = found
        return found

    def matched(self, streams: int) -> float:
        """|P| if the comparisons let all pass: what the equalities alone find."""
        found = self.windows(streams) * self.copies(streams)
        for group in self.classes:
            found *= group.factor(streams)
        return found

    def windows(self, streams: int) -> float:
        """Windows and two-stream equalities of the set, multiplied."""
        found = self._equal_size.get(streams)
        if found is None:
            low = streams & -streams
            i, rest = low.bit_length() - 1, streams ^ low
            found = self.windows(rest) * self.problem.streams[i].window
            for j in members(self.hash_links[i] & rest):
                found *= self.equal[i][j]
            self._equal_size[streams] = found
        return found

    def passed(self, streams: int) -> float:
        """The selectivity of the comparisons within the set."""
        found = self._passed.get(streams)
        if found is None:
            low = streams & -streams
            i, rest = low.bit_length() - 1, streams ^ low
            found = self.passed(rest)
            for j in members(self.compare_links[i] & rest):
                found *= self.compared[i][j]
            self._passed[streams] = found
        return found

    def copies(self, streams: int) -> float:
        """In how many cells each combination over the set is."""
        found = 1.0
        for share in self.problem.shares:
            if not share.mask & streams:
                found *= share.count
        return found

    def turnovers(self, streams: int) -> float:
        """ν_J = Σ ν_k."""
        found = self._sum.get(streams)
        if found is None:
            low = streams & -streams
            found = self._sum[streams] = self.turnovers(streams ^ low) + self.turnover[low.bit_length() - 1]
        return found

    def made(self, arriving: int, streams: int) -> float:
        """Combinations over `streams` that arrivals of the streams in `arriving` make per second: Σ D(k, P)."""
        if self.symmetric:
            return self.turnovers(arriving) * self.size(streams)
        return self.passed(streams) * self.found(arriving, streams)

    def candidates(self, arriving: int, prefix: int, target: int) -> float:
        """Tuples per second that the index of `target` returns when the combinations over `prefix` probe it.

        A hash index decides all equalities, and comparisons are checked on what it returns; an ordered index decides
        the comparisons where there is no equality.
        """
        whole = prefix | target
        if self.equalities_only or not any(self.hash_links[i] & prefix for i in members(target)):
            return self.made(arriving, whole)
        decided = self.passed(prefix) * self.passed(target)
        if self.symmetric:
            return self.turnovers(arriving) * self.matched(whole) * decided
        return decided * self.found(arriving, whole)

    def found(self, arriving: int, streams: int) -> float:
        """Σ_k D(k, P) without the comparisons, each k with the selectivities as seen from it."""
        total = 0.0
        for k in members(arriving):
            if not self.turnover[k]:
                continue
            rest = streams & ~(1 << k)
            found = self.problem.streams[k].rate * self.windows(rest) * self.copies(streams)
            for j in members(self.hash_links[k] & rest):
                found *= self.toward[k][j]
            for group in self.classes:
                found *= group.factor(streams, k)
            total += found
        return total

    def leaving(self, streams: int) -> float:
        """Combinations over the set that expire per second: as many as are made, but for streams that keep all."""
        return self.made(streams & self.expiring, streams)

    @property
    def output(self) -> float:
        """Results per second: the same for every plan (Observation 1)."""
        return self.made(self.problem.all, self.problem.all) * self.problem.residual


class AttributeOrder:
    """A class of three or more equal attributes: its members in the order in which they contribute (module docstring)."""

    def __init__(self, predicate: Predicate, mean: Callable[[int, int, float, float], float]) -> None:
        self.mask = predicate.mask
        sel: dict[tuple[int, int], float] = {}
        self.seen: dict[tuple[int, int], float] = {}
        for i, j, f, g in predicate.pairs:
            sel[i, j] = sel[j, i] = mean(i, j, f, g)
            self.seen[i, j], self.seen[j, i] = f, g
        weight = {i: sum(f for (a, _), f in sel.items() if a == i) for i in predicate.members}
        self.order = tuple(sorted(predicate.members, key=lambda i: (-weight[i], i)))
        self.selectivity = sel
        self._factor: dict[tuple[int, int], float] = {}

    def factor(self, streams: int, k: int = -1) -> float:
        """The selectivity of the class within the set, for results made by an arrival of k if k ≥ 0."""
        inside = streams & self.mask
        key = inside, k if k >= 0 and inside >> k & 1 else -1
        found = self._factor.get(key)
        if found is None:
            present = [i for i in self.order if inside >> i & 1]
            found = 1.0
            for at, j in enumerate(present[1:], 1):
                found *= min(self._between(i, j, k) for i in present[:at])
            self._factor[key] = found
        return found

    def _between(self, i: int, j: int, k: int) -> float:
        if k == i:
            return self.seen[i, j]
        return self.seen[j, i] if k == j else self.selectivity[i, j]
