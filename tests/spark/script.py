"""Action scripts on Spark: add data, run, flush, stop, start, look at the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from watersmeet.model.query import Query
from watersmeet.spark.control import flush
from watersmeet.spark.listener import metrics_of
from watersmeet.spark.stream import stream


class Script:
    """One query with its folders. `schemas`: an Arrow schema for each stream; `tables`: static tables."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        query: Query | str,
        schemas: Mapping[str, pa.Schema],
        tables: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.spark, self.folder, self.query, self.options = spark, folder, query, options
        self.schemas, self.tables = dict(schemas), dict(tables or {})
        self.running: StreamingQuery | None = None
        self.batches = 0
        self.metrics: list[dict[str, int]] = []
        for name in schemas:
            (folder / "in" / name).mkdir(parents=True, exist_ok=True)

    def add(self, batch: Mapping[str, pa.Table]) -> Script:
        """One file for each stream that has rows; it appears whole."""
        for name, table in batch.items():
            if name in self.schemas and table.num_rows:
                target = self.folder / "in" / name / f"{self.batches:04d}.parquet"
                hidden = target.with_name(f".{target.name}")
                pq.write_table(table, hidden)
                hidden.rename(target)
        self.batches += 1
        return self

    def frame(self) -> DataFrame:
        given: dict[str, Any] = dict(self.tables)
        for name, schema in self.schemas.items():
            example = self.folder / f"{name}.schema.parquet"
            pq.write_table(schema.empty_table(), example)
            kinds = self.spark.read.parquet(str(example)).schema
            given[name] = self.spark.readStream.schema(kinds).parquet(str(self.folder / "in" / name))
        return stream(self.query, given, control=self.folder / "control", **self.options)

    def start(self) -> Script:
        writer = self.frame().writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        self.running = writer.format("parquet").option("path", str(self.folder / "out")).start()
        return self

    def run(self) -> Script:
        """Until all that was added is done."""
        assert self.running is not None
        self.running.processAllAvailable()
        found = metrics_of(self.running.lastProgress)
        if found:
            self.metrics.append(found)
        return self

    def flush(self) -> Script:
        flush(self.folder / "control")
        return self.run()

    def stop(self) -> Script:
        if self.running is not None:
            self.running.stop()
            self.running = None
        return self

    def answer(self, schema: pa.Schema) -> pa.Table:
        """What the sink holds, by its commit log."""
        out = self.folder / "out"
        if not out.exists():
            return schema.empty_table()
        return self.spark.read.schema(self.frame().schema).parquet(str(out)).toArrow().cast(schema)


__all__ = ["Script"]
