"""Runs the two builds of `./do device` in the background: programs that need only CUDA, and programs that also need the
library.

The steps of the first stage run during the builds, so they measure no times.
"""
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import bundle

TOOLS = ("cmake", "ninja", "g++", "nvcc")


def path_of(tool):
    """Finds a tool on PATH, or where CUDA is installed."""
    return shutil.which(tool) or next((str(path) for path in pathlib.Path("/usr/local").glob(f"cuda*/bin/{tool}")), None)


class Build:
    """Runs `commands` one after the other; the last one makes programs in `folder`/bin.

    `key` names everything that they depend on except the sources. A different key makes the folder anew. A build that
    has not ended after `limit_s` is stopped, and what needs its programs is skipped."""

    def __init__(self, name, folder, key, commands, log, environment=None, limit_s=math.inf):
        self.name, self.folder, self.key, self.log = name, folder, key, log
        self.limit_s, self.is_too_long = limit_s, False
        self.environment = environment
        self.commands = [[str(word) for word in command] for command in commands]
        self.trouble = ""
        self.process = None
        self.is_stopped = False
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()

    def prepare(self):
        said = self.folder / "key"
        if not said.exists() or said.read_text() != self.key:
            shutil.rmtree(self.folder, ignore_errors=True)
        # A program that cannot be built again must not run as if it had been.
        shutil.rmtree(self.folder / "bin", ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        said.write_text(self.key)

    def go(self):
        began = time.monotonic()
        said = self.folder / "build.log"
        try:
            self.prepare()
            with said.open("w") as out:
                for command in self.commands:
                    if self.is_stopped:
                        return
                    self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                    env=self.environment, start_new_session=True)
                    code = self.wait(began)
                    if self.is_too_long:
                        self.trouble = f"it was stopped after {self.limit_s:g} s"
                        break
                    if code:
                        self.trouble = f"{pathlib.Path(command[0]).name} ended with status {code}"
                        break
            lines = said.read_text(errors="replace").splitlines()
        except OSError as error:
            self.trouble, lines = str(error), []
        self.log(f"build {self.name}: {time.monotonic() - began:.0f} s{', ' + self.trouble if self.trouble else ''}")
        if self.trouble:
            errors = [line for line in lines if re.search(r"\berror\b.*:|^CMake Error|^FAILED|undefined reference", line)]
            if errors:
                self.trouble += f"; first: {errors[0][:160]}"
            for line in errors[:60] + ["..."] + lines[-40:]:
                self.log(f"    {line}")

    def wait(self, began):
        """Returns the status of the command that runs, after it has ended or the build has reached its limit."""
        left_s = began + self.limit_s - time.monotonic()
        try:
            return self.process.wait(None if left_s == math.inf else max(0, left_s))
        except subprocess.TimeoutExpired:
            self.is_too_long = True
            self.kill()
            return self.process.wait()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self):
        self.is_stopped = True
        if self.process and self.process.poll() is None:
            self.kill()

    def program(self, name, wait_s):
        """Waits up to `wait_s` for the build; returns the program's path and None, or None and (status, reason)."""
        self.thread.join(max(0, wait_s))
        if self.thread.is_alive():
            return None, ("skipped", "the build took all the time")
        if self.is_too_long:
            return None, ("skipped", f"the build took longer than {self.limit_s:g} s and was stopped")
        path = self.folder / "bin" / name
        if path.exists():
            return path, None
        return None, ("failed", f"{name} was not built: {self.trouble or 'the log says why'}")


class Built:
    """Stands for a build that others have made."""

    def __init__(self, folder):
        self.folder = folder.resolve()

    def program(self, name, wait_s):
        path = self.folder / name
        return (path, None) if path.exists() else (None, ("failed", f"there is no {path}"))

    def stop(self):
        pass


class NoBuild:
    """Stands for a build that cannot start."""

    def __init__(self, why):
        self.why = why

    def program(self, name, wait_s):
        return None, ("skipped", self.why)

    def stop(self):
        pass


def environment(root):
    """Returns the environment of builds and of their programs, with the bundle in the tree or the one that is named."""
    folder = root / os.environ.get("TRANSHIP_BUNDLE", ".bundle")
    return dict(os.environ, **(bundle.environment(folder) if folder.exists() else {}))


def start(root, architecture, log, limit_s=math.inf):
    """Starts both builds, of which each may take `limit_s`, and returns {"alone": Build, "library": Build}."""
    missing = [tool for tool in TOOLS if not path_of(tool)]
    if missing:
        none = NoBuild(f"nothing can be built: there is no {', no '.join(missing)} here")
        return {"alone": none, "library": none}
    cores = os.cpu_count() or 1
    folder = root / "build/device"
    nvcc = path_of("nvcc")
    variables = environment(root)
    cmake = ["cmake", "-G", "Ninja", f"-DTRANSHIP_DEVICE_ARCHITECTURES={architecture}-real", "-DCMAKE_BUILD_TYPE=Release",
             f"-DCMAKE_CUDA_COMPILER={nvcc}"]
    key = f"{root} {nvcc} {path_of('g++')} {architecture} {variables.get('CMAKE_PREFIX_PATH')}"

    def ninja(name, target):
        return ["ninja", "-C", folder / name, "-k", "0", "-j", cores, target]

    return {
        "alone": Build("alone", folder / "alone", key,
                       [[*cmake, "-S", root / "tests/device", "-B", folder / "alone"], ninja("alone", "device_programs")],
                       log, variables, limit_s),
        "library": Build("library", folder / "library", key,
                         [[*cmake, "-S", root, "-B", folder / "library", "-DTRANSHIP_DEVICE=ON", "-DTRANSHIP_TESTS=ON",
                           "-DTRANSHIP_TESTED_LAYERS=memory;cuda", "-DTRANSHIP_TEST_OPTIONS=-O1", "-DTRANSHIP_HOUSE=OFF", "-DTRANSHIP_BENCHMARKS=ON",
                           "-DTRANSHIP_VSIP=OFF", "-DTRANSHIP_PYTHON=OFF", f"-DTRANSHIP_NVCC={nvcc}",
                           f"-DTRANSHIP_CUDA_ARCHITECTURES={architecture}"],
                          ninja("library", "device_library_programs")], log, variables, limit_s),
    }
