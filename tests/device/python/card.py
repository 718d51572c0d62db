"""Lets two ranks share one card: calls of the driver, arrays, and the ranks' heaps beside NumPy's copy of them."""
import ctypes
import struct

from findings import CardLost

RANKS = 2
HEAP_BYTES = 1 << 18
WAIT_LIMIT_NS = 2_000_000_000


class Driver:
    """Makes the calls that Numba lacks in some or all versions, in the context that Numba uses too."""

    LOST = {214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719}

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.capability = (self.attribute(75, device), self.attribute(76, device))

    def call(self, name, *arguments):
        # A name without a version suffix means the first version of the call.
        call = getattr(self.library, name + "_v2", None) if name in {
            "cuMemAlloc", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuModuleGetGlobal", "cuStreamDestroy"} else None
        status = (call or getattr(self.library, name))(*arguments)
        if status:
            said = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(said))
            text = f"{name}: {(said.value or b'?').decode()} ({status})"
            raise CardLost(text) if status in self.LOST else OSError(text)

    def attribute(self, code, device):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), code, device)
        return value.value

    def memory(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def write(self, address, data):
        """Returns when the data has arrived: a stream that does not wait for the default stream does not wait for its
        copies."""
        self.call("cuMemcpyHtoD", ctypes.c_uint64(address), data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))
        self.call("cuStreamSynchronize", None)

    def read(self, address, data):
        self.call("cuMemcpyDtoH", data.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(address), ctypes.c_size_t(data.nbytes))

    def stream(self):
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), 1)  # this stream does not wait for the default stream
        return handle.value

    def wait(self, *streams):
        for stream in streams:
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def write_global(self, module, data):
        """Copies `data` to ts_heap of the module that a setup callback gets; its type depends on the version of numba-
        cuda."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        handle = ctypes.c_void_p(int(getattr(module, "handle", module)))
        is_library = type(module).__name__ in ("ObjectCode", "Library")  # otherwise a CUmodule or its holder
        self.call("cuLibraryGetGlobal" if is_library else "cuModuleGetGlobal", ctypes.byref(address), ctypes.byref(size), handle,
                  b"ts_heap")
        if size.value != data.nbytes:
            raise ValueError(f"ts_heap has {size.value} bytes, a HeapView {data.nbytes}")
        self.write(address.value, data)


class Library:
    """Holds a cubin loaded by the driver."""

    def __init__(self, driver, cubin):
        self.driver, self.code = driver, cubin
        handle = ctypes.c_void_p()
        driver.call("cuLibraryLoadData", ctypes.byref(handle), cubin, None, None, 0, None, None, 0)
        self.handle = handle.value

    def launch(self, name, lanes, stream, arguments):
        kernel = ctypes.c_void_p()
        self.driver.call("cuLibraryGetKernel", ctypes.byref(kernel), ctypes.c_void_p(self.handle), name)
        places = (ctypes.c_void_p * len(arguments))(*(argument.ctypes.data for argument in arguments))
        self.driver.call("cuLaunchKernel", kernel, 1, 1, 1, lanes, 1, 1, 0, ctypes.c_void_p(stream), places, None)


class CardArray:
    """Presents memory of the card as an array, as libraries other than Numba do."""

    def __init__(self, address, shape, dtype):
        self.address, self.shape, self.dtype = address, tuple(shape), dtype

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3, "strides": None,
                "stream": None}

    @property
    def size(self):
        out = 1
        for extent in self.shape:
            out *= extent
        return out

    def strides(self):
        out = [self.dtype.itemsize]
        for extent in reversed(self.shape[1:]):
            out.insert(0, out[0] * extent)
        return out


class World:
    """Holds the two ranks' heaps, NumPy's copy of their bytes, and memory that is not symmetric."""

    def __init__(self, np, driver, cuda):
        self.np, self.driver, self.cuda = np, driver, cuda
        self.random = np.random.default_rng(20261126)
        self.base = driver.memory(RANKS * HEAP_BYTES)
        self.table = driver.memory(8 * RANKS)
        driver.write(self.table, self.base + HEAP_BYTES * np.arange(RANKS, dtype=np.uint64))
        # A WaitGuard (lanes/wait_guard.hpp): state, limit, record, whether it traps. A wait that gives up returns what it
        # has seen last, which the kernels compare.
        self.guard = driver.memory(32)
        driver.write(self.guard, np.frombuffer(struct.pack("<QQQ?7x", 0, WAIT_LIMIT_NS, 0, False), np.uint8))
        self.heaps = np.empty((RANKS, HEAP_BYTES), np.uint8)
        self.streams = [driver.stream() for _ in range(RANKS)]
        self.used = 0

    def view(self, rank):
        """Packs a HeapView (lanes/rma.hpp): own heap, size, table of heaps, its entries, is_complete, is_on_one_device,
        spacing, first heap, rank, ranks, guard."""
        view = struct.pack("<QQQi??2xqQiiQ", self.base + rank * HEAP_BYTES, HEAP_BYTES, self.table, RANKS, True, True,
                           HEAP_BYTES, self.base, rank, RANKS, self.guard)
        return self.np.frombuffer(view, self.np.uint8)

    def numba_stream(self, rank):
        return self.cuda.external_stream(self.streams[rank])

    def begin(self):
        """Fills both heaps with new random bytes, and frees all arrays."""
        self.heaps[:] = self.random.integers(0, 256, self.heaps.shape, self.np.uint8)
        self.driver.write(self.base, self.heaps)
        self.used = 0

    def symmetric(self, shape, dtype, shift=0):
        """Returns the offset of a new array, and the array on each rank."""
        dtype = self.np.dtype(dtype)
        offset = -(-self.used // 256) * 256 + shift
        arrays = [CardArray(self.base + rank * HEAP_BYTES + offset, shape, dtype) for rank in range(RANKS)]
        self.used = offset + arrays[0].size * dtype.itemsize
        assert self.used <= HEAP_BYTES
        return arrays

    def private(self, shape, dtype):
        dtype = self.np.dtype(dtype)
        array = CardArray(0, shape, dtype)
        array.address = self.driver.memory(max(array.size * dtype.itemsize, 1))
        return array

    def expected(self, array):
        """Returns NumPy's copy of a symmetric array, which the caller may write."""
        rank, offset = divmod(array.address - self.base, HEAP_BYTES)
        part = self.heaps[rank, offset:offset + array.size * array.dtype.itemsize]
        return part.view(array.dtype).reshape(array.shape)

    def wrong_bytes(self):
        """Returns how many bytes of the heaps differ from NumPy's copy, and the first one."""
        seen = self.np.empty_like(self.heaps)
        self.driver.read(self.base, seen)
        places = self.np.argwhere(seen != self.heaps)
        return len(places), "" if not len(places) else f"first at byte {places[0][1]} of rank {places[0][0]}"
