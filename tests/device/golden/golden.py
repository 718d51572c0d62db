#!/usr/bin/env python3
"""usage: golden.py NVCC SOURCES [--broken | --shipped] [--disassembler NVDISASM]

Compiles golden.cu, or with --shipped the kernels of the back-end as the build does, and looks at the instructions of its
kernels: the width of loads and stores, the fences, and the local memory. PTX and the resources of ptxas can be had
wherever nvcc is; instructions of the card are looked at, too, where there is an nvdisasm. Prints findings
(support/findings.hpp). --broken adds a kernel that does all of it wrongly, which must be found.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURE = "sm_90"
SOURCE = pathlib.Path(__file__).with_name("golden.cu")

# Patterns of instructions, in PTX and in the code of the card.
WIDE_LOAD = r"\bld(?:\.global)?(?:\.nc)?(?:\.L\d::\w+)*\.(?:v2\.[bfu]64|v4\.[bfu]32)\b"
WIDE_STORE = r"\bst(?:\.global)?\.v2\.[bfu]64\b|\bst(?:\.global)?\.v4\.[bfu]32\b"
LOCAL = r"\b(?:ld|st)\.local\b"
DIVISION = r"\b(?:div|rem)\.[us]64\b"
FULL = r"\bfence\.sc\b|\bmembar\b"
CARD = r"\bfence\.acq_rel\.gpu\b"
MACHINE = r"\bfence\.acq_rel\.sys\b"
CARD_WIDE_LOAD = r"\bLDG?\.E\.128\b"
CARD_WIDE_STORE = r"\bSTG?\.E\.128\b"
CARD_LOCAL = r"\b(?:LDL|STL)\b"
CARD_FULL = r"\bMEMBAR\.SC\b"
CARD_CLOCK = r"\bNANOSLEEP\b"


def is_of_card(pattern):
    """Whether a pattern is one of the card's instructions, which have capital letters."""
    return pattern.startswith(("\\bLD", "\\bST", "\\b(?:LD", "\\bMEMBAR", "\\bNANO"))


MANY = 10**9
NONE = (0, 0)


def moves(**more):
    return {WIDE_LOAD: (8, MANY), WIDE_STORE: (8, MANY), LOCAL: NONE, DIVISION: NONE, FULL: NONE, CARD_WIDE_LOAD: (8, MANY),
            CARD_WIDE_STORE: (8, MANY), CARD_LOCAL: NONE, CARD_FULL: NONE, **more}


ALONE = {LOCAL: NONE, CARD_LOCAL: NONE}
BOUNDED = {r"%globaltimer\b": (1, MANY), r"\bnanosleep\b": (1, MANY), r"\bld\.acquire\.": (1, MANY), CARD_CLOCK: (1, MANY)}

# How often each pattern may be in a kernel, (least, most).
WANTED = {
    "golden_put": moves(),
    "golden_get_by_warp": moves(),
    "golden_signal_on_card": {**moves(), CARD: (1, 1), MACHINE: NONE},
    "golden_signal_between_cards": {**moves(), CARD: NONE, MACHINE: (1, 1)},
    # The fence of a wait is for a word that has changed since it was seen.
    "golden_wait_on_card": {**ALONE, **BOUNDED, CARD: (1, 1), MACHINE: NONE, FULL: NONE, CARD_FULL: NONE},
    "golden_wait_between_cards": {**ALONE, **BOUNDED, CARD: NONE, MACHINE: (1, 1), FULL: NONE, CARD_FULL: NONE},
    "golden_fence_on_card": {**ALONE, CARD: (1, 1), FULL: NONE, CARD_FULL: NONE},
    "golden_quiet_on_card": {**ALONE, r"\bfence\.sc\.gpu\b": (1, 1), r"\bfence\.sc\.sys\b": NONE},
    "golden_quiet_between_cards": {**ALONE, r"\bfence\.sc\.sys\b": (1, 1), r"\bfence\.sc\.gpu\b": NONE},
    "golden_barrier": {**ALONE, **BOUNDED, MACHINE: NONE, FULL: NONE, CARD_FULL: NONE},
    "golden_sum": {**moves(), **BOUNDED, MACHINE: NONE, DIVISION: (0, 1)},
    "golden_scattered_sum": {**moves(), **BOUNDED, MACHINE: NONE, DIVISION: (0, 1), WIDE_STORE: (1, MANY), CARD_WIDE_STORE: (1, MANY)},
    "golden_gather": {**moves(), **BOUNDED, MACHINE: NONE, DIVISION: (0, 1)},
    "golden_put_array": {WIDE_LOAD: (4, MANY), WIDE_STORE: (4, MANY), FULL: NONE},
    "golden_broken": {WIDE_LOAD: (1, MANY), LOCAL: NONE, FULL: NONE},
}
# Bytes of local memory that a kernel may have. Arrays of any number of dimensions are looked up by dimension, which
# registers cannot be; in golden_sum the compiler reserves 16 bytes that no instruction uses.
STACK_MAX = {"golden_put_array": 700, "golden_sum": 16}

