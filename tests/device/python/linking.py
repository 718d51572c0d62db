"""Joins a kernel that Numba compiles with library.cu, without a card: NVRTC compiles the library, and both become a
cubin."""
import ctypes
import pathlib
import re

LIBRARY = pathlib.Path(__file__).resolve().parent / "library.cu"


def library_by_nvrtc(sources, architecture):
    Program, ProgramOptions = of_core("Program"), of_core("ProgramOptions")
    options = {"std": "c++20", "arch": architecture, "include_path": [str(sources)], "relocatable_device_code": True,
               "link_time_optimization": True}
    text = LIBRARY.read_text()
    try:
        return bytes(Program(text, "c++", options=ProgramOptions(**options)).compile("ltoir").code)
    except Exception:  # NVRTC 13.0 takes generic lambdas for host functions.
        options["device_as_default_execution_space"] = True
        return bytes(Program(text, "c++", options=ProgramOptions(**options)).compile("ltoir").code)


def of_core(name):
    import cuda.core
    if hasattr(cuda.core, name):
        return getattr(cuda.core, name)
    import cuda.core.experimental
    return getattr(cuda.core.experimental, name)


def linked_by_core(parts, architecture):
    ObjectCode = of_core("ObjectCode")
    objects = [ObjectCode.from_ltoir(part) for part in parts]
    options = of_core("LinkerOptions")(arch=architecture, link_time_optimization=True)
    return bytes(of_core("Linker")(*objects, options=options).link("cubin").code)


def linked_by_nvjitlink(parts, architecture):
    library = None
    try:
        from cuda import pathfinder
        library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("nvJitLink").abs_path)
    except ImportError:
        for name in ("libnvJitLink.so.13", "libnvJitLink.so.12"):
            try:
                library = library or ctypes.CDLL(name)
            except OSError:
                pass
    if library is None:
        raise OSError("no libnvJitLink")
    options = [f"-arch={architecture}".encode(), b"-lto"]
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()

    def must(status):
        if status:
            library.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value + 1)
            library.nvJitLinkGetErrorLog(handle, log)
            raise OSError(f"nvJitLink error {status}: {log.value.decode(errors='replace')}")
    must(library.nvJitLinkCreate(ctypes.byref(handle), len(options), (ctypes.c_char_p * len(options))(*options)))
    for part in parts:
        ltoir = 3  # NVJITLINK_INPUT_LTOIR
        must(library.nvJitLinkAddData(handle, ltoir, part, ctypes.c_size_t(len(part)), b"part"))
    must(library.nvJitLinkComplete(handle))
    must(library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)))
    cubin = ctypes.create_string_buffer(size.value)
    must(library.nvJitLinkGetLinkedCubin(handle, cubin))
    library.nvJitLinkDestroy(ctypes.byref(handle))
    return cubin.raw


def kernel_name_in(cubin, name):
    names = set(re.findall(rb"\.text\.(\w*" + name.encode() + rb"\w*)", cubin))
    if len(names) != 1:
        raise LookupError(f"{len(names)} kernels are named like {name}: {sorted(names)}")
    return names.pop()


def compiled(numba_cuda, kernels, name, signature, capability):
    code, _ = numba_cuda.compile(kernels[name], signature, cc=capability, output="ltoir", abi="numba", device=False)
    return code if isinstance(code, bytes) else bytes(code)
