"""What the oracle takes: text or Query; whole tables or batches, as Arrow, pandas or Python rows. And its size."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results
from watersmeet.oracle import results_and_late

TEXT = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k"
R = events("""
    ts  id  k
    1   r1  1
""")
S = events("""
    ts  id  k
    2   s1  1
""")
EXPECTED = expect("""
    r   s   result_ts
    r1  s1  2
""")


def test_oracle_takes_text_or_a_query() -> None:
    assert results(TEXT, R=R, S=S) == EXPECTED
    assert results(wm.parse(TEXT), R=R, S=S) == EXPECTED


def test_oracle_takes_arrow_pandas_and_rows() -> None:
    assert results(TEXT, R=pa.Table.from_pylist(R), S=pd.DataFrame(S)) == EXPECTED


def test_oracle_takes_batches_and_a_batch_may_lack_a_stream() -> None:
    assert results(TEXT, [{"R": R}, {}, {"S": S}]) == EXPECTED
    assert results(TEXT, iter([{"S": S, "R": R}])) == EXPECTED


def test_oracle_gives_the_selected_columns_and_result_ts_in_canonical_types() -> None:
    table = wm.oracle(
        "SELECT R.k, S.ts - R.ts AS age, R.k / 2 AS half FROM R [UNBOUNDED], S [UNBOUNDED]", {"R": R, "S": S}
    )
    assert table.schema == pa.schema(
        [
            ("k", pa.int64()),
            ("age", pa.duration("us")),
            ("half", pa.float64()),
            ("result_ts", pa.timestamp("us", tz="UTC")),
        ]
    )


def test_oracle_gives_the_late_rows_with_their_stream() -> None:
    _, late = results_and_late(TEXT, [{"R": R, "S": S}, {"R": events("ts id k\n0 r0 1")}])
    assert late == [("R", {"ts": 0, "id": "r0", "k": 1})]


def test_oracle_refuses_a_null_timestamp() -> None:
    rows = [*R, {"ts": None, "id": "r2", "k": 1}]
    with pytest.raises(wm.DataError, match=r"R.*row 2.*ts"):
        results(TEXT, R=rows, S=S)


def test_oracle_refuses_a_stream_that_the_query_does_not_have() -> None:
    with pytest.raises(wm.DataError, match="no stream 'RS'"):
        results(TEXT, R=R, S=S, RS=R)
    with pytest.raises(wm.QueryError, match="unknown stream 'S'"):
        results(TEXT, R=R)


def test_oracle_refuses_whole_tables_that_lack_a_stream_but_not_batches() -> None:
    declared = (
        "CREATE STREAM R (id STRING, k BIGINT, ts TIMESTAMP); CREATE STREAM S (id STRING, k BIGINT, ts TIMESTAMP); "
    )
    with pytest.raises(wm.DataError, match="no rows given for stream 'S'"):
        results(declared + TEXT, R=R)
    assert results(declared + TEXT, [{"R": R}]) == []


def test_oracle_reads_what_is_declared_with_a_place(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,k,ts\ns1,1,1970-01-01 00:00:02\n")
    (tmp_path / "items.csv").write_text("k\n1\n")
    declared = f"""
        CREATE STREAM R (id STRING, k BIGINT, ts TIMESTAMP);
        CREATE STREAM S (id STRING, k BIGINT, ts TIMESTAMP) FROM '{tmp_path}/s.csv' FORMAT csv;
        CREATE TABLE items (k BIGINT) FROM '{tmp_path}/items.csv' FORMAT csv;
    """
    text = f"{declared} SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED], items WHERE R.k = S.k AND R.k = items.k"
    assert results(text, R=R) == EXPECTED
    assert results(text, [{"R": R}, {"S": S}]) == EXPECTED


def test_oracle_refuses_rows_of_a_static_table_after_the_first_batch() -> None:
    text = "SELECT R.id AS r FROM R [UNBOUNDED], items WHERE R.k = items.k"
    assert len(results(text, [{"items": [{"k": 1}], "R": R}])) == 1
    with pytest.raises(wm.DataError, match="a static table comes with the first batch"):
        results(text, [{"R": R, "items": [{"k": 1}]}, {"items": [{"k": 2}]}])


def test_oracle_is_under_80_lines_and_imports_nothing_of_the_engine() -> None:
    module = Path(__file__).parents[2] / "watersmeet" / "oracle.py"
    lines = module.read_text().splitlines()
    assert len(lines) < 80
    assert not [line for line in lines if "import" in line and any(w in line for w in ("engine", "optimize", "adapt"))]
