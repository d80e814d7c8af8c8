"""The compiler: `njit` with a cache on disk that is right.

Numba's own cache notices a change of the file that a function is in, but not of the functions it calls, and takes the same file at
another place for another one, so that each executor that unpacks the package would compile anew. Here the cache folder is named after the
content of all compiled files, and nothing else counts. It lies in WATERSMEET_CACHE, or the user's cache folder, or the system's
temporary one.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numba
from numba.core.caching import _CacheLocator

F = TypeVar("F", bound=Callable[..., Any])


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """A folder this process can write to; compiled kernels are kept there."""
    named, user, home = (os.environ.get(name) for name in ("WATERSMEET_CACHE", "XDG_CACHE_HOME", "HOME"))
    temporary = Path(tempfile.gettempdir()) / f"watersmeet-{os.getuid()}"
    places = (
        [Path(named)]
        if named
        else [Path(user) / "watersmeet"]
        if user
        else [Path(home) / ".cache/watersmeet"]
        if home
        else []
    )
    for place in [*places, temporary]:
        folder = place / f"kernel-{_fingerprint()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="watersmeet-"))


FOLDER = cache_folder()


class ByContent(_CacheLocator):
    """Tells numba where a function is cached: in the folder that is named after the content of all of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(FOLDER)

    def get_source_stamp(self) -> str:
        return FOLDER.name

    def get_disambiguator(self) -> str:
        return str(self.line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> ByContent:
        return cls(py_func)


def warm() -> bool:
    """Whether the kernel has been compiled before (else the first call compiles it)."""
    return any(FOLDER.glob("kernel.run-*.nbi"))


def announce() -> None:
    """Say so if the kernel is about to be compiled: it takes a while, once for each version on each machine."""
    if not _said and not warm():
        sys.stderr.write("watersmeet: compiling the join kernel, once on this machine (about 20 s) ...\n")
        sys.stderr.flush()
    _said.append(True)


_said: list[bool] = []


class Words(Protocol):
    """A numpy array of integers, of one or two dimensions, as compiled code sees it."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, at: int | tuple[int, int]) -> int: ...
    def __setitem__(self, at: int | tuple[int, int], value: int) -> None: ...


# No reference counting (`_nrt`): the arrays belong to the caller, and counting them costs ten times what the kernel does.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False}


def compiled(function: F, **options: Any) -> F:
    """Compile a function that Python calls."""
    settings: Any = numba.config
    other, settings.CACHE_LOCATOR_CLASSES = settings.CACHE_LOCATOR_CLASSES, f"{__name__}.{ByContent.__name__}"
    try:
        made: F = numba.njit(**_OPTIONS, **options)(function)
    finally:
        settings.CACHE_LOCATOR_CLASSES = other
    return made


def inlined(function: F) -> F:
    """Compile a function that only compiled ones call, into each of them: a call would pass every array by value."""
    return compiled(function, forceinline=True)
