"""What the terminal sees: errors, tables of rows, progress, summaries. Results go to stdout, all else to stderr."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.status import Status
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)
_alarm = Console(stderr=True, highlight=False)  # errors and warnings: they are shown even where all else is not


@contextmanager
def hushed(quiet: bool) -> Iterator[None]:
    """Show nothing but errors and warnings meanwhile, if `quiet`."""
    was = out.quiet, err.quiet
    out.quiet = err.quiet = quiet
    try:
        yield
    finally:
        out.quiet, err.quiet = was


def complain(message: str) -> None:
    """An error in red; further lines (the place, what to do) as they are."""
    first, newline, rest = message.partition("\n")
    _alarm.print(Text.assemble((f"error: {first}", "bold red"), newline + rest), soft_wrap=True)


def caution(message: str) -> None:
    """A warning in yellow; further lines as they are."""
    first, newline, rest = message.partition("\n")
    _alarm.print(Text.assemble((f"warning: {first}", "bold yellow"), newline + rest), soft_wrap=True)


def heading(text: str) -> None:
    out.print()
    out.rule(Text(text, "bold cyan"), align="left", style="cyan")


def query(text: str) -> None:
    """Query text in colours."""
    if out.is_terminal:
        out.print(Syntax(text.strip(), "sql", theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        out.print(text.strip(), markup=False, soft_wrap=True)


def plain(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)


def busy(text: str) -> Status:
    """A spinner with a word on what is going on; silent where stderr is no terminal."""
    return err.status(Text(text))


class _Rate(ProgressColumn):
    """How many rows per second, once some are done."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{count(task.completed)} rows" + (f", {rate(speed)}" if speed else ""), style="green")


def progress() -> Progress:
    """A bar that counts rows; silent where stderr is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _Rate(),
    )
    return Progress(*columns, console=err, disable=not err.is_terminal)


def facts(pairs: Iterable[tuple[str, str]], to: Console = out) -> None:
    """Names and what is to be said of each, in two columns."""
    pairs = list(pairs)
    if not to.is_terminal:
        width = max(len(name) for name, _ in pairs) + 2
        text = "\n".join(f"{name:<{width}}{value}" for name, value in pairs)
        to.print(text, markup=False, soft_wrap=True)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(value))
    to.print(table)


def rows_table(table: pa.Table, *, total: int) -> None:
    """The rows as a table as wide as the terminal allows; columns that don't fit are named below it."""
    cells = [[_cell(v) for v in column.to_pylist()] for column in table.columns]
    widths = [max(len(n), *(len(c) for c in col), 1) for n, col in zip(table.column_names, cells, strict=True)]
    shown = _fitting(widths, out.width)
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i in shown:
        numeric = _numeric(table.schema.field(i).type)
        made.add_column(
            Text(table.column_names[i]), justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis"
        )
    for r in range(table.num_rows):
        made.add_row(*(Text(cells[i][r], style="dim" if cells[i][r] == "NULL" else "") for i in shown))
    out.print(made)
    hidden = [n for i, n in enumerate(table.column_names) if i not in shown]
    if hidden:
        plain(f"columns that don't fit: {', '.join(hidden)}")
    if total > table.num_rows:
        plain(f"... and {total - table.num_rows:,} more results")


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Which columns to show: all if they fit, else from the left as many as fit, and the last if two more fit beside it.

    >>> _fitting([5, 5, 5, 5], 40), _fitting([5, 5, 5, 5], 30), _fitting([5, 5, 5, 20], 30), _fitting([50, 5], 30)
    ([0, 1, 2, 3], [0, 1, 3], [0, 1, 2], [0])
    """
    gap = 3

    def from_left(count: int, left: int) -> list[int]:
        taken = 0
        while taken < count and (left := left - widths[taken] - gap) >= 0:
            taken += 1
        return list(range(taken))

    last = len(widths) - 1
    chosen = from_left(last + 1, room)
    if len(chosen) > last:
        return chosen
    with_last = from_left(last, room - widths[last] - gap)
    return [*with_last, last] if len(with_last) > 1 else chosen or [0]


def _numeric(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ").removesuffix(".000000")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value).replace("\n", "\\n").replace("\t", "\\t")


def count(number: float) -> str:
    """
    >>> count(950), count(12_345), count(2_345_678)
    ('950', '12,345', '2,345,678')
    """
    return f"{number:,.0f}"


def rate(per_second: float) -> str:
    """
    >>> rate(950), rate(12_345), rate(2_345_678)
    ('950 rows/s', '12.3 thousand rows/s', '2.35 million rows/s')
    """
    for unit, name in ((1e6, "million "), (1e3, "thousand ")):
        if per_second >= unit:
            return f"{per_second / unit:.3g} {name}rows/s"
    return f"{per_second:.0f} rows/s"


def size(amount: float) -> str:
    """
    >>> size(900), size(1_500), size(64_000_000)
    ('900 B', '1.5 KB', '64 MB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if amount >= unit:
            return f"{amount / unit:.3g} {name}"
    return f"{amount:.0f} B"
