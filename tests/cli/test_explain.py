"""`watersmeet explain`: every part of a query is said, for each of several files, and a wrong file spoils none of the others."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import watersmeet as wm
from watersmeet.cli.app import app
from watersmeet.errors import QueryError

JOB = """\
CREATE STREAM orders (id BIGINT, item BIGINT, price DOUBLE, ts TIMESTAMP)
  FROM 'orders.parquet' FORMAT parquet TIMESTAMP ts LATENESS 5 SECONDS IDLE 1 MINUTE;
CREATE STREAM payments (order_id BIGINT, amount DOUBLE, at TIMESTAMP) TIMESTAMP at;
CREATE TABLE items (item BIGINT, weight DOUBLE) FROM 'items.csv' FORMAT csv;
CREATE STREAM alarms (code STRING, ts TIMESTAMP);
SELECT o.id, p.amount - o.price AS surplus
FROM orders [RANGE 10 MINUTES] AS o, payments [ROWS 5] AS p, items, alarms [UNBOUNDED]
WHERE o.id = p.order_id AND o.item = items.item AND p.amount > o.price AND p.amount > 10
  AND p.amount > o.price + items.weight
"""
EXPLAINED = """\
Query
  SELECT o.id, p.amount - o.price AS surplus
  FROM orders [RANGE 10 MINUTES] AS o, payments [ROWS 5] AS p, items, alarms [UNBOUNDED]
  WHERE o.id = p.order_id
    AND o.item = items.item
    AND p.amount > o.price
    AND p.amount > 10
    AND p.amount > (o.price + items.weight)
  EMIT ISTREAM;
Streams
  o       [RANGE 10 MINUTES]  of orders, ordered by ts, up to 5 SECONDS late, not waited for when 1 MINUTE behind, \
from 'orders.parquet' FORMAT parquet
  p       [ROWS 5]            of payments, ordered by at
  items   static table        from 'items.csv' FORMAT csv
  alarms  [UNBOUNDED]         ordered by ts
Results
  id BIGINT, surplus DOUBLE, result_ts TIMESTAMP
Selections, on arrival
  p: p.amount > 10.0
Join graph
  equal     o.id = p.order_id
  equal     o.item = items.item
  compared  p.amount > o.price
  residual  p.amount > (o.price + items.weight), over o, p, items
  apart     o p items | alarms: no condition links them, so every combination is a result

Plan, with nothing known about the streams
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(JOB)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def test_explain_says_every_part_of_a_query(folder: Path) -> None:
    result = call("job.sql")
    assert result.exit_code == 0, result.output
    heading, told = result.stdout.lstrip("\n").split("\n", 1)
    assert heading.startswith("job.sql ")
    assert told.startswith(EXPLAINED)
    plan = [line.strip() for line in told.removeprefix(EXPLAINED).splitlines()]
    assert wm.Plan.parse(plan[0]).streams == {"o", "p", "items", "alarms"}
    assert plan[1].startswith("costs and a budget need statistics")
    assert wm.explain(JOB) == told.removesuffix("\n")


def test_explain_goes_on_after_a_wrong_file(folder: Path) -> None:
    Path("wrong.sql").write_text(JOB.replace("o.id,", "o.idd,"))
    result = call("wrong.sql", "job.sql", "none.sql")
    assert result.exit_code == 1
    assert EXPLAINED in result.stdout
    assert "error: wrong.sql, line 6, column 8: 'o' has no column 'idd'\n" in result.stderr
    assert "error: can't read the job file none.sql: No such file or directory\n" in result.stderr
    assert result.stderr.endswith("error: not all job files could be explained; see above\n")
    assert call("none.sql").stderr == "error: can't read the job file none.sql: No such file or directory\n"


def test_explain_needs_no_data(folder: Path) -> None:
    assert call("job.sql").exit_code == 0
    assert sorted(p.name for p in folder.iterdir()) == ["job.sql"]


def test_explain_measures_if_it_is_given_data() -> None:
    rows = [{"k": 1, "ts": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}]
    text = "SELECT a.k FROM a [ROWS 2], b [ROWS 3] WHERE a.k = b.k"
    told = wm.explain(text, analyze={"a": rows, "b": rows})
    measured = dict(line.split() for line in told.partition("Measured, with (a b)\n")[2].splitlines())
    assert measured["tuples_in"] == "2" and measured["results"] == "1"
    with pytest.raises(QueryError, match=r"unknown stream 'a'\n  SELECT a\.k FROM a"):
        wm.explain(text)


def test_explain_takes_statistics_from_the_data_or_a_file(folder: Path) -> None:
    moments = [dt.datetime(2026, 1, 31, 0, 0, s, tzinfo=dt.UTC) for s in range(20)]
    for name in "AB":
        rows = [{"k": i % 4, "ts": t.isoformat()} for i, t in enumerate(moments)]
        Path(f"{name}.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    declared = "".join(f"CREATE STREAM {n} (k BIGINT, ts TIMESTAMP) FROM '{n}.jsonl' FORMAT json;" for n in "AB")
    Path("two.sql").write_text(f"{declared} SELECT A.k FROM A [ROWS 8], B [ROWS 8] WHERE A.k = B.k BUDGET (CPU 1)")
    sampled = call("two.sql", "--sample", "--steps")
    assert sampled.exit_code == 0, sampled.output
    assert "of 1 cores" in sampled.stdout and "\nSteps\n" in sampled.stdout
    wm.Statistics(rate={"A": 1e9, "B": 1e9}, selectivity={("A", "B"): 0.25}).save("known.json")
    tight = call("two.sql", "--stats", "known.json")
    assert tight.exit_code == 0 and "no plan fits CPU 1" in tight.stdout, tight.output
