"""Native: functions as machine code, kept on disk, loaded and called without the compiler.

numba could keep the code, too, but to load it again takes all of numba: half a second and 90 MB in every process that joins. So numba
runs only where code is made (build.py), in processes of its own; here the code is loaded by LLVM alone.

Code lies in a folder named after the content of all files that it is made from, the version of numba and the kind of processor: nothing
else counts, so that executors that unpack the package again find it. The folder is in the cache folder (model/cache_folder.py), and nobody
else can write to it. Of several processes that find nothing there, one has the code made and the others wait for it.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from struct import pack
from threading import Lock
from typing import Any, Final, get_type_hints
from weakref import ref

import llvmlite.binding as llvm

from watersmeet.errors import WatersmeetError
from watersmeet.model.cache_folder import private_folder

# What is made at once, by a process each: names of functions in the engine.
PARTS: Final[tuple[tuple[str, ...], ...]] = (
    ("kernel.run.run",),
    ("kernel.fill.fill", "store.rebuild.relink", "store.rebuild.sweep", "store.partition.rehash", "store.cache.sweep_cache",
     "store.cache.clear_cache", "store.cache.refill", "rows.payload._by_piece",
     "rows.payload._take_words", "rows.values.add_bytes", "rows.values.add_words", "store.partition.held_rows"),
)  # fmt: skip
# The files that compiled code is made from; a change in another file compiles nothing again.
SOURCES: Final = (
    "native/*.py",
    "kernel/*.py",
    "store/*.py",
    "program/layout.py",
    "program/tables.py",
    "rows/payload.py",
    "rows/values.py",
)
_ENGINE: Final = Path(__file__).parent.parent
_RETURNS: Final[dict[str, Callable[[int], Any]]] = {"int64": int, "int32": int, "bool": bool, "none": lambda _: None}
_FINE: Final = (0, -2)  # what compiled functions return beside their result: all well, and None


@dataclass(frozen=True)
class Arrays:
    """A kind of parameter: numpy arrays without gaps of this type of element, as numba and as numpy call it."""

    element: str
    dimensions: int
    names: tuple[str, ...]


def _fingerprint() -> str:
    digest = hashlib.sha256(
        f"{version('numba')} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}".encode()
    )
    for path in sorted(path for pattern in SOURCES for path in _ENGINE.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def folder() -> Path:
    """Where compiled code is kept: nobody else can write there."""
    return private_folder(f"kernel-{_fingerprint()}")


def path_of(name: str) -> Path:
    """Where the code of a function is kept: a line (symbol, type of the result, bytes of the first object file), then two object files."""
    return folder() / f"{name}.o"


def warm() -> bool:
    """Whether the kernel has been compiled before (else the first call has it compiled)."""
    return all(path_of(name).exists() for part in PARTS for name in part)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time, as far as the file system can tell."""
    with (folder() / "lock").open("w") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(name: str) -> None:
    """Have the code of a function made, and of those that are made along with it."""
    parts = PARTS if any(name in part for part in PARTS) else ((name,),)
    with _alone():
        parts = tuple(part for part in parts if not all(path_of(one).exists() for one in part))
        if parts and parts[0][0] == PARTS[0][0]:
            sys.stderr.write("watersmeet: compiling the join kernel, once on this machine (20 to 40 s) ...\n")
            sys.stderr.flush()
        path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
        makers: list[subprocess.Popen[str]] = []
        try:
            for part in parts:
                command = [sys.executable, "-P", "-m", "watersmeet.engine.native.build", str(folder()), *part]
                makers.append(
                    subprocess.Popen(
                        command, env={**os.environ, "PYTHONPATH": path}, text=True,
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    )
                )  # fmt: skip
            for maker in makers:
                said = maker.communicate()[1]
                if maker.returncode:
                    raise WatersmeetError(
                        f"the join kernel could not be compiled\n  {_last(said)}\n  by {sys.executable}"
                    )
        finally:
            for maker in makers:
                if maker.poll() is None:
                    maker.kill()
                    maker.communicate()


def _last(said: str) -> str:
    """The last line of a traceback."""
    lines = said.strip().splitlines()
    return lines[-1] if lines else "its process ended without a word"


def is_named_tuple(hint: Any) -> bool:
    """Whether a type is a named tuple."""
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _flat(args: Iterable[Any]) -> Iterator[Any]:
    """Arguments one by one, those in named tuples too."""
    for value in args:
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


class Native:
    """A function that Python calls; its code is loaded, and if need be made, when it is called first."""

    def __init__(self, function: Callable[..., Any], arrays: dict[Any, Arrays]) -> None:
        self.__doc__, self.__wrapped__, self.arrays = function.__doc__, function, arrays
        self.__module__, self.__name__, self.__qualname__ = (
            function.__module__,
            function.__name__,
            function.__qualname__,
        )
        self._code: Any = None

    def __call__(self, *args: Any) -> Any:
        """All arguments go over as one row of words (build.py takes it apart); an array that was given last time has its words already."""
        if self._code is None:
            with _loading:
                if self._code is None:
                    self._load()
        words = []
        for k, (value, kind, (last, same)) in enumerate(zip(_flat(args), self._kinds, self._last, strict=True)):
            if kind is None:
                words.append(int(value).to_bytes(8, "little", signed=True))
            elif last() is value:
                words.append(same)
            else:
                words.append(self._array(k, value, kind))
        made = _Made()
        self._code(b"".join(words), made)
        if made.status not in _FINE:
            raise RuntimeError(f"{self.__name__} failed with status {made.status}")
        return self._returns(made.result)

    def _array(self, k: int, value: Any, kind: Arrays) -> bytes:
        """An array by numba's convention: owner and parent (none), elements, bytes of one, address, shape, strides."""
        if value.dtype.str not in kind.names or value.ndim != kind.dimensions or not value.flags.c_contiguous:
            raise TypeError(
                f"{self.__name__}: argument {k + 1} must be an array of {kind.element} in {kind.dimensions} dimensions, without gaps"
            )
        words = (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        made = pack(f"<{len(words)}q", *words)
        self._last[k] = (ref(value), made)
        return made

    def _load(self) -> None:
        name = f"{self.__module__.removeprefix('watersmeet.engine.')}.{self.__name__}"
        if not path_of(name).exists():
            build(name)
        line, _, code = path_of(name).read_bytes().partition(b"\n")
        symbol, returns, size = line.decode().split()
        hints = get_type_hints(self.__wrapped__)
        given = [
            tuple(get_type_hints(h).values()) if is_named_tuple(h) else h for p, h in hints.items() if p != "return"
        ]
        self._kinds = [self.arrays.get(hint) for hint in _flat(given)]
        self._last: list[tuple[Callable[[], Any], bytes]] = [(_nothing, b"")] * len(self._kinds)
        self._returns = _RETURNS[returns]
        engine = _engine()
        for part in (code[: int(size)], code[int(size) :]):
            engine.add_object_file(llvm.ObjectFileRef.from_data(part))
        engine.finalize_object()
        self._code = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(_Made))(engine.get_function_address(symbol))


class _Made(ctypes.Structure):
    """What a compiled function gives back."""

    _fields_ = (("result", ctypes.c_int64), ("status", ctypes.c_int64))


def _nothing() -> None:
    """There was no array."""


_loading = Lock()  # one thread at a time
_engines: list[Any] = []


def _engine() -> Any:
    """LLVM, loading code into this process, where it stays."""
    if not _engines:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        _engines.append(llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine))
    return _engines[0]
