"""Declares tranship's one-sided operations to Numba as calls of library.cu, and the kernels that use them."""
import importlib
import types as python_types

SIGNAL_SET, SIGNAL_ADD = 0, 1
GREATER_EQUAL = 5
SCOPES = {"thread": 1, "warp": 32, "block": 128}  # lanes of a group
# These functions take numbers; each list has the result and then the parameters.
SCALARS = {"my_pe": ["int32"], "n_pes": ["int32"], "p_4": ["void", "uint64", "uint32", "int32"],
           "p_8": ["void", "uint64", "uint64", "int32"], "g_4": ["uint32", "uint64", "int32"],
           "g_8": ["uint64", "uint64", "int32"], "fetch_add_8": ["uint64", "uint64", "uint64", "int32"]}


def of_numba(name, wanted):
    """Imports a module that newer versions of numba-cuda have of their own."""
    try:
        module = importlib.import_module("numba.cuda." + name)
    except ImportError:
        return importlib.import_module("numba.core." + name)
    return module if hasattr(module, wanted) else importlib.import_module("numba.core." + name)


def make_operations(scopes):
    """Makes a module like nvshmem.core.device.numba: one thread calls put, get, ..., and groups call put_warp,
    put_block, ..."""
    from llvmlite import ir
    types = of_numba("types", "Array")
    cgutils = of_numba("cgutils", "get_or_insert_function")
    try:
        from numba.cuda.extending import intrinsic
    except ImportError:
        from numba.extending import intrinsic

    def of_cuda(function):
        try:
            return intrinsic(target="cuda")(function)
        except TypeError:  # numba-cuda's own intrinsic takes no target
            return intrinsic(function)

    word, number, nothing = ir.IntType(64), ir.IntType(32), ir.VoidType()

    def call(builder, symbol, result, arguments):
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), arguments)

    def contiguous(*arrays):
        return all(isinstance(array, types.Array) and array.layout == "C" for array in arrays)

    def address(context, builder, kind, value):
        return builder.ptrtoint(context.make_array(kind)(context, builder, value).data, word)

    def span(context, builder, signature, values):
        """Returns the addresses of target and source, and the bytes of the smaller one."""
        counts = [context.make_array(signature.args[i])(context, builder, values[i]).nitems for i in (0, 1)]
        count = builder.select(builder.icmp_signed("<", *counts), *counts)
        width = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        return [*(address(context, builder, signature.args[i], values[i]) for i in (0, 1)),
                builder.mul(count, ir.Constant(count.type, width))]

    def transfer(symbol):
        @of_cuda
        def operation(typing, target, source, pe):
            if not contiguous(target, source) or target.dtype != source.dtype:
                return None

            def emit(context, builder, signature, values):
                call(builder, symbol, nothing, [*span(context, builder, signature, values), values[2]])
                return context.get_dummy_value()
            return types.void(target, source, types.int32), emit
        return operation

    def put_signal(symbol):
        @of_cuda
        def operation(typing, target, source, signal, value, op, pe):
            if not contiguous(target, source, signal) or target.dtype != source.dtype:
                return None

            def emit(context, builder, signature, values):
                there = address(context, builder, signature.args[2], values[2])
                call(builder, symbol, nothing, [*span(context, builder, signature, values), there, *values[3:]])
                return context.get_dummy_value()
            return types.void(target, source, signal, types.uint64, types.int32, types.int32), emit
        return operation

    def signal_wait(symbol):
        @of_cuda
        def operation(typing, signal, comparison, value):
            if not contiguous(signal):
                return None

            def emit(context, builder, signature, values):
                return call(builder, symbol, word, [address(context, builder, signature.args[0], values[0]), *values[1:]])
            return types.uint64(signal, types.int32, types.uint64), emit
        return operation

    def order(symbol):
        @of_cuda
        def operation(typing):
            def emit(context, builder, signature, values):
                call(builder, symbol, nothing, [])
                return context.get_dummy_value()
            return types.void(), emit
        return operation

    def plain(symbol, result, *kinds):
        """Declares a function that takes numbers."""
        def emit(context, builder, signature, values):
            kind = {types.int32: number, types.uint32: number, types.uint64: word, types.void: nothing}[result]
            out = call(builder, symbol, kind, list(values))
            return context.get_dummy_value() if kind is nothing else out

        def no_numbers(typing):
            return result(), emit

        def two_numbers(typing, a, b):
            return result(*kinds), emit

        def three_numbers(typing, a, b, c):
            return result(*kinds), emit
        return of_cuda({0: no_numbers, 2: two_numbers, 3: three_numbers}[len(kinds)])

    shapes = {"put": transfer, "get": transfer, "put_nbi": transfer, "get_nbi": transfer, "put_signal": put_signal,
              "signal_wait": signal_wait, "fence": order, "quiet": order}
    module = python_types.ModuleType("nvshmem_numba")
    for scope in scopes:
        for name, shape in shapes.items():
            setattr(module, name if scope == "thread" else f"{name}_{scope}", shape(f"ts_{name}_{scope}"))
    for name, kinds in SCALARS.items():
        setattr(module, name, plain("ts_" + name, *(getattr(types, kind) for kind in kinds)))
    return module


