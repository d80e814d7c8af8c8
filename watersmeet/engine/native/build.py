"""Build: numba makes machine code of functions and puts it where load.py finds it.

    python -m watersmeet.engine.native.build FOLDER kernel.run.run ...

runs in a process of its own. Types come from the annotations, so that each function is compiled once: left to itself numba also compiles
it for what it first takes an argument for (a constant, an int32), and a quarter of the time went into that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import types
from numba.cpython import slicing
from numba.extending import intrinsic

from watersmeet.engine.native import mark as compiled
from watersmeet.engine.native.load import is_named_tuple

# No reference counting (`_nrt`): the arrays belong to the caller, and counting them costs ten times what the kernel does.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
}  # fmt: skip


def _type(hint: Any) -> Any:
    if hint in compiled.ARRAYS:
        kind = compiled.ARRAYS[hint]
        return types.Array(getattr(types, kind.element), kind.dimensions, "C")
    if is_named_tuple(hint):
        return types.NamedTuple(tuple(map(_type, get_type_hints(hint).values())), hint)  # type: ignore[no-untyped-call]
    return {int: types.int64, bool: types.boolean}[hint]


def _signature(function: Callable[..., Any]) -> tuple[Any, ...]:
    hints = get_type_hints(function)
    return tuple(_type(hints[name]) for name in hints if name != "return")


def make(function: Callable[..., Any], inline: bool) -> Any:
    """Inlined functions are compiled at once, those that they are part of when they are asked for."""
    if inline:
        return numba.njit(_signature(function), forceinline=True, **_OPTIONS)(function)
    return numba.njit(**_OPTIONS)(function)


def _ask(builder: Any, place: Any) -> None:
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    made = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], made)
    builder.call(function, [place, word(0), word(3), word(1)])


def _prefetch(typing: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        _ask(builder, builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _prefetch_at(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _ask(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _word_at(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.int64(types.int64), generate


def _put_word(typing: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _entry(name: str, result: Any) -> bytes:
    """The code of a function `name(words, made)`, which load.py calls: it takes the arguments of a compiled function out of a row of
    words, calls that, and puts down two words, its result and its status."""
    word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
    convention = result.target_context.call_conv.get_function_type(result.fndesc.restype, result.fndesc.argtypes)
    module = ir.Module()
    called = ir.Function(module, convention, result.fndesc.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    words, made = entry.args
    returned, *_ = places = [builder.alloca(argument.type.pointee) for argument in called.args[:2]]
    given = list(places)
    for k, argument in enumerate(called.args[2:]):
        value = builder.load(builder.gep(words, [word(k)]))
        given.append(builder.inttoptr(value, argument.type) if isinstance(argument.type, ir.PointerType) else value)
    status = builder.call(called, given)
    if isinstance(returned.type.pointee, ir.IntType):
        builder.store(builder.sext(builder.load(returned), word), made)
    builder.store(builder.sext(status, word), builder.gep(made, [word(1)]))
    builder.ret_void()
    code: bytes = (
        llvm.Target.from_default_triple().create_target_machine(jit=True).emit_object(llvm.parse_assembly(str(module)))
    )
    return code


def put(folder: Path, name: str) -> None:
    """Compile a function and keep its code."""
    module, _, function = name.rpartition(".")
    made = getattr(import_module(f"watersmeet.engine.{module}"), function)
    signature = _signature(made.py_func)
    if signature not in made.overloads:
        made.compile(signature)
    result = made.overloads[signature]
    _, _, (code, _) = result.library.serialize_using_object_code()
    unfinished = folder / f"{name}.{os.getpid()}"
    header = f"{name} {result.signature.return_type} {len(code)}\n"
    unfinished.write_bytes(header.encode() + code + _entry(name, result))
    unfinished.replace(folder / f"{name}.o")


def main(folder: str, *names: str) -> None:
    compiled.make = make
    slicing.fix_index = lambda builder, index, size: index  # no index counts from the end (decision 143)
    for instruction in (_prefetch, _prefetch_at, _word_at, _put_word):
        setattr(compiled, instruction.__name__[1:], intrinsic(instruction))
    for name in names:
        put(Path(folder), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
