"""Batches of a run on Spark as they end: a line for each, and below them a bar of the rows read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from watersmeet.cli import show


class Board:
    """Call `batch` with what each batch did."""

    def __init__(self, rows: int) -> None:
        self.rows = self.window_rows = 0
        self._steady: list[Mapping[str, Any]] = []
        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TaskProgressColumn(), TimeElapsedColumn(),
        )  # fmt: skip
        self._bar = Progress(*columns, console=show.err, disable=not show.err.is_terminal, transient=True)
        self._task = self._bar.add_task("the first batch: workers start, Spark compiles", total=rows)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @property
    def steady(self) -> float:
        """Rows per second after the first batch; of that one if there is no other."""
        counted = self._steady[1:] or self._steady
        return float(sum(b["rows"] for b in counted) / max(sum(b["seconds"] for b in counted), 1e-9))

    def batch(self, done: Mapping[str, Any]) -> None:
        if not done["rows"]:  # the end: what waited is released
            show.err.print(
                f"  the end    {show.count(done.get('results', 0)):>7} results from rows that waited for others"
            )
            return
        self._steady.append(done)
        self.rows += done["rows"]
        self.window_rows = max(self.window_rows, done.get("window_rows", 0))
        show.err.print(
            f"  batch {done['batch'] + 1:<3} {show.count(done['rows']):>9} rows in {done['seconds']:5.2f} s,"
            f" {show.count(done.get('results', 0)):>6} results, {show.count(done.get('window_rows', 0)):>8} rows in windows"
        )
        self._bar.update(self._task, completed=self.rows, description="joining")
