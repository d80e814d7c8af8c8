"""static-optimization: Example 1, Figures 4 and 7, with windows that count dropped tuples beside the paper's model."""

from experiments.experiment import Experiment
from experiments.static_optimization.claims import claims
from experiments.static_optimization.figures import figures
from experiments.static_optimization.parts import PARTS

EXPERIMENT = Experiment(
    "static_optimization",
    "Ayad, Naughton: Static Optimization of Conjunctive Queries with Sliding Windows (2004)",
    PARTS,
    claims,
    figures,
)
