"""The data that a job names, as batch DataFrames: the history that wm.learn looks at."""

from __future__ import annotations

from collections.abc import Iterable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from watersmeet.errors import DataError
from watersmeet.model.query import Declaration, Location
from watersmeet.spark.check_paths import check_source
from watersmeet.spark.columns import spark_schema
from watersmeet.spark.plain_errors import plain_error
from watersmeet.spark.read_files import ReadFiles, Rows, listed, read_here
from watersmeet.spark.run import BOUNDED, DEFAULTS, LINES, from_lines


def check_history(declared: Iterable[Declaration]) -> None:
    """Say what can't be read, as far as it can be known without Spark."""
    for d in declared:
        if _place(d).format in BOUNDED:
            check_source(d, _place(d))


def history(session: SparkSession, declared: Iterable[Declaration]) -> dict[str, DataFrame]:
    """A DataFrame for each stream and table, read as the job says."""
    made = {}
    for d in declared:
        place = _place(d)
        columns = spark_schema([(f.name, f.type) for f in d.schema.fields])
        if read_here(place.format):
            paths = listed(session, place, streaming=False)
            made[d.name] = paths.mapInArrow(Rows(ReadFiles.of(d, place)), columns)
            continue
        reader = session.read.format(place.format)
        if place.format in BOUNDED and place.format not in LINES:
            reader = reader.schema(columns)
        for name, value in (*DEFAULTS.get(place.format, {}).items(), *place.options):
            reader = reader.option(name, value)
        try:
            frame = reader.load(place.path)
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None
        made[d.name] = from_lines(frame, d) if place.format in LINES else frame
    return made


def _place(declared: Declaration) -> Location:
    place = declared.location
    if place is None or place.format not in (*BOUNDED, "delta"):
        raise DataError(
            f"'{declared.name}' has no history to learn from\n  FROM 'path' FORMAT parquet, csv, json, text, orc or delta"
        )
    return place
