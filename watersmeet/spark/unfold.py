"""Unfold: the blocks of results that come from cells (`blocks.py`), as rows of a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from watersmeet.spark.spec import METRICS

_PLACE = "place"


def block_schema(results: T.StructType) -> T.StructType:
    """Of results in blocks: an array for each column, by number, since names may have any characters; then metrics."""
    arrays = [T.StructField(str(i), T.ArrayType(f.dataType)) for i, f in enumerate(results.fields)]
    return T.StructType([*arrays, T.StructField(METRICS, T.StringType())])


def unfolded(blocks: DataFrame, results: T.StructType, led_by: str) -> DataFrame:
    """The results in the blocks. `led_by` names a column, whose array is unfolded; of the others the value at the same place is taken.

    A row of metrics has empty arrays, and gives no result. Spark compiles all of this into one loop.
    """
    lead = results.names.index(led_by)
    arrays = [str(i) for i in range(len(results)) if i != lead]
    placed = blocks.select(*arrays, F.posexplode(str(lead)).alias(_PLACE, str(lead)))
    values = [F.col(str(i)) if i == lead else F.get(str(i), F.col(_PLACE)) for i in range(len(results))]
    return placed.select(*[v.alias(f.name) for v, f in zip(values, results.fields, strict=True)])
