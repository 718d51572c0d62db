#!/usr/bin/env python3
"""Gathers what tranship is built with into one folder, for a machine that has compilers but no packages.

    bundle.py [--into .bundle]

The folder has the layout of /usr, so that the packages' own CMake files work in it, and `bundle.cmake` at its top, which
is given to CMake with -C. Headers and static libraries, but for libraries whose package has a shared one in its CMake
files or needs others; those are found again at run time where they lie.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Whose headers and CMake files are taken.
PACKAGES = ["libfmt-dev", "libhwloc-dev", "nlohmann-json3-dev", "libcli11-dev", "libdeflate-dev", "zlib1g-dev", "libgtest-dev",
            "libgmock-dev"]
STATIC = ["libboost_context.a", "libdeflate.a", "libz.a", "libgtest.a", "libgtest_main.a", "libgmock.a", "libgmock_main.a"]
# Shared libraries that programs find at run time, with all that they need beyond the C and C++ libraries.
SHARED = ["libfmt.so", "libhwloc.so"]
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)[-.]")
# Of Boost, only what these headers include: all of it would be ten times as large as the rest.
BOOST = ["boost/context/fiber.hpp", "boost/context/protected_fixedsize_stack.hpp"]

BUNDLE_CMAKE = """\
# Given to CMake with -C: where the bundle's packages lie.
set(bundle ${{CMAKE_CURRENT_LIST_DIR}})
set(bundle_libraries ${{bundle}}/{libraries})
set(CMAKE_PREFIX_PATH ${{bundle}} CACHE STRING "")
set(CMAKE_C_FLAGS_INIT "-isystem ${{bundle}}/include")
set(CMAKE_C_FLAGS "-isystem ${{bundle}}/include" CACHE STRING "")
set(CMAKE_CXX_FLAGS "-isystem ${{bundle}}/include" CACHE STRING "")
# The older kind of run path, which counts for what libraries need as well.
set(CMAKE_EXE_LINKER_FLAGS "-L${{bundle_libraries}} -Wl,--disable-new-dtags,-rpath,${{bundle_libraries}}" CACHE STRING "")
set(CMAKE_SHARED_LINKER_FLAGS ${{CMAKE_EXE_LINKER_FLAGS}} CACHE STRING "")
set(CMAKE_MODULE_LINKER_FLAGS ${{CMAKE_EXE_LINKER_FLAGS}} CACHE STRING "")
set(fmt_DIR ${{bundle_libraries}}/cmake/fmt CACHE PATH "")
set(GTest_DIR ${{bundle_libraries}}/cmake/GTest CACHE PATH "")
set(nlohmann_json_DIR ${{bundle}}/share/cmake/nlohmann_json CACHE PATH "")
set(CLI11_DIR ${{bundle}}/share/cmake/CLI11 CACHE PATH "")
set(HWLOC_LIBRARY ${{bundle_libraries}}/libhwloc.so CACHE FILEPATH "")
set(BOOST_CONTEXT_LIBRARY ${{bundle_libraries}}/libboost_context.a CACHE FILEPATH "")
set(DEFLATE_LIBRARY ${{bundle_libraries}}/libdeflate.a CACHE FILEPATH "")
set(ZLIB_LIBRARY ${{bundle_libraries}}/libz.a CACHE FILEPATH "")
set(ZLIB_INCLUDE_DIR ${{bundle}}/include CACHE PATH "")
"""


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files_of(package):
    return [pathlib.Path(line) for line in output_of("dpkg", "-L", package).splitlines() if pathlib.Path(line).is_file()]


def place_in(bundle, file):
    """Where a file of the system goes: at its place below /usr, without the folder of an architecture for headers."""
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
    """The libraries, with the names that programs and the linker ask for, and what they need."""
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
    (bundle / "bundle.cmake").write_text(BUNDLE_CMAKE.format(libraries=f"lib/{architecture}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--into", type=pathlib.Path, default=pathlib.Path(".bundle"))
    bundle = parser.parse_args().into
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
