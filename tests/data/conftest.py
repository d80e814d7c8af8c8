"""What the tests of reading and writing share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, so that messages name short relative paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
