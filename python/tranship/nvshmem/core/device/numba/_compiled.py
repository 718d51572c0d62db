"""The operations in functions that Numba has compiled: calls of C functions of the library, without the
interpreter. A call that fails returns from the compiled function with the exception that Python would have got."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Optional

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import (
    box,
    intrinsic,
    lower_builtin,
    make_attribute_wrapper,
    models,
    overload,
    overload_attribute,
    overload_method,
    register_jitable,
    register_model,
    type_callable,
)
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from ..... import _core
from ....._elements import elements_of
from ....._errors import Error
from ..._memory import MulticastArray
from ..._types import SignalOp
from . import amo, collective, direct, mem, rma, signal
from ._values import DOES_NOT_FIT, refusal

for _name, _address in _core.compiled_functions().items():
    llvm.add_symbol(_name, _address)

# The memory that a put of one element reads, a store by this thread where that is allowed. None on processors whose thread
# pointer is not known here.
_DISTANCE = "tranship_direct_from_thread_pointer"
_DIRECT: Optional[dict[str, int]] = None
if _core.direct_transfers is not None:
    _address, _DIRECT = _core.direct_transfers
    llvm.add_symbol(_DISTANCE, _address)
_WORDS = (1, 2, 4, 8)  # bytes of what is stored at once

_TRANSFERS, _ATOMICS, _SEVERAL = _core.transfer_names, _core.atomic_names, _core.several_names
_KINDS, _REDUCTIONS = _core.collective_names, _core.reduction_names

_i32, _i64 = ir.IntType(32), ir.IntType(64)
_pointer = ir.IntType(8).as_pointer()
_i64_pointer = _i64.as_pointer()
_array = ir.LiteralStructType([_pointer, _i64, _i64, _i64_pointer, _i64_pointer])


def _element(array: Any) -> int:
    try:
        elements = elements_of(as_dtype(array.dtype))
        elements.require_numbers("a kernel")
        return int(_core.element_number(elements.kind))
    except (Error, NotImplementedError) as error:
        raise TypingError(str(error)) from None


def _call(context: Any, builder: Any, name: str, arguments: list[Any]) -> None:
    function_type = ir.FunctionType(_i32, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    status = builder.call(function, arguments)
    with builder.if_then(cgutils.is_not_null(builder, status), likely=False):
        context.call_conv.return_exc(builder)


def _data(context: Any, builder: Any, type: Any, value: Any) -> Any:
    return builder.bitcast(context.make_array(type)(context, builder, value).data, _pointer)


def _described(context: Any, builder: Any, type: Any, value: Any) -> Any:
    """A descriptor on the stack: address, element type, extents, strides in bytes."""
    array = context.make_array(type)(context, builder, value)

    def sizes(numbers: Any) -> Any:
        if type.ndim == 0:
            return _i64_pointer(None)
        return builder.bitcast(cgutils.alloca_once_value(builder, numbers), _i64_pointer)

    fields = [
        builder.bitcast(array.data, _pointer),
        _i64(_element(type)),
        _i64(type.ndim),
        sizes(array.shape),
        sizes(array.strides),
    ]
    room = cgutils.alloca_once(builder, _array)
    for i, field in enumerate(fields):
        builder.store(field, cgutils.gep_inbounds(builder, room, 0, i))
    return builder.bitcast(room, _pointer)


def _require_arrays(**arrays: Any) -> None:
    for name, array in arrays.items():
        if not isinstance(array, types.Array):
            raise TypingError(f"{name} is an array, not {array}")


def _require_writable(array: Any) -> None:
    if not array.mutable:
        raise TypingError("an array that is written is read-only")


def _require_integers(**numbers: Any) -> None:
    for name, number in numbers.items():
        if not isinstance(number, (types.Integer, types.IntEnumMember)):
            raise TypingError(f"{name} is an integer, not {number}")


def _require_alike(dst: Any, src: Any) -> None:
    _require_arrays(dst=dst, src=src)
    if dst.dtype != src.dtype:
        raise TypingError(f"the source has elements {src.dtype}, the target {dst.dtype}")


def _bits(builder: Any, value: Any) -> Any:
    """A value of up to 8 bytes as 64 bits."""
    if isinstance(value.type, ir.FloatType):
        value = builder.bitcast(value, _i32)
    elif isinstance(value.type, ir.DoubleType):
        value = builder.bitcast(value, _i64)
    return builder.zext(value, _i64) if value.type.width < 64 else value


def _value(builder: Any, bits: Any, type: Any) -> Any:
    if isinstance(type, ir.FloatType):
        return builder.bitcast(builder.trunc(bits, _i32), type)
    if isinstance(type, ir.DoubleType):
        return builder.bitcast(bits, type)
    return builder.trunc(bits, type) if type.width < 64 else bits


# Transfers.


def _where_direct(
    builder: Any, words: list[tuple[Any, int]], pe: Any, may: Any, act: Callable[[list[Any]], None], call: Callable[[], None]
) -> None:
    """`act(addresses)` with the peer's addresses of words, which are given by their own and their bytes, where `may` is
    true, all are aligned and lie in the heap of this thread's rank, and the peer's heap is directly reached
    (detail::DirectTransfers). Everything else is left to `call()`, with all checks and errors."""
    if _DIRECT is None:
        return call()
    places = _DIRECT
    look, check, find, store, other, done = (
        builder.append_basic_block(f"put.{name}") for name in ("look", "check", "find", "store", "call", "done")
    )
    builder.cbranch(may, look, other)

    builder.position_at_end(look)
    distance = builder.module.globals.get(_DISTANCE) or cgutils.add_global_variable(builder.module, _i64, _DISTANCE)
    segment = 257  # the address space of what lies at distances from the thread pointer, %fs
    transfers = builder.load(builder.inttoptr(builder.load(distance), _pointer.as_pointer(segment)))
    builder.cbranch(cgutils.is_not_null(builder, transfers), check, other)

    builder.position_at_end(check)

    def at(name: str, type: Any) -> Any:
        return builder.bitcast(builder.gep(transfers, [_i64(places[name])]), type.as_pointer())

    own, bytes = (builder.load(at(name, _i64)) for name in ("own", "size_bytes"))
    conditions = [builder.icmp_unsigned("<", pe, builder.sext(builder.load(at("count", _i32)), _i64))]
    offsets = []
    for there, width in words:
        address = builder.ptrtoint(there, _i64)
        offsets.append(builder.sub(address, own))
        conditions += [
            builder.icmp_unsigned(">=", bytes, _i64(width)),
            builder.icmp_unsigned("<=", offsets[-1], builder.sub(bytes, _i64(width))),
            builder.icmp_unsigned("==", builder.and_(address, _i64(width - 1)), _i64(0)),
        ]
    builder.cbranch(functools.reduce(builder.and_, conditions), find, other)

    builder.position_at_end(find)
    heap = builder.load(builder.gep(builder.load(at("direct", _i64_pointer)), [pe]))
    builder.cbranch(builder.icmp_unsigned("!=", heap, _i64(0)), store, other)

    builder.position_at_end(store)
    builder.store(ir.IntType(8)(1), at("acted", ir.IntType(8)))
    act([builder.add(heap, offset) for offset in offsets])
    builder.branch(done)

    builder.position_at_end(other)
    call()
    builder.branch(done)
    builder.position_at_end(done)


def _store_word(builder: Any, to: Any, word_at: Any) -> None:
    """Releases, as a store to where others wait must."""
    word = word_at.type.pointee
    value = builder.load(word_at, align=1)
    builder.store_atomic(value, builder.inttoptr(to, word.as_pointer()), "release", word.width // 8)


def _put_word(builder: Any, there: Any, word_at: Any, pe: Any, is_one: Any, call: Callable[[], None]) -> None:
    """A put of one element, an integer of as many bits as `word_at` points to, where `is_one` is true."""

    def act(to: list[Any]) -> None:
        _store_word(builder, to[0], word_at)

    _where_direct(builder, [(there, word_at.type.pointee.width // 8)], pe, is_one, act, call)


def _transfer(kind: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How it is typed, and what it becomes."""

    def typed(dst: Any, src: Any, pe: Any) -> Any:
        _require_alike(dst, src)
        _require_writable(dst)
        _require_integers(pe=pe)
        return types.void(dst, src, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dst, src, _ = signature.args
        if dst.layout == "C" and src.layout == "C":
            to = context.make_array(dst)(context, builder, args[0])
            source = context.make_array(src)(context, builder, args[1])
            is_smaller = builder.icmp_signed("<", to.nitems, source.nitems)
            count = builder.select(is_smaller, to.nitems, source.nitems)
            width = context.get_abi_sizeof(context.get_data_type(dst.dtype))
            first = [builder.bitcast(array.data, _pointer) for array in (to, source)]

            def call() -> None:
                bytes = builder.mul(count, _i64(width))
                _call(context, builder, "tranship_transfer", [_i32(kind), *first, bytes, args[2]])

            if _TRANSFERS[kind].startswith("put") and width in _WORDS:
                is_one = builder.icmp_signed("==", count, _i64(1))
                word_at = builder.bitcast(first[1], ir.IntType(8 * width).as_pointer())
                _put_word(builder, first[0], word_at, args[2], is_one, call)
            else:
                call()
        else:
            arrays = [_described(context, builder, type, value) for type, value in zip((dst, src), args)]
            _call(context, builder, "tranship_transfer_views", [_i32(kind), *arrays, args[2]])
        return context.get_dummy_value()

    return typed, generate


def _operation(names: list[Callable[..., Any]], typed: Callable[..., Any], generate: Callable[..., Any]) -> None:
    """An operation that is built into its callers. A compiled function of its own would count references to its
    arguments, which takes longer than a short put."""
    for name in names:
        type_callable(name)(lambda context: typed)
        lower_builtin(name, types.VarArg(types.Any))(generate)


def _overload(*names: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], None]:
    """One implementation for the forms of an operation: to them a compiled function is one thread."""

    def register(typer: Callable[..., Any]) -> None:
        for name in names:
            overload(name, strict=False, **options)(typer)

    return register


