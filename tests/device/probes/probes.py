#!/usr/bin/env python3
"""Reports the card, driver and tools of this machine.

    probes.py attributes | versions | mps | tools PLANTED | under_mps PROGRAM [argument...]

Asks the driver itself through ctypes, so that it needs nothing but Python. Answers are lines of JSON
(support/findings.hpp).
"""
import contextlib
import ctypes
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile

# These are numbers of CUdevice_attribute (cuda.h).
ATTRIBUTES = {
    "multiprocessors": 16, "threads of a multiprocessor": 39, "blocks of a multiprocessor": 106,
    "registers of a multiprocessor": 82, "shared memory of a multiprocessor, bytes": 81,
    "shared memory of a block, bytes": 8, "shared memory of a block on request, bytes": 97, "L2, bytes": 38,
    "L2 that can be kept, bytes": 108, "clock, kHz": 13, "memory clock, kHz": 36, "memory bus, bits": 37, "copy engines": 40,
    "concurrent kernels": 31, "compute preemption": 90, "cooperative launch": 95, "cluster launch": 120,
    "virtual memory management": 102, "POSIX file descriptors": 103, "fabric handles": 128, "multicast": 132,
    "64-bit stream memory operations": 122, "memory sync domains": 126, "host memory registered": 99,
    "host pointers for registered memory": 91, "native atomics with the host": 86, "pageable memory access": 88, "dma-buf": 124,
    "GPUDirect RDMA": 116, "GPUDirect RDMA with virtual memory": 110, "IPC events": 125, "memory pools": 115,
    "stream priorities": 78, "error correction": 32, "time limit of kernels": 17, "compute mode": 20, "MPS in use": 133,
}
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from builds import path_of  # noqa: E402

MODULES = ["numpy", "torch", "cupy-cuda13x", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "nvshmem4py-cu13",
           "nvidia-nvshmem-cu13", "nvidia-nccl-cu13", "mpi4py", "nanobind", "pytest"]


def say(**finding):
    print(json.dumps(finding), flush=True)


def answer(name, value, note=""):
    say(answer=name, value=str(value), note=note)


def output_of(command, limit_s=30, environment=None):
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, env=environment, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, f"not over after {limit_s} s"
    except OSError as error:
        return None, str(error)
    return said.returncode, said.stdout + said.stderr


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            said = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(said))
            raise OSError(f"{name}: {(said.value or b'?').decode()} ({status})")

    def number(self, name, *arguments):
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value


def attributes():
    driver = Driver()
    answer("CUDA of the driver", driver.number("cuDriverGetVersion"))
    cards = driver.number("cuDeviceGetCount")
    answer("cards", cards)
    device = driver.number("cuDeviceGet", 0)
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, 256, device)
    answer("card 0", name.value.decode())
    total = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
    answer("memory, bytes", total.value)
    for what, code in ATTRIBUTES.items():
        try:
            answer(what, driver.number("cuDeviceGetAttribute", code, device))
        except OSError as error:
            answer(what, "not known", str(error))
    code, said = output_of(["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu,"
                            "persistence_mode,compute_mode,mig.mode.current,vbios_version", "--format=csv"])
    answer("nvidia-smi", said.strip().splitlines()[-1] if said.strip() else "nothing", said.strip().splitlines()[0] if said else "")
    for peer in range(1, cards):
        answer(f"card 0 reaches card {peer}", driver.number("cuDeviceCanAccessPeer", device, driver.number("cuDeviceGet", peer)))


