"""What expressions are worth: the table of cases, through the oracle. Spark's answers: tests/spark/test_conform_values.py."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.oracle.cases import CASES, ERROR, ROW, Case
from tests.oracle.same import same

ONE = pa.table({"one": [1]})


def value(text: str) -> Any:
    """The value of an expression over ROW, as the oracle has it."""
    rows = wm.oracle(f"SELECT {text} AS v FROM R [UNBOUNDED], one", {"R": ROW, "one": ONE})
    return rows.column("v")[0].as_py()


@pytest.mark.parametrize("case", CASES, ids=[c.text for c in CASES])
def test_oracle_gives_the_value_of(case: Case) -> None:
    if case.expected is ERROR:
        with pytest.raises(wm.DataError, match=r"overflow|division by zero"):
            value(case.text)
    else:
        found = value(case.text)
        assert same(found, case.expected), f"{case.text} is {found!r}, expected {case.expected!r}"