def _forms(module: Any, name: str) -> list[Callable[..., Any]]:
    return [getattr(module, name + scope) for scope in ("", "_warp", "_block")]


for _kind, _name in enumerate(_TRANSFERS):
    _operation(_forms(rma, _name), *_transfer(_kind))


def _first(array: Any) -> Any:
    """For compiled functions: an array, which must have an element."""


@_overload(_first)
def _(array: Any) -> Any:
    _require_arrays(array=array)

    def first(array: Any) -> Any:
        if array.size == 0:
            raise ValueError(_NO_ELEMENT)
        return array

    return first


_NO_ELEMENT = "the array has 0 elements: needs 1 or more"


def _first_of(context: Any, builder: Any, type: Any, value: Any) -> Any:
    """Where the first element of an array is, which must have one."""
    array = context.make_array(type)(context, builder, value)
    with builder.if_then(builder.icmp_signed("==", array.nitems, _i64(0)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_NO_ELEMENT,))
    return array.data


def _element_of(array: Any, value: Any) -> Any:
    """For compiled functions: a value as an element of an array, which it must fit in."""


def _require_fitting_type(element: Any, value: Any) -> None:
    kinds = ((types.Boolean, "b"), (types.Integer, "i"), (types.IntEnumMember, "i"), (types.Float, "f"), (types.Complex, "c"))
    kind = next((kind for type, kind in kinds if isinstance(value, type)), "")
    why = refusal(as_dtype(element), kind, str(types.unliteral(value)))
    if why is not None:
        raise TypingError(why)


