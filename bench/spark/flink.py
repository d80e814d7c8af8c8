"""Flink SQL on the same rows: PYTHON flink.py join|read JOB.json, by the Python of .venv-flink (`make bench-peers` makes it).

Flink has no batches: a line is printed whenever its sources have sent on as many rows as a batch of the others has, so that its start is
left out as that of the others is, with the first of these portions. Flink from PyPI reads no parquet, so it gets the same rows as CSV;
`read` reads them into nothing, which shows that reading is not what takes the time.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

PARALLELISM = 2
# The streams are read abreast, so that R and S, which have fewer rows, are not read far ahead. In one trial of 2.1 million rows each
# way it made no difference beyond the noise (150 s, and 141 s without).
ALIGNED = (
    "'scan.watermark.alignment.group' = 'all', 'scan.watermark.alignment.max-drift' = '5 s',"
    " 'scan.watermark.alignment.update-interval' = '50 ms'"
)


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def environment(port: int) -> TableEnvironment:
    settings = Configuration()
    settings.set_string("rest.port", str(port))
    settings.set_string("rest.bind-address", "127.0.0.1")
    settings.set_string(
        "metrics.fetcher.update-interval", "200"
    )  # milliseconds: how fresh the counts are that REST gives
    settings.set_string("parallelism.default", str(PARALLELISM))
    settings.set_string("pipeline.object-reuse", "true")
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()
    )


def declare(flink: TableEnvironment, job: dict[str, Any]) -> None:
    for name, columns in job["columns"].items():
        kinds = ", ".join(f"{c} TIMESTAMP(3)" if c == "ts" else f"{c} BIGINT" for c in columns)
        flink.execute_sql(
            f"CREATE TABLE {name} ({kinds}, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem',"
            f" 'path' = 'file://{job['folder']}/csv/{name}', 'format' = 'csv', {ALIGNED})"
        )


def join(flink: TableEnvironment, job: dict[str, Any]) -> Any:
    seconds = job["window_us"] // 1_000_000

    def near(x: str, y: str) -> str:
        return f"{x}.ts BETWEEN {y}.ts - INTERVAL '{seconds}' SECOND AND {y}.ts + INTERVAL '{seconds}' SECOND"

    flink.execute_sql(
        "CREATE TABLE O (a BIGINT, b BIGINT, r TIMESTAMP(3), s TIMESTAMP(3), t TIMESTAMP(3)) WITH ('connector' = 'blackhole')"
    )
    return flink.execute_sql(
        "INSERT INTO O SELECT R.a, S.b, CAST(R.ts AS TIMESTAMP(3)), CAST(S.ts AS TIMESTAMP(3)), CAST(T.ts AS TIMESTAMP(3))"
        f" FROM R, S, T WHERE R.a = S.a AND S.b = T.b AND {near('S', 'R')} AND {near('T', 'S')} AND {near('T', 'R')}"
    )


def read(flink: TableEnvironment, job: dict[str, Any]) -> Any:
    statements = flink.create_statement_set()
    for name, columns in job["columns"].items():
        kinds = ", ".join(f"{c} TIMESTAMP(3)" if c == "ts" else f"{c} BIGINT" for c in columns)
        flink.execute_sql(f"CREATE TABLE O_{name} ({kinds}) WITH ('connector' = 'blackhole')")
        statements.add_insert_sql(f"INSERT INTO O_{name} SELECT * FROM {name}")
    return statements.execute()


def sent(port: int, job_id: str) -> int:
    """How many rows the sources have sent on."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jobs/{job_id}", timeout=5) as answer:
            vertices = json.load(answer)["vertices"]
    except (OSError, KeyError, ValueError):
        return 0  # not up yet, or gone
    return sum(int(v["metrics"]["write-records"]) for v in vertices if v["name"].startswith("Source"))


def follow(client: Any, port: int, job: dict[str, Any], began: float) -> float:
    """Tell of each portion of rows, until the job ends or its time is up; returns when that was."""
    portion, limit = job["rows"] / job["batches"], job["limit_seconds"]
    result, clock = client.get_job_execution_result(), threading.Event()
    told, since, steady_since = 0, began, None
    while not result.done():
        clock.wait(0.25)
        rows, now = sent(port, str(client.get_job_id())), time.time()
        if rows - told < portion:
            continue
        tell(rows - told, since, now)
        told, since = rows, now
        if steady_since is None:
            steady_since = now
        elif limit is not None and now - steady_since >= limit:
            client.cancel().result()
            return now
    result.result()  # raises what went wrong
    now = time.time()
    if told < job["rows"]:
        tell(job["rows"] - told, since, now)
    return now


def tell(rows: int, since: float, at: float) -> None:
    print(json.dumps({"rows": rows, "seconds": at - since, "at": at, "observed": {}}), flush=True)


def main() -> None:
    what, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    port = free_port()
    flink = environment(port)
    declare(flink, job)
    began = time.time()
    client = (join if what == "join" else read)(flink, job).get_job_client()
    ended = follow(client, port, job, began)
    print(json.dumps({"began": began, "ended": ended}), flush=True)


if __name__ == "__main__":
    main()
