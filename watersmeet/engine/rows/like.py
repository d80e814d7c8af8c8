r"""LIKE over a whole column.

Arrow has a `match_like`, but for patterns such as 'x%' and '%x' it compares with the text as written, backslashes and all. So the
pattern is taken apart here; runs of plain text at the ends need no regular expression.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def like(strings: pa.Array, pattern: str) -> pa.Array:
    r"""Where strings match: % is any run, _ any one character; a backslash takes their meaning from both, and from itself.

    >>> like(pa.array(["C:\\temp\\x", "C:temp"]), r"C:\\temp%").to_pylist()
    [True, False]
    """
    parts = _parts(pattern)
    texts = [part for part in parts if not isinstance(part, _Wild)]
    match [part if isinstance(part, _Wild) else "" for part in parts]:
        case [] | [""]:
            return pc.equal(strings, "".join(texts))
        case ["", "%"]:
            return pc.starts_with(strings, texts[0])
        case ["%", ""]:
            return pc.ends_with(strings, texts[0])
        case ["%", "", "%"]:
            return pc.match_substring(strings, texts[0])
    wild = {"%": ".*", "_": "."}
    made = "".join(wild[part] if isinstance(part, _Wild) else _quoted(part) for part in parts)
    return pc.match_substring_regex(strings, rf"(?s)\A(?:{made})\z")


class _Wild(str):
    """% or _, with its meaning."""


def _parts(pattern: str) -> list[str]:
    """Runs of plain text, and what is between them."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char in "%_":
            parts.append(_Wild(char))
        else:
            at += char == "\\"
            if parts and not isinstance(parts[-1], _Wild):
                parts[-1] += pattern[at]
            else:
                parts.append(pattern[at])
        at += 1
    return parts


def _quoted(text: str) -> str:
    """Plain text in a regular expression of RE2."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{ord(c):02x}" for c in text)
