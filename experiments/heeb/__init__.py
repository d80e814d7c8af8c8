"""heeb: which tuples to keep in a cache of k: the five configurations of Section 8, the curves, and models that are
found online."""

from experiments.experiment import Experiment
from experiments.heeb.claims import claims
from experiments.heeb.figures import figures
from experiments.heeb.parts import COST, IDENTIFY, MEMORY, REAL_PART, RUNS

EXPERIMENT = Experiment(
    "heeb",
    "Xie, Yang, Chen: On Joining and Caching Stochastic Streams (2005)",
    (RUNS, REAL_PART, MEMORY, IDENTIFY, COST),
    claims,
    figures,
)
