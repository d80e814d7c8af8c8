"""When two Python values of a result are the same."""

from __future__ import annotations

import math


def same(a: object, b: object) -> bool:
    """Equal and of one type; NaN is NaN."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return type(a) is type(b) and a == b
