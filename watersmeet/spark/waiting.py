"""The limit of waiting rows: a stream that falls behind makes the others wait, and what waits must not fill the host in silence.

Each cell may hold `spark.watersmeet.waitingBytes` (1 GiB unless set) of rows that wait. With more, the batch fails and so does the query,
with nothing lost: started again with a higher limit, or with another LATENESS or IDLE, it goes on from its checkpoint.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from watersmeet.engine.rows.release import NEVER, Clock
from watersmeet.errors import DataError, QueryError
from watersmeet.model.budget import bytes_text, parse_bytes
from watersmeet.model.durations import duration

SETTING: Final = "spark.watersmeet.waitingBytes"
WAITING_BYTES: Final = 1 << 30


def waiting_limit(text: str | None) -> int:
    """The bytes that may wait in a cell, of what the setting says: 2 GB, 512 MiB, or as Spark writes them, 2g, 512m, 1000000.

    >>> waiting_limit(None) == waiting_limit("1g") == waiting_limit("1 GiB"), waiting_limit("5000")
    (True, 5000)
    """
    if text is None:
        return WAITING_BYTES
    spark = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text)
    try:
        found = int(spark[1]) << 10 * " kmgt".index(spark[2] or " ") if spark else parse_bytes(text)
    except QueryError as e:
        raise QueryError(f"{SETTING}: {e.message}", hint=e.hint) from None
    if found <= 0:
        raise QueryError(f"{SETTING}={text}: must be above 0")
    return found


def check_waiting(clock: Clock, tables: Iterable[pa.Table], limit: int) -> None:
    """Refuse to hold more than so many bytes: says whom the rows wait for, and what to do."""
    rows = held = 0
    for table in tables:
        rows, held = rows + table.num_rows, held + table.nbytes
    if held <= limit:
        return
    holder = min(clock.awaited, key=lambda s: clock.high[s.stream] - s.lateness_us)
    name = holder.stream
    others = ", ".join(f"'{n}' {_moment(high)}" for n, high in clock.high.items() if n != name)
    lateness = f", and its LATENESS is {duration(holder.lateness_us)}" if holder.lateness_us else ""
    known = (
        f"has come as far as {_moment(clock.high[name])}{lateness}"
        if clock.high[name] > NEVER
        else "has had no row yet"
    )
    raise DataError(
        f"{rows:,} rows ({held / 1e6:,.1f} MB) wait in a cell for stream '{name}', more than the {bytes_text(limit)} allowed:"
        f" it {known}{'; ' + others if others else ''}\n"
        f"  if '{name}' may be silent for a while, say so: IDLE 1 MINUTE in its CREATE STREAM\n"
        f"  if it is only read more slowly than the others, read less of those in a batch (maxFilesPerTrigger, maxOffsetsPerTrigger)\n"
        f"{_less_lateness(holder.lateness_us, name)}"
        f"  to let more wait: {SETTING}; then start again from the same checkpoint, nothing is lost"
    )


def _less_lateness(lateness_us: int, name: str) -> str:
    return f"  rows are released earlier with a smaller LATENESS of '{name}'\n" if lateness_us else ""


def _moment(us: int) -> str:
    if us <= NEVER:
        return "nowhere"
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)
    return moment.replace(tzinfo=None).isoformat(" ")
