"""StoredFile: one file to be read, from a path of this machine or as bytes that came from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from watersmeet.data.place import Place


@dataclass(frozen=True)
class StoredFile:
    """place: how errors call it; its name also says how it is compressed (.gz, .bz2, .zst, .lz4). content: its bytes, or None if it is
    to be read from `path`."""

    place: Place
    path: Path
    content: Any = None

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.content is None else len(self.content)

    def raw(self) -> Any:
        """The bytes as they are stored, for a reader that jumps about."""
        return str(self.path) if self.content is None else pa.BufferReader(self.content)

    def stream(self) -> Any:
        """The bytes from the beginning, uncompressed."""
        if self.content is None:
            return pa.input_stream(str(self.path), compression="detect")
        try:
            codec = pa.Codec.detect(str(self.path)).name
        except (ValueError, TypeError):
            return pa.BufferReader(self.content)
        return pa.CompressedInputStream(pa.BufferReader(self.content), codec)
