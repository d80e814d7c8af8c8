"""jaqpot: which probes to make when there is not CPU for all, and how fresh results stay: Figures 6 to 9, Table 4, overheads."""

from experiments.experiment import Experiment
from experiments.jaqpot.claims import claims
from experiments.jaqpot.figures import figures
from experiments.jaqpot.parts import PARTS

EXPERIMENT = Experiment(
    "jaqpot",
    "Mukherji, Rundensteiner: Achieving High Freshness and Optimal Throughput in Resource-Limited Execution (2011)",
    PARTS,
    claims,
    figures,
)
