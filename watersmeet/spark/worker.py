"""What a Python worker does once in its life."""

from __future__ import annotations

import gc

_settled = False


def settle() -> None:
    """Tell the garbage collector that what is loaded by now stays. PySpark collects garbage after every task, and looking through
    the objects of pandas and Arrow each time takes longer than packing a batch."""
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
