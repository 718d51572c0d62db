"""The two builds of `./do device`, in the background: programs that need CUDA alone, and those that need the library too.

What the first stage does meanwhile takes no times.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

LIMIT_S = 240


class Build:
    def __init__(self, name, folder, commands, log):
        self.name, self.folder, self.log = name, folder, log
        self.commands = commands
        self.trouble = ""
        self.process = None
        self.seconds = None
        self.thread = threading.Thread(target=self.go, daemon=True)

    def go(self):
        began = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        said = self.folder / "build.log"
        with said.open("w") as out:
            for command in self.commands:
                try:
                    self.process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT,
                                                    stdin=subprocess.DEVNULL, start_new_session=True)
                    code = self.process.wait(LIMIT_S)
                except (OSError, subprocess.TimeoutExpired) as error:
                    self.trouble = str(error)
                    self.stop()
                    break
                if code:
                    self.trouble = f"{command[0]} {command[1]} ended with status {code}"
                    break
        self.seconds = time.monotonic() - began
        self.log(f"build {self.name}: {self.seconds:.0f} s{', ' + self.trouble if self.trouble else ''}")
        if self.trouble:
            lines = said.read_text(errors="replace").splitlines()
            errors = [line for line in lines if re.search(r"\berror\b.*:|^FAILED|undefined reference", line)]
            for line in errors[:60] + ["..."] + lines[-40:]:
                self.log(f"    {line}")

    def stop(self):
        if self.process and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def program(self, name):
        """The program, waited for; None where it was not built."""
        self.thread.join(LIMIT_S)
        path = self.folder / "bin" / name
        return path if path.exists() else None


def start(root, machine, log):
    """Both builds, begun: {"alone": Build, "library": Build}."""
    cores = os.cpu_count() or 1
    folder = root / "build/device"
    cmake = ["cmake", "-G", "Ninja", f"-DTRANSHIP_DEVICE_ARCHITECTURES={machine.architecture}-real", "-DCMAKE_BUILD_TYPE=Release"]
    if not shutil.which("nvcc") and pathlib.Path("/usr/local/cuda/bin/nvcc").exists():
        cmake += ["-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc"]
    bundle = root / ".bundle/bundle.cmake"
    library = cmake + (["-C", bundle] if bundle.exists() else [])
    made = {
        "alone": Build("alone", folder / "alone", [
            cmake + ["-S", root / "tests/device", "-B", folder / "alone"],
            ["ninja", "-C", folder / "alone", "-k", "0", "-j", str(cores), "device_programs"],
        ], log),
        "library": Build("library", folder / "library", [
            library + ["-S", root, "-B", folder / "library", "-DTRANSHIP_DEVICE=ON", "-DTRANSHIP_TESTS=OFF",
                       "-DTRANSHIP_BENCHMARKS=OFF", "-DTRANSHIP_VSIP=OFF", "-DTRANSHIP_PYTHON=OFF"],
            ["ninja", "-C", folder / "library", "-k", "0", "-j", str(cores), "device_library_programs"],
        ], log),
    }
    for build in made.values():
        build.thread.start()
    return made