def versions():
    answer("system", platform.platform(), pathlib.Path("/etc/os-release").read_text().split("\n")[0])
    answer("C library", " ".join(platform.libc_ver()))
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    answer("CPU", model[1] if model else "not known", f"{os.cpu_count()} cores")
    for command in (["g++", "--version"], ["clang++", "--version"], ["nvcc", "--version"], ["cmake", "--version"], ["ninja", "--version"],
                    ["ccache", "--version"], ["mpirun", "--version"], ["nsys", "--version"]):
        code, said = output_of(command)
        lines = [line for line in said.splitlines() if re.search(r"\d+\.\d+", line)]
        answer(command[0], lines[0] if code == 0 and lines else "none")
    include = pathlib.Path(sysconfig.get_path("include"), "Python.h")
    answer("Python", platform.python_version())
    answer("Python.h", "yes" if include.exists() else "no")
    for name in MODULES:
        try:
            answer(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            answer(name, "none")


@contextlib.contextmanager
def mps_daemon():
    """Yields the environment of programs that share the card by MPS, and the daemon's folder; or None and the reason
    why not.

    The daemon has a folder of its own, so that no other program meets it, and is told to quit at the end.
    """
    if not shutil.which("nvidia-cuda-mps-control"):
        yield None, "there is no nvidia-cuda-mps-control"
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=f"{folder}/pipe", CUDA_MPS_LOG_DIRECTORY=f"{folder}/log")
        for name in ("pipe", "log"):
            os.mkdir(f"{folder}/{name}")
        code, said = output_of(["nvidia-cuda-mps-control", "-d"], 15, environment)
        if code != 0:
            yield None, said.strip()[:300]
            return
        try:
            yield environment, folder
        finally:
            try:
                subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 5\n", text=True, env=environment, timeout=30,
                               capture_output=True)
            except subprocess.TimeoutExpired:
                answer("MPS ends when it is told to", "no", "not over after 30 s")


def mps():
    """Reports whether ranks that are processes could share the card at the same time."""
    with mps_daemon() as (environment, folder):
        if not environment:
            return answer("MPS", "no", folder)
        code, said = output_of([sys.executable, __file__, "context"], 30, environment)
        log = "".join(path.read_text(errors="replace")[-300:] for path in sorted(pathlib.Path(folder, "log").glob("*.log")))
        answer("MPS", "yes" if code == 0 else "no", said.strip() if code == 0 else (said + log).strip().replace("\n", "; ")[:500])


def under_mps(*command):
    with mps_daemon() as (environment, why):
        if not environment:
            return answer("MPS", "no", why)
        sys.stdout.flush()
        try:
            code = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, timeout=30).returncode
        except subprocess.TimeoutExpired:
            code = "none after 30 s"
        if code:
            say(fault=f"exit status {code}")


def context():
    """Makes a context and an allocation, as a client of MPS does."""
    driver = Driver()
    made = ctypes.c_void_p()
    device = driver.number("cuDeviceGet", 0)
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(made), device)
    driver.call("cuCtxSetCurrent", made)
    place = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(1 << 20))
    print("a context and an allocation;", "MPS in use:", driver.number("cuDeviceGetAttribute", 133, device))


def tools(planted):
    sanitizer = path_of("compute-sanitizer")
    for kind, checker in (("out_of_bounds", "memcheck"), ("race", "racecheck")):
        if not sanitizer:
            answer(f"compute-sanitizer {checker}", "no", "there is none here")
            continue
        code, said = output_of([sanitizer, "--tool", checker, planted, kind], 60)
        summary = [line.strip("= ") for line in said.splitlines() if "SUMMARY" in line]
        found = any(re.search(r"[1-9]\d* (error|hazard)", line) for line in summary)
        answer(f"compute-sanitizer {checker}", "yes" if found else "no", "; ".join(summary) or said.strip()[-300:])
    ncu = path_of("ncu")
    if not ncu:
        return answer("ncu", "no", "there is none here")
    code, said = output_of([ncu, "--clock-control", "none", "--metrics", "dram__bytes_read.sum,sm__cycles_elapsed.max", planted, "clean"], 90)
    counted = [" ".join(line.split()) for line in said.splitlines() if "dram__bytes_read" in line or "sm__cycles" in line]
    answer("ncu reads counters", "yes" if counted else "no", "; ".join(counted[:2]) or said.strip()[-300:])


def ended(*_):
    raise SystemExit(143)  # runs the cleanup of what is under way


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    try:
        {"attributes": attributes, "versions": versions, "mps": mps, "context": context, "tools": tools,
         "under_mps": under_mps}[sys.argv[1]](*sys.argv[2:])
    except OSError as error:
        if sys.argv[1] == "context":
            sys.exit(str(error))
        say(fault=str(error))