def _fitting(element: Any) -> Callable[[Any], Any]:
    """A value as an element of a type, which it must fit in."""
    convert = as_dtype(element).type
    if not isinstance(element, types.Integer):
        return lambda value: convert(value)

    def fitting(value: Any) -> Any:
        result = convert(value)
        if result != value or (result < 0) != (value < 0):
            raise ValueError(DOES_NOT_FIT)
        return result

    return fitting


def _fitted(context: Any, builder: Any, given: Any, element: Any, value: Any) -> Any:
    """Fits a value into an element by code in its caller: a call would take longer than the operation."""
    if isinstance(given, types.IntEnumMember):
        given = given.dtype
    result = context.cast(builder, value, given, element)
    if isinstance(element, types.Integer):
        back = context.cast(builder, result, element, given)
        signs = [
            builder.icmp_signed("<", one, one.type(0)) if type.signed else ir.IntType(1)(0)
            for one, type in ((result, element), (value, given))
        ]
        fits = builder.and_(builder.icmp_unsigned("==", back, value), builder.icmp_unsigned("==", *signs))
        with builder.if_then(builder.not_(fits), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (DOES_NOT_FIT,))
    return result


@_overload(_element_of)
def _(array: Any, value: Any) -> Any:
    _require_arrays(array=array)
    if not isinstance(array.dtype, (types.Integer, types.Float)):
        raise TypingError(f"elements that are integers or floats are needed, not {array.dtype}")
    _require_fitting_type(array.dtype, value)
    fitting = register_jitable(_fitting(array.dtype))
    return lambda array, value: fitting(value)


def _typed_p(dst: Any, src: Any, pe: Any) -> Any:
    _require_arrays(dst=dst)
    _require_writable(dst)
    _require_integers(pe=pe)
    _require_fitting_type(dst.dtype, src.dtype if isinstance(src, types.Array) else src)
    return types.void(dst, src, types.int64)


