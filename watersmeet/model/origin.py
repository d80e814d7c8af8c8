"""Origins: which formats have nested fields and metadata, and what metadata there is."""

from __future__ import annotations

from typing import Final

from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.types import Field

# What comes with a message besides its value, and the types that a column of it may have (None: any).
METADATA: Final[dict[str, dict[str, tuple[str, ...] | None]]] = {
    "kafka": {
        "key": None, "topic": ("STRING",), "partition": ("BIGINT",), "offset": ("BIGINT",), "timestamp": ("TIMESTAMP",),
        "headers": ("STRING",),
    },
}  # fmt: skip
_DEEPER: Final = ("key", "headers")  # FROM key.id: the key is a JSON object; FROM headers.trace: one header


def check_origin(field: Field, format: str, where: tuple[str | None, int | None, int | None]) -> None:
    """Refuse a column whose origin its format does not have."""
    origin = field.origin
    if origin is None:
        return
    known = METADATA.get(format)
    if known is None:
        raise QueryError(
            f"column '{field.name}': {origin}, but FORMAT {format} has neither nested fields nor metadata", *where,
            f"only FORMAT {', '.join(METADATA)} has",
        )  # fmt: skip
    if not origin.metadata:
        return
    name, *inner = origin.path
    if name not in known or (inner and name not in _DEEPER) or (name == "headers" and len(inner) > 1):
        raise QueryError(
            f"column '{field.name}': FORMAT {format} has no metadata '{'.'.join(origin.path)}'",
            *where,
            nearest_name(name, known),
        )
    types = known[name]
    if types and field.type.name not in types:
        raise QueryError(f"column '{field.name}': the {name} of a message is {types[0]}, not {field.type}", *where)
