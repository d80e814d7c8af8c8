"""Data in and out without Spark: Arrow, pandas, Python rows, CSV, Parquet and JSON lines; errors name file, row and column.

What arrives is brought to canonical Arrow types once, here; what leaves is written beside its target and renamed when whole.
"""

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.columns import flat, timestamps
from watersmeet.data.output import Writer, open_output
from watersmeet.data.schema import arrow_schema, arrow_type, language_type, schema_of
from watersmeet.data.table import as_table, check_timestamps, read_declared
from watersmeet.data.write import TableWriter, write_table

__all__ = [
    "Rejects",
    "TableWriter",
    "Writer",
    "arrow_schema",
    "arrow_type",
    "as_table",
    "check_timestamps",
    "flat",
    "language_type",
    "open_output",
    "read_declared",
    "schema_of",
    "timestamps",
    "write_table",
]
