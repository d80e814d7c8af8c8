"""The bridge to Spark: sources are routed and packed, joined in cells, and come out as an ordinary streaming DataFrame.

    source DataFrame -> selection (selection.py) -> route and pack (route.py, pack.py) -> shuffle by cell -> cell (cell.py) -> results

`stream.py` puts it together. The cell itself knows no Spark: `processor.py` connects it to Spark's state store.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from watersmeet.errors import DataError


def _check_numba() -> None:
    """All of this package needs the compiled kernel, on executors too: say so before an import fails somewhere deep inside."""
    try:
        there = find_spec("numba") is not None
    except ImportError:
        there = False
    if not there:
        raise DataError(
            f"numba is not installed in the Python that runs here, {sys.executable}\n"
            "  Spark's executors need the same packages as the driver: ship the environment with the job (docs/deploy.md)"
        )


_check_numba()
