"""Lists the stages and steps of `./do device`, what each needs, and how its output is read."""
import dataclasses
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import builds

SOFTWARE_CARDS = "software:2"  # as TRANSHIP_CUDA names them
FOLDER = pathlib.Path(__file__).resolve().parent
SOURCES = FOLDER.parents[1] / "src"


def find_cards():
    """Returns the cards of this machine and "", or [] and the reason."""
    if not shutil.which("nvidia-smi"):
        return [], "no card: there is no nvidia-smi"
    fields = "name,driver_version,compute_cap,memory.total"
    # Programs use the first card that they see.
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = ["-i", seen] if seen else []
    try:
        said = subprocess.run(["nvidia-smi", *chosen, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"no card: nvidia-smi: {error}"
    rows = [[part.strip() for part in line.split(",")] for line in said.stdout.splitlines()]
    if said.returncode or not rows or any(len(row) != 4 for row in rows):
        return [], f"no card: nvidia-smi says: {(said.stdout + said.stderr).strip()[:200]}"
    return [{"name": f"{name} ({memory})", "driver": driver, "architecture": capability.replace(".", "")}
            for name, driver, capability, memory in rows], ""


# A need is called with the Device, and returns None or (status, reason).

def module(name):
    def need(_):
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:  # the package around the module is missing
            found = None
        return None if found else ("skipped", f"this Python has no module {name}")
    return need


def tool(name):
    return lambda _: None if builds.path_of(name) else ("skipped", f"there is no {name} here")


def real_card(device):
    return ("skipped", "it needs a real card") if device.machine.is_software else None


def built(device, name, build):
    """Waits for a program of a build; returns its path and None, or None and (status, reason). `{architecture}` in
    `name` stands for the card's."""
    return device.builds[build].program(name.format(architecture=device.machine.architecture), device.left_s())


def program(name, build):
    return lambda device: built(device, name, build)[1]


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    about: str
    limit_s: float
    command: object  # a function of the Device that returns a list of words
    needs: tuple = ()
    wanted: str = ""  # text that one of its checks must have; without it the step has checked nothing
    variables: tuple = ()  # of its environment: (name, value)

    @property
    def runs_on_software_cards(self):
        return real_card not in self.needs


@dataclasses.dataclass(frozen=True)
class Stage:
    number: int
    name: str
    about: str
    steps: tuple


def either(real, software):
    """Makes the first step on a real card and the second one on software cards."""
    def chosen(device):
        return software if device.machine.is_software else real

    def need(device):
        return next((trouble for one in chosen(device).needs if (trouble := one(device))), None)
    return dataclasses.replace(real, command=lambda device: chosen(device).command(device), needs=(need,))


def runs(name, about, limit_s, *arguments, of="alone", called=None, under=(), wanted="", needs=(real_card,)):
    """Makes a step from a program of this folder. `under` is the command that it runs under."""
    file = f"device_{name}"
    tools = tuple(tool(under[0]) for _ in under[:1])

    def command(device):
        prefix = [builds.path_of(under[0]), *under[1:]] if under else []
        return [*prefix, built(device, file, of)[0], *arguments]
    return Step(called or name.replace("_", " "), about, limit_s, command, (*needs, *tools, program(file, of)), wanted=wanted)


def on_host(step, name, *arguments, of="library"):
    """Makes a step that runs this program where software cards are."""
    return either(step, runs(name, step.about, step.limit_s, *arguments, of=of, needs=()))


def script(path, about, limit_s, *arguments, called, modules=(), programs=(), options=(), needs=(real_card,)):
    """Makes a step from a script of this folder, which this Python runs. The paths of `programs`, (name, build), come
    after the arguments, and the options of the programs last."""
    def command(device):
        return [sys.executable, FOLDER / path, *arguments, *(built(device, name, build)[0] for name, build in programs), *options]
    needs = (*needs, *map(module, modules), *(program(name, build) for name, build in programs))
    return Step(called, about, limit_s, command, needs)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value):
    return is_number(value) and value >= 0 and value == int(value)


def is_text(value):
    return isinstance(value, str)


FINDINGS = {
    "figure": {"value": is_number, "low": is_number, "high": is_number, "samples": is_count, "unit": is_text},
    "answer": {"value": is_text},
    "check": {"cases": is_count, "wrong": is_count},
    "fault": {},
}


def finding_of(line):
    """Returns the finding in a line of output, or None."""
    if line.startswith("{"):
        try:
            finding = json.loads(line)
        except json.JSONDecodeError:
            return None
        is_one = isinstance(finding, dict) and any(
            isinstance(finding.get(kind), str) and all(is_right(finding.get(key)) for key, is_right in members.items())
            for kind, members in FINDINGS.items())
        return finding if is_one else None
    # compute-sanitizer prints summaries instead of findings.
    counted = re.match(r"=+ ERROR SUMMARY: (\d+) error", line) or re.match(r"=+ RACECHECK SUMMARY: (\d+) hazard", line)
    if counted:
        return {"check": line.strip("= "), "cases": 1, "wrong": int(counted[1]), "note": ""}
    return None


def goal_of(step, figure):
    """Returns (">=" or "<=", number) if a figure has a goal, or else None."""
    for of, pattern, sign, value in GOALS:
        if of == step and re.search(pattern, figure):
            return sign, value
    return None


# Each goal has a step, a pattern of the figure's name, a sign and a value.
GOALS = (
    ("lanes", r"^put by a block", ">=", 40),
    ("lanes", r"^signal there and back", "<=", 3),
    ("lanes", r"^reduce of 1024 bytes, 8 ranks as blocks of \d+ lanes$", "<=", 10),
    ("lanes", r"^reduce of 65536 bytes, 8 ranks as blocks of 256 lanes$", "<=", 12),
    ("lists", r"1 quantity, in a graph$", "<=", 6),
    ("lists", r"doubles, ijk to ..., read and written, of the device copy$", ">=", 0.75),
    ("packing ndsl", r"1 quantity: one launch, graph, queued$", "<=", 6),
    ("packing figures", r"packing: (contiguous, \d+ MiB|(pack|unpack) rows of \d+ bytes at pitch \d+), of the device copy", ">=", 0.85),
    ("packing figures", r"packing: transpose of \d+ x \d+ elements of 8 bytes, of the device copy", ">=", 0.75),
)


def probe(what, about, limit_s, programs=(), called=None):
    return script("probes/probes.py", about, limit_s, what, called=called or what, programs=programs)


def fact(name, about, limit_s):
    return runs(f"facts_{name}", about, limit_s, called=name)


def packing(part, about, limit_s):
    return runs("packing", about, limit_s, "--part", part, called=f"packing {part}")


LISTS = "Prepared lists of moves, one launch each, beside a launch for each region, copies of the driver, and the card's own copy."


CHECKER = "compute-sanitizer", "--error-exitcode", "9"


def checked(name, checker, limit_s, *arguments, of="alone"):
    return runs(name, f"Small cases under {checker}.", limit_s, *arguments, of=of, called=f"{name} under {checker}",
                under=(*CHECKER, "--tool", checker), wanted="SUMMARY")


def checked_tests(name, checker, file, of_tests):
    """Makes a step that runs a few tests of the library, of which some make calls of the driver fail on purpose."""
    # Only memcheck reports calls.
    words = (*CHECKER[1:], "--tool", checker, *(("--report-api-errors", "no") if checker == "memcheck" else ()))
    step = script("buffers/run_tests.py", f"Small cases of the shipped kernels under {checker}.", 60, "--filter", of_tests,
                  called=f"{name} under {checker}", programs=((file, "library"),))

    def command(device):
        script_of_tests, *rest = step.command(device)[1:]
        return [sys.executable, script_of_tests, "--under", " ".join((builds.path_of(CHECKER[0]), *words)), *rest]
    return dataclasses.replace(step, command=command, needs=(real_card, tool(CHECKER[0]), *step.needs), wanted="SUMMARY",
                               variables=(("TRANSHIP_TEST_CASES", "40"),))


# Plans that are lists of moves, and the copies of buffers and streams; without cards that are lost.
SHIPPED_TESTS = (("plans", "test_cuda", "CardPlans.*"), ("buffers", "test_memory", "*BufferOn.*/card:*StreamContract.*moves*/card"))


STAGES = (
    Stage(1, "Probes", "What card, driver and tools are here.", (
        probe("attributes", "What the driver says of the card.", 60),
        probe("versions", "What there is to build and to compare with.", 60),
        probe("tools", "Whether the checker and the profiler find what was planted for them.", 60, (("device_planted", "alone"),)),
        probe("mps", "Whether ranks that are processes could run on the card at the same time.", 45),
    )),
    Stage(2, "Facts", "What the design of the CUDA back-end rests on.", (
        fact("launches", "What a launch and a node of a graph cost.", 30),
        fact("signals", "What a signal between two blocks costs, and what the memory model lets pass.", 45),
        fact("packets", "What packets, reductions and port channels cost, and whether units are seen torn.", 60),
        fact("semantics", "What streams, events, copies, host functions, graphs, errors and mappings do.", 75),
        fact("copies", "What device memory gives to ordinary loads, bulk copies, transposes and short rows.", 60),
        fact("spinning", "What goes on while kernels spin: hardware queues, first launches, allocations.", 60),
        fact("waits", "A wait that gives up, and the record that it leaves.", 30),
        fact("vmm", "Memory that is reserved, created, mapped and exported piece by piece.", 30),
        fact("processes", "Ranks that are processes on one card.", 45),
        probe("under_mps", "The same, sharing the card by MPS.", 45, (("device_facts_processes", "alone"),), "processes under MPS"),
        either(runs("contract", "The contract of drivers that software cards keep, asked of the card's driver.", 60),
               script("buffers/run_tests.py", "The same, asked of software cards.", 60, "--filter", "*SoftwareCard*", "--own-cards",
                      called="contract", programs=(("test_cuda", "library"),), needs=())),
        fact("halves", "Sums of all pairs of 16-bit floats, against the CPU.", 60),
    )),
    Stage(3, "The device code that stands", "Kernels of `src/tranship/lanes` and `src/tranship/kernels`, compared with the CPU to the bit.", (
        on_host(runs("lanes", "Every operation of kernels, by 1 to 8 ranks on one card.", 90, of="library"), "lanes", "--host", "--small"),
        on_host(runs("kernels", "Moves and arithmetic of every type.", 60, of="library"), "kernels", "--host"),
        Step("golden", "Instructions of a few kernels: widths, fences, local memory.", 60,
             lambda device: [sys.executable, FOLDER / "golden/golden.py", builds.path_of("nvcc"), SOURCES], (tool("nvcc"),)),
        # Without a card, a test of its own looks at them.
        Step("golden, shipped kernels", "The same of the kernels that buffers use.", 90,
             lambda device: [sys.executable, FOLDER / "golden/golden.py", builds.path_of("nvcc"), SOURCES, "--shipped"],
             (real_card, tool("nvcc"))),
    )),
    Stage(4, "Packing", "One launch for all pieces of a plan.", (
        on_host(packing("checks", "Random lists of moves, against a loop over cells.", 60), "packing_host"),
        packing("ndsl", "The halos of NDSL's case, beside copies of CUDA.", 30),
        script("packing/cupy_slices.py", "The same case by slices of CuPy.", 45, called="CuPy", modules=("cupy",)),
        packing("figures", "Shares of what a device copy reaches.", 60),
    )),
    Stage(5, "Buffers", "Streams, buffers and their copies on the card, by the back-end of the library.", (
        script("buffers/run_tests.py", "The contract of streams, the suites of buffers and the model of coherence, on cards.", 120,
               "--filter", "*card*:*Card*", called="buffers", programs=(("test_memory", "library"),), needs=()),
        script("buffers/run_tests.py", "What the back-end promises beyond that.", 90,
               "--filter", "*-*SoftwareCard*", called="back-end", programs=(("test_cuda", "library"),), needs=()),
        runs("mover", "Copies, fills and combinations of streams, against the card's own copy.", 60, of="library"),
        either(script("buffers/run_bench.py", LISTS, 60, called="lists", programs=(("tranship-bench-device", "library"),)),
               script("buffers/run_bench.py", LISTS, 60, called="lists", programs=(("tranship-bench-device", "library"),),
                      options=("--quick",), needs=())),
        script("packing/torch_permute.py", "The same cases by torch, into memory that is there.", 60, called="torch", modules=("torch",)),
    )),
    Stage(6, "Checkers and Numba", "Small cases under compute-sanitizer, and kernels of Numba that call a library of our headers.", (
        script("python/numba_seed.py", "Two ranks of one process on one card.", 60, "--sources", SOURCES, called="Numba", modules=("numba", "cuda.core"),
               programs=(("device_library_sm{architecture}.ltoir", "alone"),)),
        runs("nvrtc_headers", "Each header of kernels under NVRTC.", 60, SOURCES, FOLDER / "python/library.cu", FOLDER / "python/uses.cu", needs=()),
        *(checked(name, checker, 45, *arguments, of=of)
          for name, arguments, of in (("lanes", ("--small",), "library"), ("packing", ("--part", "checks", "--small"), "alone"),
                                      ("kernels", ("--small",), "library"))
          for checker in ("memcheck", "racecheck", "synccheck", "initcheck")),
        *(checked_tests(name, checker, *of) for name, *of in SHIPPED_TESTS for checker in ("memcheck", "racecheck")),
    )),
)
