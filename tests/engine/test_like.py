"""LIKE over whole columns is LIKE row by row, whatever the pattern; tests/spark/test_conform_values.py asks Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.running import agrees, stream
from watersmeet.engine.rows.like import like
from watersmeet.model.evaluate import like_form

PIECES: Final = (
    "%",
    "_",
    r"\\",
    r"\%",
    r"\_",
    "a",
    "ab",
    "C:",
    ".",
    "*",
    "(",
    "\n",
    "\x00",
    "é",
    "\U0001d11e",
    "-",
    " ",
)
PLAIN: Final = ("\\", "%", "_", "a", "ab", "C:", ".", "*", "(", "\n", "\x00", "é", "\U0001d11e", "-", " ", "x")


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    st.lists(st.lists(st.sampled_from(PLAIN), max_size=5), max_size=8),
)
@example(r"C:\\temp%", [["C:", "\\", "temp"], ["C:", "\\", "\\", "temp"], ["C:", "temp"]])
@example(r"%\\", [["a", "\\"], ["a"], ["a", "\\", "\\"]])
@example(r"%a\%%", [["a", "%"], ["a", "\\", "%"], ["a"]])
@example("", [[], ["a"]])
def test_like_of_a_column_is_like_of_each_row(pattern: str, drawn: list[list[str]]) -> None:
    # besides what was drawn: what the pattern itself says, with something in the place of wildcards
    literal = pattern.replace(r"\\", "\x01").replace(r"\%", "\x02").replace(r"\_", "\x03")
    near = [
        literal.replace("%", run).replace("_", "x").replace("\x01", "\\").replace("\x02", "%").replace("\x03", "_")
        for run in ("", "xy")
    ]
    texts = ["".join(pieces) for pieces in drawn] + near + [pattern]
    form = like_form(pattern)
    made = like(pa.array([*texts, None], pa.string()), pattern).to_pylist()
    assert made == [form.fullmatch(text) is not None for text in texts] + [None]
    assert made[len(drawn) : len(drawn) + 2] == [True, True]


@pytest.mark.parametrize(
    "pattern", [r"C:\\temp%", r"%\\", r"%\\%", r"C:\\temp", r"\\%", r"C:\\t_mp%", r"%\%%", r"a\_b%"]
)
def test_oracle_like_with_an_escaped_backslash(pattern: str) -> None:
    paths = ["C:\\temp\\x", "C:\\temp", "C:\\\\temp", "C:temp", "\\", "a\\", "%", "a_b\\", "axb"]
    tables = {"R": stream(range(9), path=paths), "S": stream([9], one=[1])}
    written = pattern.replace("\\", "\\\\")  # in the text of a query a backslash is written as two
    made = agrees(f"SELECT R.path FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.path LIKE '{written}'", tables)
    assert 0 < made.num_rows < 9
