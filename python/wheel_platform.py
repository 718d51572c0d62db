"""Names the platform of a wheel by the libraries of C and C++ that what lies in it needs: manylinux_2_34_x86_64.

usage: python wheel_platform.py WHEEL
"""

import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# The last version of the C++ library that systems with a C library may be trusted to have, as in auditwheel's policies.
CXX_OF_C = {28: 24, 31: 28, 34: 29, 35: 30, 39: 33}


def needs_of(binary):
    """The minor versions of the C library, 2.x, that a program or a library needs by itself and for its C++ library."""
    said = subprocess.run(["readelf", "-V", "-W", str(binary)], capture_output=True, text=True, check=True).stdout
    needed = [int(minor) for minor in re.findall(r"\bName: GLIBC_2\.(\d+)", said)]
    for patch in map(int, re.findall(r"\bName: GLIBCXX_3\.4\.(\d+)", said)):
        needed.append(min((c for c, cxx in CXX_OF_C.items() if cxx >= patch), default=max(CXX_OF_C) + 1))
    return needed


def platform_of(wheel):
    needed = [min(CXX_OF_C)]
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if archive.open(name).read(4) == b"\x7fELF":
                needed += needs_of(Path(archive.extract(name, folder)))
    return f"manylinux_2_{max(needed)}_{platform.machine()}"


if __name__ == "__main__":
    print(platform_of(sys.argv[1]))
