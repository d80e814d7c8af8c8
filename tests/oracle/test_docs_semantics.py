"""docs/semantics.md: its promises name tests, and the tests are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "semantics.md").read_text()
DEFINED = {
    name: path
    for path in sorted(ROOT.glob("tests/**/test_*.py"))
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
}


def test_docs_semantics_names_tests_that_are_there() -> None:
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(named) > 60
    assert [name for name in named if name not in DEFINED] == []


def test_docs_semantics_names_a_test_in_every_section_that_promises_something() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    without = [section.splitlines()[0] for section in sections[1:] if "`test_" not in section]
    assert without == ["Costs that follow from the meaning"]
