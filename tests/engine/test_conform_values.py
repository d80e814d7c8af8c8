"""What expressions are worth: the table of cases through the engine, as results and as predicates on one stream."""

from __future__ import annotations

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.oracle.cases import CASES, ERROR, ROW, Case
from tests.oracle.same import same

ONE = pa.table({"one": [1]})


@pytest.mark.parametrize("case", CASES, ids=[c.text for c in CASES])
def test_conform_engine_gives_the_value_of(case: Case) -> None:
    text = f"SELECT {case.text} AS v FROM R [UNBOUNDED], one"
    if case.expected is ERROR:
        with pytest.raises(wm.DataError, match=r"overflow|division by zero"):
            wm.run(text, {"R": ROW, "one": ONE})
        return
    found = wm.run(text, {"R": ROW, "one": ONE}).rows.column("v")[0].as_py()
    assert same(found, case.expected), f"{case.text} is {found!r}, expected {case.expected!r}"


@pytest.mark.parametrize("case", [c for c in CASES if isinstance(c.expected, bool)], ids=lambda c: c.text)
def test_conform_engine_selects_by(case: Case) -> None:
    rows = wm.run(f"SELECT x FROM R [UNBOUNDED], one WHERE {case.text}", {"R": ROW, "one": ONE}).rows
    assert rows.num_rows == (1 if case.expected else 0)
