#!/usr/bin/env python3
"""Gathers what tranship is built with into one folder, for a machine that has compilers but no packages.

    bundle.py [--into .bundle]          gathers
    bundle.py --environment .bundle     prints what a shell is to set for builds and programs that use it

The folder has the layout of /usr, so that the packages' own CMake files work in it. It holds headers and static
libraries. A library is shared if its package's CMake files name a shared one, or if it needs other libraries.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# The bundle takes the headers and CMake files of these packages.
PACKAGES = ["libfmt-dev", "libhwloc-dev", "nlohmann-json3-dev", "libcli11-dev", "libdeflate-dev", "zlib1g-dev", "libgtest-dev",
            "libgmock-dev"]
STATIC = ["libboost_context.a", "libdeflate.a", "libz.a", "libgtest.a", "libgtest_main.a", "libgmock.a", "libgmock_main.a"]
# Programs find these shared libraries at run time. The bundle adds all that they need beyond the C and C++ libraries.
SHARED = ["libfmt.so", "libhwloc.so"]
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)[-.]")
# The bundle takes only what these headers of Boost include: all of Boost would be ten times as large as the rest.
BOOST = ["boost/context/fiber.hpp", "boost/context/protected_fixedsize_stack.hpp"]

def environment(bundle):
    """Returns the variables that make CMake, compilers, linkers and programs search the bundle before other folders."""
    bundle = bundle.resolve()
    if not (bundle / "include").is_dir():
        raise FileNotFoundError(f"'{bundle}' is no bundle: ./do bundle makes one")
    libraries = os.pathsep.join(str(folder) for folder in sorted(bundle.glob("lib/*-linux-gnu")))
    found = {"CMAKE_PREFIX_PATH": str(bundle), "C_INCLUDE_PATH": f"{bundle}/include", "CPLUS_INCLUDE_PATH": f"{bundle}/include",
             "LIBRARY_PATH": libraries, "LD_LIBRARY_PATH": libraries}
    return {name: os.pathsep.join(filter(None, [value, os.environ.get(name)])) for name, value in found.items()}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files_of(package):
    return [pathlib.Path(line) for line in output_of("dpkg", "-L", package).splitlines() if pathlib.Path(line).is_file()]


def place_in(bundle, file):
    """Maps a file of the system to the same place below /usr; headers lose the folder of their architecture."""
    relative = file.relative_to("/usr") if file.is_relative_to("/usr") else file.relative_to("/")
    parts = relative.parts
    if parts[0] == "include" and len(parts) > 2 and parts[1].endswith("-linux-gnu"):
        parts = parts[:1] + parts[2:]
    return bundle.joinpath(*parts)


def copy(file, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file.resolve(), target)


def boost_headers():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "boost.cpp")
        source.write_text("".join(f"#include <{header}>\n" for header in BOOST))
        rule = output_of("g++", "-std=c++20", "-M", str(source))
    headers = [pathlib.Path(name) for name in rule.replace("\\\n", " ").split()[1:]]
    return [header for header in headers if "/boost/" in str(header)]


def shared_libraries(folder, names):
    """Returns the libraries and what they need, by the names that programs and the linker ask for."""
    found = {}
    wanted = [folder / name for name in names]
    while wanted:
        library = wanted.pop()
        if library.name in found:
            continue
        found[library.name] = library
        dynamic = output_of("readelf", "-d", str(library))
        own = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
        if own and own[1] != library.name:
            wanted.append(folder / own[1])
        if library.is_symlink() and library.resolve().name not in found:
            found[library.resolve().name] = library
        wanted += [folder / name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if not OF_THE_SYSTEM.match(name)]
    return found


def gather(bundle):
    architecture = output_of("gcc", "-print-multiarch").strip()
    libraries = pathlib.Path("/usr/lib", architecture)
    for package in PACKAGES:
        for file in files_of(package):
            if file.parts[2] == "include" or ("cmake" in file.parts and file.suffix == ".cmake"):
                copy(file, place_in(bundle, file))
    for name in STATIC:
        copy(libraries / name, bundle / "lib" / architecture / name)
    for header in boost_headers():
        copy(header, place_in(bundle, header))
    for name, library in shared_libraries(libraries, SHARED).items():
        copy(library, bundle / "lib" / architecture / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--into", type=pathlib.Path, default=pathlib.Path(".bundle"))
    parser.add_argument("--environment", type=pathlib.Path, metavar="FOLDER")
    chosen = parser.parse_args()
    if chosen.environment:
        try:
            for name, value in environment(chosen.environment).items():
                print(f"export {name}={shlex.quote(value)}")
        except OSError as error:
            sys.exit(str(error))
        return
    bundle = chosen.into
    new = bundle.with_name(bundle.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        gather(new)
    except (subprocess.CalledProcessError, OSError) as error:
        shutil.rmtree(new)
        said = (getattr(error, "stderr", None) or str(error)).strip()
        sys.exit(f"the bundle could not be gathered: {said}")
    shutil.rmtree(bundle, ignore_errors=True)
    new.rename(bundle)
    files = [file for file in bundle.rglob("*") if file.is_file()]
    print(f"{bundle}: {len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
