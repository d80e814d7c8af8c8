"""Control: telling a bounded job that the end has come.

`wm.stream(..., control=folder)` watches a folder; `wm.flush(folder)` puts a small file there. Its one row reaches every cell, which
then releases all rows that wait. Call it when all rows have been read (`query.processAllAvailable()`): rows that come later are late.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from watersmeet.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def flush(control: str | Path) -> None:
    """Tell the job that watches this folder that the end has come."""
    folder = local_folder(str(control))
    if folder is not None:
        _make(folder)
        name = uuid.uuid4().hex
        hidden = folder / f".{name}"
        hidden.write_text("end\n")
        hidden.rename(folder / f"end-{name}.txt")
        return
    from pyspark.sql import SparkSession

    session = SparkSession.active()
    session.createDataFrame([("end",)], "value STRING").write.mode("append").text(str(control))


def control_source(session: SparkSession, control: str | Path) -> DataFrame:
    """The folder as a stream of lines; it is made if it is not there."""
    folder = local_folder(str(control))
    if folder is not None:
        _make(folder)
    else:
        session.createDataFrame([], "value STRING").write.mode("append").text(str(control))
    return session.readStream.schema("value STRING").text(str(folder or control))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DataError(f"can't use {folder} as the control folder: {e.strerror}") from None


def local_folder(path: str) -> Path | None:
    """The folder on this machine, or None if it is elsewhere (hdfs://, s3a://)."""
    if path.startswith("file:"):
        return Path("/" + path[5:].lstrip("/"))
    return None if "://" in path else Path(path).absolute()
