"""Statistics: what is known about the streams when a plan is chosen. Rates per second, prices in seconds per tuple."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

from watersmeet.errors import QueryError


@dataclass(frozen=True)
class Costs:
    """The four prices of the one cost model, in seconds: a probe, a match it returns, an insert and a delete of state.

    together: what they come to where rows go through a plan in groups, as a part of what they are one by one; 1: the same.
    """

    probe: float = 100e-9
    match: float = 30e-9
    insert: float = 30e-9
    delete: float = 5e-9
    source: str = "default"
    together: float = 1.0

    def __post_init__(self) -> None:
        for name in ("probe", "match", "insert", "delete", "together"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise QueryError(f"costs: {name} = {value} must be zero or more")


@dataclass(frozen=True)
class Statistics:
    """Rates, selectivities and the like, by alias in FROM; windows come from the query.

    rate: tuples per second of each stream, before any selection.
    selectivity: of an edge (A, B): the fraction of pairs of A and B tuples that join. (B, A) is the same unless it is given
        too (asymmetric: f of A tuples probing B).
    selection: fraction of a stream's tuples that pass the predicates on it alone; 1 where not given.
    distinct: number of distinct values of (stream, column).
    table_rows: number of rows of each static table.
    window_tuples: overrides the number of tuples that a window holds (otherwise rate x seconds, or ROWS n).
    row_bytes: mean payload of one row of a stream.

    >>> s = Statistics(rate={"A": 10.0}, selectivity={("A", "B"): 0.5})
    >>> s.edge("B", "A"), s.selected("A")
    (0.5, 1.0)
    """

    rate: Mapping[str, float] = field(default_factory=dict)
    selectivity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    distinct: Mapping[tuple[str, str], float] = field(default_factory=dict)
    selection: Mapping[str, float] = field(default_factory=dict)
    table_rows: Mapping[str, int] = field(default_factory=dict)
    window_tuples: Mapping[str, float] = field(default_factory=dict)
    row_bytes: Mapping[str, float] = field(default_factory=dict)
    heavy: Mapping[tuple[str, str], tuple[tuple[str, float], ...]] = field(default_factory=dict)
    costs: Costs = Costs()

    def __post_init__(self) -> None:
        for name in ("rate", "distinct", "table_rows", "window_tuples", "row_bytes"):
            for key, value in getattr(self, name).items():
                if not (_is_number(value) and value >= 0):
                    least = "above 0" if name == "rate" else "zero or more"
                    raise QueryError(f"statistics: {name} of {_named(key)} is {value}; it must be a number, {least}")
        for key, value in self.rate.items():
            if value == 0:
                raise QueryError(
                    f"statistics: rate of {_named(key)} is 0",
                    hint="a stream with no tuples joins nothing; give a small rate",
                )
        for name in ("selectivity", "selection"):
            for key, value in getattr(self, name).items():
                if not (_is_number(value) and 0 <= value <= 1):
                    raise QueryError(f"statistics: {name} of {_named(key)} is {value}; it must be 0 to 1")
        for key, values in self.heavy.items():
            if not all(_is_number(part) and 0 < part <= 1 for _, part in values):
                raise QueryError(f"statistics: heavy values of {_named(key)}: a part of its rows is above 0, at most 1")
        for key in self.selectivity:
            if key[0] == key[1]:
                raise QueryError(f"statistics: selectivity needs pairs of two streams, not {key!r}")
        for name in _MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def edge(self, left: str, right: str) -> float | None:
        """Selectivity of tuples of `left` probing `right`; None where nothing is known."""
        found = self.selectivity.get((left, right))
        return self.selectivity.get((right, left)) if found is None else found

    def selected(self, stream: str) -> float:
        return self.selection.get(stream, 1.0)

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.rate.items())), tuple(sorted(self.selectivity.items())), self.costs))

    def save(self, path: str | Path) -> None:
        """Write a small readable JSON file that `load` takes."""
        made: dict[str, object] = {}
        for name in _MAPPINGS:
            values = getattr(self, name)
            made[name] = {".".join(k) if isinstance(k, tuple) else k: v for k, v in values.items()}
        made["costs"] = {
            n: getattr(self.costs, n) for n in ("probe", "match", "insert", "delete", "source", "together")
        }
        Path(path).write_text(json.dumps(made, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Statistics:
        try:
            read = json.loads(Path(path).read_text())
        except OSError as e:
            raise QueryError(f"can't read statistics from {path}: {e.strerror}") from None
        except json.JSONDecodeError as e:
            raise QueryError(f"statistics file {path} is not JSON: {e}") from None
        if not isinstance(read, dict) or not all(isinstance(v, dict) for v in read.values()):
            raise QueryError(f"statistics file {path} is not an object of objects", hint='such as {"rate": {"A": 10}}')
        unknown = set(read) - set(_MAPPINGS) - {"costs"}
        if unknown:
            raise QueryError(f"statistics file {path} has unknown entries: {', '.join(sorted(unknown))}")
        made: dict[str, Any] = {}
        for name in _MAPPINGS:
            values = read.get(name, {})
            wrong = [k for k in values if name in _PAIRS and "." not in k]
            if wrong:
                what = "two streams" if name == "selectivity" else "a stream and its column"
                raise QueryError(f"statistics file {path}: {name} of '{wrong[0]}'", hint=f"name {what}: 'A.B'")
            made[name] = {(tuple(k.split(".", 1)) if name in _PAIRS else k): v for k, v in values.items()}
        try:
            made["heavy"] = {k: tuple((str(a), float(b)) for a, b in v) for k, v in made["heavy"].items()}
            costs = Costs(**read.get("costs", {}))
        except (TypeError, ValueError) as e:
            raise QueryError(
                f"statistics file {path}: {e}", hint="costs: probe, match, insert, delete, together"
            ) from None
        return cls(**made, costs=costs)


_MAPPINGS = ("rate", "selectivity", "distinct", "selection", "table_rows", "window_tuples", "row_bytes", "heavy")
_PAIRS = ("selectivity", "distinct", "heavy")


def _named(key: object) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
