"""The common workload by Spark's own stream-stream joins."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def own_join(frames: dict[str, DataFrame], window_us: int) -> DataFrame:
    """R(a), S(a, b), T(b), each within the window of each other.

    As a user would write it Spark refuses it (MULTIPLE_EVENT_TIME_COLUMNS); so after the first join one of the two event times becomes a
    plain expression.
    """

    def stream(name: str) -> DataFrame:
        frame = frames[name]
        renamed = frame.select(*[F.col(c).alias(f"{name}_{c}") for c in frame.columns])
        return renamed.withWatermark(f"{name}_ts", "0 seconds")

    def near(x: str, y: str) -> str:
        window = f"interval {window_us} microseconds"
        return f"{x} >= {y} - {window} and {x} <= {y} + {window}"

    rs = stream("R").join(stream("S"), F.expr(f"R_a = S_a and {near('S_ts', 'R_ts')}"))
    rs = rs.select("R_a", "S_b", "S_ts", F.expr("R_ts + interval 0 seconds as R_t"))
    return rs.join(stream("T"), F.expr(f"S_b = T_b and {near('T_ts', 'S_ts')} and {near('T_ts', 'R_t')}"))
