"""Cache selection: which caches to use in the pipelines of an MJoin, given what each costs and saves.

Five ways to the same question, behind one interface (`select`): optimal for pipelines that share nothing (per_pipeline), exhaustive,
greedy, a linear program with randomized rounding, and an integer program, which is the bound that the others are held against.
"""

from __future__ import annotations

from watersmeet.adapt.selection.choose import METHODS, select
from watersmeet.adapt.selection.problem import Candidate, Problem

__all__ = ["METHODS", "Candidate", "Problem", "select"]
