"""A tuple with millions of matches streams its results out: memory in flight is bounded."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MB = 1 << 20


def blow_up(results: int) -> dict[str, Any]:
    script = Path(__file__).with_name("blow_up.py")
    done = subprocess.run([sys.executable, script, str(results)], capture_output=True, text=True, check=True)
    made: dict[str, Any] = json.loads(done.stdout)
    side = math.isqrt(results)
    assert made["results"] == results
    assert made["sum"] == sum(range(side)) * side * 1_000_004  # each r and each s occurs `side` times
    return made


def test_bounded_memory_for_20_million_results_of_one_tuple() -> None:
    made = blow_up(4_500**2)
    assert made["largest"] <= 1 << 16
    assert made["peak_after"] - made["peak_before"] < 48 * MB  # as one table they would take 460 MB


@pytest.mark.long
def test_bounded_memory_for_a_thousand_million_results_of_one_tuple() -> None:
    made = blow_up(31_623**2)
    assert made["peak_after"] - made["peak_before"] < 64 * MB
    assert made["peak_after"] < 1 << 30
