"""Random queries, streams, batches and plans from a seed, and a comparison of results: for tests of anything that runs queries.

>>> case = random_case(1)
>>> same_rows(case.expected, case.expected) is None
True
"""

from watersmeet.testing.case import Case, random_case
from watersmeet.testing.compare import same_rows
from watersmeet.testing.plans import random_plan
from watersmeet.testing.queries import SHAPES, random_query
from watersmeet.testing.streams import random_batches, random_streams

__all__ = [
    "SHAPES",
    "Case",
    "random_batches",
    "random_case",
    "random_plan",
    "random_query",
    "random_streams",
    "same_rows",
]
