"""qualified-plans: the four experiment sets executed, the random settings of Section 6, and predictions against measurements."""

from experiments.experiment import Experiment
from experiments.qualified_plans.as_printed import AS_PRINTED
from experiments.qualified_plans.claims import claims
from experiments.qualified_plans.figures import figures
from experiments.qualified_plans.predicted import PREDICTED, PRICES
from experiments.qualified_plans.sets import SETS
from experiments.qualified_plans.settings import RANDOM
from experiments.qualified_plans.under_limit import UNDER_LIMIT

EXPERIMENT = Experiment(
    "qualified_plans",
    "Zhu, Raghavan, Rundensteiner: A new look at generating multi-join continuous query plans (2009)",
    (SETS, UNDER_LIMIT, AS_PRINTED, RANDOM, PRICES, PREDICTED),
    claims,
    figures,
)
