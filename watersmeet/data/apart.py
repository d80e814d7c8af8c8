"""Outputs must lie apart from inputs, and from each other: else writing one would replace or add to another."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path

from watersmeet.errors import DataError


def check_apart(inputs: Mapping[str, str], outputs: Iterable[tuple[str, str]]) -> None:
    """Refuse an output that is an input, holds one, or lies in one, by whatever links; and two outputs for which this is so.

    inputs: paths by the name of the stream or table; outputs: (clause, path). Only places on this machine are looked at.
    """
    taken = [(f"'{name}' is read from '{given}'", place) for name, given in inputs.items() for place in _places(given)]
    for clause, given in outputs:
        mine = _places(given)
        for place in mine:
            for what, at in taken:
                if place == at or place in at.parents or (at in place.parents and not at.is_file()):
                    raise DataError(
                        f"{clause} '{given}': {what}\n  what is written must lie apart from that: name another place"
                    )
        taken += [(f"{clause} '{given}' is written too", place) for place in mine]


def _places(path: str) -> list[Path]:
    if path.startswith("file:"):
        path = "/" + path[5:].lstrip("/")
    if not path or "://" in path or "\0" in path:
        return []
    try:
        place = Path(path).expanduser()
        found = [place] if place.exists() or not glob.has_magic(path) else [Path(p) for p in glob.glob(str(place))]  # noqa: PTH207
        return [f.resolve() for f in found]
    except (OSError, RuntimeError):
        return []
