"""Times written as text: whole columns at once, in ISO 8601, with or without a zone; without one they are UTC."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_UTC = pa.timestamp("us", tz="UTC")
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_ZONED = r"[T ]\S*(Z|[+-]\d{2}(:?\d{2})?)$"
_LONG_FRACTION = re.compile(r"\.\d{6}\d*[1-9]")


def timestamps(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """TIMESTAMPs from text; raises ArrowInvalid if any value is not one or is finer than a microsecond.

    >>> timestamps(pa.chunked_array([["2026-01-31 12:00:00", "2026-01-31T12:00:00.5+01:00", "2026-01-31", None]]))[1]
    <pyarrow.TimestampScalar: '2026-01-31T11:00:00.500000+0000'>
    """
    text = pc.utf8_trim_whitespace(text)
    try:
        return text.cast(pa.timestamp("us")).cast(_UTC)  # no zone anywhere: the common case, one pass
    except pa.ArrowInvalid:
        text = pc.replace_substring_regex(text, r"(\.\d{6})0+", r"\1")
        missing = pc.if_else(pc.match_substring_regex(text, _DAY), "T00:00Z", "Z")
        ending = pc.if_else(pc.match_substring_regex(text, _ZONED), "", missing)
        return pc.binary_join_element_wise(text, ending, "").cast(_UTC)


def dates(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """DATEs from text such as 2026-01-31; raises ArrowInvalid if any value is not one."""
    return pc.utf8_trim_whitespace(text).cast(pa.date32())


def too_fine(text: str) -> bool:
    """Whether a time's fraction has more than six digits that count.

    >>> too_fine("12:00:00.1234567"), too_fine("12:00:00.123456000")
    (True, False)
    """
    return _LONG_FRACTION.search(text) is not None
