"""A changed query on an old checkpoint, refused at the start.

Cells refuse it, too, but only when a batch comes to them, which may be hours later. So where the control folder lies in the checkpoint
(`<checkpoint>/control`, as the command line has it), a small file in it says which query the checkpoint belongs to. Only folders of this
machine are looked at; elsewhere the cells refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from watersmeet.spark.chunks import check_fingerprint
from watersmeet.spark.control import local_folder

NAME = ".query.json"  # hidden: Spark, which reads the folder, does not see it


def check_start(control: str | Path, fingerprint: Mapping[str, str], refresh_tables: bool) -> None:
    """Refuse the query if the checkpoint around the control folder is another's; note it if the checkpoint is new."""
    folder = local_folder(str(control))
    if folder is None:
        return
    kept = folder / NAME
    begun = (folder.parent / "offsets").is_dir() and any(
        p.name.isdigit() for p in (folder.parent / "offsets").iterdir()
    )
    if begun and not kept.is_file():
        return  # begun by an earlier version, or not a checkpoint with its own control folder
    if begun:
        check_fingerprint(json.loads(kept.read_text(encoding="utf-8")), dict(fingerprint), refresh_tables)
    hidden = kept.with_name(f"{NAME}.tmp")
    hidden.write_text(json.dumps(dict(fingerprint)), encoding="utf-8")
    hidden.replace(kept)
