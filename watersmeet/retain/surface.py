"""Surface: a table of benefits kept as few control points, with bicubic interpolation between them.

h2(v, x) of an AR(1) is a surface. The paper keeps 5 x 5 points, equally spaced over the domain; this does so for any
number of points a side. `approximated` gives the surface as a whole table again, so that policies read it as they
read an exact one.

table: whole. points: control points along each side.

>>> x = np.linspace(0, 1, 50)
>>> bumpy = Table(0, np.sin(3 * x)[:, None] * np.cos(2 * x)[None, :])
>>> [float(np.abs(approximated(bumpy, n).values - bumpy.values).max().round(4)) for n in (5, 9)]
[0.0073, 0.0003]

Source: heeb, Section 8 (25 control points), Theorem 3.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import RectBivariateSpline

from watersmeet.retain.benefit import Table


def approximated(table: Table, points: int) -> Table:
    """The table as `points` x `points` control points give it back; a table of one row is a curve with that many points."""
    rows, columns = table.values.shape
    across = _spaced(columns, points)
    if rows == 1:
        from scipy.interpolate import CubicSpline

        return Table(table.low, CubicSpline(across, table.values[0, across])(np.arange(columns))[None, :])
    down = _spaced(rows, points)
    spline = RectBivariateSpline(down, across, table.values[np.ix_(down, across)], kx=3, ky=3)
    return Table(table.low, spline(np.arange(rows), np.arange(columns)))


def _spaced(length: int, points: int) -> np.ndarray:
    return np.unique(np.rint(np.linspace(0, length - 1, min(points, length))).astype(int))
