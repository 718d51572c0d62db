"""The requirements of a wheel on the system where it is installed."""

import importlib.util
import pathlib
import platform
import re
import shutil
import zipfile

import pytest

import tranship as ts

SCRIPT = pathlib.Path(__file__).parents[1] / "wheel_platform.py"


def platform_of(wheel):
    spec = importlib.util.spec_from_file_location("wheel_platform", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.platform_of(wheel)


@pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")
def test_a_wheel_asks_for_the_c_library_that_its_symbols_need(tmp_path):
    core = pathlib.Path(ts._core.__file__).read_bytes()
    needed = max(int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", core))
    cxx = max(int(patch) for patch in re.findall(rb"\0GLIBCXX_3\.4\.(\d+)", core))
    wheel = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some/_core.so", core)
        archive.writestr("some/text.py", "GLIBC_2.99")
    found = re.fullmatch(rf"manylinux_2_(\d+)_{platform.machine()}", platform_of(wheel))
    assert found
    # GCC 11's C++ library, 3.4.29, is that of systems with 2.34.
    assert int(found[1]) == needed if cxx <= 29 and needed >= 34 else int(found[1]) >= needed
    builders = tuple(map(int, platform.libc_ver()[1].split(".")))
    assert (2, int(found[1])) <= builders
    if builders == (2, 36):  # Debian 12
        assert int(found[1]) == 34 and cxx <= 29