def _generate_p(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    dst, src, _ = signature.args
    element, type, value = dst.dtype, src, args[1]
    there = _first_of(context, builder, dst, args[0])
    if isinstance(src, types.Array):
        first = _first_of(context, builder, src, value)
        type, value = src.dtype, context.data_model_manager[src.dtype].from_data(builder, builder.load(first, align=1))
    value = _fitted(context, builder, type, element, value)
    data = context.data_model_manager[element].as_data(builder, value)
    room = cgutils.alloca_once(builder, data.type)
    builder.store(data, room)
    there, here = builder.bitcast(there, _pointer), builder.bitcast(room, _pointer)
    width = context.get_abi_sizeof(data.type)
    word_at = builder.bitcast(room, ir.IntType(8 * width).as_pointer())

    def call() -> None:
        arguments = [_i32(_TRANSFERS.index("put")), there, here, _i64(width), args[2]]
        _call(context, builder, "tranship_transfer", arguments)

    if width in _WORDS:
        _put_word(builder, there, word_at, args[2], ir.IntType(1)(1), call)
    else:
        call()
    return context.get_dummy_value()


_operation([rma.p], _typed_p, _generate_p)


def _typed_g(src: Any, pe: Any) -> Any:
    _require_arrays(src=src)
    _require_integers(pe=pe)
    _element(src)
    return src.dtype(src, types.int64)


def _generate_g(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = signature.args[0]
    there = builder.bitcast(_first_of(context, builder, array, args[0]), _pointer)
    room = cgutils.alloca_once(builder, context.get_data_type(array.dtype))
    here, width = builder.bitcast(room, _pointer), context.get_abi_sizeof(context.get_data_type(array.dtype))
    if width in _WORDS:
        _call(context, builder, "tranship_get_word", [_i32(width), here, there, args[1]])
    else:
        _call(context, builder, "tranship_transfer", [_i32(_TRANSFERS.index("get")), here, there, _i64(width), args[1]])
    return context.data_model_manager[array.dtype].from_data(builder, builder.load(room))


_operation([rma.g], _typed_g, _generate_g)


def _require_signal(word: Any) -> None:
    _require_arrays(signal_var=word)
    if word.dtype not in (types.uint64, types.int64):
        raise TypingError(f"a signal is an element of uint64, not {word.dtype}")
    _require_writable(word)


def _signalled(blocking: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def typed(dst: Any, src: Any, signal_var: Any, signal_val: Any, signal_op: Any, pe: Any) -> Any:
        _require_alike(dst, src)
        _require_writable(dst)
        _require_signal(signal_var)
        _require_fitting_type(signal_var.dtype, signal_val)
        _require_integers(signal_op=signal_op, pe=pe)
        return types.void(dst, src, signal_var, signal_val, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dst, src, word, given = signature.args[:4]
        op, pe = args[4:]
        at = _first_of(context, builder, word, args[2])
        value = _fitted(context, builder, given, word.dtype, args[3])

        def call() -> None:
            arrays = [_described(context, builder, type, value) for type, value in zip((dst, src), args)]
            rest = [builder.bitcast(at, _pointer), value, op, pe, _i32(int(blocking))]
            _call(context, builder, "tranship_put_signal", [*arrays, *rest])

        width = context.get_abi_sizeof(context.get_data_type(dst.dtype))
        if dst.layout != "C" or src.layout != "C" or width not in _WORDS:
            call()
            return context.get_dummy_value()
        to, source = (context.make_array(type)(context, builder, value) for type, value in zip((dst, src), args))
        word_at = builder.bitcast(source.data, ir.IntType(8 * width).as_pointer())
        sets, adds = (builder.icmp_signed("==", op, _i64(number)) for number in (SignalOp.SIGNAL_SET, SignalOp.SIGNAL_ADD))
        is_one = [builder.icmp_signed("==", array.nitems, _i64(1)) for array in (to, source)]

        def act(there: list[Any]) -> None:
            _store_word(builder, there[0], word_at)
            signal = builder.inttoptr(there[1], _i64_pointer)
            with builder.if_else(sets) as (setting, adding):
                with setting:
                    builder.store_atomic(value, signal, "release", 8)
                with adding:
                    builder.atomic_rmw("add", signal, value, "release")

        may = functools.reduce(builder.and_, [*is_one, builder.or_(sets, adds)])
        _where_direct(builder, [(to.data, width), (at, 8)], pe, may, act, call)
        return context.get_dummy_value()

    return typed, generate


_operation(_forms(rma, "put_signal"), *_signalled(True))
_operation(_forms(rma, "put_signal_nbi"), *_signalled(False))


# Signals and waits.


@intrinsic
def _raised(typing_context: Any, word: Any, value: Any, op: Any, pe: Any) -> Any:
    _require_signal(word)
    _require_integers(value=value, op=op, pe=pe)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _call(context, builder, "tranship_signal", [_data(context, builder, word, args[0]), *args[1:]])
        return context.get_dummy_value()

    return types.void(word, types.uint64, types.int64, types.int64), generate


@_overload(*_forms(signal, "signal_op"))
def _(signal_var: Any, signal_val: Any, signal_op: Any, pe: Any) -> Any:
    return lambda signal_var, signal_val, signal_op, pe: _raised(
        _first(signal_var), _element_of(signal_var, signal_val), signal_op, pe
    )


def _looks(name: str, result_of: Callable[[Any], Any]) -> Any:
    @intrinsic
    def looks(typing_context: Any, variable: Any, comparison: Any, value: Any) -> Any:
        _require_arrays(variable=variable)
        element = variable.dtype
        if not isinstance(element, types.Integer):
            raise TypingError(f"a variable to wait for must be an integer, not {element}")
        _require_integers(comparison=comparison, value=value)
        signature = result_of(element)(variable, types.int64, element)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            seen = cgutils.alloca_once_value(builder, _i64(0))
            word = [_data(context, builder, variable, args[0]), _i32(_element(variable))]
            _call(context, builder, name, [*word, args[1], _bits(builder, args[2]), seen])
            return _value(builder, builder.load(seen), context.get_value_type(signature.return_type))

        return signature, generate

    return looks


_wait = _looks("tranship_wait_until", lambda element: element)
_test = _looks("tranship_test", lambda element: types.boolean)


@_overload(*_forms(signal, "signal_wait"))
def _(signal_var: Any, signal_op: Any, signal_val: Any) -> Any:
    return lambda signal_var, signal_op, signal_val: _wait(
        _first(signal_var), signal_op, _element_of(signal_var, signal_val)
    )


@_overload(*_forms(signal, "wait_until"))
def _(ivar: Any, cmp: Any, cmp_value: Any) -> Any:
    return lambda ivar, cmp, cmp_value: _wait(_first(ivar), cmp, _element_of(ivar, cmp_value))


@_overload(*_forms(signal, "test"))
def _(ivar: Any, cmp: Any, cmp_value: Any) -> Any:
    return lambda ivar, cmp, cmp_value: _test(_first(ivar), cmp, _element_of(ivar, cmp_value))


def _look_at_several(what: str) -> Any:
    """Calls the library; returns how many places it has found."""

    @intrinsic
    def look(typing_context: Any, ivars: Any, cmp: Any, values: Any, skip: Any, places: Any) -> Any:
        _require_integers(cmp=cmp)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def counted(type: Any, value: Any) -> list[Any]:
                array = context.make_array(type)(context, builder, value)
                return [builder.bitcast(array.data, _pointer), array.nitems]

            count = cgutils.alloca_once_value(builder, _i64(0))
            variables = _described(context, builder, ivars, args[0])
            several = [*counted(values, args[2]), *counted(skip, args[3]), _data(context, builder, places, args[4])]
            kind = _i32(_SEVERAL.index(what))
            _call(context, builder, "tranship_several", [kind, variables, args[1], *several, count])
            return builder.load(count)

        return types.int64(ivars, types.int64, values, skip, places), generate

    return look


def _values_for(ivars: Any, values: Any) -> Any:
    """For compiled functions: one value for all variables, or one for each, as an array of their elements."""


@_overload(_values_for)
def _(ivars: Any, values: Any) -> Any:
    element = as_dtype(ivars.dtype).type
    if not isinstance(values, types.Array):

        def one(ivars: Any, values: Any) -> Any:
            out = np.empty(1, element)
            out[0] = _element_of(ivars, values)
            return out

        return one

    def each(ivars: Any, values: Any) -> Any:
        out = np.empty(values.size, element)
        for i, value in enumerate(values.flat):
            out[i] = _element_of(ivars, value)
        return out

    return each


def _skips(status: Any) -> Any:
    """For compiled functions: 1 for each variable that is left out; empty where there is no status."""


@_overload(_skips)
def _(status: Any) -> Any:
    if not isinstance(status, types.Array):
        return lambda status: np.empty(0, np.int32)

    def each(status: Any) -> Any:
        out = np.empty(status.size, np.int32)
        for i, one in enumerate(status.flat):
            out[i] = one != 0
        return out

    return each


def _several(what: str, result_of: Callable[[Any], Any]) -> None:
    """`result_of(look)` is an implementation, where `look` returns the number of places and the places."""
    look = _look_at_several(what)

    @_overload(*_forms(signal, what))
    def _(ivars: Any, cmp: Any, cmp_values: Any, status: Any = None) -> Any:
        _require_arrays(ivars=ivars)
        if not isinstance(ivars.dtype, types.Integer):
            raise TypingError(f"a variable to wait for must be an integer, not {ivars.dtype}")
        if not isinstance(status, (types.Array, types.NoneType, types.Omitted)) and status is not None:
            raise TypingError(f"status must be an array with a number for each variable, not {status}")
        return result_of(look)


def _all_of(look: Any) -> Any:
    def run(ivars: Any, cmp: Any, cmp_values: Any, status: Any = None) -> bool:
        places = np.empty(ivars.size, np.int64)
        found: bool = look(ivars, cmp, _values_for(ivars, cmp_values), _skips(status), places) == ivars.size
        return found

    return run


def _until_all_of(look: Any) -> Any:
    def run(ivars: Any, cmp: Any, cmp_values: Any, status: Any = None) -> None:
        look(ivars, cmp, _values_for(ivars, cmp_values), _skips(status), np.empty(ivars.size, np.int64))

    return run


def _any_of(look: Any) -> Any:
    def run(ivars: Any, cmp: Any, cmp_values: Any, status: Any = None) -> Any:
        places = np.empty(ivars.size, np.int64)
        if look(ivars, cmp, _values_for(ivars, cmp_values), _skips(status), places) == 0:
            return None
        return places[0]

    return run


def _some_of(look: Any) -> Any:
    def run(ivars: Any, cmp: Any, cmp_values: Any, status: Any = None) -> Any:
        places = np.empty(ivars.size, np.int64)
        count = look(ivars, cmp, _values_for(ivars, cmp_values), _skips(status), places)
        return [places[i] for i in range(count)]

    return run


_several("wait_until_all", _until_all_of)
_several("test_all", _all_of)
for _what in ("wait_until", "test"):
    _several(f"{_what}_any", _any_of)
    _several(f"{_what}_some", _some_of)


@_overload(*_forms(signal, "signal_fetch"))
def _(signal_var: Any) -> Any:
    return lambda signal_var: _fetch(_first(signal_var), 0, 0, _team_rank(0))


def _simple(name: str, *arguments: int) -> Any:
    @intrinsic
    def call(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _call(context, builder, name, [_i32(argument) for argument in arguments])
            return context.get_dummy_value()

        return types.void(), generate

    return call


_fence, _quiet = _simple("tranship_fence"), _simple("tranship_quiet")


@_overload(*_forms(signal, "fence"))
def _() -> Any:
    return lambda: _fence()


@_overload(*_forms(signal, "quiet"))
def _() -> Any:
    return lambda: _quiet()


# Atomics.


def _atomic(op: str) -> Any:
    fetches = op in ("fetch", "swap", "compare_swap") or op.startswith("fetch_")

    @intrinsic
    def atomic(typing_context: Any, at: Any, value: Any, expected: Any, pe: Any) -> Any:
        _require_arrays(at=at)
        element = at.dtype
        result = element if fetches else types.void
        _require_integers(pe=pe)
        if op != "fetch":
            _require_writable(at)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            before = cgutils.alloca_once_value(builder, _i64(0))
            bits = [_bits(builder, arg) for arg in args[1:3]]
            word = [_data(context, builder, at, args[0]), _i32(_element(at))]
            _call(context, builder, "tranship_atomic", [_i64(_ATOMICS.index(op)), *word, *bits, args[3], before])
            if not fetches:
                return context.get_dummy_value()
            return _value(builder, builder.load(before), context.get_value_type(element))

        return result(at, element, element, types.int64), generate

    return atomic


_fetch, _set, _swap, _compare_swap = (_atomic(op) for op in ("fetch", "set", "swap", "compare_swap"))


@_overload(amo.atomic_fetch)
def _(src: Any, pe: Any) -> Any:
    return lambda src, pe: _fetch(_first(src), 0, 0, pe)


@_overload(amo.atomic_set)
def _(dst: Any, value: Any, pe: Any) -> Any:
    return lambda dst, value, pe: _set(_first(dst), _element_of(dst, value), 0, pe)


@_overload(amo.atomic_swap)
def _(dst: Any, value: Any, pe: Any) -> Any:
    return lambda dst, value, pe: _swap(_first(dst), _element_of(dst, value), 0, pe)


@_overload(amo.atomic_compare_swap)
def _(dst: Any, cond: Any, value: Any, pe: Any) -> Any:
    return lambda dst, cond, value, pe: _compare_swap(
        _first(dst), _element_of(dst, value), _element_of(dst, cond), pe
    )


def _updates(op: str) -> None:
    update = _atomic(op)

    @overload(getattr(amo, f"atomic_{op}"), strict=False)
    def _(dst: Any, value: Any, pe: Any) -> Any:
        return lambda dst, value, pe: update(_first(dst), _element_of(dst, value), 0, pe)


for _op in ("add", "and", "or", "xor"):
    _updates(_op)
    _updates(f"fetch_{_op}")

_fetch_inc, _inc = _atomic("fetch_inc"), _atomic("inc")


@_overload(amo.atomic_fetch_inc)
def _(dst: Any, pe: Any) -> Any:
    return lambda dst, pe: _fetch_inc(_first(dst), 0, 0, pe)


@_overload(amo.atomic_inc)
def _(dst: Any, pe: Any) -> Any:
    return lambda dst, pe: _inc(_first(dst), 0, 0, pe)


def _into(name: Callable[..., Any], fetch: Callable[..., Any]) -> None:
    """The form that does not block: the value is there at once, which is allowed."""
    if fetch in (amo.atomic_fetch, amo.atomic_fetch_inc):

        @_overload(name)
        def _(fetched: Any, at: Any, pe: Any) -> Any:
            def run(fetched: Any, at: Any, pe: Any) -> None:
                _first(fetched).flat[0] = fetch(at, pe)

            return run

    elif fetch is amo.atomic_compare_swap:

        @_overload(name)
        def _(fetched: Any, dst: Any, cond: Any, value: Any, pe: Any) -> Any:
            def run(fetched: Any, dst: Any, cond: Any, value: Any, pe: Any) -> None:
                _first(fetched).flat[0] = fetch(dst, cond, value, pe)

            return run

    else:

        @_overload(name)
        def _(fetched: Any, dst: Any, value: Any, pe: Any) -> Any:
            def run(fetched: Any, dst: Any, value: Any, pe: Any) -> None:
                _first(fetched).flat[0] = fetch(dst, value, pe)

            return run


for _op in ("fetch", "swap", "compare_swap", "fetch_inc", "fetch_add", "fetch_and", "fetch_or", "fetch_xor"):
    _into(getattr(amo, f"atomic_{_op}_nbi"), getattr(amo, f"atomic_{_op}"))


# Teams.


def _meeting(completes: bool) -> Any:
    @intrinsic
    def meet(typing_context: Any, team: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _call(context, builder, "tranship_meet", [args[0], _i32(int(completes))])
            return context.get_dummy_value()

        _require_integers(team=team)
        return types.void(types.int64), generate

    return meet


_barrier, _sync = _meeting(True), _meeting(False)


@_overload(*_forms(collective, "barrier"))
def _(team: Any) -> Any:
    return lambda team: _barrier(team)


@_overload(*_forms(collective, "sync"))
def _(team: Any) -> Any:
    return lambda team: _sync(team)


@_overload(*_forms(collective, "barrier_all"))
def _() -> Any:
    return lambda: _barrier(0)


@_overload(*_forms(collective, "sync_all"))
def _() -> Any:
    return lambda: _sync(0)


def _place(which: int) -> Any:
    @intrinsic
    def place(typing_context: Any, team: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            numbers = [cgutils.alloca_once_value(builder, _i32(0)) for _ in range(2)]
            _call(context, builder, "tranship_team_place", [args[0], *numbers])
            return builder.sext(builder.load(numbers[which]), _i64)

        _require_integers(team=team)
        return types.int64(types.int64), generate

    return place


_team_rank, _team_size = _place(0), _place(1)


@_overload(direct.my_pe)
def _() -> Any:
    return lambda: _team_rank(0)


@_overload(direct.n_pes)
def _() -> Any:
    return lambda: _team_size(0)


@_overload(direct.team_my_pe)
def _(team: Any) -> Any:
    return lambda team: _team_rank(team)


@_overload(direct.team_n_pes)
def _(team: Any) -> Any:
    return lambda team: _team_size(team)


def _collective(kind: str, reduction: int) -> Any:
    @intrinsic
    def collective(typing_context: Any, team: Any, dst: Any, src: Any, root: Any) -> Any:
        _require_alike(dst, src)
        _require_writable(dst)
        _require_integers(team=team, root=root)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            arrays = [_described(context, builder, type, value) for type, value in zip((dst, src), args[1:])]
            numbers = [_i32(reduction), args[3]]
            _call(context, builder, "tranship_collective", [_i32(_KINDS.index(kind)), args[0], *arrays, *numbers])
            return context.get_dummy_value()

        return types.void(types.int64, dst, src, types.int64), generate

    return collective


def _reducing(kind: str) -> None:
    @_overload(*_forms(collective, kind), prefer_literal=True)
    def _(team: Any, dst_array: Any, src_array: Any, op: Any) -> Any:
        if not isinstance(op, types.StringLiteral):
            return None
        if op.literal_value not in _REDUCTIONS:
            raise TypingError(f"reduction {op.literal_value!r}: needs one of {', '.join(_REDUCTIONS)}")
        run = _collective(kind, _REDUCTIONS.index(op.literal_value))
        return lambda team, dst_array, src_array, op: run(team, dst_array, src_array, 0)


def _moving(kind: str) -> None:
    run = _collective(kind, 0)

    @_overload(*_forms(collective, kind))
    def _(team: Any, dst_array: Any, src_array: Any) -> Any:
        return lambda team, dst_array, src_array: run(team, dst_array, src_array, 0)


_reducing("reduce")
_reducing("reducescatter")
_moving("fcollect")
_moving("alltoall")
_broadcast = _collective("broadcast", 0)


@_overload(*_forms(collective, "broadcast"))
def _(team: Any, dst_array: Any, src_array: Any, root: Any = 0) -> Any:
    return lambda team, dst_array, src_array, root=0: _broadcast(team, dst_array, src_array, root)


# Memory of peers.


@intrinsic
def _at_peer(typing_context: Any, arr: Any, pe: Any) -> Any:
    _require_arrays(arr=arr)
    _require_integers(pe=pe)
    result = types.Array(arr.dtype, arr.ndim, arr.layout)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = context.make_array(arr)(context, builder, args[0])
        address = cgutils.alloca_once_value(builder, _pointer(None))
        described = _described(context, builder, arr, args[0])
        _call(context, builder, "tranship_peer_address", [described, args[1], address])
        there = context.make_array(result)(context, builder)
        populate_array(
            there,
            data=builder.bitcast(builder.load(address), there.data.type),
            shape=own.shape,
            strides=own.strides,
            itemsize=own.itemsize,
            meminfo=own.meminfo,  # keeps the symmetric array
        )
        return impl_ret_borrowed(context, builder, result, there._getvalue())

    return result(arr, types.int64), generate


@_overload(mem.get_peer_array)
def _(arr: Any, pe: Any) -> Any:
    return lambda arr, pe: _at_peer(arr, pe)


class _MulticastType(types.Type):
    """An array at all members of a team: one array with the members along its first dimension."""

    def __init__(self, copies: Any) -> None:
        self.copies = copies
        super().__init__(name=f"MulticastArray({copies})")


@register_model(_MulticastType)
class _MulticastModel(models.StructModel):
    def __init__(self, manager: Any, type: Any) -> None:
        super().__init__(manager, type, [("copies", type.copies)])


make_attribute_wrapper(_MulticastType, "copies", "_copies")


@box(_MulticastType)
def _box_multicast(type: Any, value: Any, c: Any) -> Any:
    own = cgutils.create_struct_proxy(type)(c.context, c.builder, value)
    copies = c.box(type.copies, own.copies)
    make = c.pyapi.unserialize(c.pyapi.serialize_object(MulticastArray))
    made = c.pyapi.call_function_objargs(make, (copies,))
    c.pyapi.decref(make)
    c.pyapi.decref(copies)
    return made


@intrinsic
def _multicast(typing_context: Any, copies: Any) -> Any:
    result = _MulticastType(copies)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(result)(context, builder)
        made.copies = args[0]
        return impl_ret_borrowed(context, builder, result, made._getvalue())

    return result(copies), generate


@intrinsic
def _at_members(typing_context: Any, team: Any, array: Any) -> Any:
    _require_arrays(array=array)
    _require_integers(team=team)
    if array.ndim == 0:
        raise TypingError("the array has 0 dimensions: needs 1 or more")
    result = types.Array(array.dtype, array.ndim + 1, "A")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = context.make_array(array)(context, builder, args[1])
        first = cgutils.alloca_once_value(builder, _pointer(None))
        stride, members = (cgutils.alloca_once_value(builder, _i64(0)) for _ in range(2))
        described = _described(context, builder, array, args[1])
        _call(context, builder, "tranship_multicast_address", [described, args[0], first, stride, members])
        there = context.make_array(result)(context, builder)
        populate_array(
            there,
            data=builder.bitcast(builder.load(first), there.data.type),
            shape=[builder.load(members), *cgutils.unpack_tuple(builder, own.shape)],
            strides=[builder.load(stride), *cgutils.unpack_tuple(builder, own.strides)],
            itemsize=own.itemsize,
            meminfo=own.meminfo,  # keeps the symmetric array
        )
        return impl_ret_borrowed(context, builder, result, there._getvalue())

    return result(types.int64, array), generate


@_overload(mem.get_multicast_array)
def _(team: Any, array: Any) -> Any:
    return lambda team, array: _multicast(_at_members(team, array))


@overload_attribute(_MulticastType, "shape", strict=False)
def _(at_all: Any) -> Any:
    return lambda at_all: at_all._copies[0].shape


@overload_attribute(_MulticastType, "size", strict=False)
def _(at_all: Any) -> Any:
    return lambda at_all: at_all._copies[0].size


@_overload(len)
def _(at_all: Any) -> Any:
    if isinstance(at_all, _MulticastType):
        return lambda at_all: len(at_all._copies[0])


@_overload(operator.setitem)
def _(at_all: Any, key: Any, value: Any) -> Any:
    if not isinstance(at_all, _MulticastType):
        return None

    def store(at_all: Any, key: Any, value: Any) -> None:
        for member in range(at_all._copies.shape[0]):
            at_all._copies[member][key] = value

    return store


@_overload(operator.getitem)
def _(at_all: Any, key: Any) -> Any:
    if not isinstance(at_all, _MulticastType):
        return None
    keys = tuple(key) if isinstance(key, types.BaseTuple) else (key,)
    if any(not isinstance(one, (types.Integer, types.SliceType, types.EllipsisType)) for one in keys):
        raise TypingError(f"a multicast array is cut by numbers and slices, not by {key}")
    if all(isinstance(one, types.Integer) for one in keys) and len(keys) == at_all.copies.ndim - 1:
        raise TypingError("an element of a multicast array has a value at every member: load_reduce(op) combines them")
    if isinstance(key, types.BaseTuple):
        return lambda at_all, key: _multicast(at_all._copies[(slice(None), *key)])
    return lambda at_all, key: _multicast(at_all._copies[:, key])


@overload_method(_MulticastType, "load_reduce", prefer_literal=True, strict=False)
def _(at_all: Any, op: Any = "sum") -> Any:
    name = getattr(op, "literal_value", getattr(op, "value", op))
    if name not in _REDUCTIONS:
        raise TypingError(f"reduction {name!r}: needs one of {', '.join(_REDUCTIONS)}")
    combine = MulticastArray._combinations[name]

    def load(at_all: Any, op: Any = "sum") -> Any:
        values = at_all._copies[0].copy()
        flat = values.reshape(-1)
        for member in range(1, at_all._copies.shape[0]):
            for i, value in enumerate(at_all._copies[member].flat):
                flat[i] = combine(flat[i], value)
        return values

    return load