# The kernels of the back-end. A lane of a list moves four vectors at a time.
SHIPPED_SOURCE = "tranship/cuda/kernels.cu"
SHIPPED_MOVES = {WIDE_LOAD: (4, MANY), WIDE_STORE: (4, MANY), CARD_WIDE_LOAD: (4, MANY), CARD_WIDE_STORE: (4, MANY),
                 **ALONE, DIVISION: NONE, FULL: NONE, CARD_FULL: NONE}
MAPS = [f"tranship_map_{of}" for of in ("bool8 i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64").split()]
SHIPPED = {
    "tranship_move_lean": SHIPPED_MOVES,
    "tranship_move_deep": SHIPPED_MOVES,
    "tranship_move_tiled": SHIPPED_MOVES,
    "tranship_fill": {WIDE_STORE: (4, MANY), CARD_WIDE_STORE: (4, MANY), **ALONE, FULL: NONE},  # its pattern is an argument
    **dict.fromkeys(MAPS, SHIPPED_MOVES),
}


def run(*words):
    said = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if said.returncode:
        print(json.dumps({"fault": f"{words[0]}: {said.stdout.strip()[:1000]}"}))
        sys.exit(1)
    return said.stdout


def check(name, wrong, note=""):
    print(json.dumps({"check": name, "cases": 1, "wrong": int(bool(wrong)), "note": note}), flush=True)


def kernels_of_ptx(text):
    """Returns {kernel: its PTX}, without the functions that it calls."""
    return dict(re.findall(r"^\.visible \.entry (\w+)\(.*?^\{(.*?)^\}", text, re.M | re.S))


def functions_of_ptx(text):
    return "".join(re.findall(r"^(?:\.\w+ )*\.func .*?copy_units.*?^\}", text, re.M | re.S))


def kernels_of_code(text):
    parts = re.split(r"^\.text\.(\w+):", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def resources_of(text):
    """Returns {kernel: (bytes of stack, bytes of spills)} from what ptxas -v says."""
    found = re.findall(r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                       text)
    return {name: (int(stack), int(stores) + int(loads)) for name, stack, stores, loads in found}


def look(kind, wanted_of, bodies, is_of_kind):
    for kernel, wanted in wanted_of.items():
        if kernel not in bodies:
            if kernel != "golden_broken":
                check(f"{kernel}, {kind}", True, "there is no such kernel")
            continue
        problems = []
        for pattern, (least, most) in wanted.items():
            if not is_of_kind(pattern):
                continue
            count = len(re.findall(pattern, bodies[kernel]))
            if not least <= count <= most:
                problems.append(f"{count} of {pattern}, wanted {least}{'' if most == least else ' or more' if most == MANY else f' to {most}'}")
        check(f"{kernel}, {kind}", bool(problems), "; ".join(problems))


def main(nvcc, sources, *options):
    broken = ["-DTRANSHIP_GOLDEN_BROKEN"] if "--broken" in options else []
    is_shipped = "--shipped" in options
    source, wanted_of, stack_max = SOURCE, WANTED, STACK_MAX
    if is_shipped:
        source, wanted_of, stack_max = pathlib.Path(sources, SHIPPED_SOURCE), SHIPPED, {}
    disassembler = options[options.index("--disassembler") + 1] if "--disassembler" in options else None
    disassembler = disassembler or shutil.which("nvdisasm") or shutil.which("nvdisasm", path=pathlib.Path(nvcc).parent)
    ptxas = shutil.which("ptxas", path=pathlib.Path(nvcc).parent) or "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        ptx, code = pathlib.Path(folder, "golden.ptx"), pathlib.Path(folder, "golden.cubin")
        run(nvcc, "-std=c++20", f"-arch={ARCHITECTURE}", "-I", sources, *broken, "-ptx", source, "-o", ptx)
        resources = resources_of(run(ptxas, "-v", f"-arch={ARCHITECTURE}", ptx, "-o", code))
        text = ptx.read_text()
        bodies = kernels_of_ptx(text)
        if "golden_put_array" in bodies:
            bodies["golden_put_array"] += functions_of_ptx(text)
        look("PTX", wanted_of, bodies, lambda pattern: not is_of_card(pattern))
        if is_shipped:
            check("every kernel is in the table", set(bodies) - set(wanted_of), ", ".join(sorted(set(bodies) - set(wanted_of))))
        for kernel in filter(bodies.get, wanted_of):
            stack, spills = resources.get(kernel, (MANY, 0))  # MANY if ptxas says nothing of it
            most = stack_max.get(kernel, 0)
            check(f"{kernel}, local memory", stack > most or spills > 0,
                  f"{stack} bytes of stack, of which {most} are allowed, {spills} bytes of spills")
        if not disassembler:
            print(json.dumps({"answer": "instructions of the card", "value": "not looked at", "note": "there is no nvdisasm"}))
            return
        look("code", wanted_of, kernels_of_code(run(disassembler, "-c", code)), is_of_card)


if __name__ == "__main__":
    main(*sys.argv[1:])
