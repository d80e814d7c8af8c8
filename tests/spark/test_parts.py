"""Parts of an output: a batch that is run again replaces its own files, whatever an earlier try left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from watersmeet.model.query import Location
from watersmeet.spark.blocks import BLOCK_RESULTS
from watersmeet.spark.spec import METRICS
from watersmeet.spark.write_parts import RESULT, Output, WriteParts, put_in_place

SCHEMA = pa.schema([("a", pa.int64()), ("waited", pa.duration("us"))])


def block(values: list[int]) -> pa.RecordBatch:
    cuts = [*range(0, len(values), BLOCK_RESULTS), len(values)]
    columns = [pa.array(values), pa.array(values).cast(pa.duration("us"))]
    lists = [pa.ListArray.from_arrays(pa.array(cuts, pa.int32()), c) for c in columns]
    return pa.RecordBatch.from_arrays([*lists, pa.nulls(len(cuts) - 1, pa.string())], names=["0", "1", METRICS])


def rows(folder: Path) -> list[int]:
    return sorted(v for f in folder.glob("part-*") for v in pyarrow.csv.read_csv(f).column("a").to_pylist())


def test_a_batch_that_is_run_again_replaces_its_files(tmp_path: Path) -> None:
    output = Output.of(Location(str(tmp_path / "out"), "csv"), RESULT, SCHEMA)
    folder = tmp_path / "out"

    def run(batch: int, values: list[int], commit: bool = True) -> None:
        told = list(WriteParts((output,), SCHEMA, False, batch)(iter([block(values)] if values else [])))
        if commit:
            put_in_place([output], batch, [row for t in told for row in t.to_pylist()])

    run(0, [])
    assert [f.name for f in folder.iterdir()] == ["part-000000-0000.csv"] and rows(folder) == []
    run(0, [1, 2])
    run(1, [3, 4], commit=False)  # the driver dies here
    assert rows(folder) == [1, 2]
    run(1, [4, 3])
    run(1, [3, 4])  # and here once more, before Spark notes that the batch is done
    assert rows(folder) == [1, 2, 3, 4]
    assert sorted(f.name for f in folder.iterdir()) == ["part-000000-0000.csv", "part-000001-0000.csv"]
    assert (folder / "part-000001-0000.csv").read_text() == '"a","waited"\n3,3\n4,4\n'
