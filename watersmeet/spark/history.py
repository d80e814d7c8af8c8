"""The data that a job names, as batch DataFrames: the history that wm.learn looks at."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from watersmeet.errors import DataError
from watersmeet.model.query import Declaration
from watersmeet.spark.columns import spark_schema
from watersmeet.spark.run import BOUNDED, plain_error


def history(session: SparkSession, declared: Iterable[Declaration]) -> dict[str, DataFrame]:
    """A DataFrame for each stream and table, read as the job says."""
    made = {}
    for d in declared:
        place = d.location
        if place is None or place.format not in (*BOUNDED, "delta"):
            raise DataError(
                f"'{d.name}' has no history to learn from\n  FROM 'path' FORMAT parquet, csv, json, orc or delta"
            )
        reader = session.read.format(place.format)
        if place.format in BOUNDED:
            reader = reader.schema(spark_schema([(f.name, f.type) for f in d.schema.fields]))
        if place.format == "csv":
            reader = reader.option("header", "true")
        for name, value in place.options:
            reader = reader.option(name, value)
        try:
            made[d.name] = reader.load(place.path)
        except PySparkException as e:
            raise plain_error(e) from None
    return made
