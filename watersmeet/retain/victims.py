"""Victims: who leaves, without a look at all of the state for each arrival.

Scores change with time, so no heap stays in order. Instead all tuples are scored at once now and then, and the lowest
sixteenth is kept in
order: the shortlist. Victims are its first; what arrives is scored once and joins the list if it is lower than the
list's end. When the list is used up, all are scored again. So a victim costs 16 scores, some 5 ns each, whatever the
size of the state, and the list is never older than k / 16 evictions.

share: of the state that a shortlist holds. More: fewer scores, older lists.

>>> worth = np.array([5.0, 1, 4, 2, 3, 9, 8, 7])
>>> short = Shortlist(share=0.5)
>>> short.victims(2, lambda slots: worth[slots], held=np.arange(8), fresh=np.arange(8)).tolist()
[1, 3]
>>> worth[1], worth[3] = 0.5, 6
>>> short.victims(2, lambda slots: worth[slots], held=np.arange(8), fresh=np.array([1, 3])).tolist(), short.scored
([1, 4], 10)

How an engine uses it: `score` is `watersmeet.retain.policy.scores` over the engine's columns (stream, key, arrival,
mark) of the slots; `held` are the slots in use, `fresh` those that were filled since the last call; slots that were
emptied in between are left out by `alive`. It is called once for a group of arrivals, with as many victims as the
group is over the budget.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from watersmeet.retain.compiled import Floats, Words


class Shortlist:
    """The tuples that leave next. `scored` counts scores, `refreshed` how often all were scored."""

    def __init__(self, share: float = 1 / 16) -> None:
        self.share = share
        self.scored = self.refreshed = 0
        self._slots: Words = np.zeros(0, np.int64)
        self._scores: Floats = np.zeros(0)
        self._end = -np.inf

    def victims(
        self,
        count: int,
        score: Callable[[Words], Floats],
        held: Words,
        fresh: Words,
        alive: Callable[[Words], np.ndarray] | None = None,
    ) -> Words:
        """The slots of `count` tuples to take out, lowest first."""
        again = np.isin(self._slots, fresh)  # slots that were emptied and filled again
        if alive is not None:
            again |= ~alive(self._slots)
        self._slots, self._scores = self._slots[~again], self._scores[~again]
        if len(self._slots) < count:
            self._refresh(count, score, held)
        else:
            worth = score(fresh)
            self.scored += len(fresh)
            low = worth < self._end
            slots = np.concatenate([self._slots, fresh[low]])
            scores = np.concatenate([self._scores, worth[low]])
            order = np.argsort(scores, kind="stable")
            self._slots, self._scores = slots[order], scores[order]
        out, self._slots = self._slots[:count], self._slots[count:]
        self._scores = self._scores[count:]
        return out

    def _refresh(self, count: int, score: Callable[[Words], Floats], held: Words) -> None:
        worth = score(held)
        self.scored += len(held)
        self.refreshed += 1
        size = min(len(held), max(count, int(self.share * len(held))))
        lowest = np.argpartition(worth, size - 1)[:size]
        lowest = lowest[np.argsort(worth[lowest], kind="stable")]
        self._slots, self._scores = held[lowest], worth[lowest]
        self._end = float(self._scores[-1])
