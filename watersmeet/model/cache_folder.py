"""The cache folder: where this user keeps what is made once on a machine: compiled code, measured prices.

It is WATERSMEET_CACHE, or the user's cache folder (XDG_CACHE_HOME, ~/.cache), or one of the user's own in the system's temporary folder.
Code that lies there is run, so it must be a folder that nobody else can write to.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from watersmeet.errors import WatersmeetError


def cache_places() -> list[Path]:
    """Folders that may serve, best first."""
    named, user, home = (os.environ.get(name) for name in ("WATERSMEET_CACHE", "XDG_CACHE_HOME", "HOME"))
    temporary = Path(tempfile.gettempdir()) / f"watersmeet-{os.getuid()}"
    if named:
        return [Path(named), temporary]
    if user:
        return [Path(user) / "watersmeet", temporary]
    return [Path(home) / ".cache/watersmeet", temporary] if home else [temporary]


def private_folder(name: str) -> Path:
    """A folder of this name in the cache, made if need be, that this user and nobody else can write to.

    If no place will do, a fresh one that lasts as long as nobody clears the temporary folder; if WATERSMEET_CACHE names one that others
    can write to, a WatersmeetError.
    """
    for place in cache_places():
        try:
            for folder in (place, place / name):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                why = open_to_others(folder)
                if why is not None:
                    break
        except OSError:
            continue
        if why is None and os.access(folder, os.W_OK):
            return folder
        if why is not None and os.environ.get("WATERSMEET_CACHE") and place == Path(os.environ["WATERSMEET_CACHE"]):
            raise WatersmeetError(
                f"compiled code can't be kept in '{folder}': {why}\n"
                "  let WATERSMEET_CACHE name a folder that belongs to this user and that nobody else can write to (chmod 700)"
            )
    return Path(tempfile.mkdtemp(prefix="watersmeet-"))


def open_to_others(folder: Path, forbidden: int = 0o022) -> str | None:
    """Why somebody else could put something into a folder; None: nobody can.

    forbidden: bits of its mode that must not be set (0o022: others may read, 0o077: they may not).
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link, or no folder at all"
    if found.st_uid != os.getuid():
        return f"it belongs to user {found.st_uid}, and this is user {os.getuid()}"
    if found.st_mode & forbidden:
        return f"others can write to it (its mode is {stat.S_IMODE(found.st_mode):o})"
    for above in folder.absolute().parents:
        mode = above.stat().st_mode
        if mode & 0o002 and not mode & stat.S_ISVTX:
            return f"anybody can rename what lies in '{above}' (its mode is {stat.S_IMODE(mode):o})"
    return None