def make_kernels(cuda, nvshmem_numba):
    """Returns the functions to compile, by their names."""

    def rma_kernel(src, dst, remote_buf, pe):
        tid = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
        if tid == 0:
            # Put data from src to remote_buf on remote PE
            nvshmem_numba.put(remote_buf, src, pe)
            # Get data from remote_buf on remote PE to dst
            nvshmem_numba.get(dst, remote_buf, pe)

    def transfers(target, source, back, pe, scope, later):
        if scope == 0:
            if later:
                nvshmem_numba.put_nbi(target, source, pe)
                nvshmem_numba.quiet()
                nvshmem_numba.get_nbi(back, target, pe)
                nvshmem_numba.quiet()
            else:
                nvshmem_numba.put(target, source, pe)
                nvshmem_numba.fence()
                nvshmem_numba.get(back, target, pe)
        elif scope == 1:
            if later:
                nvshmem_numba.put_nbi_warp(target, source, pe)
                nvshmem_numba.quiet_warp()
                nvshmem_numba.get_nbi_warp(back, target, pe)
                nvshmem_numba.quiet_warp()
            else:
                nvshmem_numba.put_warp(target, source, pe)
                nvshmem_numba.fence_warp()
                nvshmem_numba.get_warp(back, target, pe)
        else:
            if later:
                nvshmem_numba.put_nbi_block(target, source, pe)
                nvshmem_numba.quiet_block()
                nvshmem_numba.get_nbi_block(back, target, pe)
                nvshmem_numba.quiet_block()
            else:
                nvshmem_numba.put_block(target, source, pe)
                nvshmem_numba.fence_block()
                nvshmem_numba.get_block(back, target, pe)

    def exchange_of(scope):
        """Exchanges rows between groups of lanes; each group has a line to the same group of the peer, and sends a row
        each way in every round."""
        suffix = "" if scope == "thread" else f"_{scope}"
        put_signal = getattr(nvshmem_numba, "put_signal" + suffix)
        signal_wait = getattr(nvshmem_numba, "signal_wait" + suffix)
        width = SCOPES[scope]
        op = SIGNAL_ADD if scope == "block" else SIGNAL_SET

        def exchange(rows, inbox, arrived, signals, seen, pe, rounds):
            group = cuda.threadIdx.x // width
            lane = cuda.threadIdx.x % width
            for r in range(rounds):
                signal = signals[group]
                # The peer may be a round ahead, so there are two rows to write to.
                put_signal(inbox[group, r % 2], rows[group, r], signal, 1 if op == SIGNAL_ADD else r + 1, op, pe)
                value = signal_wait(signal, GREATER_EQUAL, r + 1)
                if lane == 0:
                    seen[group, r] = value
                if value < r + 1:
                    break  # the signal does not come
                for i in range(lane, arrived.shape[2], width):
                    arrived[group, r, i] = inbox[group, r % 2, i]
        return exchange

    return {"rma_kernel": rma_kernel, "transfers": transfers, **{f"exchange_{scope}": exchange_of(scope) for scope in SCOPES}}


def signatures(types):
    integers = [types.Array(types.int32, dims, "C") for dims in range(1, 4)]
    words, bytes_ = types.Array(types.uint64, 2, "C"), types.Array(types.uint8, 1, "C")
    exchange = (integers[2], integers[2], integers[2], words, words, types.int64, types.int64)
    return {"rma_kernel": (integers[0],) * 3 + (types.int64,), "transfers": (bytes_,) * 3 + (types.int64,) * 3,
            **{f"exchange_{scope}": exchange for scope in SCOPES}}
